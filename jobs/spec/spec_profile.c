/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/spec/spec_profile.h"

#include <errno.h>
#include <string.h>

#include "jobs/spec/k8s_name.h"
#include "lib/base/buf.h"
#include "lib/base/error.h"
#include "lib/base/nearest.h"

/* The value of nccl.profile, in a document or in a spec alone. */
static bool find_profile(const struct reader_node *root, struct reader_node nodes[3])
{
    static const char *const path[] = {"spec", "nccl", "profile"};
    const struct reader_node *at = root;
    bool alone = json_is_object(root->value) && !json_object_get(root->value, "spec");
    for (size_t i = alone; i < 3; at = &nodes[i++])
        if (!json_is_object(at->value) || !reader_get(at, path[i], &nodes[i]))
            return false;
    return json_is_string(nodes[2].value);
}

/* People leave out the vendor: a4 is gke-a4. */
static const char *name_with(const struct profiles *profiles, const char *text)
{
    for (size_t i = 0; i < profiles->count; i++)
        if (strlen(text) > 1 && strstr(profiles->list[i].name, text))
            return profiles->list[i].name;
    return NULL;
}

static int refuse(const struct reader_node *node, const char *text, const struct profiles *profiles,
                  struct drarun_error *err)
{
    CLEANUP(buf_done) struct buf words = BUF_INIT;
    CLEANUP(buf_done) struct buf list = BUF_INIT;
    char nearest[NEAREST_WORD_MAX];
    for (size_t i = 0; i < profiles->count; i++) {
        buf_printf(&words, " %s", profiles->list[i].name);
        buf_printf(&list, "%s%s", i ? ", " : "", profiles->list[i].name);
    }
    if (!words.data || !list.data)
        return error_set(err, ENOMEM, "profiles: out of memory");
    bool near = nearest_word(text, words.data, nearest, sizeof nearest);
    const char *meant = near ? nearest : name_with(profiles, text);
    if (meant)
        reader_fail(node, "no profile \"%s\"; did you mean %s?", text, meant);
    else
        reader_fail(node, "no profile \"%s\"; expected auto or one of %s", text, list.data);
    return 0;
}

int spec_check_profile(struct reader *reader, size_t document, const struct profiles *profiles,
                       struct drarun_error *err)
{
    struct profiles builtin = {0};
    struct reader_node root = reader_root(reader, document), nodes[3];
    if (!find_profile(&root, nodes))
        return 0;
    const char *text = json_string_value(nodes[2].value);
    if (strcmp(text, "auto") == 0 || !k8s_is_label(text))
        return 0;
    int rc = profiles ? 0 : profiles_builtin(&builtin, err);
    const struct profiles *known = profiles ? profiles : &builtin;
    if (rc == 0 && !profiles_find(known, text))
        rc = refuse(&nodes[2], text, known, err);
    profiles_done(&builtin);
    return rc;
}
