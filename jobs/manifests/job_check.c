/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/job_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/manifests/claims.h"
#include "jobs/manifests/render.h"
#include "jobs/spec/spec_profile.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define PLACE_DEPTH 12
#define PLACE_KEY 320 /* a label's key */

/* ---- the place that a message names ---- */

/* "spec.template.metadata.labels["a.b/c"]", "..containers[0].env": the next key or index; false at
 * the end. */
static bool next_key(const char **at, char *key, size_t size, size_t *ret_index)
{
    const char *p = *at + (**at == '.');
    key[0] = '\0';
    if (p[0] == '[' && p[1] == '"') {
        const char *end = strstr(p, "\"]");
        if (!end || (size_t)(end - p) - 2 >= size)
            return false;
        memcpy(key, p + 2, (size_t)(end - p) - 2);
        key[end - p - 2] = '\0';
        *at = end + 2;
        return true;
    }
    if (*p == '[') {
        *ret_index = strtoul(p + 1, NULL, 10);
        p += strcspn(p, "]");
        *at = p + (*p == ']');
        return true;
    }
    size_t length = strcspn(p, ".[");
    if (length == 0 || length >= size)
        return false;
    memcpy(key, p, length);
    key[length] = '\0';
    *at = p + length;
    return true;
}

/* A way down a document; the nodes stand in one another and name the keys. */
struct place {
    struct reader_node nodes[PLACE_DEPTH];
    char keys[PLACE_DEPTH][PLACE_KEY];
    size_t count;
};

/* Goes down as far as the document goes; true: as far as the path. */
static bool find_place(const struct reader_node *root, const char *path, struct place *place,
                       const char **ret_rest)
{
    const struct reader_node *at = root;
    size_t index = 0;
    place->count = 0;
    *ret_rest = path;
    while (place->count < PLACE_DEPTH) {
        char *key = place->keys[place->count];
        struct reader_node *node = &place->nodes[place->count];
        if (!next_key(&path, key, PLACE_KEY, &index))
            break;
        if (!key[0] && index < json_array_size(at->value))
            *node = reader_item(at, index);
        else if (!key[0] || !json_is_object(at->value) || !reader_get(at, key, node))
            break;
        at = node;
        place->count++;
        *ret_rest = path + (*path == '.');
    }
    return place->count > 0 && !**ret_rest;
}

/* Where the user may have written what is said of the merged template: "spec.tolerations". NULL:
 * nowhere, or without memory. */
static char *in_short_form(const char *path)
{
    static const char *const above[] = {"spec.template.spec.containers[0].", "spec.template.spec.",
                                        "spec.template.metadata."};
    char *own = NULL;
    for (size_t i = 0; i < ARRAY_LEN(above); i++)
        if (strncmp(path, above[i], strlen(above[i])) == 0)
            return asprintf(&own, "spec.%s", path + strlen(above[i])) < 0 ? NULL : own;
    return NULL;
}

/* Adds the finding where one of the paths leads to; false: none does. */
static bool add_at(const struct reader_node *root, const char *path, const char *other,
                   const char *message)
{
    const char *const paths[] = {path, other};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct place place;
        const char *rest;
        if (!paths[i] || !find_place(root, paths[i], &place, &rest))
            continue;
        reader_fail(&place.nodes[place.count - 1], "%s", message);
        return true;
    }
    return false;
}

/* "spec.A" is at "spec.roles[2].A" where the role has it. */
static char *in_role(const char *path, size_t role)
{
    char *own = NULL;
    if (!path || strncmp(path, "spec.", strlen("spec.")) != 0 ||
        asprintf(&own, "spec.roles[%zu].%s", role, path + strlen("spec.")) < 0)
        return NULL;
    return own;
}

/* The item of `roles` that a message's "role NAME: " is about, and what stands behind it; NULL: it
 * is about the whole job. */
static const char *behind_role(const struct reader_node *root, const char *text, size_t *ret_role)
{
    const json_t *spec = json_object_get(root->value, "spec");
    const json_t *roles = json_object_get(spec ? spec : root->value, "roles"), *role;
    const char *name = strncmp(text, "role ", 5) == 0 ? text + 5 : NULL;
    const char *end = name ? strstr(name, ": ") : NULL;
    size_t i;
    json_array_foreach(roles, i, role)
    {
        const char *own = json_string_value(json_object_get(role, "name"));
        if (end && own && strlen(own) == (size_t)(end - name) &&
            strncmp(own, name, strlen(own)) == 0) {
            *ret_role = i;
            return end + 2;
        }
    }
    return NULL;
}

