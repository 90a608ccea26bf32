/* SPDX-License-Identifier: Apache-2.0 */
/* A TrainJob of Kubeflow Trainer 2 (trainer.kubeflow.org/v1alpha1) and the TrainingRuntime that
 * holds its pods: torchrun once a worker. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "jobs/ranks/rankenv.h"
#include "jobs/spec/k8s_name.h"
#include "jobs/render_as/parts.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"

#define GROUP "trainer.kubeflow.org"
#define API_VERSION GROUP "/v1alpha1"
#define NODE "node" /* how Trainer finds the workers' Job, and in it the container */
#define ANCESTOR GROUP "/trainjob-ancestor-step"
#define POD_SUFFIX 6 /* that a Job's pods have behind their index */
#define MS_PER_S 1000

#define refuse(err, ...) error_kind(err, DRARUN_ERR_SPEC, EINVAL, __VA_ARGS__)

static int no_memory(struct drarun_error *err)
{
    return error_set(err, ENOMEM, "TrainJob: out of memory");
}

static const json_t *first_container(const json_t *template)
{
    const json_t *pod = json_object_get(template, "spec");
    return json_array_get(json_object_get(pod, "containers"), 0);
}

/* ---- what it can express ---- */

static int check_name(const struct job_spec *spec, struct drarun_error *err)
{
    char last[32];
    int taken = snprintf(last, sizeof last, "-" NODE "-0-%" PRIu32, spec->workers - 1);
    return foreign_check_name(spec, K8S_LABEL_MAX - (size_t)taken - POD_SUFFIX,
                              "the last pod's name NAME-node-0-I-xxxxx is a DNS label", err);
}

static int check_launch(const struct job_spec *spec, struct drarun_error *err)
{
    const struct spec_role *role = &spec->roles[0];
    uint32_t gpus = role->gpus.all ? 2 : role->gpus.count; /* all: two or more */
    if (spec->launch != SPEC_LAUNCH_ENV)
        return refuse(err,
                      "spec.launch: expected env, got %s: the pods of a TrainJob have neither "
                      "PMIx nor our mpirun",
                      spec->launch == SPEC_LAUNCH_PMIX ? "pmix" : "mpirun");
    if (spec_role_ranks(role, false, NULL, gpus) > 1)
        return refuse(err, "spec.ranksPerWorker: expected 1: a TrainJob starts one process a pod; "
                           "make it torchrun, which starts the others");
    return 0;
}

static bool is_named(const json_t *list, size_t from, const char *name)
{
    for (size_t i = from; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const char *text = json_string_value(json_object_get(item, "name"));
        if (text && strcmp(text, name) == 0)
            return true;
    }
    return false;
}

static int check_pod(const struct job_spec *spec, struct drarun_error *err)
{
    const json_t *pod = spec_role_pod(&spec->roles[0]);
    if (is_named(json_object_get(pod, "containers"), 1, NODE) ||
        is_named(json_object_get(pod, "initContainers"), 0, NODE))
        return refuse(err, "spec.template.spec: the first container is called " NODE " in a "
                           "TrainJob; rename the other");
    return 0;
}

/* A word has one of the two texts in it. */
static bool mentions(const json_t *words, const char *text, const char *other)
{
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));
        if (word && (strstr(word, text) || strstr(word, other)))
            return true;
    }
    return false;
}

static bool mentions_torchrun(const json_t *words)
{
    return mentions(words, "torchrun", "torch.distributed");
}

/* Which of the words names torchrun, where they run nothing else; SIZE_MAX: none. */
static size_t find_torchrun(const json_t *words)
{
    CLEANUP(strlist_done) struct strlist argv = STRLIST_INIT;
    const json_t *word;
    size_t i;
    json_array_foreach(words, i, word)
    {
        strlist_add(&argv, json_is_string(word) ? json_string_value(word) : "");
    }
    return argv.failed ? SIZE_MAX : rankenv_find_torchrun(argv.items);
}

/* ---- the parts ---- */

/* What PET_NPROC_PER_NODE is, where the command line of torchrun does not say. Trainer's own
 * "auto" counts CPUs where no limit has GPUs, as with claimed ones. */
static json_int_t processes(const struct job_spec *spec)
{
    return spec->roles[0].gpus.count ? spec->roles[0].gpus.count : 1;
}

/* A TrainJob takes only a number since Trainer 2.2, and the number of all GPUs is not known here:
 * torchrun counts them where its own option says so. */
static int ask_for_all(json_t *words, struct strlist *told)
{
    size_t at = find_torchrun(words);
    if (mentions(words, "nproc-per-node", "nproc_per_node"))
        return 0;
    if (at < json_array_size(words))
        return json_array_insert_new(words, at + 1, json_string("--nproc-per-node=gpu"));
    if (mentions_torchrun(words))
        strlist_add(told,
                    "ONE_PROCESS: spec.devices.gpus.count: all: PET_NPROC_PER_NODE is 1, since "
                    "a TrainJob takes a number only: give torchrun --nproc-per-node=gpu");
    return 0;
}

