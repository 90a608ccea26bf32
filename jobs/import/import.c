/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/import/import.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "jobs/import/parts.h"
#include "jobs/spec/node_spread.h"
#include "jobs/spec/spec.h"
#include "jobs/spec/spec_shorten.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/nearest.h"

#define QUEUE_LABEL "kueue.x-k8s.io/queue-name"

const char *import_text(const struct reader_node *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object->value, key));
    return text ? text : "";
}

const char *import_name(const struct reader_node *object)
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
            (!name || strcmp(import_name(&o->nodes[i]), name) == 0))
            return &o->nodes[i];
    return NULL;
}

struct doc_place import_place(const struct reader_node *node)
{
    const struct doc *doc = node->reader->doc;
    if (!node->parent)
        return node->root_place;
    if (json_is_object(node->parent->value))
        return doc_member_place(doc, node->parent->value, node->key, NULL);
    return doc_item_place(doc, node->parent->value, node->index);
}

/* What kubectl create would call the object, without the random end. */
static void name_object(const struct reader_node *object, char *ret_name, size_t size)
{
    json_t *metadata = json_object_get(object->value, "metadata");
    const char *begin = json_string_value(json_object_get(metadata, "generateName"));
    snprintf(ret_name, size, "%s", *import_name(object) || !begin ? import_name(object) : begin);
    size_t n = strlen(ret_name);
    while (!*import_name(object) && n > 0 && strchr("-.", ret_name[n - 1]))
        ret_name[--n] = '\0';
}

/* An error at an object: its file and line, and what it is. */
static int refuse(const struct reader_node *object, struct drarun_error *err, const char *format,
                  ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s:%u: the %s %s %s",
                      doc_name(object->reader->doc), import_place(object).line,
                      import_text(object, "kind"), import_name(object), text);
}

/* Every document of a file, and what stands in Lists. */
static int collect(struct reader *file, struct import_objects *o, struct drarun_error *err)
{
    for (size_t i = 0; i < doc_count(file->doc); i++) {
        struct reader_node root = reader_root(file, i);
        if (o->count == IMPORT_OBJECTS_MAX || o->list_count == IMPORT_OBJECTS_MAX)
            return error_kind(err, DRARUN_ERR_SPEC, E2BIG, "%s: more than %d objects",
                              doc_name(file->doc), IMPORT_OBJECTS_MAX);
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
        for (size_t k = 0; k < json_array_size(items->value); k++) {
            if (o->count == IMPORT_OBJECTS_MAX)
                return error_kind(err, DRARUN_ERR_SPEC, E2BIG, "%s: more than %d objects",
                                  doc_name(file->doc), IMPORT_OBJECTS_MAX);
            if (json_is_object(json_array_get(items->value, k)))
                o->nodes[o->count++] = reader_item(items, k);
        }
    }
    return 0;
}

