/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/objects.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "jobs/manifests/install.h"
#include "jobs/manifests/tolerations.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"

/* ---- metadata ---- */

const char *object_namespace(const struct job_spec *spec, const struct render_options *options)
{
    return options->namespace ? options->namespace : spec->namespace ? spec->namespace : "default";
}

json_t *object_labels(const struct job_spec *spec, const struct render_options *options)
{
    json_t *labels = json_pack("{s:s}", "drarun.dev/job", spec->name);
    int rc = options->attempt == 0 ? 0
                                   : json_object_set_new(labels, "drarun.dev/attempt",
                                                         json_sprintf("%u", options->attempt));
    if (rc < 0 || (spec->labels && json_object_update(labels, spec->labels) < 0)) {
        json_decref(labels);
        return NULL;
    }
    return labels;
}

const char *object_queue(const json_t *job)
{
    const json_t *labels = json_object_get(json_object_get(job, "metadata"), "labels");
    return json_string_value(json_object_get(labels, OBJECT_QUEUE_LABEL));
}

bool object_is_suspended(const json_t *job)
{
    return json_is_true(json_object_get(json_object_get(job, "spec"), "suspend"));
}

/* For the garbage collector alone. As "controller" the Job controller would look at worker pods,
 * and take the reference away again, since the Job's selector does not match them. */
static json_t *owner_references(const struct job_spec *spec, const struct render_options *options)
{
    return json_pack("[{s:s, s:s, s:o, s:s}]", "apiVersion", options->here ? "v1" : "batch/v1",
                     "kind", options->here ? "ConfigMap" : "Job", "name",
                     json_sprintf("%s%s", spec->name, options->here ? "-status" : ""), "uid",
                     options->owner_uid);
}

