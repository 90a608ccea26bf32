/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs followed at the same time on one loop, for tests/test_cluster_jobs.py: api_follow LOOP
 * JOB... LOOP: "libevent", or "poll" of a program without it. stdout: "NAME rank R: text", "NAME
 * status N", "NAME error KIND: text". A job called "left" is left with its first line, from within
 * the callback, and cancelled in the end. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <event2/event.h>

#include <drarun/drarun.h>

#define JOBS_MAX 8

struct followed {
    const char *name;
    struct drarun_following *following;
    int over;
};

static int on_output(void *arg, unsigned rank, int is_stderr, const char *data, size_t length)
{
    struct followed *job = arg;
    printf("%s rank %u: %s%.*s", job->name, rank, is_stderr ? "stderr: " : "", (int)length, data);
    fflush(stdout);
    if (strcmp(job->name, "left") != 0)
        return 0;
    drarun_following_free(job->following);
    job->following = NULL;
    job->over = 1;
    return 0;
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

static void cancel_left(struct drarun_cluster *cluster)
{
    struct drarun_error err = {0};
    struct drarun_job *job = NULL;
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
        begin(cluster, argv[i + 2], &jobs[i]);
    while (!all_over(jobs, count))
        turn(cluster, options.base);
    cancel_left(cluster);
    for (int i = 0; i < count; i++) {
        drarun_following_free(jobs[i].following);
        free((char *)jobs[i].name);
    }
    drarun_cluster_close(cluster);
    if (options.base) {
        printf("events left: %d\n",
               event_base_get_num_events(options.base, EVENT_BASE_COUNT_ADDED));
        event_base_free(options.base);
    }
    return 0;
}