/* Kinds that are no jobs, with the way to use them. */
static const char *why_not(const char *kind)
{
    if (strcmp(kind, "RayCluster") == 0 || strcmp(kind, "RayJob") == 0)
        return "Ray starts its own workers; keep it and run eval \"$(drarun env)\" in the worker's "
               "container, or write a job as examples/jobs/ray-all-nic.yaml does";
    if (strcmp(kind, "MiniCluster") == 0)
        return "its pods come from elsewhere: give the pod template in spec.template";
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

static bool is_pod(const struct reader_node *object)
{
    return strcmp(import_text(object, "kind"), "Pod") == 0;
}

/* Another Pod is another worker, if it is alike. */
static int join_pod(struct import *im, const struct reader_node *pod, struct drarun_error *err)
{
    json_t *workers = json_object_get(im->job, "workers");
    char first[IMPORT_NAME_ROOM + 8], other[IMPORT_NAME_ROOM + 8];
    snprintf(first, sizeof first, "the Pod %s", import_name(im->workload));
    snprintf(other, sizeof other, "the Pod %s", import_name(pod));
    int rc = import_compare_pods(im->workload, pod, first, other, &im->own, err);
    if (rc < 0)
        return rc;
    name_object(pod, other, sizeof other);
    import_common_name(im->name, other);
    return json_object_set_new(im->job, "workers",
                               json_integer(workers ? json_integer_value(workers) + 1 : 2));
}

static int find_workload(struct import *im, struct drarun_error *err)
{
    static const char kinds[] =
        "MPIJob StatefulSet Job Pod JobSet LeaderWorkerSet PyTorchJob TrainJob";
    const struct reader_node *other = NULL;
    for (size_t i = 0; i < im->objects->count; i++) {
        const struct reader_node *object = &im->objects->nodes[i];
        const char *kind = import_text(object, "kind");
        bool is_workload = words_index(kinds, kind, strlen(kind)) >= 0;
        if (is_workload && im->workload && is_pod(im->workload) && is_pod(object)) {
            int rc = join_pod(im, object, err);
            if (rc < 0)
                return rc;
            continue;
        }
        if (is_workload && im->workload)
            return refuse(object, err,
                          "is one workload more: %s:%u has the %s %s; import one at "
                          "a time",
                          doc_name(im->workload->reader->doc), import_place(im->workload).line,
                          import_text(im->workload, "kind"), import_name(im->workload));
        if (is_workload) {
            im->workload = object;
            name_object(object, im->name, sizeof im->name);
        }
        if (!why_not(kind))
            continue;
        other = object;
        explain_pods(im, object);
    }
    if (im->workload)
        return 0;
    if (other)
        return refuse(other, err, "cannot be imported: %s", why_not(import_text(other, "kind")));
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                      "%s%s: no workload: expected an MPIJob, a PyTorchJob, a TrainJob with its "
                      "runtime, a JobSet, a LeaderWorkerSet, a StatefulSet, a Job or Pods",
                      doc_name(im->files[0].doc), im->file_count > 1 ? " and the others" : "");
}

bool import_object(const struct reader_node *from, const char *key, struct reader_node *ret)
{
    return reader_get(from, key, ret) && json_is_object(ret->value);
}

void import_number(struct import *im, const struct reader_node *from, const char *key,
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
void import_policy(struct import *im, const struct reader_node *policy)
{
    struct reader_node node;
    char text[32];
    import_number(im, policy, "backoffLimit", "restarts");
    import_number(im, policy, "ttlSecondsAfterFinished", "ttlSecondsAfterFinished");
    if (reader_get(policy, "activeDeadlineSeconds", &node) && json_is_integer(node.value)) {
        snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT "s", json_integer_value(node.value));
        json_object_set_new(im->job, "timeouts", json_pack("{s:s}", "total", text));
    }
    if (reader_get(policy, "suspend", &node) && json_is_boolean(node.value))
        json_object_set(im->job, "suspend", node.value);
}

void import_rest(const struct reader_node *object, const char *known, const char *why)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(object->value, key, value)
    {
        if (words_index(known, key, strlen(key)) < 0 && !json_is_null(value))
            reader_fail_key(object, key, "left out: %s", why);
    }
}

void import_rest_of_policy(const struct reader_node *policy)
{
    static const char *const unused[][2] = {
        {"cleanPodPolicy", "pods end with the job"},
        {"schedulingPolicy", "all workers start or none; name a queue for Kueue"},
        {"managedBy", "another controller's"},
    };
    import_leave_out(policy, unused, ARRAY_LEN(unused));
    import_rest(policy,
                "backoffLimit ttlSecondsAfterFinished activeDeadlineSeconds suspend cleanPodPolicy "
                "schedulingPolicy managedBy",
                "a job has no such policy");
}

