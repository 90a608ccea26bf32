/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/spec/node_spread.h"

#include <errno.h>
#include <string.h>

#include "lib/dra/node_selector.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

static int no_memory(struct drarun_error *err)
{
    return error_set(err, ENOMEM, "out of memory");
}

/* ---- what the template says itself ---- */

/* Of the job's own workers, by node. */
struct wish {
    bool apart, together; /* required */
    bool other;           /* preferred, or by topologySpreadConstraints */
};

/* Those that every worker's pod has, by which a term can select it. */
static json_t *labels_of(const struct job_spec *spec, const struct spec_role *role, bool foreign)
{
    json_t *template = json_object_get(json_object_get(role->template, "metadata"), "labels");
    const char *name = spec->name ? spec->name : "";
    json_t *labels = json_pack("{s:s}", "drarun.dev/job", name);
    int rc = labels ? 0 : -1;
    if (rc == 0 && spec->labels)
        rc = json_object_update(labels, spec->labels);
    if (rc == 0 && json_is_object(template))
        rc = json_object_update(labels, template);
    if (rc == 0 && !foreign)
        rc = json_object_set_new(labels, "drarun.dev/attempt", json_string("1"));
    if (rc == 0 && !foreign)
        rc = json_object_set_new(labels,
                                 spec->claims == SPEC_CLAIMS_TEMPLATE
                                     ? "batch.kubernetes.io/job-completion-index"
                                     : "drarun.dev/worker",
                                 json_string("0"));
    if (rc == 0)
        return labels;
    json_decref(labels);
    return NULL;
}

/* 1, 0 or -1 without memory. A label selector's expressions are those of node selectors. */
static int is_selected(const json_t *selector, const json_t *labels)
{
    const char *key;
    json_t *value, *expressions = json_object_get(selector, "matchExpressions");
    if (!json_is_object(selector)) /* left out, it selects nothing */
        return 0;
    json_object_foreach(json_object_get(selector, "matchLabels"), key, value)
    {
        if (!json_equal(value, json_object_get(labels, key)))
            return 0;
    }
    if (json_array_size(expressions) == 0)
        return 1;
    CLEANUP(json_decrefp)
    json_t *terms = json_pack("{s:[{s:O}]}", "nodeSelectorTerms", "matchExpressions", expressions);
    return terms ? node_selector_matches(terms, "", labels) == 1 : -1;
}

static bool has_any(const json_t *keys, const json_t *labels)
{
    size_t i;
    json_t *key;
    json_array_foreach(keys, i, key)
    {
        if (json_is_string(key) && json_object_get(labels, json_string_value(key)))
            return true;
    }
    return false;
}

/* Is it about the workers among themselves, by node? Terms that name namespaces are about others'
 * pods. 1, 0 or -1 without memory. */
static int is_of_workers(const json_t *term, const json_t *labels)
{
    if (strcmp(value_text_or(term, "topologyKey", ""), NODE_SPREAD_TOPOLOGY) != 0 ||
        json_object_get(term, "namespaces") || json_object_get(term, "namespaceSelector") ||
        has_any(json_object_get(term, "mismatchLabelKeys"), labels))
        return 0;
    return is_selected(json_object_get(term, "labelSelector"), labels);
}

/* inner: what a term stands in, or NULL. */
static int look_for(const json_t *list, const char *inner, const json_t *labels, bool *ret_found)
{
    size_t i;
    json_t *term;
    json_array_foreach(list, i, term)
    {
        int rc = is_of_workers(inner ? json_object_get(term, inner) : term, labels);
        if (rc < 0)
            return rc;
        *ret_found |= rc == 1;
    }
    return 0;
}

static int read_wish(const struct job_spec *spec, const struct spec_role *role, bool foreign,
                     struct wish *ret_wish, struct drarun_error *err)
{
    const json_t *pod = spec_role_pod(role);
    const json_t *affinity = json_object_get(pod, "affinity");
    const json_t *near = json_object_get(affinity, "podAffinity");
    const json_t *far = json_object_get(affinity, "podAntiAffinity");
    CLEANUP(json_decrefp) json_t *labels = labels_of(spec, role, foreign);
    int rc = labels ? 0 : -1;
    *ret_wish = (struct wish){0};
    if (rc == 0)
        rc = look_for(json_object_get(far, REQUIRED), NULL, labels, &ret_wish->apart);
    if (rc == 0)
        rc = look_for(json_object_get(near, REQUIRED), NULL, labels, &ret_wish->together);
    if (rc == 0)
        rc = look_for(json_object_get(far, PREFERRED), "podAffinityTerm", labels, &ret_wish->other);
    if (rc == 0)
        rc =
            look_for(json_object_get(near, PREFERRED), "podAffinityTerm", labels, &ret_wish->other);
    if (rc == 0)
        rc = look_for(json_object_get(pod, "topologySpreadConstraints"), NULL, labels,
                      &ret_wish->other);
    return rc < 0 ? no_memory(err) : 0;
}

