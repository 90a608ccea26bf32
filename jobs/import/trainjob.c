/* SPDX-License-Identifier: Apache-2.0 */
/* TrainJob (trainer.kubeflow.org/v1alpha1): its pods are those of a TrainingRuntime or
 * ClusterTrainingRuntime, which holds a JobSet, with what the TrainJob sets in their place. The
 * values are put into the runtime's document, as Trainer does (pkg/runtime of kubeflow/trainer). */
#include <errno.h>
#include <string.h>

#include "jobs/import/parts.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"
#include "lib/dra/quantity_read.h"

#define CLUSTER_RUNTIME "ClusterTrainingRuntime"
#define ANCESTOR "trainer.kubeflow.org/trainjob-ancestor-step"
#define NODE "node"         /* the container of the program, and MPI's job of workers */
#define LAUNCHER "launcher" /* MPI's other job */
#define TRAINER "trainer"   /* the step whose job has what the TrainJob sets */

/* ---- the runtime ---- */

static int find_runtime(struct import *im, struct drarun_error *err)
{
    struct reader_node ref;
    const char *name = "", *kind = CLUSTER_RUNTIME;
    if (import_object(&im->spec, "runtimeRef", &ref)) {
        name = import_text(&ref, "name");
        kind = *import_text(&ref, "kind") ? import_text(&ref, "kind") : kind;
    }
    if (!*name)
        return import_refuse_at(&im->spec, err, "spec.runtimeRef.name is missing");
    im->runtime.object = import_find(im->objects, kind, name);
    if (im->runtime.object)
        return 0;
    bool is_clusters = strcmp(kind, CLUSTER_RUNTIME) == 0;
    return error_kind(err, DRARUN_ERR_SPEC, ENOENT,
                      "%s:%u: the pods of the TrainJob %s are those of the %s %s, which is not in "
                      "the input: give it, too (kubectl get %s %s -o yaml)",
                      doc_name(ref.reader->doc), import_place(&ref).line, import_name(im->workload),
                      kind, name, is_clusters ? "clustertrainingruntime" : "trainingruntime", name);
}

/* Which step of the TrainJob it is, as a label of the Job or of its pods says; "" for none. */
static const char *step_of(const json_t *item)
{
    const json_t *outer = json_object_get(item, "template");
    const json_t *holders[] = {outer, json_object_get(json_object_get(outer, "spec"), "template")};
    for (size_t i = 0; i < ARRAY_LEN(holders); i++) {
        const json_t *labels = json_object_get(json_object_get(holders[i], "metadata"), "labels");
        if (value_text(labels, ANCESTOR))
            return value_text(labels, ANCESTOR);
    }
    return "";
}

/* The program's job, and MPI's job of workers. Trainer knows MPI's jobs by their names, whatever
 * their steps. */