void import_rest_of_job(const struct reader_node *spec)
{
    static const char *const unused[][2] = {
        {"successPolicy", "a job succeeds when all ranks do"},
        {"backoffLimitPerIndex", "the job restarts as a whole"},
        {"maxFailedIndexes", "the job restarts as a whole"},
        {"podReplacementPolicy", "pods are replaced when all have ended"},
        {"managedBy", "another controller's"},
    };
    import_leave_out(spec, unused, ARRAY_LEN(unused));
    import_rest(spec,
                "parallelism completions completionMode backoffLimit activeDeadlineSeconds "
                "ttlSecondsAfterFinished suspend template selector manualSelector "
                "podFailurePolicy successPolicy backoffLimitPerIndex maxFailedIndexes "
                "podReplacementPolicy managedBy",
                "a job has no such setting");
}

/* What an API server adds is no loss. */
#define ADDED                                                                                      \
    "name generateName namespace creationTimestamp uid resourceVersion generation managedFields "  \
    "selfLink ownerReferences deletionTimestamp deletionGracePeriodSeconds "

static void explain_restarts(const struct reader_node *holder)
{
    struct reader_node policy;
    const char *text = import_text(holder, "restartPolicy");
    if (reader_get(holder, "restartPolicy", &policy) &&
        words_index("OnFailure ExitCode", text, strlen(text)) >= 0)
        reader_fail(&policy, "left out: a rank that fails ends the attempt; spec.restarts says how "
                             "often the job starts again");
}

void import_rest_of_replicas(const struct reader_node *replicas)
{
    import_rest(replicas, "replicas template restartPolicy", "workers have no such setting");
    explain_restarts(replicas);
}

void import_rest_of_template(const struct reader_node *template)
{
    struct reader_node metadata, spec;
    import_rest(template, "metadata spec apiVersion kind status", "no part of a pod template");
    if (import_object(template, "metadata", &metadata))
        import_rest(&metadata, ADDED "labels annotations", "workers have labels and annotations");
    if (import_object(template, "spec", &spec))
        explain_restarts(&spec);
}

void import_leave_out(const struct reader_node *object, const char *const keys[][2], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (json_object_get(object->value, keys[i][0]))
            reader_fail_key(object, keys[i][0], "left out: %s", keys[i][1]);
}

/* Its launcher's pod has slots, too: here it is one more worker. */
static void take_launcher_as_worker(struct import *im)
{
    struct reader_node as_worker;
    json_t *workers = json_object_get(im->job, "workers");
    if (!reader_get(&im->spec, "runLauncherAsWorker", &as_worker) || !json_is_true(as_worker.value))
        return;
    json_int_t count = (workers ? json_integer_value(workers) : 1) + 1;
    json_object_set_new(im->job, "workers", json_integer(count));
    reader_fail(&as_worker, "the launcher's pod is one more worker: %" JSON_INTEGER_FORMAT " now",
                count);
}

static bool open_mpijob(struct import *im)
{
    static const char *const unused[][2] = {
        {"sshAuthMountPath", "there is no sshd"},
        {"mpiImplementation", "ranks start over PMIx, or PMI-1, whatever the MPI"},
        {"launcherCreationPolicy", "nothing starts before all workers are ready"},
    };
    struct reader_node policy;
    import_number(im, &im->spec, "slotsPerWorker", "ranksPerWorker");
    import_leave_out(&im->spec, unused, ARRAY_LEN(unused));
    if (import_object(&im->spec, "runPolicy", &policy)) {
        import_policy(im, &policy);
        import_rest_of_policy(&policy);
    }
    import_rest(&im->spec,
                "slotsPerWorker runLauncherAsWorker mpiReplicaSpecs runPolicy sshAuthMountPath "
                "mpiImplementation launcherCreationPolicy",
                "not of kubeflow.org/v2beta1, and a job has no such setting");
    if (!import_object(&im->spec, "mpiReplicaSpecs", &im->a) ||
        !import_object(&im->a, "Worker", &im->b)) {
        reader_fail(&im->spec, "no mpiReplicaSpecs.Worker");
        return false;
    }
    import_number(im, &im->b, "replicas", "workers");
    import_rest(&im->a, "Worker Launcher", "a job has one kind of workers");
    import_rest_of_replicas(&im->b);
    take_launcher_as_worker(im);
    if (import_object(&im->a, "Launcher", &im->launcher_a))
        import_rest(&im->launcher_a, "replicas template restartPolicy",
                    "there is no launcher's pod");
    if (import_object(&im->a, "Launcher", &im->launcher_a) &&
        import_object(&im->launcher_a, "template", &im->c) &&
        import_object(&im->c, "spec", &im->launcher)) {
        im->has_launcher = true;
        import_rest(&im->c, "metadata spec", "there is no launcher's pod");
    }
    return import_object(&im->b, "template", &im->template);
}

