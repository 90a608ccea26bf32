/* SPDX-License-Identifier: Apache-2.0 */
/* The one workload of the files, and the way to its pod template. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jobs/import/parts.h"
#include "jobs/spec/spec.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/nearest.h"

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

int import_collect(struct reader *file, struct import_objects *o, struct drarun_error *err)
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
    if (strcmp(kind, SPEC_KIND) == 0)
        return "it is a job of drarun already: drarun validate FILE checks it, drarun run FILE "
               "runs it";
    return NULL;
}

/* Of other controllers some kinds have the same name, as Volcano's Job. */
static bool is_workload(const struct reader_node *object)
{
    static const char kinds[] =
        "MPIJob StatefulSet Job Pod JobSet LeaderWorkerSet PyTorchJob TrainJob";
    const char *kind = import_text(object, "kind"), *version = import_text(object, "apiVersion");
    if (strcmp(kind, "Job") == 0 && strchr(version, '/') &&
        strncmp(version, "batch/", strlen("batch/")) != 0)
        return false;
    return words_has(kinds, kind);
}

/* An object that its author takes for a workload; NULL: all are what workloads use. */
static const struct reader_node *find_other(const struct import_objects *objects)
{
    static const char used[] =
        "ConfigMap Secret Service ServiceAccount PersistentVolumeClaim Namespace Role RoleBinding "
        "ClusterRole ClusterRoleBinding NetworkPolicy PriorityClass LocalQueue ClusterQueue "
        "ResourceFlavor PodGroup Workload DeviceClass ResourceClaim ResourceClaimTemplate "
        "ResourceSlice ComputeDomain Kustomization TrainingRuntime ClusterTrainingRuntime";
    for (size_t i = 0; i < objects->count; i++) {
        const char *kind = import_text(&objects->nodes[i], "kind");
        if (*kind && !words_has(used, kind))
            return &objects->nodes[i];
    }
    return NULL;
}

#define EXPECTED                                                                                   \
    "expected an MPIJob, a PyTorchJob, a TrainJob with its runtime, a JobSet, a "                  \
    "LeaderWorkerSet, a StatefulSet, a Job or Pods"

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
        import_container(im->objects, &pod, copy, unused);
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

/* Another Pod is another worker, if it is alike. */
static int join_pod(struct import *im, const struct reader_node *pod, struct drarun_error *err)
{
    json_t *workers = json_object_get(im->job, "workers");
    char first[IMPORT_NAME_ROOM + 8], other[IMPORT_NAME_ROOM + 8];
    char first_name[IMPORT_NAME_ROOM], name[IMPORT_NAME_ROOM];
    name_object(im->workload, first_name, sizeof first_name);
    name_object(pod, name, sizeof name);
    snprintf(first, sizeof first, "the Pod %s", first_name);
    snprintf(other, sizeof other, "the Pod %s", name);
    int rc = import_compare_pods(im->workload, pod, first, other, &im->own, err);
    if (rc < 0)
        return rc;
    import_common_name(im->name, name);
    return json_object_set_new(im->job, "workers",
                               json_integer(workers ? json_integer_value(workers) + 1 : 2));
}

static int find(struct import *im, struct drarun_error *err)
{
    const struct reader_node *other = NULL;
    for (size_t i = 0; i < im->objects->count; i++) {
        const struct reader_node *object = &im->objects->nodes[i];
        const char *kind = import_text(object, "kind");
        bool is_one = is_workload(object);
        if (is_one && im->workload && import_is_pod(im->workload) && import_is_pod(object)) {
            int rc = join_pod(im, object, err);
            if (rc < 0)
                return rc;
            continue;
        }
        if (is_one && im->workload)
            return import_refuse(
                object, err, "is a second workload: %s:%u has the %s %s; import one at a time",
                doc_name(im->workload->reader->doc), import_place(im->workload).line,
                import_text(im->workload, "kind"), import_name(im->workload));
        if (is_one) {
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
        return import_refuse(other, err, "cannot be imported: %s",
                             why_not(import_text(other, "kind")));
    other = find_other(im->objects);
    if (other)
        return import_refuse(other, err, "of %s cannot be imported: " EXPECTED,
                             *import_text(other, "apiVersion") ? import_text(other, "apiVersion")
                                                               : "no apiVersion");
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s%s: no workload: " EXPECTED,
                      doc_name(im->files[0].doc), im->file_count > 1 ? " and the others" : "");
}

#define NO_TEMPLATE "has no pod template"

/* Its launcher's pod has slots, too: here it is one more worker. */
static void take_launcher_as_worker(struct import *im)
{
    struct reader_node as_worker;
    json_t *workers = json_object_get(im->job, "workers");
    if (!reader_get(&im->spec, "runLauncherAsWorker", &as_worker) || !json_is_true(as_worker.value))
        return;
    json_int_t count = json_integer_value(workers) + 1;
    json_object_set_new(im->job, "workers", json_integer(count));
    reader_fail(&as_worker, "the launcher's pod is one more worker: %" JSON_INTEGER_FORMAT " now",
                count);
}

static int open_mpijob(struct import *im, struct drarun_error *err)
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
        return import_refuse(im->workload, err, NO_TEMPLATE);
    }
    import_number(im, &im->b, "replicas", "workers");
    if (!json_object_get(im->job, "workers"))
        return import_refuse_at(&im->b, err,
                                "Worker.replicas has no number: the MPI Operator takes that as 0 "
                                "workers and rejects the MPIJob; add replicas: N");
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
    return import_object(&im->b, "template", &im->template)
               ? 0
               : import_refuse(im->workload, err, NO_TEMPLATE);
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
        reader_fail(
            &node, "left out: all workers of a job run at once, and completions sets their number");
    import_rest_of_job(&im->spec);
    import_policy(im, &im->spec);
    import_pod_failures(im, &im->spec);
    return import_object(&im->spec, "template", &im->template);
}

static const struct source {
    const char *kind;
    int (*open)(struct import *im, struct drarun_error *err);
} sources[] = {
    {"MPIJob", open_mpijob},
    {"JobSet", import_open_jobset},
    {"LeaderWorkerSet", import_open_lws},
    {"PyTorchJob", import_open_pytorch},
    {"TrainJob", import_open_trainjob},
};

static bool open_simple(struct import *im, const char *kind)
{
    return strcmp(kind, "StatefulSet") == 0 ? open_stateful_set(im) : open_job(im);
}

/* The pod template, wherever the kind has it. */
static int open_template(struct import *im, struct drarun_error *err)
{
    const char *kind = import_text(im->workload, "kind");
    bool found = true;
    if (im->only && strcmp(kind, "JobSet") != 0)
        return import_refuse(im->workload, err,
                             "has no ReplicatedJobs: --only %.63s works only with a JobSet",
                             im->only);
    if (import_is_pod(im->workload)) {
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
    return import_refuse(im->workload, err, NO_TEMPLATE);
}

int import_workload(struct import *im, struct drarun_error *err)
{
    explain_claims(im);
    int rc = find(im, err);
    return rc < 0 ? rc : open_template(im, err);
}
