/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/import/import.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jobs/import/parts.h"
#include "jobs/manifests/limits.h"
#include "jobs/ranks/rankenv.h"
#include "jobs/spec/node_spread.h"
#include "jobs/spec/spec.h"
#include "jobs/spec/spec_shorten.h"
#include "jobs/spec/spec_words.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/nearest.h"
#include "lib/doc/value.h"

static json_t *volumes_of(json_t *pod)
{
    json_t *volumes = json_object_get(pod, "volumes");
    if (!volumes) {
        volumes = json_array();
        json_object_set_new(pod, "volumes", volumes);
    }
    return volumes;
}

/* What it asks for, with the labels and annotations of its claims. */
static json_t *claim_template(const struct reader_node *item, json_t *spec)
{
    static const char *const keys[] = {"labels", "annotations"};
    json_t *template = json_pack("{s:O}", "spec", spec), *marks = NULL;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        marks = json_object_get(json_object_get(item->value, "metadata"), keys[i]);
        if (json_object_size(marks) > 0)
            json_object_set(import_child(template, "metadata"), keys[i], marks);
    }
    return template;
}

/* Volumes that a StatefulSet or LeaderWorkerSet makes for each pod: as ephemeral ones, which each
 * worker gets too, without them its mounts would name nothing. */
static void take_volumes(const struct import *im, json_t *pod)
{
    const struct reader_node *holder =
        strcmp(import_text(im->workload, "kind"), "LeaderWorkerSet") == 0 ? &im->a : &im->spec;
    struct reader_node list;
    if (import_is_pod(im->workload) || !json_is_object(holder->value) ||
        !reader_get(holder, "volumeClaimTemplates", &list))
        return;
    json_t *volumes = volumes_of(pod);
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct reader_node item = reader_item(&list, i);
        json_t *spec = json_is_object(item.value) ? json_object_get(item.value, "spec") : NULL;
        if (!spec || !*import_name(&item)) {
            reader_fail(&item, "left out: no name, or no spec");
            continue;
        }
        json_array_append_new(volumes,
                              json_pack("{s:s, s:{s:o}}", "name", import_name(&item), "ephemeral",
                                        "volumeClaimTemplate", claim_template(&item, spec)));
        reader_fail(&item,
                    "the volume %s is an ephemeral one of each worker now: it ends with the pod, "
                    "and a restarted job begins with an empty one",
                    import_name(&item));
    }
}

static bool is_mounted(const json_t *pod, const char *volume)
{
    static const char *const lists[] = {"containers", "initContainers"};
    const json_t *container;
    size_t i;
    for (size_t l = 0; l < ARRAY_LEN(lists); l++)
        json_array_foreach(json_object_get(pod, lists[l]), i, container)
        {
            if (value_find(json_object_get(container, "volumeMounts"), "name", volume))
                return true;
        }
    return false;
}

/* A claim that a JobSet makes, which all of its pods that mount it share: TEMPLATE-JOBSET. */
static void take_shared_volume(const struct import *im, const struct reader_node *template,
                               json_t *pod)
{
    const char *name = json_is_object(template->value) ? import_name(template) : "";
    char claim[2 * IMPORT_NAME_ROOM];
    if (!*name || !is_mounted(pod, name)) {
        reader_fail(template, "left out: %s", *name ? "no worker mounts it" : "no name");
        return;
    }
    snprintf(claim, sizeof claim, "%s-%s", name, im->name);
    json_array_append_new(volumes_of(pod), json_pack("{s:s, s:{s:s}}", "name", name,
                                                     "persistentVolumeClaim", "claimName", claim));
    reader_fail(template,
                "the workers share the PersistentVolumeClaim %s, as the JobSet would call it: make "
                "it of this spec by kubectl apply",
                claim);
}