static int find_jobs(struct import *im, struct import_job *trainer, struct import_job *nodes,
                     struct drarun_error *err)
{
    struct import_runtime *r = &im->runtime;
    const json_t *mpi = json_object_get(json_object_get(r->spec.value, "mlPolicy"), "mpi");
    for (size_t i = 0; i < json_array_size(r->jobs.value); i++) {
        struct reader_node item = reader_item(&r->jobs, i);
        const char *step = step_of(item.value), *name = import_text(&item, "name");
        bool is_trainer =
            strcmp(step, TRAINER) == 0 || (mpi && !*step && strcmp(name, LAUNCHER) == 0);
        json_int_t pods = 0; /* numNodes decides */
        if (!is_trainer && (*step || strcmp(name, NODE) != 0)) {
            reader_fail(&item,
                        "left out: %s is no step of a job here; fetch data and models before, or "
                        "in an initContainer",
                        name);
            continue;
        }
        int rc = import_open_replicated(&item, is_trainer ? trainer : nodes, &pods, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int open_runtime(struct import *im, struct drarun_error *err)
{
    static const char *const unused[][2] = {
        {"podGroupPolicy", "all workers start or none"},
    };
    struct import_runtime *r = &im->runtime;
    if (!import_object(r->object, "spec", &r->spec) ||
        !import_object(&r->spec, "template", &r->template) ||
        !import_object(&r->template, "spec", &r->set) ||
        !reader_get(&r->set, "replicatedJobs", &r->jobs))
        return import_refuse_at(r->object, err, "spec.template.spec.replicatedJobs is missing");
    import_leave_out(&r->spec, unused, ARRAY_LEN(unused));
    import_rest(&r->spec, "mlPolicy template podGroupPolicy", "a job has no such setting");
    return 0;
}

/* ---- what the TrainJob sets ---- */

/* The list's entry with the same text at key, replaced; else a new one. */
static void upsert(json_t *list, const char *key, json_t *item)
{
    size_t i;
    json_t *there;
    json_array_foreach(list, i, there)
    {
        if (json_equal(json_object_get(there, key), json_object_get(item, key))) {
            json_array_set(list, i, item);
            return;
        }
    }
    json_array_append(list, item);
}

/* key NULL: all are added. */
static void upsert_all(json_t *holder, const char *name, const char *key, const json_t *items)
{
    json_t *list = json_object_get(holder, name), *item;
    size_t i;
    if (json_array_size(items) == 0)
        return;
    if (!json_is_array(list)) {
        list = json_array();
        json_object_set_new(holder, name, list);
    }
    json_array_foreach(items, i, item)
    {
        if (key)
            upsert(list, key, item);
        else
            json_array_append(list, item);
    }
}

static json_t *container_named(json_t *pod, const char *list, const char *name)
{
    size_t i;
    json_t *container;
    json_array_foreach(json_object_get(pod, list), i, container)
    {
        if (strcmp(value_text_or(container, "name", ""), name) == 0)
            return container;
    }
    return NULL;
}

static json_t *pod_of(const struct import_job *job)
{
    return json_object_get(job->template.value, "spec");
}

static void set_keys(json_t *container, const json_t *from, const char *const keys[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (json_object_get(from, keys[i]))
            json_object_set(container, keys[i], json_object_get(from, keys[i]));
}

/* An object's members into that of the same key. */
static void merge(json_t *holder, const json_t *from, const char *key)
{
    json_t *own = json_object_get(from, key);
    if (json_is_object(own) && json_is_object(import_child(holder, key)))
        json_object_update_recursive(json_object_get(holder, key), own);
}

/* program: command and arguments, too. */
static void set_trainer(const struct reader_node *trainer, const struct import_job *job,
                        bool program)
{
    static const char *const always[] = {"image"}, *const own[] = {"command", "args"};
    json_t *container = container_named(pod_of(job), "containers", NODE);
    json_t *resources = json_object_get(trainer->value, "resourcesPerNode");
    if (!container)
        return;
    set_keys(container, trainer->value, always, ARRAY_LEN(always));
    if (program)
        set_keys(container, trainer->value, own, ARRAY_LEN(own));
    if (json_is_object(resources)) { /* as Trainer 2.3; earlier ones drop the runtime's own */
        json_t *made = import_child(container, "resources");
        merge(made, resources, "limits");
        merge(made, resources, "requests");
        upsert_all(made, "claims", "name", json_object_get(resources, "claims"));
        if (json_object_size(made) == 0)
            json_object_del(container, "resources");
    }
    upsert_all(container, "env", "name", json_object_get(trainer->value, "env"));
}

static bool is_for(const struct reader_node *override, const struct import_job *job)
{
    size_t i;
    json_t *target;
    json_array_foreach(json_object_get(override->value, "targetJobs"), i, target)
    {
        if (strcmp(value_text_or(target, "name", ""), import_text(&job->item, "name")) == 0)
            return true;
    }
    return false;
}

static void override_containers(const struct reader_node *from, const char *list, json_t *pod)
{
    struct reader_node containers;
    if (!reader_get(from, list, &containers))
        return;
    for (size_t i = 0; i < json_array_size(containers.value); i++) {
        struct reader_node own = reader_item(&containers, i);
        json_t *container = json_is_object(own.value)
                                ? container_named(pod, list, import_text(&own, "name"))
                                : NULL;
        if (!container) {
            reader_fail(&own, "left out: the runtime's pod has no such container");
            continue;
        }
        upsert_all(container, "env", "name", json_object_get(own.value, "env"));
        upsert_all(container, "volumeMounts", "mountPath",
                   json_object_get(own.value, "volumeMounts"));
        merge(container, own.value, "securityContext");
        import_rest(&own, "name env volumeMounts securityContext",
                    "no part of a container that an override sets");
    }
}

static void override_pod(const struct reader_node *from, json_t *pod, const char *others)
{
    static const char *const whole[] = {"serviceAccountName", "affinity"};
    const char *key;
    json_t *value;
    set_keys(pod, from->value, whole, ARRAY_LEN(whole));
    json_object_foreach(json_object_get(from->value, "nodeSelector"), key, value)
    {
        json_object_set(import_child(pod, "nodeSelector"), key, value);
    }
    upsert_all(pod, "tolerations", NULL, json_object_get(from->value, "tolerations"));
    upsert_all(pod, "volumes", "name", json_object_get(from->value, "volumes"));
    upsert_all(pod, "imagePullSecrets", "name", json_object_get(from->value, "imagePullSecrets"));
    override_containers(from, "initContainers", pod);
    override_containers(from, "containers", pod);
    import_rest(from, others, "no part of a pod that an override sets");
}

#define POD_KEYS                                                                                   \
    "serviceAccountName affinity nodeSelector tolerations volumes imagePullSecrets "               \
    "initContainers containers"

/* podTemplateOverrides, and podSpecOverrides of Trainer 2.0, on the workers' pods. */
static void take_overrides(struct import *im, const char *list_key, const struct import_job *job)
{
    static const char *const keys[] = {"labels", "annotations"};
    struct reader_node list, metadata, pod;
    bool flat = strcmp(list_key, "podSpecOverrides") == 0;
    if (!reader_get(&im->spec, list_key, &list))
        return;
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct reader_node own = reader_item(&list, i);
        if (!json_is_object(own.value) || !is_for(&own, job)) {
            reader_fail(&own, "left out: it is for other pods than the workers'");
            continue;
        }
        if (flat) {
            override_pod(&own, pod_of(job), "targetJobs " POD_KEYS);
            continue;
        }
        import_rest(&own, "targetJobs metadata spec", "no part of it is known");
        if (import_object(&own, "spec", &pod))
            override_pod(&pod, pod_of(job), POD_KEYS);
        for (size_t k = 0; import_object(&own, "metadata", &metadata) && k < 2; k++)
            json_object_update(import_child(import_child(job->template.value, "metadata"), keys[k]),
                               json_object_get(metadata.value, keys[k]));
    }
}

/* A strategic merge, as Trainer makes it: lists by their keys, but tolerations as a whole. */
static void patch_pod(const struct reader_node *from, json_t *pod)
{
    static const char *const whole[] = {"terminationGracePeriodSeconds"};
    static const char *const unused[][2] = {{"schedulingGates", "another controller's"}};
    json_t *affinity = json_incref(json_object_get(pod, "affinity"));
    if (json_object_get(from->value, "tolerations"))
        json_object_del(pod, "tolerations");
    override_pod(from, pod,
                 POD_KEYS " securityContext terminationGracePeriodSeconds schedulingGates");
    if (json_is_object(affinity)) {
        json_object_set(pod, "affinity", affinity);
        merge(pod, from->value, "affinity");
    }
    json_decref(affinity);
    merge(pod, from->value, "securityContext");
    set_keys(pod, from->value, whole, ARRAY_LEN(whole));
    import_leave_out(from, unused, ARRAY_LEN(unused));
}

/* The pod template of a ReplicatedJob's patch. */
static void patch_template(const struct reader_node *template, const struct import_job *job)
{
    static const char *const keys[] = {"labels", "annotations"};
    struct reader_node metadata, pod;
    import_rest(template, "metadata spec", "no part of it is known");
    if (import_object(template, "metadata", &metadata))
        for (size_t k = 0; k < ARRAY_LEN(keys); k++)
            merge(import_child(job->template.value, "metadata"), metadata.value, keys[k]);
    if (import_object(template, "spec", &pod))
        patch_pod(&pod, pod_of(job));
}

static void patch_job(const struct reader_node *patch, const struct import_job *job)
{
    static const char *const unused[][2] = {{"metadata", "of a Job, which is not made here"}};
    struct reader_node outer, spec, template;
    import_rest(patch, "name template", "no part of it is known");
    if (!import_object(patch, "template", &outer))
        return;
    import_leave_out(&outer, unused, ARRAY_LEN(unused));
    import_rest(&outer, "metadata spec", "no part of it is known");
    if (!import_object(&outer, "spec", &spec))
        return;
    import_rest(&spec, "template", "no part of a Job that a patch sets");
    if (import_object(&spec, "template", &template))
        patch_template(&template, job);
}

/* runtimePatches, which came in place of podTemplateOverrides, on the workers' pods. */
static void take_patches(struct import *im, const struct import_job *job)
{
    static const char *const unused[][2] = {
        {"metadata", "of the JobSet; a job has its own in metadata"}};
    struct reader_node list, runtime, template, set, jobs;
    if (!reader_get(&im->spec, "runtimePatches", &list))
        return;
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct reader_node own = reader_item(&list, i);
        if (!json_is_object(own.value))
            continue;
        import_rest(&own, "manager time trainingRuntimeSpec", "no part of it is known");
        if (!import_object(&own, "trainingRuntimeSpec", &runtime) ||
            !import_object(&runtime, "template", &template))
            continue;
        import_leave_out(&template, unused, ARRAY_LEN(unused));
        import_rest(&template, "metadata spec", "no part of it is known");
        if (!import_object(&template, "spec", &set) || !reader_get(&set, "replicatedJobs", &jobs))
            continue;
        for (size_t k = 0; k < json_array_size(jobs.value); k++) {
            struct reader_node patch = reader_item(&jobs, k);
            if (json_is_object(patch.value) &&
                strcmp(import_text(&patch, "name"), import_text(&job->item, "name")) == 0)
                patch_job(&patch, job);
            else
                reader_fail(&patch, "left out: it is for other pods than the workers'");
        }
    }
}

/* ---- ranks ---- */

/* Of the TrainJob, else of the policy. NULL: neither says it. */
static json_t *number_of(const struct reader_node *trainer, const json_t *policy, const char *key)
{
    json_t *own = json_object_get(trainer->value, key);
    return own ? own : json_object_get(policy, key);
}

static bool is_gpu(const char *resource)
{
    return strcasestr(resource, "gpu") != NULL;
}

/* Whole CPUs of the list, rounded up; 0: none. */
static json_int_t cpus_of(const json_t *amounts)
{
    const json_t *value = json_object_get(amounts, "cpu");
    struct cel_quantity quantity;
    if (!value || quantity_read(value, "cpu", &quantity, NULL) < 0)
        return 0;
    double much = cel_quantity_real(&quantity);
    json_int_t whole = much > 0 && much < INT32_MAX ? (json_int_t)much : 0;
    return whole + ((double)whole < much);
}

/* Trainer's "auto": torchrun's own on GPUs, which is one process for each, else one for each CPU.
 * Those that the TrainJob asks for take the place of the runtime's. */
static json_t *automatic(const struct reader_node *trainer, const json_t *container)
{
    static const char *const parts[] = {"requests", "limits"};
    const json_t *resources = json_object_get(trainer->value, "resourcesPerNode");
    const char *name = NULL;
    json_t *value = NULL;
    json_int_t cpus = 0;
    if (!json_is_object(resources))
        resources = json_object_get(container, "resources");
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        json_t *amounts = json_object_get(resources, parts[i]);
        json_object_foreach(amounts, name, value)
        {
            if (is_gpu(name))
                return json_string("auto");
        }
        cpus = cpus ? cpus : cpus_of(amounts);
    }
    return json_sprintf("%" JSON_INTEGER_FORMAT, cpus ? cpus : 1);
}

static void take_ranks(struct import *im, const struct reader_node *trainer,
                       const struct reader_node *policy, const struct import_job *job)
{
    const json_t *torch = json_object_get(policy->value, "torch");
    json_t *nodes = number_of(trainer, policy->value, "numNodes");
    json_t *each = number_of(trainer, torch, "numProcPerNode");
    const char *word = json_string_value(each);
    json_object_set_new(im->job, "workers", nodes ? json_incref(nodes) : json_integer(1));
    json_object_set_new(im->job, "ranksPerWorker", json_integer(1));
    json_object_set_new(im->job, "launch", json_string("env"));
    if (!torch)
        return;
    json_t *count = json_is_integer(each)
                        ? json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(each))
                    : each && !(word && strcmp(word, "auto") == 0)
                        ? json_incref(each)
                        : automatic(trainer, container_named(pod_of(job), "containers", NODE));
    reader_fail(policy, "torchrun starts %s processes in each pod, by PET_NPROC_PER_NODE",
                json_string_value(count) ? json_string_value(count) : "auto");
    import_torchrun(im, "PET_NPROC_PER_NODE", count);
}

