/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/on_cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/bench/bench_job.h"
#include "launcher/bench/output.h"
#include "launcher/bench/results.h"
#include "launcher/cli/verb.h"
#include "launcher/files/cluster_files.h"
#include "launcher/files/spec_file.h"
#include "launcher/programs/cluster_api.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

bool bench_on_cluster_wanted(const struct bench_choice *choice)
{
    const struct cluster_choice *c = &choice->cluster;
    return choice->gpus || choice->nics || choice->job || choice->sweep.count || choice->image ||
           choice->here || c->namespace || c->context || c->kubeconfig;
}

/* ---- where devices come from ---- */

#define GPU_CLASS "gpu.nvidia.com"
#define NIC_CLASS "nic.drarun.dev"

static int read_served(const struct bench_choice *choice, bool gpus, bool nics,
                       struct served *ret_served, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *classes = json_array();
    CLEANUP(json_decrefp) json_t *slices = json_array();
    CLEANUP(json_decrefp) json_t *nodes = json_array();
    const struct cluster_kind kinds[] = {
        {"DeviceClass", classes, NULL}, {"ResourceSlice", slices, NULL}, {"Node", nodes, NULL}};
    const struct served_objects objects = {classes, slices, nodes};
    int rc = cluster_api()->read(&choice->cluster, kinds, ARRAY_LEN(kinds), NULL, err);
    return rc < 0 ? rc : served_find(&objects, gpus, nics, ret_served, err);
}

static void say_source(const char *what, const struct served_source *source)
{
    if (source->class[0])
        log_note("%s by claim: DeviceClass %s%s%s", what, source->class,
                 source->selector[0] ? ", " : "", source->selector);
    else if (source->resource[0])
        log_note("%s of a device plugin: %s", what, source->resource);
}

/* What no option and no file says. The profile alone is not worth a failure. */
static int find_served(const struct bench_choice *choice, const json_t *base,
                       struct served *ret_served, struct drarun_error *err)
{
    bool gpus = bench_job_seeks_gpus(choice, base), nics = bench_job_seeks_nics(choice, base);
    bool profile = bench_job_seeks_profile(choice, base);
    if (!gpus && !nics)
        return 0;
    int rc = read_served(choice, gpus, nics, ret_served, err);
    if (rc == -EACCES) { /* who may not look gets what most clusters have */
        log_note("%s; GPUs are taken from " GPU_CLASS " and NICs from " NIC_CLASS
                 ": others need --gpu-class, --gpu-resource, --nic-class or --nic-resource",
                 err->text);
        if (gpus)
            snprintf(ret_served->gpus.class, sizeof ret_served->gpus.class, "%s", GPU_CLASS);
        if (nics)
            snprintf(ret_served->nics.class, sizeof ret_served->nics.class, "%s", NIC_CLASS);
        return 0;
    }
    if (rc < 0)
        return rc;
    say_source("GPUs", &ret_served->gpus);
    say_source("NICs", &ret_served->nics);
    if (!profile)
        ret_served->profile[0] = '\0';
    else if (ret_served->profile[0])
        log_note("profile %s: %s", ret_served->profile, ret_served->why);
    return 0;
}

/* The job's document, as one would write it to a file; NULL: err says why there is none. */
static char *write_spec(const struct bench_choice *choice, const json_t *base,
                        struct drarun_error *err)
{
    struct served served = {0};
    if (bench_job_check(choice, err) < 0 || find_served(choice, base, &served, err) < 0)
        return NULL;
    json_t *job = bench_job_spec(choice, base, &served, err);
    char *text = job ? json_dumps(job, JSON_INDENT(2)) : NULL;
    if (job && !text)
        error_set(err, ENOMEM, "out of memory");
    json_decref(job);
    return text;
}

/* ---- the job ---- */

static int judge(const struct bench_choice *choice, const json_t *base, const struct buf *output,
                 int status, struct verdict_figures *ret_figures)
{
    struct bench_asked asked = choice->asked; /* borrows what it holds */
    CLEANUP(runs_done) struct runs runs = {0};
    struct drarun_error err = {0};
    if (status > 1 || choice->no_verdict)
        return status;
    asked.machine.given.claimed_nics =
        bench_job_nics(choice, base, &asked.machine.given.claimed_role);
    int judged = results_read_text(output, RESULTS_JOB_OUTPUT, &runs, &err) < 0
                     ? verdict_none(&err)
                     : verdict_lines(&runs, &asked, ret_figures);
    return status ? status : judged;
}

struct bench_job {
    struct drarun_spec *spec;
    struct bench_output output;
    struct keep keep;
    json_t *kept; /* cluster_api.h */
};

static void bench_job_done(struct bench_job *job)
{
    keep_done(&job->keep);
    json_decref(job->kept);
    bench_output_done(&job->output);
    drarun_spec_free(job->spec);
}

int bench_on_cluster(const struct bench_choice *choice, struct verdict_figures *ret_figures)
{
    CLEANUP(bench_job_done) struct bench_job job = {0};
    struct drarun_error err = {0};
    int status = 0;
    CLEANUP(json_decrefp) json_t *base = bench_job_base(choice, &status);
    if (!base)
        return status;
    cleanup_free char *text = write_spec(choice, base, &err);
    if (!text) {
        verb_fail("bench", &err);
        return verb_exit_status(&err); /* it may have looked for the cluster's devices */
    }
    status = spec_text_load("the job of drarun bench", text, strlen(text), &job.spec);
    if (status)
        return status;
    if (keep_begin(&choice->files, choice->more, &job.keep, &err) < 0)
        return verb_fail("bench", &err);
    bench_output_init(&job.output);
    const struct sink_reader reader = bench_output_reader(&job.output);
    const struct cluster_run run = {
        .cluster = choice->cluster,
        .spec = job.spec,
        .image = choice->agent_image,
        .here = choice->here,
        .reader = &reader,
        .ret_kept = &job.kept,
    };
    status = cluster_api()->run(&run);
    int judged = judge(choice, base, &job.output.text, status, ret_figures);
    int kept = keep_end(&job.keep, &job.output.text, job.kept, &err);
    /* that a job which failed has printed no results is no news */
    if (kept == 0 || (judged && err.kind == DRARUN_ERR_SPEC))
        return judged;
    int unwritten = verb_fail("bench", &err);
    return judged ? judged : unwritten;
}
