/* SPDX-License-Identifier: Apache-2.0 */
/* JobSet (jobset.x-k8s.io/v1alpha2), LeaderWorkerSet (v1) and PyTorchJob (kubeflow.org/v1): workers
 * of one kind, with or without a leader that is one of them, or a launcher that runs mpirun. */
#include <string.h>

#include "jobs/import/parts.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"

static json_int_t number_of(const struct reader_node *object, const char *key, json_int_t otherwise)
{
    struct reader_node node;
    if (!reader_get(object, key, &node) || json_is_null(node.value))
        return otherwise;
    if (json_is_integer(node.value))
        return json_integer_value(node.value);
    reader_fail(&node,
                "expected a number, assuming %" JSON_INTEGER_FORMAT
                "; set spec.workers to the number of pods",
                otherwise);
    return otherwise;
}

static void set_workers(struct import *im, json_int_t workers)
{
    json_object_set_new(im->job, "workers", json_integer(workers));
}

/* Does the pod of a template start ranks elsewhere? */
bool import_runs_mpirun(const json_t *template)
{
    json_t *container = import_first_container(template);
    cleanup_free char *command = json_dumps(json_object_get(container, "command"), JSON_ENCODE_ANY);
    cleanup_free char *args = json_dumps(json_object_get(container, "args"), JSON_ENCODE_ANY);
    static const char *const launchers[] = {"mpirun", "mpiexec", "horovodrun", "prterun"};
    for (size_t i = 0; i < ARRAY_LEN(launchers); i++)
        if ((command && strstr(command, launchers[i])) || (args && strstr(args, launchers[i])))
            return true;
    return false;
}

static void take_launcher(struct import *im, const struct reader_node *template)
{
    im->launcher_a = *template;
    im->has_launcher = import_object(&im->launcher_a, "spec", &im->launcher);
}

/* ---- JobSet ---- */

/* Labels and annotations of the Jobs, but for those of controllers. */
static void leave_marks(const struct reader_node *outer)
{
    static const char *const keys[] = {"labels", "annotations"};
    struct reader_node metadata, list;
    if (!import_object(outer, "metadata", &metadata))
        return;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *key = NULL;
        json_t *value = NULL;
        if (!import_object(&metadata, keys[i], &list))
            continue;
        json_object_foreach(list.value, key, value)
        {
            if (!import_leave_exclusive(&list, key) && !import_is_foreign(key))
                reader_fail_key(&list, key,
                                "left out: of a Job, which is not made here; a job has "
                                "its own in metadata");
        }
    }
}

int import_open_replicated(const struct reader_node *item, struct import_job *job,
                           json_int_t *ret_pods, struct drarun_error *err)
{
    static const char *const unused[][2] = {{"podFailurePolicy", "the job restarts as a whole"}};
    job->item = *item;
    if (!json_is_object(item->value) || !import_object(&job->item, "template", &job->outer) ||
        !import_object(&job->outer, "spec", &job->spec) ||
        !import_object(&job->spec, "template", &job->template))
        return import_refuse_at(item, err, "template.spec.template is missing");
    import_rest(&job->item, "name replicas template", "a job has no such setting");
    import_rest(&job->outer, "metadata spec", "no part of it is known");
    leave_marks(&job->outer);
    import_rest_of_job(&job->spec);
    import_leave_out(&job->spec, unused, ARRAY_LEN(unused));
    if (json_integer_value(json_object_get(job->spec.value, "backoffLimit")) > 0)
        reader_fail_key(&job->spec, "backoffLimit",
                        "left out: a JobSet restarts as a whole, by failurePolicy.maxRestarts, "
                        "which is spec.restarts");
    json_int_t pods = number_of(&job->spec, "parallelism", 1);
    pods = number_of(&job->spec, "completions", pods);
    *ret_pods = number_of(&job->item, "replicas", 1) * pods;
    return 0;
}

/* The name of the ReplicatedJob, "" when it has none. */
static const char *replicated_name(const struct import *im, size_t at)
{
    struct reader_node item = reader_item(&im->a, at);
    return json_is_object(item.value) ? import_text(&item, "name") : "";
}

