/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/namespace_fit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "jobs/manifests/claim_usage.h"
#include "jobs/manifests/claims.h"
#include "jobs/manifests/extended_claim.h"
#include "jobs/manifests/pod_amounts.h"
#include "jobs/manifests/render.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"
#include "lib/dra/device_class.h"
#include "lib/dra/extended_resource.h"

#define RESOURCE_MAX 320
#define ROUNDING 1e-6 /* amounts are reals */

struct look {
    const struct job_spec *spec;
    const struct namespace_rules *rules;
    json_t *ranges; /* of the namespace */
    json_t *used;   /* resource as quotas name it -> a real number, of all objects of the job */
    struct buf why; /* the first reason */
};

static int no_memory(struct drarun_error *err)
{
    return error_set(err, ENOMEM, "out of memory");
}

static const char *name_of(const json_t *object)
{
    return value_text_or(json_object_get(object, "metadata"), "name", "");
}

/* ---- which rules ---- */

/* The namespace whose rules apply; NULL when the input has rules of several, or names none. */
static const char *namespace_of(const struct job_spec *spec, const struct namespace_rules *rules,
                                bool *ret_several)
{
    const json_t *lists[] = {rules->quotas, rules->limit_ranges};
    const char *found = NULL;
    *ret_several = false;
    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        size_t i;
        json_t *object;
        json_array_foreach(lists[l], i, object)
        {
            const char *own = value_text(json_object_get(object, "metadata"), "namespace");
            *ret_several |= found && own && strcmp(found, own) != 0;
            found = own ? own : found;
        }
    }
    return spec->namespace ? spec->namespace : found;
}

static json_t *those_of(const json_t *list, const char *namespace)
{
    json_t *kept = json_array();
    size_t i;
    json_t *object;
    json_array_foreach(list, i, object)
    {
        const char *own = value_text(json_object_get(object, "metadata"), "namespace");
        if (!own || !namespace || strcmp(own, namespace) == 0)
            json_array_append(kept, object);
    }
    return kept;
}

/* ---- limit ranges ---- */

/* As LimitRanger's setDefaults: what a container says of a resource stays. */
static void add_defaults(json_t *container, const char *list, const json_t *defaults)
{
    json_t *resources = json_object_get(container, "resources");
    if (!resources)
        json_object_set_new(container, "resources", resources = json_object());
    json_t *own = json_object_get(resources, list);
    if (!own)
        json_object_set_new(resources, list, own = json_object());
    json_object_update_missing(own, unconst(defaults));
}

/* The API server fills in a range's defaults when it is made (SetDefaults_LimitRangeItem); files of
 * people have not been there. */
static void default_containers(json_t *containers, const json_t *limit)
{
    static const char *const requests[] = {"defaultRequest", "default", "max", "min"};
    size_t i;
    json_t *container;
    json_array_foreach(containers, i, container)
    {
        json_t *resources = json_object_get(container, "resources");
        json_t *said = json_object_get(resources, "limits"); /* a request, where none is given */
        if (said)
            add_defaults(container, "requests", said);
        add_defaults(container, "limits", json_object_get(limit, "default"));
        add_defaults(container, "limits", json_object_get(limit, "max"));
        for (size_t d = 0; d < ARRAY_LEN(requests); d++)
            add_defaults(container, "requests", json_object_get(limit, requests[d]));
    }
}

static bool is_of(const json_t *limit, const char *type)
{
    return strcmp(value_text_or(limit, "type", ""), type) == 0;
}

static void add_range_defaults(const json_t *ranges, json_t *pod)
{
    size_t i, k;
    json_t *range, *limit;
    json_array_foreach(ranges, i, range)
    {
        json_array_foreach(json_object_get(json_object_get(range, "spec"), "limits"), k, limit)
        {
            if (!is_of(limit, "Container"))
                continue;
            default_containers(json_object_get(pod, "containers"), limit);
            default_containers(json_object_get(pod, "initContainers"), limit);
        }
    }
}

/* As it is written; files of people may have a number. */
static void add_quantity(const json_t *value, double amount, struct buf *out)
{
    if (json_is_string(value))
        buf_add_str(out, json_string_value(value));
    else
        buf_printf(out, "%.15g", amount);
}

struct asked { /* of a container or a pod */
    const char *what;
    const json_t *requests, *limits; /* quantities, or numbers */
};