static bool open_stateful_set(struct import *im)
{
    static const char *const unused[][2] = {
        {"serviceName", "workers need no names in DNS"},
        {"podManagementPolicy", "all workers start together"},
        {"updateStrategy", "a job is not updated"},
        {"minReadySeconds", "ranks start when all workers are ready"},
        {"ordinals", "workers count from 0"},
        {"persistentVolumeClaimRetentionPolicy", "a worker's volumes end with its pod"},
    };
    import_number(im, &im->spec, "replicas", "workers");
    import_leave_out(&im->spec, unused, ARRAY_LEN(unused));
    import_rest(&im->spec,
                "replicas template selector revisionHistoryLimit volumeClaimTemplates serviceName "
                "podManagementPolicy updateStrategy minReadySeconds ordinals "
                "persistentVolumeClaimRetentionPolicy",
                "a job has no such setting");
    return import_object(&im->spec, "template", &im->template);
}

static bool open_job(struct import *im)
{
    struct reader_node node;
    import_number(im, &im->spec, "parallelism", "workers");
    import_number(im, &im->spec, "completions", "workers");
    if (json_integer_value(json_object_get(im->job, "workers")) > 1 &&
        strcmp(import_text(&im->spec, "completionMode"), "Indexed") != 0 &&
        (reader_get(&im->spec, "completions", &node) ||
         reader_get(&im->spec, "parallelism", &node)))
        reader_fail(&node, "pods of a Job that is not Indexed are alike; here they are workers of "
                           "one job");
    if (reader_get(&im->spec, "parallelism", &node) && json_is_integer(node.value) &&
        json_integer_value(node.value) < json_integer_value(json_object_get(im->job, "workers")))
        reader_fail(&node, "left out: workers of a job run all at once, and completions is their "
                           "number");
    import_rest_of_job(&im->spec);
    import_policy(im, &im->spec);
    import_pod_failures(im, &im->spec);
    return import_object(&im->spec, "template", &im->template);
}

static const struct source {
    const char *kind;
    int (*open)(struct import *im, struct drarun_error *err);
} sources[] = {
    {"JobSet", import_open_jobset},
    {"LeaderWorkerSet", import_open_lws},
    {"PyTorchJob", import_open_pytorch},
    {"TrainJob", import_open_trainjob},
};

static bool open_simple(struct import *im, const char *kind)
{
    if (strcmp(kind, "MPIJob") == 0)
        return open_mpijob(im);
    return strcmp(kind, "StatefulSet") == 0 ? open_stateful_set(im) : open_job(im);
}

/* The pod template, wherever the kind has it. */
static int open_workload(struct import *im, struct drarun_error *err)
{
    const char *kind = import_text(im->workload, "kind");
    bool found = true;
    if (is_pod(im->workload)) {
        im->template = *im->workload;
    } else if (!import_object(im->workload, "spec", &im->spec)) {
        found = false;
    } else {
        size_t i = 0;
        while (i < ARRAY_LEN(sources) && strcmp(kind, sources[i].kind) != 0)
            i++;
        int rc = i < ARRAY_LEN(sources) ? sources[i].open(im, err) : 0;
        if (rc < 0)
            return rc;
        found = i < ARRAY_LEN(sources) || open_simple(im, kind);
    }
    if (found && import_object(&im->template, "spec", &im->pod)) {
        import_rest_of_template(&im->template);
        import_rest(im->workload, "apiVersion kind metadata spec status", "no part of it is known");
        return 0;
    }
    return refuse(im->workload, err, "has no pod template");
}