static void list_names(const struct import *im, struct buf *out)
{
    buf_add(out, "", 0);
    for (size_t i = 0; i < json_array_size(im->a.value); i++)
        buf_printf(out, "%s%s", i ? ", " : "", replicated_name(im, i));
}

/* at: the ReplicatedJob that is too many. text: which it is. */
static int refuse_jobs(const struct import *im, size_t at, const char *text,
                       struct drarun_error *err)
{
    struct reader_node item = reader_item(&im->a, at);
    CLEANUP(buf_done) struct buf names = BUF_INIT;
    list_names(im, &names);
    return import_refuse_at(&item, err,
                            "%s: import makes workers of one kind; import one of them by --only "
                            "NAME (%.120s), and add others to the job as roles (spec.roles)",
                            text, names.data ? names.data : "");
}

static void open_alone(struct import *im, json_int_t pods)
{
    im->template = im->jobs[0].template;
    set_workers(im, pods);
    import_policy(im, &im->jobs[0].spec);
}

static int open_only(struct import *im, struct drarun_error *err)
{
    size_t count = json_array_size(im->a.value), at = 0;
    json_int_t pods = 0;
    while (at < count && strcmp(replicated_name(im, at), im->only) != 0)
        at++;
    if (at == count) {
        CLEANUP(buf_done) struct buf names = BUF_INIT;
        list_names(im, &names);
        return import_refuse_at(&im->a, err, "no ReplicatedJob %.63s; --only takes one of: %.320s",
                                im->only, names.data ? names.data : "");
    }
    for (size_t i = 0; i < count; i++) {
        struct reader_node other = reader_item(&im->a, i);
        if (i != at)
            reader_fail(&other, "left out: --only %.63s imports another", im->only);
    }
    struct reader_node item = reader_item(&im->a, at);
    int rc = import_open_replicated(&item, &im->jobs[0], &pods, err);
    if (rc == 0)
        open_alone(im, pods);
    return rc;
}

/* Two ReplicatedJobs: one of them may be a pod that runs mpirun. */
static int open_two(struct import *im, const json_int_t pods[2], struct drarun_error *err)
{
    struct import_job *jobs = im->jobs;
    for (size_t i = 0; i < 2; i++)
        if (pods[i] == 1 && import_runs_mpirun(jobs[i].template.value)) {
            take_launcher(im, &jobs[i].template);
            im->template = jobs[1 - i].template;
            set_workers(im, pods[1 - i]);
            import_policy(im, &jobs[1 - i].spec);
            return 0;
        }
    return refuse_jobs(im, 1, "a second ReplicatedJob, and neither is a launcher that runs mpirun",
                       err);
}

/* The first Job whose time is over ends the attempt, and the next one has all of it again. */
static void take_deadlines(struct import *im)
{
    const json_t *restarts = json_object_get(im->job, "restarts");
    for (size_t i = 0; i < ARRAY_LEN(im->jobs); i++) {
        const struct reader_node *spec = &im->jobs[i].spec;
        if (!json_object_get(spec->value, "activeDeadlineSeconds"))
            continue;
        import_deadline(im, spec);
        if (json_integer_value(restarts) > 0)
            reader_fail_key(spec, "activeDeadlineSeconds",
                            "in a JobSet each attempt has this time; timeouts.total is for all "
                            "attempts together");
    }
}

/* A Job's own backoffLimit is of its pods; the JobSet restarts as a whole, as jobs here do. */
void import_take_set_policy(struct import *im, const struct reader_node *set)
{
    static const char *const unused[][2] = {
        {"network", "workers need no names in DNS"},
        {"successPolicy", "a job succeeds when all ranks do"},
        {"startupPolicy", "nothing starts before all workers are ready"},
        {"coordinator", "MASTER_ADDR names the worker of rank 0"},
        {"managedBy", "another controller's"},
    };
    static const char *const rules[][2] = {{"rules", "the job restarts as a whole"}};
    struct reader_node policy;
    json_object_del(im->job, "restarts");
    import_leave_out(set, unused, ARRAY_LEN(unused));
    import_rest(
        set,
        "replicatedJobs failurePolicy ttlSecondsAfterFinished suspend network successPolicy "
        "startupPolicy coordinator managedBy volumeClaimPolicies",
        "a job has no such setting");
    import_policy(im, set);
    if (import_object(set, "failurePolicy", &policy)) {
        import_number(im, &policy, "maxRestarts", "restarts");
        import_leave_out(&policy, rules, ARRAY_LEN(rules));
        import_rest(&policy, "maxRestarts rules", "the job restarts as a whole");
    }
    take_deadlines(im);
}

