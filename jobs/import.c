/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/import.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "jobs/import_parts.h"
#include "jobs/spec.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/nearest.h"

#define QUEUE_LABEL "kueue.x-k8s.io/queue-name"

/* What is being built, and where from. */
struct import {
    struct reader *notes;
    struct import_objects *objects;
    const struct reader_node *workload;
    struct reader_node spec;                 /* of the workload */
    struct reader_node a, b, c;              /* on the way to the template */
    struct reader_node template, pod;        /* the workers' */
    struct reader_node launcher_a, launcher; /* an MPIJob's launcher: template, pod */
    bool has_launcher;
    json_t *job; /* the new spec */
};

const char *import_text(const struct reader_node *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object->value, key));
    return text ? text : "";
}

static const char *name_of(const struct reader_node *object)
{
    const char *name =
        json_string_value(json_object_get(json_object_get(object->value, "metadata"), "name"));
    return name ? name : "";
}

const struct reader_node *import_find(const struct import_objects *o, const char *kind,
                                      const char *name)
{
    for (size_t i = 0; i < o->count; i++)
        if (strcmp(import_text(&o->nodes[i], "kind"), kind) == 0 &&
            (!name || strcmp(name_of(&o->nodes[i]), name) == 0))
            return &o->nodes[i];
    return NULL;
}

/* Every document, and what stands in Lists. */
static int collect(struct reader *notes, struct import_objects *o, struct drarun_error *err)
{
    for (size_t i = 0; i < doc_count(notes->doc); i++) {
        struct reader_node root = reader_root(notes, i);
        if (o->count == IMPORT_OBJECTS_MAX || o->list_count == IMPORT_OBJECTS_MAX)
            return error_kind(err, DRARUN_ERR_SPEC, E2BIG, "%s: more than %d objects",
                              doc_name(notes->doc), IMPORT_OBJECTS_MAX);
        if (!json_is_object(root.value)) {
            reader_expected(&root, "an object of Kubernetes");
            continue;
        }
        struct reader_node *list = &o->lists[o->list_count], *items = &o->items[o->list_count];
        *list = root;
        if (!reader_get(list, "items", items)) {
            o->nodes[o->count++] = root;
            continue;
        }
        o->list_count++;
        for (size_t k = 0; k < json_array_size(items->value) && o->count < IMPORT_OBJECTS_MAX; k++)
            if (json_is_object(json_array_get(items->value, k)))
                o->nodes[o->count++] = reader_item(items, k);
    }
    return 0;
}

/* Kinds that are no jobs, with the way to use them. */
static const char *why_not(const char *kind)
{
    if (strcmp(kind, "RayCluster") == 0 || strcmp(kind, "RayJob") == 0)
        return "Ray starts its own workers; keep it and run eval \"$(drarun env)\" in the worker's "
               "container, or write a job as examples/jobs/ray-all-nic.yaml does";
    if (strcmp(kind, "JobSet") == 0 || strcmp(kind, "TrainJob") == 0 ||
        strcmp(kind, "LeaderWorkerSet") == 0 || strcmp(kind, "MiniCluster") == 0)
        return "not read yet: give the pod template in spec.template";
    return NULL;
}

/* A finding of a workload that is explained only: its claims are looked at all the same. */
static void explain_pods(struct import *im, const struct reader_node *object)
{
    struct reader_node spec, groups;
    if (!reader_get(object, "spec", &spec) || !json_is_object(spec.value) ||
        !reader_get(&spec, "workerGroupSpecs", &groups))
        return;
    for (size_t i = 0; i < json_array_size(groups.value); i++) {
        struct reader_node group = reader_item(&groups, i), template, pod;
        if (!json_is_object(group.value) || !reader_get(&group, "template", &template) ||
            !json_is_object(template.value) || !reader_get(&template, "spec", &pod) ||
            !json_is_object(pod.value))
            continue;
        json_t *copy = json_deep_copy(template.value), *unused = json_object();
        import_container(&pod, copy, unused);
        import_claims(im->objects, &pod, copy, unused);
        json_decref(copy);
        json_decref(unused);
    }
}