/* The ranks' program with its arguments. */
static json_t *whole_command(const struct job_spec *spec)
{
    const json_t *first = first_container(spec->roles[0].template);
    json_t *words = json_copy(json_object_get(first, "command"));
    json_t *args = json_object_get(first, "args");
    if (words && args && json_array_extend(words, args) < 0) {
        json_decref(words);
        return NULL;
    }
    return words;
}

static int worker_pod(const struct job_spec *spec, const struct render_foreign *how,
                      struct strlist *told, json_t **ret_template, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *template = NULL;
    CLEANUP(json_decrefp) json_t *command = whole_command(spec);
    if (!command || (spec->roles[0].gpus.all && ask_for_all(command, told) < 0))
        return no_memory(err);
    if (!mentions_torchrun(command))
        strlist_add(told, "NO_RANK: spec.launch: env: the program is no torchrun, and gets the "
                          "variables PET_* but not RANK, WORLD_SIZE and similar ones");
    if (spec->timeouts.total && spec->restarts)
        strlist_add(
            told, "TOTAL_PER_ATTEMPT: spec.timeouts.total: it counts for each restart separately");
    int rc = foreign_pod(spec, how, command, &template, err);
    if (rc < 0)
        return rc;
    json_t *pod = json_object_get(template, "spec");
    rc = json_object_set_new(unconst(first_container(template)), "name", json_string(NODE));
    if (rc == 0 && !json_object_get(pod, "restartPolicy"))
        rc = json_object_set_new(pod, "restartPolicy", json_string("Never"));
    if (rc < 0)
        return no_memory(err);
    *ret_template = TAKE_PTR(template);
    return 0;
}

/* One pod's end is the attempt's end; another one is the JobSet's to make, of all pods. */
static json_t *job_fields(const struct job_spec *spec, json_t *template_take)
{
    int64_t total = (spec->timeouts.total + MS_PER_S - 1) / MS_PER_S;
    return json_pack("{s:i, s:o*, s:o}", "backoffLimit", 0, "activeDeadlineSeconds",
                     total > 0 ? json_integer(total) : NULL, "template", template_take);
}

static json_t *jobset(const struct job_spec *spec, json_t *template_take)
{
    json_t *job = json_pack("{s:{s:{s:s}}, s:o}", "metadata", "labels", ANCESTOR, "trainer", "spec",
                            job_fields(spec, template_take));
    json_t *policy =
        spec->restarts ? json_pack("{s:I}", "maxRestarts", (json_int_t)spec->restarts) : NULL;
    json_t *ttl = spec->ttl_after_finished >= 0 ? json_integer(spec->ttl_after_finished) : NULL;
    return json_pack("{s:[{s:s, s:i, s:o}], s:o*, s:o*}", "replicatedJobs", "name", NODE,
                     "replicas", 1, "template", job, "failurePolicy", policy,
                     "ttlSecondsAfterFinished", ttl);
}

static json_t *runtime_spec(const struct job_spec *spec, json_t *template_take)
{
    return json_pack("{s:{s:I, s:{}}, s:{s:o}}", "mlPolicy", "numNodes", (json_int_t)spec->workers,
                     "torch", "template", "spec", jobset(spec, template_take));
}

/* Trainer 2.0 reads numProcPerNode wherever there is a trainer, and sets PET_* only then; the
 * runtime's torch has none from 2.2 on. */
static json_t *job_spec_of(const struct job_spec *spec)
{
    return json_pack("{s:{s:s, s:s, s:s}, s:{s:I, s:I}, s:o*}", "runtimeRef", "apiGroup", GROUP,
                     "kind", "TrainingRuntime", "name", spec->name, "trainer", "numNodes",
                     (json_int_t)spec->workers, "numProcPerNode", processes(spec), "suspend",
                     foreign_suspended(spec));
}

int render_trainjob(const struct job_spec *spec, const struct render_foreign *how,
                    struct strlist *told, json_t **ret_manifests, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *list = NULL, *template = NULL;
    int rc = check_name(spec, err);
    if (rc == 0)
        rc = check_launch(spec, err);
    if (rc == 0)
        rc = check_pod(spec, err);
    if (rc == 0)
        rc = foreign_begin(spec, how, LEFT_OUT_TRAINJOB, told, &list, err);
    if (rc == 0)
        rc = worker_pod(spec, how, told, &template, err);
    if (rc < 0)
        return rc;
    rc = foreign_add(list, spec, how, API_VERSION, "TrainingRuntime", false,
                     runtime_spec(spec, TAKE_PTR(template)), err);
    if (rc == 0)
        rc = foreign_add(list, spec, how, API_VERSION, "TrainJob", true, job_spec_of(spec), err);
    if (rc == 0)
        *ret_manifests = TAKE_PTR(list);
    return rc;
}