int import_open_jobset(struct import *im, struct drarun_error *err)
{
    json_int_t pods[2] = {0};
    int rc = 0;
    if (!reader_get(&im->spec, "replicatedJobs", &im->a) || json_array_size(im->a.value) == 0)
        return import_refuse_at(&im->spec, err, "spec.replicatedJobs is missing");
    size_t count = json_array_size(im->a.value);
    if (count > 2 && !im->only)
        return refuse_jobs(im, 2, "a third ReplicatedJob, beside workers and a launcher", err);
    for (size_t i = 0; rc == 0 && i < count && !im->only; i++) {
        struct reader_node item = reader_item(&im->a, i);
        rc = import_open_replicated(&item, &im->jobs[i], &pods[i], err);
    }
    if (rc == 0 && im->only)
        rc = open_only(im, err);
    else if (rc == 0 && count == 2)
        rc = open_two(im, pods, err);
    else if (rc == 0)
        open_alone(im, pods[0]);
    if (rc == 0)
        import_take_set_policy(im, &im->spec);
    return rc;
}

/* ---- LeaderWorkerSet ---- */

int import_open_lws(struct import *im, struct drarun_error *err)
{
    static const char *const unused[][2] = {
        {"rolloutStrategy", "a job is not updated"},
        {"startupPolicy", "nothing starts before all workers are ready"},
        {"networkConfig", "workers need no names in DNS"},
    };
    static const char *const inner[][2] = {
        {"restartPolicy", "the job restarts as a whole"},
        {"subGroupPolicy", "a job has no groups"},
        {"persistentVolumeClaimRetentionPolicy", "a worker's volumes end with its pod"},
    };
    struct reader_node replicas, leader;
    if (reader_get(&im->spec, "replicas", &replicas) && json_integer_value(replicas.value) != 1)
        return import_refuse_at(&replicas, err,
                                "spec.replicas: each group is a job of its own; import it with "
                                "replicas: 1, and run the job as often");
    if (!import_object(&im->spec, "leaderWorkerTemplate", &im->a) ||
        !import_object(&im->a, "workerTemplate", &im->template))
        return import_refuse_at(&im->spec, err,
                                "spec.leaderWorkerTemplate.workerTemplate is missing");
    json_int_t size = number_of(&im->a, "size", 1);
    import_leave_out(&im->spec, unused, ARRAY_LEN(unused));
    import_leave_out(&im->a, inner, ARRAY_LEN(inner));
    import_rest(&im->spec,
                "replicas leaderWorkerTemplate rolloutStrategy startupPolicy networkConfig",
                "a job has no such setting");
    import_rest(&im->a,
                "size leaderTemplate workerTemplate restartPolicy subGroupPolicy "
                "volumeClaimTemplates persistentVolumeClaimRetentionPolicy",
                "a job has no such setting");
    set_workers(im, size);
    if (!import_object(&im->a, "leaderTemplate", &leader))
        return 0;
    if (import_runs_mpirun(leader.value) && size > 1) {
        take_launcher(im, &leader);
        set_workers(im, size - 1);
        reader_fail(&leader, "the leader runs mpirun and is no worker: the job has %d workers",
                    (int)size - 1);
        return 0;
    }
    return import_compare_pods(&im->template, &leader, "the workerTemplate", "the leaderTemplate",
                               &im->own, err);
}

/* ---- PyTorchJob ---- */

/* elasticPolicy on the fixed number of workers. torchrun's static rendezvous, which the ranks'
 * order needs, cannot start all workers' processes again; c10d can. */