/* Its controller is what looks after the DraJob. */
static json_t *dra_job_reference(const struct job_spec *spec, const struct render_options *options)
{
    return json_pack("[{s:s, s:s, s:s, s:s, s:b}]", "apiVersion", SPEC_API_VERSION, "kind",
                     SPEC_KIND, "name", spec->name, "uid", options->dra_job, "controller", 1);
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
        rc = json_object_set_new(metadata, "ownerReferences", owner_references(spec, options));
    if (rc == 0 && !owned && options->dra_job)
        rc = json_object_set_new(metadata, "ownerReferences", dra_job_reference(spec, options));
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

/* 0, and the exit statuses of a launcher that crashed, was killed or was told to go. */
static json_t *crash_statuses(void)
{
    return json_pack("[i, i, i, i, i, i]", 0, 128 + SIGABRT, 128 + SIGBUS, 128 + SIGKILL,
                     128 + SIGSEGV, 128 + SIGTERM);
}

/* A pod that the cluster takes away (drain, preemption, lost node) or that crashes is replaced, and
 * the next one adopts the job; an end of its own is the job's end, whatever the status. */
static json_t *launcher_failure_policy(void)
{
    return json_pack("{s:[{s:s, s:[{s:s, s:s}]}, {s:s, s:{s:s, s:s, s:o}}]}", "rules", "action",
                     "Ignore", "onPodConditions", "type", "DisruptionTarget", "status", "True",
                     "action", "FailJob", "onExitCodes", "containerName", OBJECT_LAUNCHER_CONTAINER,
                     "operator", "NotIn", "values", crash_statuses());
}

/* kubelets keep an immutable Secret by its name for as long as a pod that uses it is there: were
 * the name used again, the next job's pods could get the last one's key. */
static json_t *secret_name(const struct job_spec *spec, const struct render_options *options)
{
    return options->secret ? json_string(options->secret) : json_sprintf("%s-key", spec->name);
}

json_t *object_key_variable(const struct job_spec *spec, const struct render_options *options)
{
    return json_pack("{s:s, s:{s:{s:o, s:s}}}", "name", "DRARUN_KEY", "valueFrom", "secretKeyRef",
                     "name", secret_name(spec, options), "key", "key");
}

static json_t *plain_variable(const char *name, json_t *value_take)
{
    return json_pack("{s:s, s:o}", "name", name, "value", value_take);
}

/* Where the launcher tells its metrics. */
static json_t *metrics_ports(const struct render_options *options)
{
    int port = options->metrics_port ? options->metrics_port : RENDER_METRICS_PORT;
    return port == RENDER_NO_METRICS
               ? NULL
               : json_pack("[{s:s, s:i}]", "name", "metrics", "containerPort", port);
}

static json_t *metrics_variable(const struct render_options *options)
{
    if (options->metrics_port == 0)
        return NULL;
    return plain_variable("DRARUN_METRICS", options->metrics_port == RENDER_NO_METRICS
                                                ? json_string("off")
                                                : json_sprintf("%d", (int)options->metrics_port));
}

int object_document_digest(const json_t *document, char ret_text[OBJECT_DIGEST_SIZE],
                           struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *fixed = json_copy(unconst(document));
    json_t *spec = json_copy(json_object_get(document, "spec"));
    json_object_del(spec, "suspend");
    json_object_del(spec, "workers");
    if (spec && json_object_set_new(fixed, "spec", spec) < 0)
        json_decref(TAKE_PTR(fixed));
    cleanup_free char *text = json_dumps(fixed, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text)
        return error_set(err, ENOMEM, "out of memory");
    size_t length = (size_t)snprintf(ret_text, OBJECT_DIGEST_SIZE, "sha256:");
    sha256_text(text, strlen(text), ret_text + length);
    return 0;
}

/* In the pod's environment: annotations of a suspended Job's pod may be changed. */
static json_t *document_variable(const struct job_spec *spec)
{
    char digest[OBJECT_DIGEST_SIZE];
    if (object_document_digest(spec->document, digest, NULL) < 0)
        return NULL;
    return plain_variable(OBJECT_DOCUMENT, json_string(digest));
}

/* Requests equal to limits: quotas take such a pod, and the kubelet evicts it last. With 500
 * workers it has 37 MiB (docs/measured/cluster.md); the rest is for the slices of large clusters.
 */
static json_t *launcher_resources(const struct job_spec *spec)
{
    if (spec->launcher.resources)
        return json_incref(spec->launcher.resources);
    json_t *amounts = json_pack("{s:s, s:o}", "cpu", "500m", "memory",
                                json_sprintf("%" PRIu32 "Mi", 512 + spec->workers));
    return json_pack("{s:O, s:o}", "requests", amounts, "limits", amounts);
}

json_t *object_stay_annotations(void)
{
    return json_pack("{s:s, s:s}", "cluster-autoscaler.kubernetes.io/safe-to-evict", "false",
                     "karpenter.sh/do-not-disrupt", "true");
}

/* Where it ends another launcher must take over. */
static json_t *launcher_annotations(const struct job_spec *spec)
{
    json_t *annotations = object_stay_annotations();
    if (annotations && spec->launcher.annotations &&
        json_object_update(annotations, spec->launcher.annotations) < 0)
        json_decref(TAKE_PTR(annotations));
    return annotations;
}

static const char *launcher_priority(const struct job_spec *spec)
{
    const json_t *workers = spec_role_pod(&spec->roles[0]);
    return spec->launcher.priority_class
               ? spec->launcher.priority_class
               : json_string_value(json_object_get(workers, "priorityClassName"));
}

json_t *object_security(json_int_t user)
{
    return json_pack("{s:b, s:b, s:b, s:o*, s:{s:[s]}, s:{s:s}}", "allowPrivilegeEscalation", 0,
                     "readOnlyRootFilesystem", 1, "runAsNonRoot", 1, "runAsUser",
                     user > 0 ? json_integer(user) : NULL, "capabilities", "drop", "ALL",
                     "seccompProfile", "type", "RuntimeDefault");
}

static json_t *launcher_container(const struct job_spec *spec, const struct render_options *options)
{
    const char *image = options->image ? options->image : RENDER_IMAGE;
    return json_pack(
        "{s:s, s:s, s:[s, s], s:[s, s], s:[o, o, o, o, o, o*, o*, o*], s:o*, s:o, s:o}", "name",
        OBJECT_LAUNCHER_CONTAINER, "image", image, "command", "/bin/drarun", "run", "args", "--job",
        spec->name, "env", object_key_variable(spec, options),
        plain_variable("DRARUN_SECRET", secret_name(spec, options)), document_variable(spec),
        plain_variable(OBJECT_DOCUMENT_WORKERS, json_sprintf("%u", spec->workers)),
        plain_variable("DRARUN_IMAGE", json_string(image)),
        options->delivery ? plain_variable("DRARUN_AGENT", json_string(options->delivery)) : NULL,
        options->keep_s ? plain_variable("DRARUN_KEEP", json_sprintf("%u", options->keep_s)) : NULL,
        metrics_variable(options), "ports", metrics_ports(options), "resources",
        launcher_resources(spec), "securityContext", object_security(0));
}

/* Workers that get the agent from drarun's image name what pulls it. Where their claims bring the
 * agent they need not, and the account's own Secrets, which a pod with others does not get, may. */
static const json_t *launcher_pull_secrets(const struct job_spec *spec,
                                           const struct render_options *options)
{
    return options->agent ? NULL
                          : json_object_get(spec_role_pod(&spec->roles[0]), "imagePullSecrets");
}

static json_t *launcher_pod(const struct job_spec *spec, const struct render_options *options)
{
    return json_pack("{s:{s:o, s:o}, s:{s:s, s:s, s:b, s:o, s:O*, s:s*, s:O*, s:[o]}}", "metadata",
                     "labels", object_labels(spec, options), "annotations",
                     launcher_annotations(spec), "spec", "serviceAccountName", INSTALL_ACCOUNT,
                     "restartPolicy", "Never", "enableServiceLinks", 0, "tolerations",
                     tolerations_of_launcher(spec->launcher.tolerations), "nodeSelector",
                     spec->launcher.node_selector, "priorityClassName", launcher_priority(spec),
                     "imagePullSecrets", launcher_pull_secrets(spec, options), "containers",
                     launcher_container(spec, options));
}

json_t *object_launcher(const struct job_spec *spec, const struct render_options *options)
{
    json_t *object = object_new(spec, options, "batch/v1", "Job", json_string(spec->name), false);
    json_t *job = json_pack("{s:i, s:s, s:o, s:o}", "backoffLimit", 6, "podReplacementPolicy",
                            "Failed", "podFailurePolicy", launcher_failure_policy(), "template",
                            launcher_pod(spec, options));
    if (spec->ttl_after_finished >= 0 && !options->expires)
        job = with_take(job, "ttlSecondsAfterFinished", json_integer(spec->ttl_after_finished));
    if (spec->suspend)
        job = with_take(job, "suspend", json_true());
    return with_take(object, "spec", job);
}

/* ---- the gang ---- */

/* One worker is no gang, and a group that the user names is his to make. */
bool object_has_pod_group(const struct job_spec *spec, const struct render_options *options)
{
    bool own = false; /* of the user, of any role */
    for (uint32_t r = 0; r < spec->role_count; r++)
        own |= json_object_get(spec_role_pod(&spec->roles[r]), "schedulingGroup") != NULL;
    return options->pod_groups && spec->workers > 1 && spec->gang_scheduling == SPEC_GANG_AUTO &&
           !own;
}

/* Preemption takes all workers of a job or none, as a job ends with the first that it loses. 1.36
 * says so in a word. */
static json_t *whole_group_is_disrupted(const char *version)
{
    return strcmp(version, "v1alpha2") == 0 ? json_string("PodGroup") : json_pack("{s:{}}", "all");
}

/* Pods whose priority is not their group's are refused (Kubernetes 1.37). */
json_t *object_pod_group(const struct job_spec *spec, const struct render_options *options)
{
    char version[64];
    snprintf(version, sizeof version, "scheduling.k8s.io/%s", options->pod_groups);
    json_t *object =
        object_new(spec, options, version, "PodGroup", json_sprintf("%s-w", spec->name), true);
    json_t *group =
        json_pack("{s:{s:{s:i}}, s:o}", "schedulingPolicy", "gang", "minCount", (int)spec->workers,
                  "disruptionMode", whole_group_is_disrupted(options->pod_groups));
    json_t *priority = json_object_get(spec_role_pod(&spec->roles[0]), "priorityClassName");
    if (json_is_string(priority))
        group = with_take(group, "priorityClassName", json_incref(priority));
    return with_take(object, "spec", group);
}

/* ---- what it keeps ---- */

json_t *object_secret(const struct job_spec *spec, const struct render_options *options)
{
    json_t *object = object_new(spec, options, "v1", "Secret", secret_name(spec, options), true);
    object = with_take(object, "immutable", json_true());
    return with_take(
        object, "stringData",
        json_pack("{s:s}", "key", options->key ? options->key : RENDER_KEY_PLACEHOLDER));
}

/* The owner where the launcher is no Job. */
json_t *object_status(const struct job_spec *spec, const struct render_options *options)
{
    cleanup_free char *text = json_dumps(spec->document, JSON_COMPACT);
    json_t *object = object_new(spec, options, "v1", "ConfigMap",
                                json_sprintf("%s-status", spec->name), !options->here);
    return with_take(object, "data", json_pack("{s:s}", "job.json", text ? text : "{}"));
}