/* How many processes torchrun starts, as the operator gives it to the pod. */
static void add_processes(const struct import *im, json_t *template)
{
    json_t *container = import_first_container(template);
    json_t *env = json_object_get(container, "env");
    if (!im->processes)
        return;
    if (!env) {
        env = json_array();
        json_object_set_new(container, "env", env);
    }
    json_array_append_new(
        env, json_pack("{s:s, s:O}", "name", "PET_NPROC_PER_NODE", "value", im->processes));
}

/* Volumes that a StatefulSet or LeaderWorkerSet makes for each pod: as ephemeral ones, which each
 * worker gets too, without them its mounts would name nothing. */
static void take_volumes(const struct import *im, json_t *pod)
{
    const struct reader_node *holder =
        strcmp(import_text(im->workload, "kind"), "LeaderWorkerSet") == 0 ? &im->a : &im->spec;
    struct reader_node list;
    if (is_pod(im->workload) || !json_is_object(holder->value) ||
        !reader_get(holder, "volumeClaimTemplates", &list))
        return;
    json_t *volumes = json_object_get(pod, "volumes");
    if (!volumes) {
        volumes = json_array();
        json_object_set_new(pod, "volumes", volumes);
    }
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct reader_node item = reader_item(&list, i);
        json_t *spec = json_is_object(item.value) ? json_object_get(item.value, "spec") : NULL;
        if (!spec || !*import_name(&item)) {
            reader_fail(&item, "left out: no name, or no spec");
            continue;
        }
        json_array_append_new(volumes, json_pack("{s:s, s:{s:{s:O}}}", "name", import_name(&item),
                                                 "ephemeral", "volumeClaimTemplate", "spec", spec));
        reader_fail(&item,
                    "the volume %s is an ephemeral one of each worker now: it ends with the pod, "
                    "and a restarted job begins with an empty one",
                    import_name(&item));
    }
}

/* The vendor's daemon may stand first; the ranks are the job's first container's. */
static void put_ranks_first(const struct import *im, json_t *pod)
{
    size_t index = import_ranks_container(pod);
    json_t *containers = json_object_get(pod, "containers");
    struct reader_node list;
    if (index == 0 || !reader_get(&im->pod, "containers", &list))
        return;
    json_t *ranks = json_incref(json_array_get(containers, index));
    json_array_remove(containers, index);
    json_array_insert_new(containers, 0, ranks);
    struct reader_node from = reader_item(&list, index);
    reader_fail(&from, "the ranks' container, as it alone asks for GPUs or lists claims: it comes "
                       "first in the job, which starts them there");
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
    put_ranks_first(im, pod);
    take_volumes(im, pod);
    return copy;
}

/* A pod that runs mpirun itself runs it once, not as each of its ranks. */
static void take_own_mpirun(struct import *im, const json_t *template)
{
    json_t *workers = json_object_get(im->job, "workers");
    if (!import_runs_mpirun(template))
        return;
    bool is_one = !workers || json_integer_value(workers) == 1;
    if (is_one)
        json_object_set_new(im->job, "launch", json_string("mpirun"));
    reader_fail(&im->pod, is_one
                              ? "the pod runs mpirun itself: launch is mpirun, which runs the "
                                "command once; without mpirun drarun starts the ranks"
                              : "each pod runs mpirun itself, and each rank would: put the ranks' "
                                "program in its place, or set launch: mpirun, which runs the "
                                "command once, on worker 0");
}