/* As minConstraint and maxConstraint: a bound of what is not said is not met. */
static int check_bound(struct look *look, const json_t *range, const json_t *limit, bool most,
                       const struct asked *asked, struct drarun_error *err)
{
    const json_t *bounds = json_object_get(limit, most ? "max" : "min");
    const json_t *said = most ? asked->limits : asked->requests;
    const json_t *other = most ? asked->requests : asked->limits;
    const char *name;
    json_t *value;
    value_foreach(bounds, name, value)
    {
        double bound, mine, both;
        int rc = pod_amount(bounds, name, &bound, err);
        rc = rc < 0 ? rc : pod_amount(said, name, &mine, err);
        rc = rc < 0 ? rc : pod_amount(other, name, &both, err);
        if (rc < 0)
            return rc;
        bool none = !json_object_get(said, name);
        bool out = most ? mine > bound + ROUNDING || both > bound + ROUNDING
                        : mine < bound - ROUNDING ||
                              (json_object_get(other, name) && both < bound - ROUNDING);
        if (look->why.len > 0 || (!none && !out))
            continue;
        buf_printf(&look->why, "LimitRange %s: %s %s %s, %s ", name_of(range), asked->what,
                   none ? "says nothing of" : "is out of the bounds of", name,
                   most ? "at most" : "at least");
        add_quantity(value, bound, &look->why);
        buf_add_str(&look->why, " is allowed");
    }
    return 0;
}

/* As limitRequestRatioConstraint: both must be said. */
static int check_ratio(struct look *look, const json_t *range, const json_t *limit,
                       const struct asked *asked, struct drarun_error *err)
{
    const json_t *ratios = json_object_get(limit, "maxLimitRequestRatio");
    const char *name;
    json_t *value;
    value_foreach(ratios, name, value)
    {
        double most, requested, limited;
        int rc = pod_amount(ratios, name, &most, err);
        rc = rc < 0 ? rc : pod_amount(asked->requests, name, &requested, err);
        rc = rc < 0 ? rc : pod_amount(asked->limits, name, &limited, err);
        if (rc < 0)
            return rc;
        bool none = requested <= 0 || limited <= 0;
        if (look->why.len > 0 || (!none && limited <= requested * most * (1 + ROUNDING)))
            continue;
        buf_printf(&look->why, "LimitRange %s: %s ", name_of(range), asked->what);
        if (none)
            buf_printf(&look->why, "says no %s of %s", requested <= 0 ? "request" : "limit", name);
        else
            buf_printf(&look->why, "has a limit of %s that is %.3g times its request", name,
                       limited / requested);
        buf_printf(&look->why, ", a ratio of at most %.6g is allowed", most);
    }
    return 0;
}

static int check_limit(struct look *look, const json_t *range, const json_t *limit,
                       const struct asked *asked, struct drarun_error *err)
{
    int rc = check_bound(look, range, limit, false, asked, err);
    if (rc == 0)
        rc = check_bound(look, range, limit, true, asked, err);
    return rc == 0 ? check_ratio(look, range, limit, asked, err) : rc;
}

static int check_containers(struct look *look, const json_t *range, const json_t *limit,
                            const json_t *containers, const char *pod, struct drarun_error *err)
{
    size_t i;
    json_t *container;
    int rc = 0;
    json_array_foreach(containers, i, container)
    {
        char what[RESOURCE_MAX];
        const json_t *resources = json_object_get(container, "resources");
        snprintf(what, sizeof what, "container %.100s of %s", value_text_or(container, "name", "0"),
                 pod);
        const struct asked asked = {what, json_object_get(resources, "requests"),
                                    json_object_get(resources, "limits")};
        if (rc == 0)
            rc = check_limit(look, range, limit, &asked, err);
    }
    return rc;
}

static int check_ranges(struct look *look, const json_t *pod, const char *what,
                        const struct asked *whole, struct drarun_error *err)
{
    size_t i, k;
    json_t *range, *limit;
    int rc = 0;
    json_array_foreach(look->ranges, i, range)
    {
        json_array_foreach(json_object_get(json_object_get(range, "spec"), "limits"), k, limit)
        {
            const json_t *list = json_object_get(pod, "containers");
            const json_t *initial = json_object_get(pod, "initContainers");
            if (rc == 0 && is_of(limit, "Container"))
                rc = check_containers(look, range, limit, list, what, err);
            if (rc == 0 && is_of(limit, "Container"))
                rc = check_containers(look, range, limit, initial, what, err);
            if (rc == 0 && is_of(limit, "Pod"))
                rc = check_limit(look, range, limit, whole, err);
        }
    }
    return rc;
}

/* ---- what the job uses ---- */

static int use(struct look *look, const char *resource, double much, struct drarun_error *err)
{
    double now = json_real_value(json_object_get(look->used, resource));
    return json_object_set_new(look->used, resource, json_real(now + much)) < 0 ? no_memory(err)
                                                                                : 0;
}

