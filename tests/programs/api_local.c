/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks on this machine through libdrarun, for tests/test_library_local.py: api_local WAY
 * COMMAND... WAY: "run" two ranks to their end; "two" jobs at once in one poll, of which the second
 * is freed in the middle; "signal" after the first line; "enough" of the output; "worker" two of
 * them; "endless" with a timeout of 200 ms; "free" it after two lines; "alarmed": the same, with a
 * timer's signals all the time. stdout: "[JOB] rank R: text", "log: text", "status N", "error KIND:
 * text". */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include <drarun/drarun.h>
#include "lib/base/unconst.h"

struct job {
    int number, lines;
    const char *way;
    struct drarun_local *local;
};

static int on_output(void *arg, unsigned rank, int is_stderr, const char *data, size_t length)
{
    struct job *job = arg;
    printf("[%d] rank %u: %s%.*s", job->number, rank, is_stderr ? "stderr: " : "", (int)length,
           data);
    fflush(stdout);
    if (job->lines++ == 0 && strcmp(job->way, "signal") == 0)
        drarun_local_signal(job->local, SIGTERM);
    return strcmp(job->way, "enough") == 0;
}

static void on_log(void *arg, enum drarun_loglevel level, const char *text)
{
    (void)arg, (void)level;
    printf("log: %s\n", text);
}

static int tell(int rc, const struct drarun_error *err, int status)
{
    if (rc == 0)
        printf("status %d\n", status);
    else
        printf("error %s: %s\n", drarun_error_kind_name(err->kind), err->text);
    fflush(stdout);
    return rc < 0 ? drarun_exit_status(err->kind) : status;
}

static bool is_freed(const struct job *job)
{
    return strcmp(job->way, "free") == 0 || strcmp(job->way, "alarmed") == 0;
}

static void on_alarm(int signo)
{
    (void)signo;
}

/* As a profiler has them. */
static void take_alarms(void)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval often = {.it_interval.tv_usec = 5000, .it_value.tv_usec = 5000};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

static int start(struct job *job, char *const command[], struct drarun_error *err)
{
    static const char *const env[] = {"ADDED=by the caller", NULL};
    static const char *const patient[] = {"--kill-after", "60", NULL};
    struct drarun_local_options options = drarun_local_options_init();
    options.ranks = 2;
    options.workers = strcmp(job->way, "worker") == 0 ? 2 : 0;
    options.timeout_ms = strcmp(job->way, "endless") == 0 ? 200 : 0;
    options.env = env;
    options.more = is_freed(job) ? patient : NULL;
    options.directory = "/";
    options.output = on_output;
    options.log = on_log;
    options.level = DRARUN_LOG_NOTE;
    options.arg = job;
    return drarun_local_start((const char *const *)command, &options, &job->local, err);
}

/* The second one runs on and on: it is freed when the first has ended. */
static int two(char *const command[])
{
    struct job first = {.number = 1, .way = "run"}, second = {.number = 2, .way = "run"};
    char *const forever[] = {unconst("sleep"), unconst("1000"), NULL};
    struct drarun_error err = {0};
    int status = 0;
    if (start(&first, command, &err) < 0 || start(&second, forever, &err) < 0)
        return tell(-1, &err, 0);
    struct pollfd ready[] = {{.fd = drarun_local_fd(first.local), .events = POLLIN},
                             {.fd = drarun_local_fd(second.local), .events = POLLIN}};
    do {
        poll(ready, 2, -1);
        drarun_local_dispatch(second.local, NULL);
    } while (drarun_local_dispatch(first.local, &err) == 0);
    drarun_local_free(second.local);
    int rc = drarun_local_wait(first.local, &status, &err);
    drarun_local_free(first.local);
    return tell(rc, &err, status);
}

static void await_ranks(const struct job *job)
{
    struct pollfd ready = {.fd = drarun_local_fd(job->local), .events = POLLIN};
    while (drarun_local_dispatch(job->local, NULL) == 0 && job->lines < 2)
        poll(&ready, 1, -1);
}

int main(int argc, char *argv[])
{
    struct drarun_error err = {0};
    struct job job = {.way = argc > 1 ? argv[1] : ""};
    int status = 0;
    if (argc < 3)
        return 64;
    if (strcmp(job.way, "two") == 0)
        return two(argv + 2);
    if (strcmp(job.way, "alarmed") == 0)
        take_alarms();
    int rc = start(&job, argv + 2, &err);
    bool freed = rc == 0 && is_freed(&job);
    if (freed)
        await_ranks(&job);
    else if (rc == 0)
        rc = drarun_local_wait(job.local, &status, &err);
    drarun_local_free(job.local);
    return tell(rc, &err, status);
}
