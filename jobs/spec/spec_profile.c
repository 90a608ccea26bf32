/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/spec/spec_profile.h"

#include <errno.h>
#include <string.h>

#include "jobs/spec/k8s_name.h"
#include "lib/base/buf.h"
#include "lib/base/error.h"
#include "lib/base/nearest.h"

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

/* nccl.profile of what stands at the top, or of a role. */
static int check_in(const struct reader_node *holder, const struct profiles *known,
                    struct drarun_error *err)
{
    struct reader_node nccl, profile;
    if (!json_is_object(holder->value) || !reader_get(holder, "nccl", &nccl) ||
        !json_is_object(nccl.value) || !reader_get(&nccl, "profile", &profile))
        return 0;
    const char *text = json_string_value(profile.value);
    if (!text || strcmp(text, "auto") == 0 || !k8s_is_label(text) || profiles_find(known, text))
        return 0;
    return refuse(&profile, text, known, err);
}

static int check_all(const struct reader_node *spec, const struct profiles *known,
                     struct drarun_error *err)
{
    struct reader_node roles;
    int rc = check_in(spec, known, err);
    if (!reader_get(spec, "roles", &roles))
        return rc;
    for (size_t i = 0; rc == 0 && i < json_array_size(roles.value); i++) {
        struct reader_node role = reader_item(&roles, i);
        rc = check_in(&role, known, err);
    }
    return rc;
}

int spec_check_profile(struct reader *reader, size_t document, const struct profiles *profiles,
                       struct drarun_error *err)
{
    struct profiles builtin = {0};
    struct reader_node root = reader_root(reader, document), spec = root;
    if (!json_is_object(root.value) ||
        (reader_get(&root, "spec", &spec) && !json_is_object(spec.value)))
        return 0;
    int rc = profiles ? 0 : profiles_builtin(&builtin, err);
    if (rc == 0)
        rc = check_all(&spec, profiles ? profiles : &builtin, err);
    profiles_done(&builtin);
    return rc;
}