static int take_program(struct import *im, char *const program[], json_t *template,
                        struct drarun_error *err)
{
    json_t *container = import_first_container(template);
    if (program && program[0]) {
        json_t *command = json_array();
        for (size_t i = 0; program[i]; i++)
            json_array_append_new(command, json_string(program[i]));
        json_object_set_new(container, "command", command);
        json_object_del(container, "args");
        if (im->has_launcher)
            reader_fail(&im->launcher,
                        "the launcher's command is not read, since the program is given: what it "
                        "says of ranks, variables and the directory is left out");
        return 0;
    }
    if (!im->has_launcher) {
        import_command(&im->pod, template);
        take_own_mpirun(im, template);
        return 0;
    }
    int rc = import_mpirun(im, template, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    reader_fail(&im->launcher, "no mpirun with a program was found here: put the ranks' program "
                               "in place of " IMPORT_PROGRAM);
    json_object_set_new(container, "command", json_pack("[s]", IMPORT_PROGRAM));
    json_object_del(container, "args");
    return 0;
}

/* Its claim template is made by the domain's controller, and named by the job. */
static void take_domain(struct import *im, const struct reader_node *object)
{
    struct reader_node spec, channel;
    json_t *domain = json_object();
    json_object_set_new(im->job, "computeDomain", domain);
    if (!import_object(object, "spec", &spec))
        return;
    import_rest(&spec, "numNodes channel", "the domain of a job has no such setting");
    if (json_is_integer(json_object_get(spec.value, "numNodes")))
        json_object_set(domain, "numNodes", json_object_get(spec.value, "numNodes"));
    if (!import_object(&spec, "channel", &channel))
        return;
    import_rest(&channel, "resourceClaimTemplate allocationMode",
                "the domain of a job has no such setting");
    if (*import_text(&channel, "allocationMode"))
        json_object_set_new(
            domain, "channel",
            json_pack("{s:s}", "allocationMode", import_text(&channel, "allocationMode")));
}

/* Whether a part of the template, which stands at `key`, names an object of another kind so. */
static bool is_named(json_t *value, const char *key, const char *name)
{
    static const char direct[] = "claimName secretName serviceAccountName serviceAccount";
    static const char holders[] =
        "configMap configMapRef configMapKeyRef secretRef secretKeyRef imagePullSecrets";
    const char *inner = NULL;
    json_t *item = NULL;
    bool found = false;
    size_t i;
    json_array_foreach(value, i, item)
    {
        found |= is_named(item, key, name);
    }
    json_object_foreach(value, inner, item)
    {
        bool may = words_index(direct, inner, strlen(inner)) >= 0 ||
                   (strcmp(inner, "name") == 0 && words_index(holders, key, strlen(key)) >= 0);
        found |= may && json_is_string(item) && strcmp(json_string_value(item), name) == 0;
        found |= is_named(item, inner, name);
    }
    return found;
}

static void explain_others(struct import *im, json_t *template)
{
    static const char used[] = "ConfigMap Secret PersistentVolumeClaim ServiceAccount";
    for (size_t i = 0; i < im->objects->count; i++) {
        const struct reader_node *object = &im->objects->nodes[i];
        const char *kind = import_text(object, "kind");
        if (strcmp(kind, "Service") == 0)
            reader_fail(object, "the Service %s is left out: workers are found by their pods",
                        import_name(object));
        else if (strcmp(kind, "ComputeDomain") == 0)
            take_domain(im, object);
        else if (strcmp(kind, "Kustomization") == 0)
            reader_fail(object, "the Kustomization is left out: kubectl kustomize DIRECTORY | "
                                "drarun import - imports what it makes");
        else if (words_index(used, kind, strlen(kind)) >= 0 &&
                 is_named(template, "", import_name(object)))
            reader_fail(object,
                        "the %s %s is left out, and the job's pods name it: make it by kubectl "
                        "apply",
                        kind, import_name(object));
        else if (object != im->workload && object != im->runtime.object &&
                 !(is_pod(object) && is_pod(im->workload)) &&
                 words_index("DeviceClass ResourceClaim ResourceClaimTemplate", kind,
                             strlen(kind)) < 0)
            reader_fail(object, "the %s %s is left out", *kind ? kind : "object without kind",
                        import_name(object));
    }
}

/* Keys in the order in which people write them. */
static json_t *in_order(json_t *job)
{
    static const char *const keys[] = {"workers",
                                       "ranksPerWorker",
                                       "launch",
                                       "devices",
                                       "computeDomain",
                                       "nccl",
                                       "image",
                                       "command",
                                       "args",
                                       "workingDir",
                                       "env",
                                       "envFrom",
                                       "resources",
                                       "volumes",
                                       "tolerations",
                                       "nodeSelector",
                                       "priorityClassName",
                                       "serviceAccountName",
                                       "imagePullSecrets",
                                       "schedulerName",
                                       "labels",
                                       "annotations",
                                       "template",
                                       "timeouts",
                                       "restarts",
                                       "failurePolicy",
                                       "ttlSecondsAfterFinished",
                                       "suspend",
                                       "queue"};
    json_t *ordered = json_object();
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (json_object_get(job, keys[i]))
            json_object_set(ordered, keys[i], json_object_get(job, keys[i]));
    return ordered;
}

static json_t *find_queue(const struct import *im)
{
    json_t *metadata = json_object_get(im->workload->value, "metadata");
    return json_object_get(json_object_get(metadata, "labels"), QUEUE_LABEL);
}

static void take_affinity(struct import *im, json_t *template)
{
    struct import_affinity affinity = {
        .job = import_name(im->workload), .queued = find_queue(im) != NULL, .own = &im->own};
    import_affinity(&affinity, &im->pod, template);
}

/* What runs on one node there may want several here. */
static void explain_spread(const struct import *im, json_t *template)
{
    const json_t *devices = json_object_get(im->job, "devices");
    const json_t *gpus = json_object_get(json_object_get(devices, "gpus"), "count");
    struct spec_role role = {
        .nics = {.all = json_object_get(devices, "nics") != NULL},
        .gpus = {.all = json_is_string(gpus)},
        .template = template,
    };
    const struct job_spec spec = {
        .name = im->name,
        .roles = &role,
        .role_count = 1,
        .workers = (uint32_t)json_integer_value(json_object_get(im->job, "workers")),
        .claims = find_queue(im) ? SPEC_CLAIMS_TEMPLATE : SPEC_CLAIMS_DIRECT,
    };
    if (node_spread_of(&spec, &role, false, NULL) == NODE_SPREAD_BY_SPEC)
        reader_fail(im->workload,
                    "each of the %u workers gets a node of its own, since they ask for %s, and the "
                    "manifest says nothing of nodes: placement: {spread: none} lets them share "
                    "nodes",
                    spec.workers, role.nics.all ? "NICs" : "whole nodes");
}

/* Labels and annotations of the workload are the job's; a Pod's are those of its template. */
static void take_metadata(const struct import *im, json_t *metadata)
{
    static const char *const keys[] = {"labels", "annotations"};
    struct reader_node from, list;
    if (is_pod(im->workload) || !import_object(im->workload, "metadata", &from))
        return;
    import_rest(&from, ADDED "labels annotations", "a job has labels and annotations");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *key = NULL;
        json_t *value = NULL;
        if (!import_object(&from, keys[i], &list))
            continue;
        json_object_foreach(list.value, key, value)
        {
            if (strcmp(key, QUEUE_LABEL) == 0 ||
                strncmp(key, "kubectl.kubernetes.io/", strlen("kubectl.kubernetes.io/")) == 0)
                continue;
            if (json_is_string(value) && strncmp(key, "drarun.dev/", strlen("drarun.dev/")) != 0)
                json_object_set(import_child(metadata, keys[i]), key, value);
            else
                reader_fail_key(&list, key, "left out: no text, or a key that drarun sets itself");
        }
    }
}