static void take_elastic(struct import *im)
{
    static const char *const unused[][2] = {
        {"minReplicas", "the number of workers is fixed"},
        {"maxReplicas", "the number of workers is fixed"},
        {"metrics", "the number of workers is fixed"},
        {"rdzvHost", "drarun tells torchrun where its rendezvous is"},
        {"rdzvPort", "drarun tells torchrun where its rendezvous is"},
        {"rdzvId", "drarun tells torchrun where its rendezvous is"},
        {"rdzvConf", "give torchrun its --rdzv-conf in the command"},
        {"standalone", "drarun tells torchrun where its rendezvous is"},
    };
    struct reader_node policy, restarts, backend;
    if (!import_object(&im->spec, "elasticPolicy", &policy))
        return;
    import_leave_out(&policy, unused, ARRAY_LEN(unused));
    import_rest(&policy,
                "minReplicas maxReplicas metrics rdzvHost rdzvPort rdzvId rdzvConf rdzvBackend "
                "standalone nProcPerNode maxRestarts",
                "a job has no such setting");
    bool restarts_itself =
        reader_get(&policy, "maxRestarts", &restarts) && json_integer_value(restarts.value) > 0;
    if (restarts_itself) {
        import_torchrun(im, "PET_MAX_RESTARTS",
                        json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(restarts.value)));
        import_torchrun(im, "PET_RDZV_BACKEND", json_string("c10d"));
        reader_fail(&restarts,
                    "is now the variable PET_MAX_RESTARTS, which torchrun reads, beside "
                    "PET_RDZV_BACKEND=c10d, since torchrun's static rendezvous cannot restart: "
                    "ranks have no fixed order of workers then; for a fixed order remove both "
                    "variables and set spec.restarts, which restarts the whole job");
    }
    if (reader_get(&policy, "rdzvBackend", &backend) &&
        !(restarts_itself && strcmp(import_text(&policy, "rdzvBackend"), "c10d") == 0))
        reader_fail(&backend, "left out: drarun tells torchrun where its rendezvous is%s",
                    restarts_itself ? ", which is c10d's"
                                    : ", and static keeps ranks in the order of the workers");
}

/* As the operator has it: one process a pod, which may be torchrun. */
static void take_processes(struct import *im)
{
    struct reader_node elastic, each;
    json_object_set_new(im->job, "ranksPerWorker", json_integer(1));
    json_object_set_new(im->job, "launch", json_string("env"));
    take_elastic(im);
    if (!(import_object(&im->spec, "elasticPolicy", &elastic) &&
          reader_get(&elastic, "nProcPerNode", &each)) &&
        !reader_get(&im->spec, "nprocPerNode", &each)) {
        import_torchrun(im, "PET_NPROC_PER_NODE", json_string("auto"));
        return;
    }
    import_torchrun(im, "PET_NPROC_PER_NODE",
                    json_is_integer(each.value)
                        ? json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(each.value))
                        : json_incref(each.value));
    reader_fail(&each, "is now the variable PET_NPROC_PER_NODE, which torchrun reads");
}

int import_open_pytorch(struct import *im, struct drarun_error *err)
{
    struct reader_node policy, worker, template;
    if (import_object(&im->spec, "runPolicy", &policy)) {
        import_policy(im, &policy);
        import_rest_of_policy(&policy);
    }
    import_rest(&im->spec, "nprocPerNode pytorchReplicaSpecs runPolicy elasticPolicy",
                "a job has no such setting");
    take_processes(im);
    if (!import_object(&im->spec, "pytorchReplicaSpecs", &im->a))
        return import_refuse_at(&im->spec, err, "spec.pytorchReplicaSpecs is missing");
    import_rest(&im->a, "Master Worker", "a job has one kind of workers");
    bool has_master = import_object(&im->a, "Master", &im->b);
    bool has_worker = import_object(&im->a, "Worker", &im->c);
    worker = im->c;
    const struct reader_node *first = has_master ? &im->b : &im->c;
    if ((!has_master && !has_worker) || !import_object(first, "template", &im->template))
        return import_refuse_at(&im->a, err, "Master.template, or Worker.template is missing");
    if (has_master)
        import_rest_of_replicas(&im->b);
    if (has_worker)
        import_rest_of_replicas(&worker);
    json_int_t workers = has_worker ? number_of(&worker, "replicas", 1) : 0;
    set_workers(im, workers + (has_master ? number_of(&im->b, "replicas", 1) : 0));
    if (!has_master || !has_worker)
        return 0;
    if (!import_object(&worker, "template", &template))
        return import_refuse_at(&worker, err, "Worker.template is missing");
    return import_compare_pods(&im->template, &template, "Master", "Worker", &im->own, err);
}
