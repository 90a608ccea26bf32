/* SPDX-License-Identifier: Apache-2.0 */
/* libdrarun on a cluster, a verb an argument, for tests/test_cluster_jobs.py. What it was told goes
 * to stdout: "rank R: text", "log: text", "awaited: text", "status N", "error KIND: text". */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <event2/event.h>

#include <drarun/drarun.h>

struct caller {
    struct drarun_cluster *cluster;
    const char *verb;
    int lines;
};

static int tell(int rc, const struct drarun_error *err, int status)
{
    if (rc == 0)
        printf("status %d\n", status);
    else
        printf("error %s: %s: %s\n", drarun_error_kind_name(err->kind), strerror(-rc), err->text);
    fflush(stdout);
    return rc < 0 ? drarun_exit_status(err->kind) : status;
}

static int on_output(void *arg, unsigned rank, int is_stderr, const char *data, size_t length)
{
    struct caller *caller = arg;
    printf("rank %u: %s%.*s", rank, is_stderr ? "stderr: " : "", (int)length, data);
    fflush(stdout);
    caller->lines++;
    if (strcmp(caller->verb, "interrupt") == 0)
        drarun_cluster_interrupt(caller->cluster);
    return strcmp(caller->verb, "enough") == 0;
}

static void on_progress(void *arg, const char *text)
{
    (void)arg;
    printf("awaited: %s\n", text);
    fflush(stdout);
}

static void on_log(void *arg, enum drarun_loglevel level, const char *text)
{
    (void)arg;
    (void)level;
    printf("log: %s\n", text);
    fflush(stdout);
}

static int run(struct caller *caller, const char *file, const char *name)
{
    struct drarun_error err = {0};
    struct drarun_spec *spec = NULL;
    int status = 0;
    struct drarun_submit_options submit = drarun_submit_options_init();
    struct drarun_follow_options follow = drarun_follow_options_init();
    submit.image = getenv("DRARUN_IMAGE");
    submit.name = name;
    follow.output = on_output;
    follow.progress = on_progress;
    follow.arg = caller;
    follow.cancel = 1;
    int rc = drarun_spec_load(file, NULL, &spec, NULL, &err);
    if (rc == 0)
        rc = drarun_run(caller->cluster, spec, &submit, &follow, &status, &err);
    drarun_spec_free(spec);
    return tell(rc, &err, status);
}

static int submit(struct caller *caller, const char *file)
{
    struct drarun_error err = {0};
    struct drarun_spec *spec = NULL;
    struct drarun_job *job = NULL;
    struct drarun_submit_options options = drarun_submit_options_init();
    options.image = getenv("DRARUN_IMAGE");
    int rc = drarun_spec_load(file, NULL, &spec, NULL, &err);
    if (rc == 0)
        rc = drarun_job_submit(caller->cluster, spec, &options, &job, &err);
    if (rc == 0)
        printf("submitted %s/%s\n", drarun_job_namespace(job), drarun_job_name(job));
    drarun_job_free(job);
    drarun_spec_free(spec);
    return tell(rc, &err, 0);
}

static int plan(struct caller *caller, const char *file)
{
    struct drarun_error err = {0};
    struct drarun_spec *spec = NULL;
    struct drarun_plan *plan = NULL;
    int rc = drarun_spec_load(file, NULL, &spec, NULL, &err);
    if (rc == 0)
        rc = drarun_cluster_plan(caller->cluster, spec, NULL, &plan, &err);
    char *text = rc == 0 ? drarun_plan_text(plan, 0) : NULL;
    printf("%s", text ? text : "");
    drarun_free(text);
    drarun_plan_free(plan);
    drarun_spec_free(spec);
    return tell(rc, &err, 0);
}

/* wait, logs, follow, status, document, cancel of a job that is there */
static int on_job(struct caller *caller, const char *name)
{
    struct drarun_error err = {0};
    struct drarun_job *job = NULL;
    struct drarun_follow_options follow = drarun_follow_options_init();
    int status = 0, rc = drarun_job_open(caller->cluster, name, &job, &err);
    char *json = NULL;
    follow.output = on_output;
    follow.arg = caller;
    follow.once = strcmp(caller->verb, "logs") == 0;
    if (rc < 0)
        return tell(rc, &err, 0);
    if (strcmp(caller->verb, "wait") == 0)
        rc = drarun_job_wait(job, 60000, &status, &err);
    else if (strcmp(caller->verb, "soon") == 0)
        rc = drarun_job_wait(job, 300, &status, &err);
    else if (strcmp(caller->verb, "cancel") == 0)
        rc = drarun_job_cancel(job, &err);
    else if (strcmp(caller->verb, "status") == 0)
        rc = drarun_job_status(job, &json, &err);
    else if (strcmp(caller->verb, "document") == 0)
        rc = drarun_job_document(job, &json, &err);
    else
        rc = drarun_job_follow(job, &follow, &status, &err);
    if (json)
        printf("%s\n", json);
    drarun_free(json);
    drarun_job_free(job);
    return tell(rc, &err, status);
}

/* A child must not use what its parent opened, and leaves it whole when it closes it. */
static int in_child(struct caller *caller, const char *name)
{
    struct drarun_error err = {0};
    struct drarun_job *job = NULL;
    pid_t pid = fork();
    int status = 0;
    if (pid == 0) {
        status = tell(drarun_job_open(caller->cluster, name, &job, &err), &err, 0);
        drarun_cluster_close(caller->cluster);
        exit(status);
    }
    waitpid(pid, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
    caller->verb = "soon";
    return on_job(caller, name);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    ++*(int *)arg;
}

int main(int argc, char *argv[])
{
    struct drarun_error err = {0};
    struct caller caller = {.verb = argc > 1 ? argv[1] : ""};
    struct event_base *base = NULL;
    struct event *tick = NULL;
    int ticks = 0;
    if (argc < 3)
        return 64;
    struct drarun_cluster_options options = drarun_cluster_options_init();
    options.log = on_log;
    options.level = DRARUN_LOG_NOTE;
    if (strcmp(caller.verb, "loop") == 0) {
        struct timeval often = {.tv_usec = 10000};
        options.base = base = event_base_new();
        tick = event_new(base, -1, EV_PERSIST, on_tick, &ticks);
        event_add(tick, &often);
    }
    int rc = drarun_cluster_open(&options, &caller.cluster, &err);
    if (rc < 0)
        return tell(rc, &err, 0);
    if (strcmp(caller.verb, "submit") == 0)
        rc = submit(&caller, argv[2]);
    else if (strcmp(caller.verb, "plan") == 0)
        rc = plan(&caller, argv[2]);
    else if (strcmp(caller.verb, "fork") == 0)
        rc = in_child(&caller, argv[2]);
    else if (strchr(argv[2], '/'))
        rc = run(&caller, argv[2], argc > 3 ? argv[3] : NULL);
    else
        rc = on_job(&caller, argv[2]);
    drarun_cluster_close(caller.cluster);
    if (base) {
        printf("ticks %s\n", ticks > 10 ? "went on" : "stood still");
        event_free(tick);
        event_base_free(base);
    }
    return rc;
}
