/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/objects.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

/* ---- metadata ---- */

const char *object_namespace(const struct job_spec *spec, const struct render_options *options)
{
    return options->namespace ? options->namespace : spec->namespace ? spec->namespace : "default";
}

json_t *object_labels(const struct job_spec *spec, const struct render_options *options)
{
    json_t *labels = json_pack("{s:s, s:o}", "drarun.dev/job", spec->name, "drarun.dev/attempt",
                               json_sprintf("%u", options->attempt));
    if (spec->labels && json_object_update(labels, spec->labels) < 0) {
        json_decref(labels);
        return NULL;
    }
    return labels;
}

/* For the garbage collector alone. As "controller" the Job controller would look at worker pods,
 * and take the reference away again, since the Job's selector does not match them. */
static json_t *owner_references(const struct job_spec *spec, const char *uid)
{
    return json_pack("[{s:s, s:s, s:s, s:s}]", "apiVersion", "batch/v1", "kind", "Job", "name",
                     spec->name, "uid", uid);
}

json_t *object_new(const struct job_spec *spec, const struct render_options *options,
                   const char *api_version, const char *kind, json_t *name_take, bool owned)
{
    CLEANUP(json_decrefp)
    json_t *metadata =
        json_pack("{s:o, s:s, s:o}", "name", name_take, "namespace",
                  object_namespace(spec, options), "labels", object_labels(spec, options));
    int rc = metadata ? 0 : -1;
    if (rc == 0 && spec->annotations && json_object_size(spec->annotations) > 0)
        rc = json_object_set_new(metadata, "annotations", json_deep_copy(spec->annotations));
    if (rc == 0 && owned && options->owner_uid)
        rc = json_object_set_new(metadata, "ownerReferences",
                                 owner_references(spec, options->owner_uid));
    return rc < 0 ? NULL
                  : json_pack("{s:s, s:s, s:O}", "apiVersion", api_version, "kind", kind,
                              "metadata", metadata);
}

/* Adds a member; NULL when the object, the member or the addition failed. */
static json_t *with_take(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) == 0)
        return object;
    json_decref(object);
    return NULL;
}

/* ---- the launcher ---- */

/* A pod that the cluster takes away (drain, preemption, lost node) is replaced and adopts the job;
 * an end of its own is the job's end, whatever the status. */
static json_t *launcher_failure_policy(void)
{
    return json_pack("{s:[{s:s, s:[{s:s, s:s}]}, {s:s, s:{s:s, s:s, s:[i]}}]}", "rules", "action",
                     "Ignore", "onPodConditions", "type", "DisruptionTarget", "status", "True",
                     "action", "FailJob", "onExitCodes", "containerName", "launcher", "operator",
                     "NotIn", "values", 0);
}

static json_t *launcher_pod(const struct job_spec *spec, const struct render_options *options)
{
    const char *image = options->image ? options->image : RENDER_IMAGE;
    json_t *security =
        json_pack("{s:b, s:b, s:b, s:i, s:{s:[s]}, s:{s:s}}", "allowPrivilegeEscalation", 0,
                  "readOnlyRootFilesystem", 1, "runAsNonRoot", 1, "runAsUser", 65532,
                  "capabilities", "drop", "ALL", "seccompProfile", "type", "RuntimeDefault");
    json_t *container = json_pack("{s:s, s:s, s:[s, s], s:[s, s], s:o}", "name", "launcher",
                                  "image", image, "command", "/bin/drarun", "run", "args", "--job",
                                  spec->name, "securityContext", security);
    return json_pack("{s:{s:o}, s:{s:s, s:s, s:[o]}}", "metadata", "labels",
                     object_labels(spec, options), "spec", "serviceAccountName", spec->name,
                     "restartPolicy", "Never", "containers", container);
}

json_t *object_launcher(const struct job_spec *spec, const struct render_options *options)
{
    json_t *object = object_new(spec, options, "batch/v1", "Job", json_string(spec->name), false);
    json_t *job = json_pack("{s:i, s:o, s:o}", "backoffLimit", 6, "podFailurePolicy",
                            launcher_failure_policy(), "template", launcher_pod(spec, options));
    if (spec->ttl_after_finished >= 0)
        job = with_take(job, "ttlSecondsAfterFinished", json_integer(spec->ttl_after_finished));
    if (spec->suspend)
        job = with_take(job, "suspend", json_true());
    return with_take(object, "spec", job);
}

/* ---- what it may do ---- */

/* Words separated by spaces as a list. */
static json_t *words(const char *text)
{
    json_t *list = json_array();
    while (text && *text) {
        size_t len = strcspn(text, " ");
        if (json_array_append_new(list, json_stringn(text, len)) < 0) {
            json_decref(list);
            return NULL;
        }
        text += len + strspn(text + len, " ");
    }
    return list;
}

enum when { WHEN_ALWAYS, WHEN_DIRECT, WHEN_TEMPLATE, WHEN_CLAIMS, WHEN_DOMAIN };

/* names: printf formats of the job's name, joined by spaces; NULL: any of the namespace, where the
 * API knows no names (create, list, watch) or they are not known beforehand. */