/* GPUs that the resources ask for, by device plugin; 0: none. */
static json_int_t gpus_of(const json_t *resources)
{
    static const char *const parts[] = {"requests", "limits"};
    const char *name = NULL;
    json_t *value = NULL;
    struct cel_quantity quantity;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        json_object_foreach(json_object_get(resources, parts[i]), name, value)
        {
            if (!is_gpu(name) || quantity_read(value, name, &quantity, NULL) < 0)
                continue;
            double much = cel_quantity_real(&quantity);
            if (much >= 1 && much < INT32_MAX)
                return (json_int_t)much;
        }
    return 0;
}

/* Slots of a node: the TrainJob's, else the runtime's, where 1, the API's default, means one for
 * each GPU. */
static json_int_t slots_of(const struct reader_node *trainer, const json_t *mpi,
                           const struct import_job *nodes)
{
    const json_t *own = json_object_get(trainer->value, "numProcPerNode");
    const json_t *base = json_object_get(mpi, "numProcPerNode");
    const json_t *resources = json_object_get(trainer->value, "resourcesPerNode");
    json_int_t each = json_is_integer(base) ? json_integer_value(base) : 1;
    if (json_is_integer(own) || each != 1)
        return json_is_integer(own) ? json_integer_value(own) : each;
    if (!json_is_object(resources))
        resources =
            json_object_get(container_named(pod_of(nodes), "containers", NODE), "resources");
    json_int_t gpus = gpus_of(resources);
    return gpus > 1 ? gpus : each;
}