static int use_amounts(struct look *look, const json_t *amounts, const char *prefix, double pods,
                       struct drarun_error *err)
{
    const char *name;
    json_t *value;
    value_foreach(amounts, name, value)
    {
        char resource[RESOURCE_MAX];
        snprintf(resource, sizeof resource, "%s%s", prefix, name);
        int rc = use(look, resource, pods * json_real_value(value), err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* A quota of CPU or memory takes no pod whose containers do not all say how much, where the pod
 * itself says nothing. */
static int check_said(struct look *look, const json_t *quotas, const json_t *pod, const char *what)
{
    static const struct {
        const char *resource, *list, *name;
    } demands[] = {{"cpu", "requests", "cpu"},       {"requests.cpu", "requests", "cpu"},
                   {"memory", "requests", "memory"}, {"requests.memory", "requests", "memory"},
                   {"limits.cpu", "limits", "cpu"},  {"limits.memory", "limits", "memory"}};
    static const char *const kinds[] = {"containers", "initContainers"};
    if (pod_has_amounts(pod))
        return 0;
    for (size_t q = 0; q < json_array_size(quotas); q++)
        for (size_t d = 0; d < ARRAY_LEN(demands); d++)
            for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
                const json_t *quota = json_array_get(quotas, q);
                const json_t *hard = json_object_get(json_object_get(quota, "spec"), "hard");
                size_t i;
                json_t *container;
                json_array_foreach(json_object_get(pod, kinds[k]), i, container)
                {
                    const json_t *resources = json_object_get(container, "resources");
                    const json_t *list = json_object_get(resources, demands[d].list);
                    if (json_object_get(hard, demands[d].resource) && look->why.len == 0 &&
                        !json_object_get(list, demands[d].name))
                        buf_printf(&look->why,
                                   "ResourceQuota %s: container %s of %s says no %s.%s, which "
                                   "the quota demands of all",
                                   name_of(quota), value_text_or(container, "name", "0"), what,
                                   demands[d].list, demands[d].name);
                }
            }
    return look->why.failed ? -ENOMEM : 0;
}

/* What it has as an extended resource is charged to the pod already. */
static int use_beyond(struct look *look, const json_t *claim, const json_t *of_pod, double pods,
                      struct drarun_error *err)
{
    const size_t prefix = strlen("requests.");
    const char *name;
    json_t *value;
    int rc = 0;
    value_foreach(claim, name, value)
    {
        double much = json_real_value(value);
        if (strncmp(name, "requests.", prefix) == 0)
            much -= json_real_value(json_object_get(of_pod, name + prefix));
        if (rc == 0 && much > 0)
            rc = use(look, name, pods * much, err);
    }
    return rc;
}

/* The scheduler's own claims, for extended resources that devices of a class serve. */
static int use_extended(struct look *look, const json_t *pod, const json_t *of_pod, double pods,
                        struct drarun_error *err)
{
    const struct namespace_rules *rules = look->rules;
    const struct extended_cluster cluster = {rules->nodes, rules->classes, rules->minor};
    CLEANUP(json_decrefp) json_t *requests = NULL;
    CLEANUP(json_decrefp) json_t *one = json_object();
    int rc = extended_claim(pod, &cluster, &requests, NULL, NULL, err);
    if (rc < 0 || json_array_size(requests) == 0)
        return rc;
    CLEANUP(json_decrefp) json_t *claim = json_pack("{s:{s:O}}", "devices", "requests", requests);
    rc = claim && one ? claim_usage(claim, rules->classes, rules->minor, one, err) : no_memory(err);
    return rc == 0 ? use_beyond(look, one, of_pod, pods, err) : rc;
}

static int use_pods(struct look *look, const json_t *quotas, const json_t *spec, const char *what,
                    uint32_t pods, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *pod = json_deep_copy(spec);
    CLEANUP(json_decrefp) json_t *requests = json_object();
    CLEANUP(json_decrefp) json_t *limits = json_object();
    if (!pod || !requests || !limits)
        return no_memory(err);
    add_range_defaults(look->ranges, pod);
    int rc = pod_requests(pod, requests, err);
    if (rc == 0)
        rc = pod_limits(pod, limits, err);
    const struct asked whole = {what, requests, limits};
    if (rc == 0)
        rc = check_ranges(look, pod, what, &whole, err);
    if (rc == 0 && check_said(look, quotas, pod, what) < 0)
        rc = no_memory(err);
    if (rc == 0)
        rc = use_amounts(look, requests, "", pods, err);
    if (rc == 0)
        rc = use_amounts(look, requests, "requests.", pods, err);
    if (rc == 0)
        rc = use_amounts(look, limits, "limits.", pods, err);
    if (rc == 0)
        rc = use_extended(look, pod, requests, pods, err);
    if (rc == 0)
        rc = use(look, "pods", pods, err);
    return rc == 0 ? use(look, "count/pods", pods, err) : rc;
}

static int use_claims(struct look *look, const json_t *claim, uint32_t claims,
                      struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *one = json_object();
    int rc = one ? claim_usage(json_object_get(claim, "spec"), look->rules->classes,
                               look->rules->minor, one, err)
                 : no_memory(err);
    return rc == 0 ? use_amounts(look, one, "", claims, err) : rc;
}

/* An object beside the workers' own, by the names that quotas have for its kind. */
static int use_object(struct look *look, const json_t *quotas, const json_t *object,
                      struct drarun_error *err)
{
    static const struct {
        const char *kind, *count, *plain;
    } kinds[] = {{"ConfigMap", "count/configmaps", "configmaps"},
                 {"Secret", "count/secrets", "secrets"},
                 {"Job", "count/jobs.batch", NULL},
                 {"NetworkPolicy", "count/networkpolicies.networking.k8s.io", NULL},
                 {"PodGroup", "count/podgroups.scheduling.k8s.io", NULL},
                 {"ResourceClaimTemplate", "count/resourceclaimtemplates.resource.k8s.io", NULL}};
    const char *kind = value_text_or(object, "kind", "");
    const json_t *job = json_object_get(object, "spec");
    const json_t *pod = json_object_get(json_object_get(job, "template"), "spec");
    bool workers = strcmp(value_text_or(job, "completionMode", ""), "Indexed") == 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(kinds); i++) {
        if (strcmp(kind, kinds[i].kind) != 0)
            continue;
        rc = use(look, kinds[i].count, 1, err);
        if (rc == 0 && kinds[i].plain)
            rc = use(look, kinds[i].plain, 1, err);
    }
    if (rc == 0 && strcmp(kind, "Job") == 0)
        rc = use_pods(look, quotas, pod, workers ? "a worker's pod" : "the launcher's pod",
                      workers ? look->spec->workers : 1, err);
    if (rc == 0 && strcmp(kind, "ResourceClaimTemplate") == 0)
        rc = use_claims(look, json_object_get(object, "spec"), look->spec->workers, err);
    return rc;
}

/* Its workers' pods and claims, which are all alike. */
static int use_role(struct look *look, const json_t *quotas, const struct render_options *options,
                    const struct spec_role *role, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *claim = NULL;
    CLEANUP(json_decrefp) json_t *pod = NULL;
    int rc =
        claims_wanted_by(role) ? render_claim(look->spec, options, role->first, &claim, err) : 0;
    if (rc == 0 && claim)
        rc = use_claims(look, claim, role->workers, err);
    if (rc == 0)
        rc = render_pod(look->spec, options, role->first, &pod, err);
    return rc == 0 ? use_pods(look, quotas, json_object_get(pod, "spec"), "a worker's pod",
                              role->workers, err)
                   : rc;
}

static int use_job(struct look *look, const json_t *quotas, struct drarun_error *err)
{
    const struct render_options options = {.api = CLAIMS_API_V1, .attempt = 1};
    CLEANUP(json_decrefp) json_t *shared = NULL;
    size_t i;
    json_t *object;
    int rc = render_shared(look->spec, &options, &shared, err);
    json_array_foreach(shared, i, object)
    {
        if (rc == 0)
            rc = use_object(look, quotas, object, err);
    }
    if (rc < 0 || look->spec->claims == SPEC_CLAIMS_TEMPLATE)
        return rc;
    for (uint32_t r = 0; rc == 0 && r < look->spec->role_count; r++)
        rc = use_role(look, quotas, &options, &look->spec->roles[r], err);
    return rc;
}

/* ---- quotas ---- */

static void add_amount(const char *resource, double amount, struct buf *out)
{
    const double gi = 1024.0 * 1024 * 1024;
    bool bytes =
        strstr(resource, "memory") || strstr(resource, "storage") || strstr(resource, "hugepages");
    if (bytes && amount >= gi)
        buf_printf(out, "%.6gGi", amount / gi);
    else
        buf_printf(out, "%.15g", amount);
}

static void add_shortage(const json_t *quota, const char *resource, double mine, double used,
                         double all, struct buf *out)
{
    buf_printf(out, "ResourceQuota %s: %s: the job asks for ", name_of(quota), resource);
    add_amount(resource, mine, out);
    buf_add_str(out, ", ");
    add_amount(resource, used, out);
    buf_add_str(out, " of ");
    add_amount(resource, all, out);
    buf_add_str(out, " are used");
}

/* Which extended resource a class has is said by the DeviceClass: those that the job claims, which
 * are counted by their own names, are not all among those given. */
static bool may_count_claims(const struct look *look, const char *resource)
{
    static const char by_class[] = "requests." EXTENDED_RESOURCE_OF_CLASS;
    const struct namespace_rules *rules = look->rules;
    const char *used;
    json_t *amount;
    if (rules->classes_known || strncmp(resource, "requests.", strlen("requests.")) != 0 ||
        !strchr(resource, '/') || strncmp(resource, by_class, strlen(by_class)) == 0)
        return false;
    json_object_foreach(look->used, used, amount)
    {
        if (strncmp(used, by_class, strlen(by_class)) == 0 && json_real_value(amount) > 0 &&
            !device_class_find(rules->classes, used + strlen(by_class)))
            return true;
    }
    return false;
}

static int check_quota(struct look *look, const json_t *quota, struct strlist *notes,
                       struct drarun_error *err)
{
    const json_t *status = json_object_get(quota, "status");
    const json_t *hard = json_object_get(json_object_get(quota, "spec"), "hard");
    const char *name;
    json_t *value;
    if (!json_object_get(status, "used"))
        strlist_addf(notes, "what is used of ResourceQuota %s already", name_of(quota));
    value_foreach(hard, name, value)
    {
        double all, used, mine = json_real_value(json_object_get(look->used, name));
        int rc = pod_amount(hard, name, &all, err);
        rc = rc < 0 ? rc : pod_amount(json_object_get(status, "used"), name, &used, err);
        if (rc < 0)
            return rc;
        if (mine > 0 && used + mine > all + ROUNDING && look->why.len == 0)
            add_shortage(quota, name, mine, used, all, &look->why);
        else if (may_count_claims(look, name))
            strlist_addf(notes,
                         "whether claimed devices count for %s of ResourceQuota %s: give the "
                         "DeviceClasses",
                         name, name_of(quota));
    }
    return 0;
}

static bool has_scopes(const json_t *quota)
{
    const json_t *spec = json_object_get(quota, "spec");
    return json_array_size(json_object_get(spec, "scopes")) > 0 ||
           json_object_get(spec, "scopeSelector");
}

/* Those that count every pod. */
static json_t *without_scopes(const json_t *quotas, struct strlist *notes)
{
    json_t *kept = json_array();
    size_t i;
    json_t *quota;
    json_array_foreach(quotas, i, quota)
    {
        if (has_scopes(quota))
            strlist_addf(notes, "ResourceQuota %s, which counts pods of some scope alone",
                         name_of(quota));
        else
            json_array_append(kept, quota);
    }
    return kept;
}

int namespace_fit(const struct job_spec *spec, const struct namespace_rules *rules, char **ret_why,
                  struct strlist *notes, struct drarun_error *err)
{
    bool several;
    const char *namespace = namespace_of(spec, rules, &several);
    if (several && !spec->namespace) {
        strlist_add(notes, "quotas and limit ranges, which are given of several namespaces: name "
                           "the job's in metadata.namespace");
        *ret_why = NULL;
        return 0;
    }
    CLEANUP(json_decrefp) json_t *all = those_of(rules->quotas, namespace);
    CLEANUP(json_decrefp) json_t *quotas = without_scopes(all, notes);
    CLEANUP(json_decrefp) json_t *ranges = those_of(rules->limit_ranges, namespace);
    CLEANUP(json_decrefp) json_t *used = json_object();
    struct look look = {.spec = spec, .rules = rules, .ranges = ranges, .used = used};
    int rc = !quotas || !ranges || !used ? no_memory(err) : use_job(&look, quotas, err);
    for (size_t i = 0; rc == 0 && i < json_array_size(quotas); i++)
        rc = check_quota(&look, json_array_get(quotas, i), notes, err);
    if (rc == 0 && (look.why.failed || notes->failed))
        rc = no_memory(err);
    if (rc == 0)
        *ret_why = look.why.len > 0 ? buf_take(&look.why) : NULL;
    buf_done(&look.why);
    return rc;
}

int namespace_default(const struct job_spec *spec, const struct namespace_rules *rules, json_t *pod,
                      struct drarun_error *err)
{
    bool several;
    const char *namespace = namespace_of(spec, rules, &several);
    if (several && !spec->namespace)
        return 0;
    CLEANUP(json_decrefp) json_t *ranges = those_of(rules->limit_ranges, namespace);
    if (!ranges)
        return no_memory(err);
    add_range_defaults(ranges, pod);
    return 0;
}
