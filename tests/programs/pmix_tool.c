/* SPDX-License-Identifier: Apache-2.0 */
/* A tool of PMIx, which no rank has started: pmix_tool PID [NAMESPACE RANK KEY...]: connects to the
 * server of that process and prints one line for each answer, one for each process of a table.
 * NAMESPACE: "" or whom to ask about; RANK: -1 for none. Exits 2 when it is refused, 3 when nothing
 * is known. "--as NAMESPACE RANK" before all: in that name. "--signal N RANK" in place of keys: a
 * signal to that rank. "--times N PID" alone: as N tools, eight at a time. */
#include <pmix.h>
#include <pmix_tool.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pmix_proc_t me;

static int refused(const char *what, pmix_status_t status)
{
    printf("%s: %s\n", what, PMIx_Error_string(status));
    return 2;
}

static void print_process(const pmix_proc_info_t *process)
{
    printf("%u %s %d %s %d %d\n", process->proc.rank, process->hostname, (int)process->pid,
           process->executable_name, process->state, process->exit_code);
}

static void print_value(const pmix_value_t *value)
{
    const pmix_data_array_t *array = value->data.darray;
    switch (value->type) {
    case PMIX_STRING:
        printf("%s\n", value->data.string);
        break;
    case PMIX_UINT32:
        printf("%u\n", value->data.uint32);
        break;
    case PMIX_PID:
        printf("%d\n", (int)value->data.pid);
        break;
    case PMIX_PROC_STATE:
        printf("%d\n", value->data.state);
        break;
    case PMIX_DATA_ARRAY:
        printf("%zu\n", array->size);
        for (size_t i = 0; i < array->size; i++)
            if (array->type == PMIX_PROC_INFO)
                print_process((const pmix_proc_info_t *)array->array + i);
            else if (array->type == PMIX_INFO)
                print_value(&((const pmix_info_t *)array->array)[i].value);
        break;
    default:
        printf("of type %d\n", value->type);
    }
}

static int connect_to(pid_t pid, const char *as, uint32_t as_rank)
{
    pmix_info_t info[3];
    size_t count = 1;
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_PIDINFO, &pid, PMIX_PID);
    if (as) {
        PMIX_INFO_LOAD(&info[1], PMIX_TOOL_NSPACE, as, PMIX_STRING);
        PMIX_INFO_LOAD(&info[2], PMIX_TOOL_RANK, &as_rank, PMIX_PROC_RANK);
        count = 3;
    }
    pmix_status_t status = PMIx_tool_init(&me, info, count);
    /* 4.2.2 takes a refused handshake for success: what follows shows it */
    return status == PMIX_SUCCESS ? 0 : refused("connect", status);
}

static int ask(const char *nspace, long rank, char **names)
{
    pmix_query_t *query;
    pmix_info_t *answers = NULL;
    pmix_rank_t number = (pmix_rank_t)rank;
    pmix_status_t status;
    size_t count = 0, quals = 0;
    PMIX_QUERY_CREATE(query, 1);
    for (char **name = names; *name; name++)
        PMIX_ARGV_APPEND(status, query->keys, *name);
    if (nspace[0] || rank >= 0)
        PMIX_QUERY_QUALIFIERS_CREATE(query, (nspace[0] ? 1 : 0) + (rank >= 0 ? 1 : 0));
    if (nspace[0])
        PMIX_INFO_LOAD(&query->qualifiers[quals++], PMIX_NSPACE, nspace, PMIX_STRING);
    if (rank >= 0)
        PMIX_INFO_LOAD(&query->qualifiers[quals++], PMIX_RANK, &number, PMIX_PROC_RANK);
    status = PMIx_Query_info(query, 1, &answers, &count);
    if (status == PMIX_ERR_NOT_FOUND) {
        printf("nothing\n");
        return 3;
    }
    if (status != PMIX_SUCCESS)
        return refused("query", status);
    for (size_t i = 0; i < count; i++) {
        printf("%s ", answers[i].key);
        print_value(&answers[i].value);
    }
    return 0;
}

static int send_signal(const char *nspace, uint32_t rank, int signo)
{
    pmix_proc_t target;
    pmix_info_t info, *results = NULL;
    size_t count = 0;
    PMIX_LOAD_PROCID(&target, nspace, rank);
    PMIX_INFO_LOAD(&info, PMIX_JOB_CTRL_SIGNAL, &signo, PMIX_INT);
    pmix_status_t status = PMIx_Job_control(&target, 1, &info, 1, &results, &count);
    return status == PMIX_SUCCESS ? 0 : refused("signal", status);
}

/* Each in a process of its own; 0 when all were served. */
static int connect_often(int times, pid_t pid)
{
    int failed = 0, status, running = 0;
    for (int i = 0; i < times || running > 0;) {
        if (i < times && running < 8) {
            pid_t child = fork();
            if (child == 0) {
                int rc = connect_to(pid, NULL, 0);
                if (rc == 0) {
                    printf("tool %s\n", me.nspace);
                    PMIx_tool_finalize();
                }
                _exit(rc);
            }
            i++;
            running++;
            continue;
        }
        if (wait(&status) < 0 || status != 0)
            failed = 1;
        running--;
    }
    return failed;
}

int main(int argc, char **argv)
{
    const char *as = NULL;
    uint32_t as_rank = 0;
    setbuf(stdout, NULL);
    if (argc == 4 && strcmp(argv[1], "--times") == 0)
        return connect_often(atoi(argv[2]), (pid_t)strtol(argv[3], NULL, 10));
    if (argc > 3 && strcmp(argv[1], "--as") == 0) {
        as = argv[2];
        as_rank = (uint32_t)strtoul(argv[3], NULL, 10);
        argv += 3;
        argc -= 3;
    }
    if (argc < 2) {
        fprintf(stderr, "usage: pmix_tool [--as NAMESPACE RANK] PID [NAMESPACE RANK KEY...]\n");
        return 64;
    }
    int rc = connect_to((pid_t)strtol(argv[1], NULL, 10), as, as_rank);
    if (rc != 0)
        return rc;
    printf("tool %s\n", me.nspace);
    if (argc > 5 && strcmp(argv[4], "--signal") == 0)
        rc = send_signal(argv[2], (uint32_t)strtoul(argv[3], NULL, 10), atoi(argv[5]));
    else if (argc > 4)
        rc = ask(argv[2], strtol(argv[3], NULL, 10), argv + 4);
    PMIx_tool_finalize();
    return rc;
}