/* One of the nodes is the launcher's pod, or none: here all are workers. */
static void take_mpi(struct import *im, const struct reader_node *trainer,
                     const struct reader_node *policy, const struct import_job *launcher,
                     const struct import_job *nodes)
{
    const json_t *mpi = json_object_get(policy->value, "mpi");
    json_t *count = number_of(trainer, policy->value, "numNodes");
    json_object_set_new(im->job, "workers", count ? json_incref(count) : json_integer(1));
    json_object_set_new(im->job, "ranksPerWorker", json_integer(slots_of(trainer, mpi, nodes)));
    im->launcher_a = launcher->template;
    im->has_launcher = import_object(&im->launcher_a, "spec", &im->launcher);
}

/* ---- all of it ---- */

static void explain_policy(const struct reader_node *policy)
{
    static const char *const elastic[][2] = {
        {"elasticPolicy", "the number of nodes is fixed; spec.restarts restarts the whole job"}};
    static const char *const known[][2] = {
        {"torch", "numProcPerNode elasticPolicy"},
        {"mpi", "numProcPerNode mpiImplementation sshAuthMountPath runLauncherAsNode"},
        {"jax", ""},
    };
    struct reader_node part;
    import_rest(policy, "numNodes torch mpi jax", "a job has no such policy");
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (!import_object(policy, known[i][0], &part))
            continue;
        if (strcmp(known[i][0], "torch") == 0)
            import_leave_out(&part, elastic, ARRAY_LEN(elastic));
        import_rest(&part, known[i][1], "a job has no such setting");
    }
}

