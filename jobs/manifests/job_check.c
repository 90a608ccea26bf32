/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/job_check.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/manifests/claims.h"
#include "jobs/manifests/pod_check.h"
#include "jobs/manifests/pod_merge.h"
#include "jobs/manifests/render.h"
#include "jobs/spec/spec_profile.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/strlist.h"
#include "lib/doc/value.h"

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

/* The item of a list that has this name or, of mounts, this path; a first one without a name is the
 * worker's, as in spec_short_template. */
static bool find_item(const struct reader_node *list, const char *name,
                      struct reader_node *ret_item)
{
    for (size_t i = 0; i < json_array_size(list->value); i++) {
        const json_t *item = json_array_get(list->value, i);
        const char *own = value_text(item, "name"), *path = value_text(item, "mountPath");
        bool first = i == 0 && !own && !path && strcmp(name, SPEC_CONTAINER) == 0;
        if (!first && !(own && strcmp(own, name) == 0) && !(path && strcmp(path, name) == 0))
            continue;
        *ret_item = reader_item(list, i);
        return true;
    }
    return false;
}

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
        else if (json_is_array(at->value)
                     ? !find_item(at, key, node)
                     : !key[0] || !json_is_object(at->value) || !reader_get(at, key, node))
            break;
        at = node;
        place->count++;
        *ret_rest = path + (*path == '.');
    }
    return place->count > 0 && !**ret_rest;
}

/* What stands behind "spec.template.spec.containers["WORKER"].", or index 0 of a merged template;
 * NULL: nothing of that container. */
static const char *behind_container(const char *path, const char *worker)
{
    static const char containers[] = "spec.template.spec.containers";
    const char *at = path + strlen(containers);
    char key[PLACE_KEY];
    size_t index = SIZE_MAX;
    bool found = strncmp(path, containers, strlen(containers)) == 0 &&
                 next_key(&at, key, sizeof key, &index) &&
                 (key[0] ? strcmp(key, worker) == 0 : index == 0);
    return found && *at == '.' ? at + 1 : NULL;
}

/* Where the user may have written what is said of the merged template: "spec.tolerations". worker:
 * the name of its container. NULL: nowhere, or without memory. */