static const struct {
    enum when when;
    const char *group, *resources, *names[2], *verbs;
} rules[] = {
    {WHEN_ALWAYS, "", "pods", {NULL}, "get list watch patch delete"},
    {WHEN_DIRECT, "", "pods", {NULL}, "create"},
    {WHEN_ALWAYS, "", "events", {NULL}, "list watch"},
    {WHEN_ALWAYS, "", "secrets", {"%s-key"}, "get"},
    {WHEN_ALWAYS, "", "configmaps", {"%s-spec"}, "get"},
    {WHEN_ALWAYS, "", "configmaps", {"%s-status"}, "get patch"},
    {WHEN_ALWAYS, "coordination.k8s.io", "leases", {NULL}, "create"},
    {WHEN_ALWAYS, "coordination.k8s.io", "leases", {"%s"}, "get update"},
    {WHEN_ALWAYS, "batch", "jobs", {"%s"}, "get watch patch"},
    {WHEN_TEMPLATE, "batch", "jobs", {NULL}, "create"},
    {WHEN_TEMPLATE, "batch", "jobs", {"%s-w"}, "get watch patch delete"},
    {WHEN_CLAIMS, "resource.k8s.io", "resourceclaims", {NULL}, "get list watch"},
    {WHEN_DIRECT, "resource.k8s.io", "resourceclaims", {NULL}, "create patch delete"},
    {WHEN_TEMPLATE, "resource.k8s.io", "resourceclaimtemplates", {NULL}, "create"},
    {WHEN_TEMPLATE, "resource.k8s.io", "resourceclaimtemplates", {"%s-w"}, "get patch delete"},
    {WHEN_DOMAIN, "resource.nvidia.com", "computedomains", {NULL}, "create"},
    {WHEN_DOMAIN, "resource.nvidia.com", "computedomains", {"%s-domain"}, "get watch patch delete"},
};

static bool applies(enum when when, const char *group, const struct job_spec *spec)
{
    bool claims = claims_wanted(spec) || strcmp(group, "resource.k8s.io") != 0;
    switch (when) {
    case WHEN_ALWAYS:
        return true;
    case WHEN_DIRECT:
        return claims && spec->claims == SPEC_CLAIMS_DIRECT;
    case WHEN_TEMPLATE:
        return claims && spec->claims == SPEC_CLAIMS_TEMPLATE;
    case WHEN_CLAIMS:
        return claims;
    case WHEN_DOMAIN:
        return spec->compute_domain != NULL;
    }
    return false;
}

json_t *object_role(const struct job_spec *spec, const struct render_options *options)
{
    CLEANUP(json_decrefp) json_t *list = json_array();
    int rc = list ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(rules); i++) {
        if (!applies(rules[i].when, rules[i].group, spec))
            continue;
        json_t *rule = json_pack("{s:[s], s:o}", "apiGroups", rules[i].group, "resources",
                                 words(rules[i].resources));
        if (rules[i].names[0]) {
            const char *suffix = rules[i].names[0] + strlen("%s");
            rule = with_take(rule, "resourceNames",
                             json_pack("[o]", json_sprintf("%s%s", spec->name, suffix)));
        }
        rc = json_array_append_new(list, with_take(rule, "verbs", words(rules[i].verbs)));
    }
    if (rc < 0)
        return NULL;
    return with_take(object_new(spec, options, "rbac.authorization.k8s.io/v1", "Role",
                                json_string(spec->name), true),
                     "rules", TAKE_PTR(list));
}

json_t *object_service_account(const struct job_spec *spec, const struct render_options *options)
{
    return object_new(spec, options, "v1", "ServiceAccount", json_string(spec->name), true);
}

json_t *object_role_binding(const struct job_spec *spec, const struct render_options *options)
{
    json_t *object = object_new(spec, options, "rbac.authorization.k8s.io/v1", "RoleBinding",
                                json_string(spec->name), true);
    object = with_take(object, "roleRef",
                       json_pack("{s:s, s:s, s:s}", "apiGroup", "rbac.authorization.k8s.io", "kind",
                                 "Role", "name", spec->name));
    return with_take(object, "subjects",
                     json_pack("[{s:s, s:s, s:s}]", "kind", "ServiceAccount", "name", spec->name,
                               "namespace", object_namespace(spec, options)));
}

/* Only the job's own pods may connect to its pods: agents, MPI and NCCL. */
json_t *object_network_policy(const struct job_spec *spec, const struct render_options *options)
{
    json_t *object = object_new(spec, options, "networking.k8s.io/v1", "NetworkPolicy",
                                json_string(spec->name), true);
    return with_take(object, "spec",
                     json_pack("{s:{s:{s:s}}, s:[s], s:[{s:[{s:{s:{s:s}}}]}]}", "podSelector",
                               "matchLabels", "drarun.dev/job", spec->name, "policyTypes",
                               "Ingress", "ingress", "from", "podSelector", "matchLabels",
                               "drarun.dev/job", spec->name));
}

/* ---- what it keeps ---- */

json_t *object_secret(const struct job_spec *spec, const struct render_options *options)
{
    json_t *object =
        object_new(spec, options, "v1", "Secret", json_sprintf("%s-key", spec->name), true);
    object = with_take(object, "immutable", json_true());
    return with_take(
        object, "stringData",
        json_pack("{s:s}", "key", options->key ? options->key : RENDER_KEY_PLACEHOLDER));
}

json_t *object_spec(const struct job_spec *spec, const struct render_options *options)
{
    cleanup_free char *text = json_dumps(spec->document, JSON_COMPACT);
    json_t *object =
        object_new(spec, options, "v1", "ConfigMap", json_sprintf("%s-spec", spec->name), true);
    object = with_take(object, "immutable", json_true());
    return with_take(object, "data", json_pack("{s:s}", "job.json", text ? text : "{}"));
}

json_t *object_status(const struct job_spec *spec, const struct render_options *options)
{
    json_t *object =
        object_new(spec, options, "v1", "ConfigMap", json_sprintf("%s-status", spec->name), true);
    return with_take(object, "data", json_object());
}