/* Claims of versions that are gone. */
static void explain_claims(struct import *im)
{
    for (size_t i = 0; i < im->objects->count; i++) {
        const struct reader_node *object = &im->objects->nodes[i];
        const char *version = import_text(object, "apiVersion");
        struct reader_node spec, parameters;
        if (strncmp(version, "resource.k8s.io/v1alpha", strlen("resource.k8s.io/v1alpha")) != 0)
            continue;
        reader_fail_key(object, "apiVersion",
                        "%s with resourceClassName and parameters ended with Kubernetes 1.30; ask "
                        "for devices by devices.gpus",
                        version);
        if (reader_get(object, "spec", &spec) && json_is_object(spec.value) &&
            reader_get(&spec, "parameters", &parameters) && json_is_object(parameters.value) &&
            json_object_get(parameters.value, "fabricTopologyConfig"))
            reader_fail_key(&parameters, "fabricTopologyConfig",
                            "no release of NVIDIA's driver reads this; GPUs of one FabricManager "
                            "partition share gpu.nvidia.com/partitionN: give that in "
                            "devices.gpus.match");
    }
}

static int find_workload(struct import *im, struct drarun_error *err)
{
    static const char kinds[] = "MPIJob StatefulSet Job Pod";
    const char *other = NULL, *file = doc_name(im->notes->doc);
    for (size_t i = 0; i < im->objects->count; i++) {
        const struct reader_node *object = &im->objects->nodes[i];
        const char *kind = import_text(object, "kind");
        if (words_index(kinds, kind, strlen(kind)) >= 0 && im->workload)
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                              "%s: more than one workload: %s %s and %s %s; import one at a time",
                              file, import_text(im->workload, "kind"), name_of(im->workload), kind,
                              name_of(object));
        if (words_index(kinds, kind, strlen(kind)) >= 0)
            im->workload = object;
        if (!why_not(kind))
            continue;
        other = kind;
        explain_pods(im, object);
    }
    if (im->workload)
        return 0;
    if (other)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: a %s cannot be imported: %s", file,
                          other, why_not(other));
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                      "%s: no workload: expected an MPIJob, a StatefulSet, a Job or a Pod", file);
}

static bool get_object(const struct reader_node *from, const char *key, struct reader_node *ret)
{
    return reader_get(from, key, ret) && json_is_object(ret->value);
}

static void take_number(struct import *im, const struct reader_node *from, const char *key,
                        const char *as)
{
    struct reader_node node;
    if (!reader_get(from, key, &node))
        return;
    if (json_is_integer(node.value))
        json_object_set(im->job, as, node.value);
    else
        reader_expected(&node, "a whole number");
}

/* What Job and MPIJob's runPolicy share. */
static void take_policy(struct import *im, const struct reader_node *policy)
{
    struct reader_node node;
    char text[32];
    take_number(im, policy, "backoffLimit", "restarts");
    take_number(im, policy, "ttlSecondsAfterFinished", "ttlSecondsAfterFinished");
    if (reader_get(policy, "activeDeadlineSeconds", &node) && json_is_integer(node.value)) {
        snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT "s", json_integer_value(node.value));
        json_object_set_new(im->job, "timeouts", json_pack("{s:s}", "total", text));
    }
    if (reader_get(policy, "suspend", &node) && json_is_boolean(node.value))
        json_object_set(im->job, "suspend", node.value);
}

static void leave_out(const struct reader_node *object, const char *const keys[][2], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (json_object_get(object->value, keys[i][0]))
            reader_fail_key(object, keys[i][0], "left out: %s", keys[i][1]);
}