static json_t *document(const struct import *im)
{
    json_t *from = json_object_get(im->workload->value, "metadata"), *metadata = json_object();
    json_t *queue = find_queue(im);
    json_object_set_new(metadata, "name", json_string(im->name));
    if (json_object_get(from, "namespace"))
        json_object_set(metadata, "namespace", json_object_get(from, "namespace"));
    take_metadata(im, metadata);
    if (queue)
        json_object_set(im->job, "queue", queue);
    return json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", SPEC_API_VERSION, "kind", SPEC_KIND,
                     "metadata", metadata, "spec", in_order(im->job));
}

/* As it was applied: nothing that an API server has added. */
static json_t *class_document(const json_t *object)
{
    static const char *const keys[] = {"name", "labels", "annotations"};
    json_t *from = json_object_get(object, "metadata"), *metadata = json_object();
    json_t *version = json_object_get(object, "apiVersion"), *copy = json_object();
    json_object_set(copy, "apiVersion", version);
    json_object_set_new(copy, "kind", json_string("DeviceClass"));
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (json_object_get(from, keys[i]))
            json_object_set(metadata, keys[i], json_object_get(from, keys[i]));
    json_object_set_new(copy, "metadata", metadata);
    json_object_set(copy, "spec", json_object_get(object, "spec"));
    return copy;
}