static void take_shared_volumes(const struct import *im, json_t *pod)
{
    const struct reader_node *set = im->runtime.object ? &im->runtime.set : &im->spec;
    struct reader_node policies, templates;
    if (import_is_pod(im->workload) || !json_is_object(set->value) ||
        !reader_get(set, "volumeClaimPolicies", &policies))
        return;
    for (size_t i = 0; i < json_array_size(policies.value); i++) {
        struct reader_node policy = reader_item(&policies, i);
        if (!json_is_object(policy.value) || !reader_get(&policy, "templates", &templates))
            continue;
        import_rest(&policy, "templates retentionPolicy", "a job has no such setting");
        for (size_t k = 0; k < json_array_size(templates.value); k++) {
            struct reader_node template = reader_item(&templates, k);
            take_shared_volume(im, &template, pod);
        }
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
    reader_fail(&from, "the ranks run in this container, the only one that asks for GPUs or lists "
                       "claims: the job has it as its first");
}

static void take_marks(const struct import *im, const struct reader_node *metadata,
                       const char *part, const json_t *pod, json_t *kept)
{
    json_t *copy = json_deep_copy(json_object_get(metadata->value, part));
    if (import_queue(im)) /* the job names it, and pods of a job in a queue are not queued again */
        json_object_del(copy, IMPORT_QUEUE_LABEL);
    import_written(metadata, part, pod, copy);
    bool is_empty = json_is_object(copy) && json_object_size(copy) == 0;
    if (is_empty || json_is_null(copy)) /* a key without a value is none to an API server */
        json_decref(copy);
    else
        json_object_set_new(kept, part, copy);
}

/* Groups of the scheduler, which are objects of their own. */
static void leave_groups(const struct import *im, json_t *pod)
{
    static const char *const keys[] = {"schedulingGroup", "workloadRef"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (json_object_del(pod, keys[i]) == 0)
            reader_fail_key(&im->pod, keys[i],
                            "left out: drarun places all workers or none itself");
}

static void leave_ephemeral(const struct import *im, json_t *pod)
{
    struct reader_node list;
    if (!reader_get(&im->pod, "ephemeralContainers", &list))
        return;
    json_object_del(pod, "ephemeralContainers");
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct reader_node item = reader_item(&list, i);
        reader_fail(&item,
                    "the ephemeral container %s is left out: kubectl debug adds it to a pod that "
                    "runs, and an API server creates no pod with one",
                    value_text_or(item.value, "name", "without a name"));
    }
}

/* Kueue adds them to pods that it holds back, and takes them from no others. */
static void leave_gates(const struct import *im, json_t *pod)
{
    json_t *kept = json_object_get(pod, "schedulingGates");
    struct reader_node list;
    if (!json_is_array(kept) || !reader_get(&im->pod, "schedulingGates", &list))
        return;
    for (size_t i = json_array_size(list.value); i-- > 0;) {
        struct reader_node gate = reader_item(&list, i);
        if (!json_is_object(gate.value) || !import_is_kueues(import_text(&gate, "name")))
            continue;
        reader_fail(&gate, "left out: Kueue adds it to the pods that it holds back");
        json_array_remove(kept, i);
    }
    if (json_array_size(kept) == 0)
        json_object_del(pod, "schedulingGates");
}

/* A key without a value is none to an API server. An amount stays, as it is still to be filled in.
 */
static void drop_nulls(json_t *value)
{
    const char *key = NULL;
    json_t *inner = NULL;
    void *next = NULL;
    size_t i;
    json_array_foreach(value, i, inner)
    {
        drop_nulls(inner);
    }
    json_object_foreach_safe(value, next, key, inner)
    {
        if (json_is_null(inner))
            json_object_del(value, key);
        else if (strcmp(key, "resources") != 0)
            drop_nulls(inner);
    }
}

/* A volume without a source is an emptyDir. */
static void drop_nulls_of_pod(json_t *pod)
{
    json_t *volume;
    size_t i;
    drop_nulls(pod);
    json_array_foreach(json_object_get(pod, "volumes"), i, volume)
    {
        if (json_object_get(volume, "name") && json_object_size(volume) == 1)
            json_object_set_new(volume, "emptyDir", json_object());
    }
}

static json_t *copy_template(const struct import *im)
{
    json_t *copy = json_object();
    json_t *metadata = json_object_get(im->template.value, "metadata");
    json_t *kept = json_object(), *pod = json_deep_copy(im->pod.value);
    struct reader_node from;
    static const char *const keys[] = {"labels", "annotations"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (import_object(&im->template, "metadata", &from) && json_object_get(metadata, keys[i]))
            take_marks(im, &from, keys[i], pod, kept);
    if (json_object_size(kept) > 0)
        json_object_set(copy, "metadata", kept);
    json_decref(kept);
    drop_nulls_of_pod(pod);
    if (pod && json_object_get(pod, "restartPolicy"))
        json_object_del(pod, "restartPolicy"); /* the job restarts as a whole */
    json_object_set_new(copy, "spec", pod);
    leave_groups(im, pod);
    leave_ephemeral(im, pod);
    leave_gates(im, pod);
    put_ranks_first(im, pod);
    take_volumes(im, pod);
    take_shared_volumes(im, pod);
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

/* drarun itself starts torchrun once on each worker. */
static bool runs_torchrun(const json_t *container)
{
    static const char *const keys[] = {"command", "args"};
    CLEANUP(strlist_done) struct strlist argv = STRLIST_INIT;
    for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
        const json_t *word;
        size_t i;
        json_array_foreach(json_object_get(container, keys[k]), i, word)
        {
            if (json_is_string(word))
                strlist_add(&argv, json_string_value(word));
        }
    }
    return argv.count > 0 && !argv.failed && rankenv_is_torchrun(argv.items);
}

/* Its ranks get these from torchrun, and the worker that starts it has them not. */
static void tell_torchrun(const struct import *im, const json_t *template)
{
    static const char *const keys[] = {"command", "args"};
    static const struct {
        const char *name, *instead;
    } variables[] = {{"RANK", "NODE_RANK"}, {"WORLD_SIZE", "NNODES"}};
    struct reader_node containers, words;
    if (!runs_torchrun(import_first_container(template)) ||
        !reader_get(&im->pod, "containers", &containers))
        return;
    struct reader_node first = reader_item(&containers, import_ranks_container(im->pod.value));
    for (size_t k = 0; k < ARRAY_LEN(keys); k++)
        for (size_t i = 0; reader_get(&first, keys[k], &words) && i < json_array_size(words.value);
             i++) {
            struct reader_node word = reader_item(&words, i);
            for (size_t v = 0; v < ARRAY_LEN(variables); v++) {
                char reference[16];
                snprintf(reference, sizeof reference, "$(%s)", variables[v].name);
                if (json_is_string(word.value) && strstr(json_string_value(word.value), reference))
                    reader_fail(&word,
                                "%s is not replaced: torchrun sets it for its ranks only; write "
                                "$(%s), or remove the option, since PET_%s has the same effect",
                                reference, variables[v].instead, variables[v].instead);
            }
        }
}

/* A pod runs its program once, and a job once for each GPU. */
static void take_one_process(struct import *im, const json_t *template)
{
    const json_t *container = import_first_container(template);
    const json_t *gpus = json_object_get(json_object_get(im->job, "devices"), "gpus");
    const json_t *count = json_object_get(gpus, "count");
    const char *program =
        json_string_value(json_array_get(json_object_get(container, "command"), 0));
    if (!count || json_integer_value(count) == 1 || !program ||
        strcmp(program, SPEC_PLACEHOLDER) == 0 || json_object_get(im->job, "ranksPerWorker") ||
        import_runs_mpirun(template) || runs_torchrun(container))
        return;
    json_object_set_new(im->job, "ranksPerWorker", json_integer(1));
    reader_fail(&im->pod, "each pod runs its program once, whatever its GPUs: ranksPerWorker is 1; "
                          "without it drarun starts one rank for each GPU");
}

static bool has_replicas(const struct import *im, const char *type)
{
    return json_is_object(json_object_get(im->a.value, type));
}

/* The pods of a JobSet, of which the runtime of a TrainJob has one. */
static const char *service_of_set(const struct import *im, const struct reader_node *set)
{
    struct reader_node network;
    bool has_own = import_object(set, "network", &network) && *import_text(&network, "subdomain");
    return has_own ? import_text(&network, "subdomain") : im->name;
}

/* A JobSet's ReplicatedJob whose pods are the workers has several Jobs, which count each from 0. */
static bool has_replicas_of_job(const struct import *im)
{
    for (size_t i = 0; i < ARRAY_LEN(im->jobs); i++) {
        const json_t *replicas = json_object_get(im->jobs[i].item.value, "replicas");
        if (im->jobs[i].template.value == im->template.value && replicas)
            return json_integer_value(replicas) != 1;
    }
    return false;
}

static int take_controller(const struct import *im, json_t *template, struct drarun_error *err)
{
    const json_t *workers = json_object_get(im->job, "workers");
    struct import_controller of = {
        .queued = import_queue(im) != NULL,
        .index_is_worker = true,
        .workers = workers ? json_integer_value(workers) : 1,
        .service = import_text(&im->pod, "subdomain"),
        .job = "",
    };
    const char *kind = import_text(im->workload, "kind");
    if (strcmp(kind, "StatefulSet") == 0) {
        of.service = import_text(&im->spec, "serviceName");
    } else if (strcmp(kind, "JobSet") == 0) {
        of.index_is_worker = !has_replicas_of_job(im);
        of.service = service_of_set(im, &im->spec);
    } else if (strcmp(kind, "TrainJob") == 0) {
        of.service = service_of_set(im, &im->runtime.set);
    } else if (words_has("PyTorchJob MPIJob", kind)) {
        of.job = im->name;
        of.has_master = has_replicas(im, "Master") && has_replicas(im, "Worker");
    }
    return import_take_foreign(&im->pod, template, &of, err);
}

static int take_program_of(struct import *im, char *const program[], json_t *template,
                           struct drarun_error *err)
{
    json_t *container = import_first_container(template);
    if (program && program[0]) {
        json_t *command = json_array();
        for (size_t i = 0; program[i]; i++)
            json_array_append_new(command, spec_words_literal(program[i]));
        json_object_set_new(container, "command", command);
        json_object_del(container, "args");
        if (im->has_launcher)
            reader_fail(&im->launcher, "the launcher's command is ignored, since a program is "
                                       "given: its ranks, variables and directory are left out");
        return 0;
    }
    if (!im->has_launcher) {
        bool joined = false;
        int rc = import_take_join(im, template, &joined, err);
        if (rc < 0)
            return rc;
        if (!joined)
            import_command(&im->pod, template);
        take_own_mpirun(im, template);
        if (!joined)
            take_one_process(im, template);
        tell_torchrun(im, template);
        return 0;
    }
    int rc = import_mpirun(im, template, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    reader_fail(&im->launcher, "no mpirun with a program was found here: put the ranks' program "
                               "in place of " SPEC_PLACEHOLDER);
    json_object_set_new(container, "command", json_pack("[s]", SPEC_PLACEHOLDER));
    json_object_del(container, "args");
    return 0;
}

static int take_program(struct import *im, char *const program[], json_t *template,
                        struct drarun_error *err)
{
    int rc = take_program_of(im, program, template, err);
    if (rc == 0 && im->has_launcher)
        import_replaced(&im->pod, template);
    return rc < 0 ? rc : take_controller(im, template, err);
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
        bool may =
            words_has(direct, inner) || (strcmp(inner, "name") == 0 && words_has(holders, key));
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
        else if (words_has(used, kind) && is_named(template, "", import_name(object)))
            reader_fail(object,
                        "the %s %s is left out, and the job's pods name it: make it by kubectl "
                        "apply",
                        kind, import_name(object));
        else if (object != im->workload && object != im->runtime.object &&
                 !(import_is_pod(object) && import_is_pod(im->workload)) &&
                 !words_has("DeviceClass ResourceClaim ResourceClaimTemplate", kind))
            reader_fail(object, "the %s %s is left out", *kind ? kind : "object without kind",
                        import_name(object));
    }
}

/* Keys in the order in which people write them. */
static json_t *in_order(json_t *job)
{
    static const char *const keys[] = {"workers",
                                       "ranksPerWorker",
                                       "slots",
                                       "oversubscribe",
                                       "bind",
                                       "reportBindings",
                                       "launch",
                                       "devices",
                                       "placement",
                                       "computeDomain",
                                       "network",
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

static void take_affinity(struct import *im, json_t *template)
{
    struct import_affinity affinity = {
        .job = import_name(im->workload), .queued = import_queue(im) != NULL, .own = &im->own};
    import_affinity(&affinity, &im->pod, template);
}

/* All workers of an Indexed Job listen on one port, which those of the host's network share. */
static void spread_by_port(struct import *im, uint32_t workers)
{
    json_object_set_new(im->job, "placement", json_pack("{s:s}", "spread", "node"));
    reader_fail_key(&im->pod, "hostNetwork",
                    "each of the %u workers gets a node of its own (placement: {spread: node}), "
                    "since all workers of a queue listen on one port, here of their nodes; without "
                    "hostNetwork, or without the queue, several can share a node",
                    workers);
}

/* What runs on one node there may want several here. */
static void take_spread(struct import *im, json_t *template)
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
        .claims = import_queue(im) ? SPEC_CLAIMS_TEMPLATE : SPEC_CLAIMS_DIRECT,
    };
    int spread = node_spread_of(&spec, &role, false, NULL);
    bool on_host = json_is_true(json_object_get(spec_role_pod(&role), "hostNetwork"));
    if (spread == NODE_SPREAD_NONE && spec.workers > 1 && on_host && import_queue(im))
        spread_by_port(im, spec.workers);
    else if (spread == NODE_SPREAD_BY_SPEC)
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
    if (import_is_pod(im->workload) || !import_object(im->workload, "metadata", &from))
        return;
    import_rest(&from, IMPORT_ADDED "labels annotations", "a job has labels and annotations");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *key = NULL;
        json_t *value = NULL;
        if (!import_object(&from, keys[i], &list))
            continue;
        json_object_foreach(list.value, key, value)
        {
            if (strcmp(key, IMPORT_QUEUE_LABEL) == 0 ||
                strncmp(key, "kubectl.kubernetes.io/", strlen("kubectl.kubernetes.io/")) == 0)
                continue;
            if (import_leave_exclusive(&list, key))
                continue;
            if (limits_has_other_size(key))
                reader_fail_key(&list, key, "left out: the size of a job is fixed");
            else if (import_is_written(key, NULL))
                reader_fail_key(&list, key, "left out: another controller sets it");
            else if (json_is_string(value) &&
                     strncmp(key, "drarun.dev/", strlen("drarun.dev/")) != 0)
                json_object_set(import_child(metadata, keys[i]), key, value);
            else
                reader_fail_key(&list, key, "left out: no text, or a key that drarun sets itself");
        }
    }
}

static json_t *document(const struct import *im)
{
    json_t *from = json_object_get(im->workload->value, "metadata"), *metadata = json_object();
    json_t *queue = import_queue(im);
    json_object_set_new(metadata, "name",
                        im->only ? json_sprintf("%s-%s", im->name, im->only)
                                 : json_string(im->name));
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

static int build(struct import *im, char *const *program, json_t **ret_job,
                 struct drarun_error *err)
{
    int rc = import_workload(im, err);
    if (rc < 0)
        return rc;
    json_t *template = copy_template(im);
    import_remove_own(&im->own, template);
    import_placed(im->workload, &im->pod, template);
    if (!json_is_object(import_first_container(template))) {
        json_decref(template);
        return import_refuse(im->workload, err, "has no container");
    }
    if (!im->name[0]) {
        json_decref(template);
        return import_refuse(im->workload, err, "has no name: add metadata.name");
    }
    import_container(im->objects, &im->pod, template, im->job);
    if (im->has_launcher)
        import_keys(&im->pod, template);
    import_claims(im->objects, &im->pod, template, im->job);
    import_network(&im->pod, im->job);
    import_add_torchrun(im, template);
    take_affinity(im, template);
    rc = take_program(im, program, template, err);
    if (rc < 0) {
        json_decref(template);
        return rc;
    }
    import_probes(&im->pod, template);
    take_spread(im, template);
    import_vendor_script(im->has_launcher ? &im->launcher : &im->pod, template);
    explain_others(im, template);
    json_object_set_new(im->job, "template", template);
    if (spec_shorten(im->job) < 0)
        return error_set(err, ENOMEM, "out of memory");
    *ret_job = document(im);
    return *ret_job ? 0 : error_set(err, ENOMEM, "out of memory");
}

int import_job(struct reader *files, size_t count, const struct import_options *options,
               json_t **ret_job, json_t **ret_classes, struct drarun_error *err)
{
    cleanup_free struct import_objects *objects = calloc(1, sizeof *objects);
    struct import im = {.files = files,
                        .file_count = count,
                        .objects = objects,
                        .only = options->only,
                        .job = json_object()};
    int rc = objects && im.job ? 0 : error_set(err, ENOMEM, "no memory");
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = import_collect(&files[i], objects, err);
    if (rc == 0)
        rc = build(&im, options->program, ret_job, err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        if (files[i].texts.failed || im.own.failed) {
            json_decref(TAKE_PTR(*ret_job));
            rc = error_set(err, ENOMEM, "out of memory");
        }
    if (rc == 0)
        *ret_classes = take_classes(objects);
    strlist_done(&im.own);
    json_decref(im.torchrun);
    json_decref(im.job);
    return rc;
}
