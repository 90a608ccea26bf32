/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/on_cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "jobs/spec.h"
#include "launcher/cluster_api.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/bench/marked.h"

#define PROGRAM "drarun-bench" /* found in the image's PATH */

bool bench_on_cluster_wanted(const struct bench_choice *choice)
{
    const struct cluster_choice *c = &choice->cluster;
    return choice->gpus || choice->nics || choice->sweep.count || choice->image || choice->here ||
           c->namespace || c->context || c->kubeconfig;
}

static const char *image_of(const struct bench_choice *choice)
{
    return choice->image ? choice->image : getenv("DRARUN_BENCH_IMAGE");
}

static int check(const struct bench_choice *choice, struct drarun_error *err)
{
    if (!image_of(choice))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "on a cluster the image of the ranks is needed, which holds drarun-bench "
                          "and an MPI or NCCL: --image, or $DRARUN_BENCH_IMAGE");
    if (choice->ranks)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "-n %u: on a cluster --workers and --ranks-per-worker say how many ranks "
                          "there are",
                          choice->ranks);
    if (choice->agents || choice->key_file || choice->bind)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s is not for a job on a cluster",
                          choice->agents     ? "--agents"
                          : choice->key_file ? "--key-file"
                                             : "--bind");
    return 0;
}

/* Without those that name files, which are written here. */
static json_t *words(const struct strlist *list)
{
    json_t *array = json_array();
    CLEANUP(strlist_done) struct strlist remain = STRLIST_INIT;
    if (keep_pick(list, &remain, NULL) < 0)
        return array; /* they were read before */
    for (size_t i = 0; i < remain.count; i++)
        json_array_append_new(array, json_string(i ? remain.items[i] : PROGRAM));
    return array;
}

/* "A=B", or "A" with our own value. */
static json_t *environment(const struct strlist *list)
{
    json_t *array = json_array();
    for (size_t i = 0; i < list->count; i++) {
        const char *entry = list->items[i], *equals = strchr(entry, '=');
        size_t length = strcspn(entry, "=");
        cleanup_free char *name = strndup(entry, length);
        const char *value = equals ? equals + 1 : name ? getenv(name) : NULL;
        if (value)
            json_array_append_new(array, json_pack("{s:s, s:s}", "name", name, "value", value));
    }
    json_array_append_new(array, json_pack("{s:s, s:s}", "name", MARKED_VARIABLE, "value", "1"));
    return array;
}

static void add_devices(const struct bench_choice *choice, json_t *spec)
{
    json_t *devices = json_object();
    if (choice->gpus)
        json_object_set_new(
            devices, "gpus",
            json_pack("{s:i, s:s}", "count", (int)choice->gpus, "class", choice->gpu_class));
    if (choice->nics)
        json_object_set_new(devices, "nics",
                            json_pack("{s:i, s:s, s:s*}", "count", (int)choice->nics, "class",
                                      choice->nic_class, "selector", choice->nic_selector));
    if (choice->align)
        json_object_set_new(devices, "align", json_string(choice->align));
    if (json_object_size(devices) > 0)
        json_object_set(spec, "devices", devices);
    json_decref(devices);
}

json_t *bench_job_spec(const struct bench_choice *choice, struct drarun_error *err)
{
    if (check(choice, err) < 0)
        return NULL;
    json_t *container =
        json_pack("{s:s, s:s, s:o, s:o}", "name", SPEC_CONTAINER, "image", image_of(choice),
                  "command", words(&choice->words), "env", environment(&choice->env));
    json_t *spec = json_pack("{s:i, s:i, s:s, s:{s:{s:[o]}}}", "workers",
                             (int)(choice->workers ? choice->workers : 1), "ranksPerWorker",
                             (int)(choice->per_worker ? choice->per_worker
                                   : choice->gpus     ? choice->gpus
                                                      : 1),
                             "network", choice->network ? choice->network : "any", "template",
                             "spec", "containers", container);
    char name[32];
    snprintf(name, sizeof name, "bench-%lld", (long long)time(NULL));
    if (spec)
        add_devices(choice, spec);
    if (spec && strcmp(choice->hang_after, "0") != 0) {
        json_object_set_new(spec, "hangAfter", json_string(choice->hang_after));
        json_object_set_new(spec, "onHang", json_string("fail"));
    }
    json_t *job =
        json_pack("{s:s, s:s, s:{s:s}, s:o}", "apiVersion", SPEC_API_VERSION, "kind", SPEC_KIND,
                  "metadata", "name", choice->name ? choice->name : name, "spec", spec);
    if (!job)
        error_set(err, ENOMEM, "out of memory");
    return job;
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

static int write_spec(const struct bench_choice *choice, int fd, struct drarun_error *err)
{
    json_t *job = bench_job_spec(choice, err);
    if (!job)
        return -err->code;
    cleanup_free char *text = json_dumps(job, JSON_INDENT(2));
    json_decref(job);
    int rc = text ? fd_write_all(fd, text, strlen(text)) : -ENOMEM;
    return rc < 0 ? error_set(err, -rc, "the job: %s", strerror(-rc)) : 0;
}

static int judge(const struct bench_choice *choice, const char *table, int status,
                 struct verdict_figures *ret_figures)
{
    struct bench_asked asked = choice->asked; /* borrows what it holds */
    if (status > 1 || choice->no_verdict)
        return status;
    asked.machine.given.claimed_nics = choice->nics;
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

static int prepare(const struct bench_choice *choice, struct bench_job *job,
                   struct drarun_error *err)
{
    int rc = memory_file("job", &job->spec_fd, job->spec, sizeof job->spec, err);
    rc = rc < 0 ? rc : memory_file("output", &job->output_fd, job->output, sizeof job->output, err);
    rc = rc < 0 ? rc : write_spec(choice, job->spec_fd, err);
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
    if (prepare(choice, &job, &err) < 0)
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
    int status = cluster_api()->run(&run);
    int judged = judge(choice, job.output, status, ret_figures);
    if (keep_end(&job.keep, job.output, job.kept, &err) < 0 && !judged)
        return failed(&err);
    return judged;
}
