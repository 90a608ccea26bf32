/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/spec/spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/spec/k8s_name.h"
#include "jobs/spec/spec_fields.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define GRACE_S 30 /* the API's default */

static void devices_done(struct spec_devices *d)
{
    for (size_t i = 0; i < d->choice_count; i++) {
        strlist_done(&d->choices[i].selectors);
        json_decref(d->choices[i].tolerations);
        json_decref(d->choices[i].capacity);
    }
    free(d->choices);
    strlist_done(&d->selectors);
    strlist_done(&d->match);
    json_decref(d->capacity);
    json_decref(d->tolerations);
    json_decref(d->config);
}

static void role_done(struct spec_role *role)
{
    devices_done(&role->gpus);
    devices_done(&role->nics);
    devices_done(&role->cpus);
    strlist_done(&role->match);
    strlist_done(&role->shared);
    strlist_done(&role->nccl_env);
    json_decref(role->template);
    machine_done(&role->machine);
    *role = (struct spec_role){0};
}

/* ---- roles ---- */

bool spec_has_roles(const struct job_spec *spec)
{
    return json_object_get(json_object_get(spec->document, "spec"), "roles") != NULL;
}

const struct spec_role *spec_role_of(const struct job_spec *spec, uint32_t worker)
{
    uint32_t r = spec->role_count - 1;
    while (r > 0 && worker < spec->roles[r].first)
        r--;
    return &spec->roles[r];
}

int spec_only_role(const struct job_spec *spec, const char *what, const struct spec_role **ret_role,
                   struct drarun_error *err)
{
    if (spec->role_count != 1)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "spec.roles: %s is not supported yet for a job with several roles (%s "
                          "has %u): give it one whose workers are all alike",
                          what, spec->name, spec->role_count);
    *ret_role = &spec->roles[0];
    return 0;
}

int spec_need_own(const struct job_spec *spec, struct drarun_error *err)
{
    if (strcmp(spec->managed_by, SPEC_CONTROLLER) == 0)
        return 0;
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                      "spec.managedBy: %s runs the job %s, not drarun: kubectl apply makes the "
                      "DraJob for it; leave managedBy out to run it here",
                      spec->managed_by, spec->name);
}

int64_t job_spec_grace_ms(const struct job_spec *spec)
{
    json_int_t most = 0;
    for (uint32_t r = 0; r < spec->role_count; r++) {
        const json_t *given =
            json_object_get(spec_role_pod(&spec->roles[r]), "terminationGracePeriodSeconds");
        json_int_t seconds = json_is_integer(given) ? json_integer_value(given) : GRACE_S;
        most = seconds > most ? seconds : most;
    }
    return (most < SPEC_GRACE_MAX_S ? most : SPEC_GRACE_MAX_S) * 1000;
}

void job_spec_done(struct job_spec *spec)
{
    for (uint32_t r = 0; r < spec->role_count; r++)
        role_done(&spec->roles[r]);
    free(spec->roles);
    json_decref(spec->labels);
    json_decref(spec->annotations);
    json_decref(spec->compute_domain);
    json_decref(spec->launcher.resources);
    json_decref(spec->launcher.node_selector);
    json_decref(spec->launcher.annotations);
    json_decref(spec->launcher.tolerations);
    failure_policy_done(&spec->failure);
    json_decref(spec->document);
    *spec = (struct job_spec){0};
}

/* ---- reading ---- */

static bool is_spec_alone(const json_t *root)
{
    return json_is_object(root) && json_object_size(root) > 0 &&
           !json_object_get(root, "apiVersion") && !json_object_get(root, "kind") &&
           !json_object_get(root, "metadata") && !json_object_get(root, "spec");
}

/* The document as it would be in full; its parts are the text's own. */
static json_t *full_document(const json_t *root, const json_t *spec, const char *name)
{
    json_t *metadata = json_object_get(root, "metadata");
    json_t *own = metadata ? json_copy(metadata) : json_object();
    if (!json_object_get(own, "name") && json_object_set_new(own, "name", json_string(name)) < 0) {
        json_decref(own);
        return NULL;
    }
    return json_pack("{s:s, s:s, s:o, s:O}", "apiVersion", SPEC_API_VERSION, "kind", SPEC_KIND,
                     "metadata", own, "spec", spec);
}