static bool open_mpijob(struct import *im)
{
    static const char *const unused[][2] = {
        {"sshAuthMountPath", "there is no sshd"},
        {"mpiImplementation", "ranks start over PMIx, or PMI-1, whatever the MPI"},
        {"launcherCreationPolicy", "nothing starts before all workers are ready"},
        {"runLauncherAsWorker", "there is no launcher pod that could be a rank"},
    };
    static const char *const policies[][2] = {
        {"cleanPodPolicy", "pods end with the job"},
        {"schedulingPolicy", "all workers start or none; name a queue for Kueue"},
        {"managedBy", "another controller's"},
    };
    struct reader_node policy;
    take_number(im, &im->spec, "slotsPerWorker", "ranksPerWorker");
    leave_out(&im->spec, unused, ARRAY_LEN(unused));
    if (get_object(&im->spec, "runPolicy", &policy)) {
        take_policy(im, &policy);
        leave_out(&policy, policies, ARRAY_LEN(policies));
    }
    if (!get_object(&im->spec, "mpiReplicaSpecs", &im->a) ||
        !get_object(&im->a, "Worker", &im->b)) {
        reader_fail(&im->spec, "no mpiReplicaSpecs.Worker");
        return false;
    }
    take_number(im, &im->b, "replicas", "workers");
    if (get_object(&im->a, "Launcher", &im->launcher_a) &&
        get_object(&im->launcher_a, "template", &im->c) &&
        get_object(&im->c, "spec", &im->launcher))
        im->has_launcher = true;
    return get_object(&im->b, "template", &im->template);
}

static bool open_stateful_set(struct import *im)
{
    static const char *const unused[][2] = {
        {"serviceName", "workers need no names in DNS"},
        {"podManagementPolicy", "all workers start together"},
        {"volumeClaimTemplates",
         "workers are made anew with each attempt; name a claim in volumes"},
        {"updateStrategy", "a job is not updated"},
    };
    take_number(im, &im->spec, "replicas", "workers");
    leave_out(&im->spec, unused, ARRAY_LEN(unused));
    return get_object(&im->spec, "template", &im->template);
}

static bool open_job(struct import *im)
{
    static const char *const unused[][2] = {
        {"podFailurePolicy", "the first failing rank ends the attempt"},
        {"successPolicy", "a job succeeds when all ranks do"},
        {"backoffLimitPerIndex", "the job restarts as a whole"},
    };
    struct reader_node node;
    take_number(im, &im->spec, "parallelism", "workers");
    take_number(im, &im->spec, "completions", "workers");
    if (json_integer_value(json_object_get(im->job, "workers")) > 1 &&
        strcmp(import_text(&im->spec, "completionMode"), "Indexed") != 0 &&
        (reader_get(&im->spec, "completions", &node) ||
         reader_get(&im->spec, "parallelism", &node)))
        reader_fail(&node, "pods of a Job that is not Indexed are alike; here they are workers of "
                           "one job");
    leave_out(&im->spec, unused, ARRAY_LEN(unused));
    take_policy(im, &im->spec);
    return get_object(&im->spec, "template", &im->template);
}

/* The pod template, wherever the kind has it. */
static bool open_workload(struct import *im)
{
    const char *kind = import_text(im->workload, "kind");
    bool found = false;
    if (strcmp(kind, "Pod") == 0) {
        im->template = *im->workload;
        return get_object(&im->template, "spec", &im->pod);
    }
    if (!get_object(im->workload, "spec", &im->spec))
        return false;
    if (strcmp(kind, "MPIJob") == 0)
        found = open_mpijob(im);
    else if (strcmp(kind, "StatefulSet") == 0)
        found = open_stateful_set(im);
    else
        found = open_job(im);
    return found && get_object(&im->template, "spec", &im->pod);
}

