/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/accept/job.h"

#include <errno.h>

#include "jobs/spec/spec_short.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/load.h"

#define ROOM "5m" /* to wait for it: a node that others use is not tested then */

static int set_default(json_t *object, const char *key, json_t *value_take)
{
    if (json_object_get(object, key)) {
        json_decref(value_take);
        return 0;
    }
    return json_object_set_new(object, key, value_take);
}

/* A test whose pod had to go for others runs again once there is room: that says nothing of its
 * node. */
static json_t *retries(void)
{
    return json_pack("{s:[{s:{s:s}, s:s}, {s:{s:s}, s:s}]}", "rules", "on", "cause", "preempted",
                     "action", "ignore", "on", "cause", "evicted", "action", "ignore");
}

int accept_job_base(const json_t *given, json_t **ret_base, struct drarun_error *err)
{
    bool whole = json_object_get(given, "spec") != NULL;
    CLEANUP(json_decrefp)
    json_t *base = whole ? json_deep_copy(given)
                         : json_pack("{s:s, s:s, s:o}", "apiVersion", "drarun.dev/v1alpha1", "kind",
                                     "DraJob", "spec", json_deep_copy(given));
    json_t *spec = json_object_get(base, "spec");
    if (!json_is_object(spec))
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "it is no job: it has no spec");
    if (spec_short_expand(spec) < 0 || /* a place can be written into a template */
        set_default(base, "metadata", json_object()) < 0 ||
        set_default(spec, "onPreflightWarning", json_string("fail")) < 0 ||
        set_default(spec, "ttlSecondsAfterFinished", json_integer(0)) < 0 ||
        set_default(spec, "failurePolicy", retries()) < 0 ||
        set_default(
            spec, "timeouts",
            json_pack("{s:s, s:s, s:s}", "queue", ROOM, "nodes", ROOM, "allocation", ROOM)) < 0)
        return error_set(err, ENOMEM, "out of memory");
    *ret_base = TAKE_PTR(base);
    return 0;
}

int accept_job_read(const char *path, json_t **ret_base, struct drarun_error *err)
{
    CLEANUP(doc_freep) struct doc *doc = NULL;
    int rc = doc_load_one(path, &doc, err);
    return rc < 0 ? rc : accept_job_base(doc_root(doc, 0), ret_base, err);
}

/* ---- one test ---- */

static json_t *on_nodes(const struct accept_place *place)
{
    json_t *terms = json_array();
    for (unsigned i = 0; i < place->count; i++) /* a term's matchFields takes one name */
        json_array_append_new(terms, json_pack("{s:[{s:s, s:s, s:[s]}]}", "matchFields", "key",
                                               "metadata.name", "operator", "In", "values",
                                               place->nodes[i]));
    return json_pack("{s:{s:o}}", "requiredDuringSchedulingIgnoredDuringExecution",
                     "nodeSelectorTerms", terms);
}

/* The member, made where it is missing; borrowed; NULL without memory. */
static json_t *member(json_t *object, const char *key)
{
    json_t *found = json_object_get(object, key);
    if (found)
        return found;
    json_object_set_new(object, key, json_object());
    return json_object_get(object, key);
}

/* Nodes that an earlier run found bad are tested again. */
static int tolerate_our_taint(json_t *pod)
{
    json_t *tolerations = json_object_get(pod, "tolerations");
    if (!tolerations && json_object_set_new(pod, "tolerations", tolerations = json_array()) < 0)
        return -1;
    return json_array_append_new(
        tolerations, json_pack("{s:s, s:s}", "key", ACCEPT_TAINT, "operator", "Exists"));
}

json_t *accept_job_make(const json_t *base, const struct accept_place *place)
{
    CLEANUP(json_decrefp) json_t *job = json_deep_copy(base);
    json_t *metadata = member(job, "metadata"), *spec = json_object_get(job, "spec");
    json_t *pod = member(json_object_get(spec, "template"), "spec");
    json_t *affinity = member(pod, "affinity");
    int rc = json_object_set_new(metadata, "name", json_string(place->name));
    rc |= json_object_set_new(member(metadata, "labels"), "drarun-accept", json_string(place->run));
    rc |= json_object_set_new(spec, "workers", json_integer(place->count));
    rc |= tolerate_our_taint(pod);
    rc |= json_object_set_new(affinity, "nodeAffinity", on_nodes(place));
    if (place->count > 1)
        rc |= json_object_set_new(spec, "placement", json_pack("{s:s}", "spread", "node"));
    if (place->priority_class)
        rc |= json_object_set_new(pod, "priorityClassName", json_string(place->priority_class));
    return rc == 0 ? TAKE_PTR(job) : NULL;
}