/* ---- what holds ---- */

static bool wants_whole_nodes(const struct spec_role *role)
{
    return role->gpus.all || (role->machine.gpus > 0 && role->gpus.count >= role->machine.gpus);
}

int node_spread_of(const struct job_spec *spec, const struct spec_role *role, bool foreign,
                   struct drarun_error *err)
{
    struct wish wish;
    if (spec->workers < 2)
        return NODE_SPREAD_NONE;
    if (spec->spread == SPEC_SPREAD_NODE)
        return NODE_SPREAD_BY_SPEC;
    int rc = read_wish(spec, role, foreign, &wish, err);
    if (rc < 0)
        return rc;
    if (wish.apart)
        return NODE_SPREAD_BY_TEMPLATE;
    /* who says how workers share nodes has thought of it; the default is for who has not */
    bool by_default = spec->spread != SPEC_SPREAD_NONE && !wish.together && !wish.other &&
                      role->shared.count == 0 && /* whose devices are of one node mostly */
                      (spec_role_has_nics(role) || wants_whole_nodes(role));
    return by_default ? NODE_SPREAD_BY_SPEC : NODE_SPREAD_NONE;
}

bool node_spread_is_ours(const struct job_spec *spec, const struct spec_role *role)
{
    return node_spread_of(spec, role, false, NULL) == NODE_SPREAD_BY_SPEC;
}

bool node_spread_is_ours_for_any(const struct job_spec *spec)
{
    for (uint32_t r = 0; r < spec->role_count; r++)
        if (node_spread_is_ours(spec, &spec->roles[r]))
            return true;
    return false;
}

int node_spread_predict(const struct job_spec *spec, const struct spec_role *role,
                        struct predict_cluster *cluster, struct drarun_error *err)
{
    int spread = node_spread_of(spec, role, false, err);
    if (spread == NODE_SPREAD_BY_SPEC) {
        cluster->spread_by = NODE_SPREAD_KEY;
        cluster->spread_off = NODE_SPREAD_KEY ": none";
    } else if (spread == NODE_SPREAD_BY_TEMPLATE) {
        cluster->spread_by = "the template's podAntiAffinity";
    }
    return spread < 0 ? spread : 0;
}

int node_spread_is_refused(const struct job_spec *spec, const struct spec_role *role,
                           struct drarun_error *err)
{
    struct wish wish;
    int rc = read_wish(spec, role, false, &wish, err);
    return rc < 0 ? rc : wish.together;
}

/* ---- the pods ---- */

/* The member, made when it is missing. */
static int member(json_t *parent, const char *path, const char *key, json_type type,
                  json_t **ret_member, struct drarun_error *err)
{
    json_t *found = json_object_get(parent, key);
    if (found && json_typeof(found) != type)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s%s: expected %s", path, key,
                          type == JSON_OBJECT ? "an object" : "a list");
    if (!found) {
        found = type == JSON_OBJECT ? json_object() : json_array();
        if (json_object_set_new(parent, key, found) < 0)
            return no_memory(err);
    }
    *ret_member = found;
    return 0;
}

/* Of this attempt alone: what is left of the one before, on nodes that do not answer perhaps, keeps
 * nobody away. */
static json_t *own_term(const json_t *labels)
{
    return json_pack("{s:{s:{s:O, s:O*, s:s}}, s:s}", "labelSelector", "matchLabels",
                     "drarun.dev/job", json_object_get(labels, "drarun.dev/job"),
                     "drarun.dev/attempt", json_object_get(labels, "drarun.dev/attempt"),
                     NODE_SPREAD_LABEL, NODE_SPREAD_LABEL_VALUE, "topologyKey",
                     NODE_SPREAD_TOPOLOGY);
}

int node_spread_add(json_t *pod_spec, const json_t *labels, struct drarun_error *err)
{
    json_t *affinity = NULL, *apart = NULL, *required = NULL;
    int rc = member(pod_spec, "spec.template.spec.", "affinity", JSON_OBJECT, &affinity, err);
    if (rc == 0)
        rc = member(affinity, "spec.template.spec.affinity.", "podAntiAffinity", JSON_OBJECT,
                    &apart, err);
    if (rc == 0)
        rc = member(apart, "spec.template.spec.affinity.podAntiAffinity.", REQUIRED, JSON_ARRAY,
                    &required, err);
    if (rc < 0)
        return rc;
    return json_array_append_new(required, own_term(labels)) < 0 ? no_memory(err) : 0;
}