/* Where Trainer itself starts ranks, or tells them of one another, in a way that a job has not. */
static int check_policy(const struct reader_node *policy, struct drarun_error *err)
{
    static const char *const others[][2] = {
        {"flux", "Flux starts the ranks of this runtime: write the job with the program that it "
                 "starts as command"},
        {"xgboost", "Trainer tells XGBoost's workers of their tracker by DMLC_TRACKER_URI, "
                    "DMLC_TRACKER_PORT, DMLC_TASK_ID and DMLC_NUM_WORKER: write the job with a "
                    "program that takes MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE for them"},
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (json_object_get(policy->value, others[i][0]))
            return import_refuse_at(policy, err, "%s", others[i][1]);
    explain_policy(policy);
    return 0;
}

static void take_rest(struct import *im)
{
    static const char *const unused[][2] = {
        {"initializer", "fetch data and models before, or in an initContainer"},
        {"labels", "those of its JobSet; a job has its own in metadata"},
        {"annotations", "those of its JobSet; a job has its own in metadata"},
        {"managedBy", "another controller's"},
    };
    import_leave_out(&im->spec, unused, ARRAY_LEN(unused));
    import_rest(&im->spec,
                "runtimeRef trainer podTemplateOverrides podSpecOverrides suspend initializer "
                "labels annotations managedBy runtimePatches activeDeadlineSeconds",
                "a job has no such setting");
    import_policy(im, &im->spec);
}

int import_open_trainjob(struct import *im, struct drarun_error *err)
{
    struct import_job *trainer = &im->jobs[0], *nodes = &im->jobs[1];
    struct reader_node policy = {.reader = im->spec.reader}, own = {.reader = im->spec.reader};
    int rc = find_runtime(im, err);
    if (rc == 0)
        rc = open_runtime(im, err);
    if (rc == 0)
        rc = find_jobs(im, trainer, nodes, err);
    if (rc < 0)
        return rc;
    if (!trainer->template.value)
        return import_refuse_at(im->runtime.object, err,
                                "no job of the runtime has the label " ANCESTOR ": " TRAINER);
    if (import_object(&im->runtime.spec, "mlPolicy", &policy))
        rc = check_policy(&policy, err);
    else
        policy = im->runtime.spec;
    if (rc < 0)
        return rc;
    bool is_set = strcmp(step_of(trainer->item.value), TRAINER) == 0;
    if (!import_object(&im->spec, "trainer", &own))
        own = im->spec; /* which has none of these keys */
    else if (is_set)
        import_rest(&own, "image command args env numNodes numProcPerNode resourcesPerNode",
                    "a job has no such setting");
    else
        import_rest(&own, "numNodes numProcPerNode",
                    "no Job of the runtime has the label " ANCESTOR ": " TRAINER
                    ", and Trainer sets it in no other");
    bool mpi = json_object_get(policy.value, "mpi") && nodes->template.value;
    const struct import_job *workers = mpi ? nodes : trainer;
    if (is_set)
        set_trainer(&own, trainer, true);
    if (is_set && mpi)
        set_trainer(&own, nodes, false);
    take_overrides(im, "podSpecOverrides", workers);
    take_overrides(im, "podTemplateOverrides", workers);
    take_patches(im, workers);
    im->template = workers->template;
    import_take_set_policy(im, &im->runtime.set);
    take_rest(im);
    if (mpi)
        take_mpi(im, &own, &policy, trainer, nodes);
    else
        take_ranks(im, &own, &policy, workers);
    return 0;
}