/* What is said of a role is at its own key, or at that of the top. */
static const char *try_role(const struct reader_node *root, const char *text, bool *ret_added)
{
    size_t role = 0, skip = json_object_get(root->value, "spec") ? 0 : strlen("spec.");
    const char *said = behind_role(root, text, &role), *end = said ? strstr(said, ": ") : NULL;
    cleanup_free char *path = end ? strndup(said, (size_t)(end - said)) : NULL;
    cleanup_free char *other = path ? in_short_form(path) : NULL;
    cleanup_free char *own = in_role(path, role);
    cleanup_free char *own_other = in_role(other, role);
    *ret_added = own && add_at(root, own + skip, own_other ? own_other + skip : NULL, end + 2);
    return said ? said : text;
}

/* "spec.template.spec.hostNetwork: needs .." becomes a finding at that place. */
static void add_finding(const struct reader_node *root, const char *whole)
{
    bool added = false;
    const char *text = try_role(root, whole, &added);
    if (added)
        return;
    const char *end = strstr(text, ": "), *rest = "", *none = "";
    size_t skip = json_object_get(root->value, "spec") ? 0 : strlen("spec.");
    bool placed =
        end && (strncmp(text, "spec.", 5) == 0 || (!skip && strncmp(text, "metadata.", 9) == 0));
    cleanup_free char *path = placed ? strndup(text, (size_t)(end - text)) : NULL;
    cleanup_free char *other = path ? in_short_form(path) : NULL;
    struct place place = {.count = 0}, own;
    if (!path) {
        reader_fail(root, "%s", text);
    } else if (!find_place(root, path + skip, &place, &rest) && other &&
               find_place(root, other + skip, &own, &none)) {
        reader_fail(&own.nodes[own.count - 1], "%s", end + 2);
    } else {
        reader_fail(place.count ? &place.nodes[place.count - 1] : root, "%s%s%s", rest,
                    *rest ? ": " : "", end + 2);
    }
}

/* ---- the check ---- */

/* A role's workers, which are alike. */
static int try_role_to_render(const struct job_spec *spec, const struct spec_role *role,
                              const struct render_options *options, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *claim = NULL;
    CLEANUP(json_decrefp) json_t *pod = NULL;
    int rc = claims_wanted_by(role) ? render_claim(spec, options, role->first, &claim, err) : 0;
    if (rc == 0 && spec->claims != SPEC_CLAIMS_TEMPLATE) /* else the Indexed Job has the pod */
        rc = render_pod(spec, options, role->first, &pod, err);
    return rc < 0 && spec->role_count > 1 ? error_prefix(err, "role %s", role->name) : rc;
}

/* Limits, and what of the user's templates stands against ours. */
static int try_to_render(const struct job_spec *spec, struct drarun_error *err)
{
    const struct render_options options = {.api = CLAIMS_API_V1, .attempt = 1};
    CLEANUP(json_decrefp) json_t *shared = NULL;
    int rc = render_shared(spec, &options, &shared, err);
    for (uint32_t r = 0; rc == 0 && r < spec->role_count; r++)
        rc = try_role_to_render(spec, &spec->roles[r], &options, err);
    return rc;
}

int job_check(struct reader *reader, size_t document, const char *default_name,
              const struct profiles *profiles, struct job_spec *ret_spec, struct drarun_error *err)
{
    struct reader_node root = reader_root(reader, document);
    struct drarun_error own = {0};
    struct job_spec spec;
    int rc = spec_check_profile(reader, document, profiles, err);
    if (rc == 0)
        rc = spec_read(reader, document, default_name, &spec, err);
    if (rc < 0)
        return rc;
    rc = profiles ? spec_use_profiles(&spec, profiles, &own) : 0;
    if (rc == 0)
        rc = try_to_render(&spec, &own);
    if (rc == 0) {
        *ret_spec = spec;
        return 0;
    }
    job_spec_done(&spec);
    if (own.kind == DRARUN_ERR_SPEC) {
        add_finding(&root, own.text);
        return reader_result(reader, err);
    }
    if (err)
        *err = own;
    return rc;
}