/* Of two with one name the last counts, as where files are applied one behind the other. */
static json_t *take_classes(const struct import_objects *o)
{
    json_t *by_name = json_object(), *list = json_array(), *document = NULL;
    const char *name = NULL;
    for (size_t i = 0; i < o->count; i++) {
        const struct reader_node *object = &o->nodes[i];
        if (strcmp(import_text(object, "kind"), "DeviceClass") != 0)
            continue;
        if (!*import_name(object) || !json_is_object(json_object_get(object->value, "spec"))) {
            reader_fail(object, "the DeviceClass is left out: no name, or no spec");
            continue;
        }
        reader_fail(object,
                    "the DeviceClass %s is carried over, as a document of its own behind the job: "
                    "kubectl apply makes it",
                    import_name(object));
        json_object_set_new(by_name, import_name(object), class_document(object->value));
    }
    json_object_foreach(by_name, name, document)
    {
        json_array_append(list, document);
    }
    json_decref(by_name);
    return list;
}

static int build(struct import *im, char *const program[], json_t **ret_job,
                 struct drarun_error *err)
{
    explain_claims(im);
    int rc = find_workload(im, err);
    if (rc < 0)
        return rc;
    rc = open_workload(im, err);
    if (rc < 0)
        return rc;
    json_t *template = copy_template(im);
    import_remove_own(&im->own, template);
    if (!json_is_object(import_first_container(template))) {
        json_decref(template);
        return refuse(im->workload, err, "has no container");
    }
    if (!im->name[0]) {
        json_decref(template);
        return refuse(im->workload, err, "has no name: add metadata.name");
    }
    import_container(&im->pod, template, im->job);
    import_claims(im->objects, &im->pod, template, im->job);
    add_processes(im, template);
    take_affinity(im, template);
    rc = take_program(im, program, template, err);
    if (rc < 0) {
        json_decref(template);
        return rc;
    }
    explain_spread(im, template);
    import_vendor_script(im->has_launcher ? &im->launcher : &im->pod, template);
    explain_others(im, template);
    json_object_set_new(im->job, "template", template);
    if (spec_shorten(im->job) < 0)
        return error_set(err, ENOMEM, "out of memory");
    *ret_job = document(im);
    return *ret_job ? 0 : error_set(err, ENOMEM, "out of memory");
}

int import_job(struct reader *files, size_t count, char *const program[], json_t **ret_job,
               json_t **ret_classes, struct drarun_error *err)
{
    cleanup_free struct import_objects *objects = calloc(1, sizeof *objects);
    struct import im = {
        .files = files, .file_count = count, .objects = objects, .job = json_object()};
    int rc = objects && im.job ? 0 : error_set(err, ENOMEM, "no memory");
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = collect(&files[i], objects, err);
    if (rc == 0)
        rc = build(&im, program, ret_job, err);
    if (rc == 0)
        *ret_classes = take_classes(objects);
    strlist_done(&im.own);
    json_decref(im.processes);
    json_decref(im.job);
    return rc;
}