static json_t *copy_template(const struct import *im)
{
    json_t *copy = json_object();
    json_t *metadata = json_object_get(im->template.value, "metadata");
    json_t *kept = json_object(), *pod = json_deep_copy(im->pod.value);
    static const char *const keys[] = {"labels", "annotations"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (json_object_get(metadata, keys[i]))
            json_object_set_new(kept, keys[i], json_deep_copy(json_object_get(metadata, keys[i])));
    if (json_object_size(kept) > 0)
        json_object_set(copy, "metadata", kept);
    json_decref(kept);
    if (pod && json_object_get(pod, "restartPolicy"))
        json_object_del(pod, "restartPolicy"); /* the job restarts as a whole */
    json_object_set_new(copy, "spec", pod);
    return copy;
}

static void take_program(struct import *im, char *const program[], json_t *template)
{
    json_t *container = import_first_container(template);
    json_int_t ranks = json_integer_value(json_object_get(im->job, "workers"));
    json_t *each = json_object_get(im->job, "ranksPerWorker");
    ranks *= each ? json_integer_value(each) : 1;
    if (program && program[0]) {
        json_t *command = json_array();
        for (size_t i = 0; program[i]; i++)
            json_array_append_new(command, json_string(program[i]));
        json_object_set_new(container, "command", command);
        json_object_del(container, "args");
        return;
    }
    if (im->has_launcher) {
        if (import_mpirun(&im->launcher, (uint64_t)ranks, template))
            return;
        reader_fail(&im->launcher,
                    "no mpirun with a program was found here: put the ranks' program "
                    "in place of " IMPORT_PROGRAM);
        json_object_set_new(container, "command", json_pack("[s]", IMPORT_PROGRAM));
        json_object_del(container, "args");
        return;
    }
    import_command(&im->pod, template);
}

static void explain_others(struct import *im)
{
    for (size_t i = 0; i < im->objects->count; i++) {
        const struct reader_node *object = &im->objects->nodes[i];
        const char *kind = import_text(object, "kind");
        if (strcmp(kind, "Service") == 0)
            reader_fail(object, "the Service %s is left out: workers are found by their pods",
                        name_of(object));
        else if (strcmp(kind, "ComputeDomain") == 0)
            json_object_set_new(im->job, "computeDomain", json_object());
        else if (object != im->workload &&
                 words_index("DeviceClass ResourceClaim ResourceClaimTemplate", kind,
                             strlen(kind)) < 0)
            reader_fail(object, "the %s %s is left out", *kind ? kind : "object without kind",
                        name_of(object));
    }
}

/* Keys in the order in which people write them. */
static json_t *in_order(json_t *job)
{
    static const char *const keys[] = {"workers",       "ranksPerWorker", "devices",
                                       "computeDomain", "nccl",           "template",
                                       "timeouts",      "restarts",       "ttlSecondsAfterFinished",
                                       "suspend",       "queue"};
    json_t *ordered = json_object();
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (json_object_get(job, keys[i]))
            json_object_set(ordered, keys[i], json_object_get(job, keys[i]));
    return ordered;
}

static json_t *document(const struct import *im)
{
    json_t *from = json_object_get(im->workload->value, "metadata"), *metadata = json_object();
    json_t *queue = json_object_get(json_object_get(from, "labels"), QUEUE_LABEL);
    json_object_set_new(metadata, "name", json_string(name_of(im->workload)));
    if (json_object_get(from, "namespace"))
        json_object_set(metadata, "namespace", json_object_get(from, "namespace"));
    if (queue)
        json_object_set(im->job, "queue", queue);
    return json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", SPEC_API_VERSION, "kind", SPEC_KIND,
                     "metadata", metadata, "spec", in_order(im->job));
}

static int build(struct import *im, char *const program[], json_t **ret_job,
                 struct drarun_error *err)
{
    explain_claims(im);
    int rc = find_workload(im, err);
    if (rc < 0)
        return rc;
    if (!open_workload(im))
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: the %s %s has no pod template",
                          doc_name(im->notes->doc), import_text(im->workload, "kind"),
                          name_of(im->workload));
    json_t *template = copy_template(im);
    if (!json_is_object(import_first_container(template))) {
        json_decref(template);
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: the %s %s has no container",
                          doc_name(im->notes->doc), import_text(im->workload, "kind"),
                          name_of(im->workload));
    }
    import_container(&im->pod, template, im->job);
    import_claims(im->objects, &im->pod, template, im->job);
    take_program(im, program, template);
    explain_others(im);
    json_object_set_new(im->job, "template", template);
    *ret_job = document(im);
    return *ret_job ? 0 : error_set(err, ENOMEM, "out of memory");
}

int import_job(struct reader *notes, char *const program[], json_t **ret_job,
               struct drarun_error *err)
{
    cleanup_free struct import_objects *objects = calloc(1, sizeof *objects);
    struct import im = {.notes = notes, .objects = objects, .job = json_object()};
    int rc = objects && im.job ? collect(notes, objects, err) : error_set(err, ENOMEM, "no memory");
    if (rc == 0)
        rc = build(&im, program, ret_job, err);
    json_decref(im.job);
    return rc;
}