static void read_raw(const struct reader_node *root, bool alone, struct spec_raw *raw)
{
    struct reader_node spec;
    fields_default(&spec_document_fields, raw);
    raw->s.ttl_after_finished = -1;
    raw->s.bind = "none";
    if (!fields_read(alone ? &spec_fields : &spec_document_fields, root, raw))
        return;
    if (alone)
        spec_check(root, root, raw);
    else if (!reader_get(root, "spec", &spec))
        reader_missing(root, "spec is missing");
    else if (json_is_object(spec.value))
        spec_check(root, &spec, raw);
}

static int name_it(const struct reader_node *root, struct job_spec *s, const char *default_name)
{
    struct reader_node metadata;
    if (s->name)
        return 0;
    if (default_name) {
        s->name = default_name;
        return 0;
    }
    if (!reader_get(root, "metadata", &metadata) || !json_object_get(metadata.value, "name"))
        reader_missing(root, "metadata.name is missing");
    return -EINVAL;
}

int spec_read(struct reader *reader, size_t document, const char *default_name,
              struct job_spec *ret_spec, struct drarun_error *err)
{
    struct spec_raw raw = {0};
    struct reader_node root = reader_root(reader, document);
    bool alone = is_spec_alone(root.value);
    read_raw(&root, alone, &raw);
    name_it(&root, &raw.s, default_name);
    int rc = reader_result(reader, err);
    if (rc == 0) {
        json_t *spec = alone ? root.value : json_object_get(root.value, "spec");
        raw.s.document = full_document(alone ? NULL : root.value, spec, raw.s.name);
        raw.s.name =
            json_string_value(json_object_get(json_object_get(raw.s.document, "metadata"), "name"));
        if (!raw.s.name)
            rc = error_set(err, ENOMEM, "out of memory");
        for (uint32_t r = 0; rc == 0 && r < raw.s.role_count; r++)
            rc = machine_builtin(raw.s.roles[r].nccl_profile, &raw.s.roles[r].machine, err);
    }
    role_done(&raw.above);
    if (rc < 0)
        job_spec_done(&raw.s);
    else
        *ret_spec = raw.s;
    return rc;
}

int spec_use_profiles(struct job_spec *spec, const struct profiles *profiles,
                      struct drarun_error *err)
{
    int rc = 0;
    for (uint32_t r = 0; rc == 0 && r < spec->role_count; r++) {
        struct spec_role *role = &spec->roles[r];
        struct machine machine;
        rc = machine_read(profiles, role->nccl_profile, &machine, err);
        if (rc < 0)
            continue;
        machine_done(&role->machine);
        role->machine = machine;
    }
    return rc;
}

int spec_parse(const char *name, const char *text, size_t len, struct job_spec *ret_spec,
               struct drarun_error *err)
{
    CLEANUP(doc_freep) struct doc *doc = NULL;
    struct reader reader;
    char default_name[K8S_LABEL_MAX + 1];
    int rc = doc_parse(name, text, len, DOC_FORMAT_GUESS, NULL, &doc, err);
    if (rc < 0)
        return rc;
    if (doc_count(doc) != 1)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: expected one document, got %zu", name,
                          doc_count(doc));
    spec_default_name(name, default_name, sizeof default_name);
    reader_init(&reader, doc, false);
    rc = spec_read(&reader, 0, default_name, ret_spec, err);
    reader_done(&reader);
    return rc;
}

void spec_default_name(const char *path, char *ret_name, size_t size)
{
    const char *base = strrchr(path, '/');
    size_t n = 0, room = size - 1 < 40 ? size - 1 : 40; /* and the worker's part behind it */
    base = base ? base + 1 : path;
    for (const char *p = base; *p && *p != '.' && n < room; p++) {
        bool letter = (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9');
        if (*p >= 'A' && *p <= 'Z')
            ret_name[n++] = (char)(*p - 'A' + 'a');
        else if (letter)
            ret_name[n++] = *p;
        else if (n > 0 && ret_name[n - 1] != '-')
            ret_name[n++] = '-';
    }
    while (n > 0 && ret_name[n - 1] == '-')
        n--;
    ret_name[n] = '\0';
    if (n == 0 || strcmp(path, "<stdin>") == 0)
        snprintf(ret_name, size, "job");
}
