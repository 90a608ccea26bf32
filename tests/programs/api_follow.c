/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs followed at the same time on one loop, for tests/test_cluster_jobs.py and
 * test_cluster_controller.py: api_follow LOOP JOB... LOOP: "libevent", or "poll" of a program
 * without it. JOB: a file, which is submitted, or the name of a job that is there. stdout: "NAME
 * rank R: text", "NAME status N", "NAME error KIND: text", and of a job that is there "NAME
 * awaited: text". A job called "left" is left with its first line, from within the callback, and
 * cancelled in the end; one called "deaf" is left with what is told first of its waiting. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <event2/event.h>

#include <drarun/drarun.h>
#include "lib/base/unconst.h"

#define JOBS_MAX 8

struct followed {
    const char *name;
    struct drarun_following *following;
    int over;
};

static void leave(struct followed *job)
{
    drarun_following_free(job->following);
    job->following = NULL;
    job->over = 1;
}

static int on_output(void *arg, unsigned rank, int is_stderr, const char *data, size_t length)
{
    struct followed *job = arg;
    printf("%s rank %u: %s%.*s", job->name, rank, is_stderr ? "stderr: " : "", (int)length, data);
    fflush(stdout);
    if (strcmp(job->name, "left") == 0)
        leave(job);
    return 0;
}

static void on_progress(void *arg, const char *text)
{
    struct followed *job = arg;
    printf("%s awaited: %s\n", job->name, text);
    fflush(stdout);
    if (strcmp(job->name, "deaf") == 0)
        leave(job);
}

static void on_ended(void *arg, int status, const struct drarun_error *err)
{
    struct followed *job = arg;
    if (err->code)
        printf("%s error %s: %s\n", job->name, drarun_error_kind_name(err->kind), err->text);
    else
        printf("%s status %d\n", job->name, status);
    fflush(stdout);
    job->over = 1;
}

static void die(const struct drarun_error *err)
{
    printf("failed: %s\n", err->text);
    exit(70);
}

/* Of a job that is there. */
static void begin_there(struct drarun_cluster *cluster, const char *name, struct followed *job)
{
    struct drarun_error err = {0};
    struct drarun_job *there = NULL;
    struct drarun_follow_options follow = drarun_follow_options_init();
    follow.output = on_output;
    follow.progress = on_progress;
    follow.arg = job;
    job->name = strdup(name);
    if (drarun_job_open(cluster, name, &there, &err) < 0 ||
        drarun_job_follow_start(there, &follow, on_ended, job, &job->following, &err) < 0)
        die(&err);
    drarun_job_free(there);
}

static void begin(struct drarun_cluster *cluster, const char *file, struct followed *job)
{
    struct drarun_error err = {0};
    struct drarun_spec *spec = NULL;
    struct drarun_submit_options submit = drarun_submit_options_init();
    struct drarun_follow_options follow = drarun_follow_options_init();
    submit.image = getenv("DRARUN_IMAGE");
    follow.output = on_output;
    follow.arg = job;
    if (drarun_spec_load(file, NULL, &spec, NULL, &err) < 0)
        die(&err);
    job->name = strdup(drarun_spec_name(spec));
    if (drarun_run_start(cluster, spec, &submit, &follow, on_ended, job, &job->following, &err) < 0)
        die(&err);
    drarun_spec_free(spec);
}

static int all_over(const struct followed *jobs, int count)
{
    for (int i = 0; i < count; i++)
        if (!jobs[i].over)
            return 0;
    return 1;
}

/* base NULL: by poll */
static void turn(struct drarun_cluster *cluster, struct event_base *base)
{
    struct drarun_error err = {0};
    if (base) {
        event_base_loop(base, EVLOOP_ONCE);
        return;
    }
    struct pollfd ready = {.fd = drarun_cluster_fd(cluster, &err), .events = POLLIN};
    if (ready.fd < 0 || poll(&ready, 1, -1) < 0 || drarun_cluster_dispatch(cluster, &err) < 0)
        die(&err);
}

static void cancel_left(struct drarun_cluster *cluster, const struct followed *jobs, int count)
{
    struct drarun_error err = {0};
    struct drarun_job *job = NULL;
    int i = 0;
    while (i < count && strcmp(jobs[i].name, "left") != 0)
        i++;
    if (i == count)
        return;
    if (drarun_job_open(cluster, "left", &job, &err) < 0 || drarun_job_cancel(job, &err) < 0)
        die(&err);
    drarun_job_free(job);
}

int main(int argc, char *argv[])
{
    struct drarun_cluster_options options = drarun_cluster_options_init();
    struct drarun_cluster *cluster = NULL;
    struct drarun_error err = {0};
    struct followed jobs[JOBS_MAX] = {{0}};
    int count = argc - 2;
    if (count < 1 || count > JOBS_MAX)
        return 64;
    options.base = strcmp(argv[1], "libevent") == 0 ? event_base_new() : NULL;
    if (drarun_cluster_open(&options, &cluster, &err) < 0)
        die(&err);
    for (int i = 0; i < count; i++)
        (strchr(argv[i + 2], '/') ? begin : begin_there)(cluster, argv[i + 2], &jobs[i]);
    while (!all_over(jobs, count))
        turn(cluster, options.base);
    cancel_left(cluster, jobs, count);
    for (int i = 0; i < count; i++) {
        drarun_following_free(jobs[i].following);
        free(unconst(jobs[i].name));
    }
    drarun_cluster_close(cluster);
    if (options.base) {
        printf("events left: %d\n",
               event_base_get_num_events(options.base, EVENT_BASE_COUNT_ADDED));
        event_base_free(options.base);
    }
    return 0;
}
