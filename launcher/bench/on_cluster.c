/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/on_cluster.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/bench/bench_job.h"
#include "launcher/programs/cluster_api.h"
#include "launcher/files/cluster_files.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/bench/marked.h"

bool bench_on_cluster_wanted(const struct bench_choice *choice)
{
    const struct cluster_choice *c = &choice->cluster;
    return choice->gpus || choice->nics || choice->job || choice->sweep.count || choice->image ||
           choice->here || c->namespace || c->context || c->kubeconfig;
}

/* In memory: a path for readers of this process. */
static int memory_file(const char *name, int *ret_fd, char *path, size_t size,
                       struct drarun_error *err)
{
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0)
        return error_set(err, errno, "memory for the %s: %s", name, strerror(errno));
    snprintf(path, size, "/proc/self/fd/%d", fd);
    *ret_fd = fd;
    return 0;
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

static int write_spec(const struct bench_choice *choice, const json_t *base, int fd,
                      struct drarun_error *err)
{
    struct served served = {0};
    if (bench_job_check(choice, err) < 0 || find_served(choice, base, &served, err) < 0)
        return -err->code;
    json_t *job = bench_job_spec(choice, base, &served, err);
    if (!job)
        return -err->code;
    cleanup_free char *text = json_dumps(job, JSON_INDENT(2));
    json_decref(job);
    int rc = text ? fd_write_all(fd, text, strlen(text)) : -ENOMEM;
    return rc < 0 ? error_set(err, -rc, "the job: %s", strerror(-rc)) : 0;
}

/* ---- the job ---- */

static int judge(const struct bench_choice *choice, const json_t *base, const char *table,
                 int status, struct verdict_figures *ret_figures)
{
    struct bench_asked asked = choice->asked; /* borrows what it holds */
    if (status > 1 || choice->no_verdict)
        return status;
    asked.machine.given.claimed_nics =
        bench_job_nics(choice, base, &asked.machine.given.claimed_role);
    int judged = verdict_lines(table, &asked, ret_figures);
    return status ? status : judged;
}

struct bench_job {
    int spec_fd, output_fd; /* in memory, as the next two paths */
    char spec[64], output[64];
    struct keep keep;
    json_t *kept; /* cluster_api.h */
};

static void bench_job_done(struct bench_job *job)
{
    keep_done(&job->keep);
    json_decref(job->kept);
    if (job->spec_fd >= 0)
        close(job->spec_fd);
    if (job->output_fd >= 0)
        close(job->output_fd);
}

static int prepare(const struct bench_choice *choice, const json_t *base, struct bench_job *job,
                   struct drarun_error *err)
{
    int rc = memory_file("job", &job->spec_fd, job->spec, sizeof job->spec, err);
    rc = rc < 0 ? rc : memory_file("output", &job->output_fd, job->output, sizeof job->output, err);
    rc = rc < 0 ? rc : write_spec(choice, base, job->spec_fd, err);
    return rc < 0 ? rc : keep_begin(&choice->files, choice->more, &job->keep, err);
}

static int failed(const struct drarun_error *err)
{
    log_error("bench: %s", err->text);
    return error_exit_status(err->kind);
}

int bench_on_cluster(const struct bench_choice *choice, struct verdict_figures *ret_figures)
{
    CLEANUP(bench_job_done) struct bench_job job = {.spec_fd = -1, .output_fd = -1};
    struct drarun_error err = {0};
    int status = 0;
    CLEANUP(json_decrefp) json_t *base = bench_job_base(choice, &status);
    if (!base)
        return status;
    if (prepare(choice, base, &job, &err) < 0)
        return failed(&err);
    const struct cluster_run run = {
        .cluster = choice->cluster,
        .file = job.spec,
        .image = choice->agent_image,
        .here = choice->here,
        .copy_fd = job.output_fd,
        .hide = MARKED,
        .ret_kept = &job.kept,
    };
    status = cluster_api()->run(&run);
    int judged = judge(choice, base, job.output, status, ret_figures);
    if (keep_end(&job.keep, job.output, job.kept, &err) < 0 && !judged)
        return failed(&err);
    return judged;
}