static char *in_short_form(const char *path, const char *worker)
{
    static const char *const above[] = {"spec.template.spec.", "spec.template.metadata."};
    static const char mounts[] = "volumeMounts[", resources[] = "spec.template.spec.resources";
    bool of_pod = strncmp(path, resources, strlen(resources)) == 0; /* the short form's are not */
    const char *own = behind_container(path, worker);
    char *text = NULL;
    for (size_t i = 0; !own && !of_pod && i < ARRAY_LEN(above); i++)
        if (strncmp(path, above[i], strlen(above[i])) == 0)
            own = path + strlen(above[i]);
    if (!own)
        return NULL;
    bool mount = strncmp(own, mounts, strlen(mounts)) == 0; /* a part of its volume */
    int rc = mount ? asprintf(&text, "spec.volumes[%s", own + strlen(mounts))
                   : asprintf(&text, "spec.%s", own);
    return rc < 0 ? NULL : text;
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

#define NO_ROLE SIZE_MAX

/* What is said of a role is at its own key, or at that of the top. */
static bool add_in_role(const struct reader_node *root, size_t role, const char *path,
                        const char *other, size_t skip, const char *message)
{
    cleanup_free char *own = role == NO_ROLE ? NULL : in_role(path, role);
    cleanup_free char *own_other = own ? in_role(other, role) : NULL;
    return own && add_at(root, own + skip, own_other ? own_other + skip : NULL, message);
}

/* A finding at this path, or as near to it as the document goes. True: within the role. */
static bool add_placed(const struct reader_node *root, const struct job_spec *spec, size_t role,
                       const char *path, const char *message)
{
    const char *rest = "", *none = "";
    size_t skip = json_object_get(root->value, "spec") ? 0 : strlen("spec.");
    const json_t *worker = spec_role_container(&spec->roles[role == NO_ROLE ? 0 : role]);
    cleanup_free char *other = in_short_form(path, value_text_or(worker, "name", SPEC_CONTAINER));
    struct place place = {.count = 0}, own;
    if (add_in_role(root, role, path, other, skip, message))
        return true;
    if (!find_place(root, path + skip, &place, &rest) && other &&
        find_place(root, other + skip, &own, &none))
        reader_fail(&own.nodes[own.count - 1], "%s", message);
    else
        reader_fail(place.count ? &place.nodes[place.count - 1] : root, "%s%s%s", rest,
                    *rest ? ": " : "", message);
    return false;
}

/* "spec.template.spec.hostNetwork: needs .." becomes a finding at that place. */
static void add_finding(const struct reader_node *root, const struct job_spec *spec,
                        const char *whole)
{
    size_t role = NO_ROLE;
    const char *said = behind_role(root, whole, &role), *text = said ? said : whole;
    const char *end = strstr(text, ": ");
    bool skip = !json_object_get(root->value, "spec");
    bool placed =
        end && (strncmp(text, "spec.", 5) == 0 || (!skip && strncmp(text, "metadata.", 9) == 0));
    cleanup_free char *path = placed ? strndup(text, (size_t)(end - text)) : NULL;
    if (path)
        add_placed(root, spec, role, path, end + 2);
    else
        reader_fail(root, "%s", text);
}

/* ---- the check ---- */

/* What pod_check says of a role's pod. */
struct found {
    const struct reader_node *root;
    const struct job_spec *spec;
    size_t role;
    struct strlist shared; /* what was said at the top, of all roles */
};

static void add_of_pod(void *arg, const char *path, const char *message)
{
    struct found *found = arg;
    cleanup_free char *line = NULL;
    if (asprintf(&line, "%s: %s", path, message) < 0)
        line = NULL;
    if (!line || (found->role != 0 && found->role != NO_ROLE && strlist_has(&found->shared, line)))
        return;
    if (!add_placed(found->root, found->spec, found->role, path, message))
        strlist_add(&found->shared, line);
}

/* A role's workers, which are alike. */
static int try_role_to_render(const struct job_spec *spec, const struct spec_role *role,
                              const struct render_options *options, struct found *found,
                              struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *claim = NULL;
    CLEANUP(json_decrefp) json_t *template = NULL;
    int64_t worker =
        spec->claims == SPEC_CLAIMS_TEMPLATE ? POD_MERGE_INDEXED : (int64_t)role->first;
    int rc = claims_wanted_by(role) ? render_claim(spec, options, role->first, &claim, err) : 0;
    if (rc == 0)
        rc = pod_merge(spec, options, worker, &template, err);
    if (rc == 0)
        pod_check(json_object_get(template, "spec"), add_of_pod, found);
    return rc < 0 && spec->role_count > 1 ? error_prefix(err, "role %s", role->name) : rc;
}

/* Limits, what of the user's templates stands against ours, and what of the pods the API server
 * would not take. */
static int try_to_render(const struct reader_node *root, const struct job_spec *spec,
                         struct drarun_error *err)
{
    const struct render_options options = {.api = CLAIMS_API_V1, .attempt = 1};
    const json_t *document = json_object_get(root->value, "spec");
    bool roles = json_object_get(document ? document : root->value, "roles");
    struct found found = {root, spec, NO_ROLE, STRLIST_INIT};
    CLEANUP(json_decrefp) json_t *shared = NULL;
    int rc = render_shared(spec, &options, &shared, err);
    if (rc == 0)
        pod_check_launcher(&spec->launcher, add_of_pod, &found);
    for (uint32_t r = 0; rc == 0 && r < spec->role_count; r++) {
        found.role = roles ? r : NO_ROLE;
        rc = try_role_to_render(spec, &spec->roles[r], &options, &found, err);
    }
    root->reader->texts.failed |= found.shared.failed;
    strlist_done(&found.shared);
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
        rc = try_to_render(&root, &spec, &own);
    if (rc < 0 && own.kind == DRARUN_ERR_SPEC)
        add_finding(&root, &spec, own.text);
    if (rc == 0 || own.kind == DRARUN_ERR_SPEC)
        rc = reader_result(reader, err);
    if (rc == 0) {
        *ret_spec = spec;
        return 0;
    }
    job_spec_done(&spec);
    if (own.kind == DRARUN_ERR_SPEC || own.code == 0)
        return rc;
    if (err)
        *err = own;
    return rc;
}
