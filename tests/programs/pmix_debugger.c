/* SPDX-License-Identifier: Apache-2.0 */
/* What a parallel debugger does, with libpmix alone: pmix_debugger PID NAMESPACE: connects to the
 * server of that process, waits until all ranks of the namespace wait for a debugger, reads the
 * process table, attaches gdb to each process, and lets them go on. One line for each step:
 *   ready RANK BREAKPOINT     (RANK: -2 for all)
 *   rank RANK PID: LINE       (what gdb says of it)
 *   released
 * "--resume" before all: they were stopped before their first instruction, so a signal lets them go
 * on. Exits 2 when something is refused, 4 when nothing comes within 60 s. */
#define _GNU_SOURCE
#include <pmix.h>
#include <pmix_tool.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pmix_proc_t me;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool registered, ready;
static char wanted[PMIX_MAX_NSLEN + 1];

static int refused(const char *what, pmix_status_t status)
{
    printf("%s: %s\n", what, PMIx_Error_string(status));
    return 2;
}

static bool await(const bool *what)
{
    struct timespec end;
    int rc = 0;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 60;
    pthread_mutex_lock(&lock);
    while (!*what && rc == 0)
        rc = pthread_cond_timedwait(&changed, &lock, &end);
    bool came = *what;
    pthread_mutex_unlock(&lock);
    return came;
}

static void come(bool *what)
{
    pthread_mutex_lock(&lock);
    *what = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void on_ready(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                     size_t count, pmix_info_t results[], size_t result_count,
                     pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    const char *breakpoint = "?";
    (void)id, (void)status, (void)results, (void)result_count;
    for (size_t i = 0; i < count; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_BREAKPOINT))
            breakpoint = info[i].value.data.string;
    if (strcmp(source->nspace, wanted) == 0) {
        printf("ready %d %s\n", (int)source->rank, breakpoint);
        come(&ready);
    }
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void on_registered(pmix_status_t status, size_t id, void *cbdata)
{
    (void)id, (void)cbdata;
    if (status == PMIX_SUCCESS)
        come(&registered);
}

/* What gdb says of a stopped process: where it is. */
static int look(const pmix_proc_info_t *process)
{
    char pid[16], line[512];
    int fds[2];
    snprintf(pid, sizeof pid, "%d", (int)process->pid);
    char *const argv[] = {(char *)"gdb", (char *)"-nx", (char *)"-batch",          (char *)"-p",
                          pid,           (char *)"-ex", (char *)"info symbol $pc", NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    if (pipe(fds) < 0)
        return 1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
    posix_spawn_file_actions_addclose(&actions, fds[0]);
    posix_spawn_file_actions_addclose(&actions, fds[1]);
    int rc = posix_spawnp(&child, "gdb", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    FILE *from = fdopen(fds[0], "r");
    while (rc == 0 && from && fgets(line, sizeof line, from))
        printf("rank %u %s: %s", process->proc.rank, pid, line);
    if (from)
        fclose(from);
    if (rc == 0)
        waitpid(child, &rc, 0);
    return rc == 0 ? 0 : 1;
}

static int look_at_all(void)
{
    pmix_query_t *query;
    pmix_info_t *answers = NULL;
    pmix_status_t status;
    size_t count = 0;
    int rc = 0;
    PMIX_QUERY_CREATE(query, 1);
    PMIX_ARGV_APPEND(status, query->keys, PMIX_QUERY_PROC_TABLE);
    PMIX_QUERY_QUALIFIERS_CREATE(query, 1);
    PMIX_INFO_LOAD(&query->qualifiers[0], PMIX_NSPACE, wanted, PMIX_STRING);
    status = PMIx_Query_info(query, 1, &answers, &count);
    if (status != PMIX_SUCCESS)
        return refused("query", status);
    const pmix_data_array_t *table = answers[0].value.data.darray;
    for (size_t i = 0; rc == 0 && i < table->size; i++)
        rc = look((const pmix_proc_info_t *)table->array + i);
    return rc;
}

static int resume(void)
{
    pmix_proc_t ranks;
    pmix_info_t info, *results = NULL;
    size_t count = 0;
    PMIX_LOAD_PROCID(&ranks, wanted, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&info, PMIX_JOB_CTRL_RESUME, NULL, PMIX_BOOL);
    pmix_status_t status = PMIx_Job_control(&ranks, 1, &info, 1, &results, &count);
    return status == PMIX_SUCCESS ? 0 : refused("resume", status);
}

static int release(void)
{
    pmix_proc_t ranks;
    pmix_info_t info[2];
    PMIX_LOAD_PROCID(&ranks, wanted, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&info[0], PMIX_EVENT_CUSTOM_RANGE, &ranks, PMIX_PROC);
    PMIX_INFO_LOAD(&info[1], PMIX_EVENT_NON_DEFAULT, NULL, PMIX_BOOL);
    pmix_status_t status =
        PMIx_Notify_event(PMIX_DEBUGGER_RELEASE, &me, PMIX_RANGE_CUSTOM, info, 2, NULL, NULL);
    return status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED
               ? 0
               : refused("release", status);
}

static int connect_to(pid_t pid)
{
    pmix_info_t info;
    pmix_status_t code = PMIX_READY_FOR_DEBUG;
    PMIX_INFO_LOAD(&info, PMIX_SERVER_PIDINFO, &pid, PMIX_PID);
    pmix_status_t status = PMIx_tool_init(&me, &info, 1);
    if (status != PMIX_SUCCESS)
        return refused("connect", status);
    PMIx_Register_event_handler(&code, 1, NULL, 0, on_ready, on_registered, NULL);
    return await(&registered) ? 0 : 4;
}

int main(int argc, char **argv)
{
    bool by_signal = argc > 1 && strcmp(argv[1], "--resume") == 0;
    setbuf(stdout, NULL);
    argv += by_signal;
    if (argc - by_signal < 3) {
        fprintf(stderr, "usage: pmix_debugger [--resume] PID NAMESPACE\n");
        return 64;
    }
    snprintf(wanted, sizeof wanted, "%s", argv[2]);
    int rc = connect_to((pid_t)strtol(argv[1], NULL, 10));
    if (rc == 0)
        rc = await(&ready) ? 0 : 4;
    if (rc == 0)
        rc = look_at_all();
    if (rc == 0)
        rc = by_signal ? resume() : release();
    if (rc == 0)
        printf("released\n");
    PMIx_tool_finalize();
    return rc;
}
