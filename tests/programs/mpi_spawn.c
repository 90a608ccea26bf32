/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic processes: mpi_spawn CASE. The job's own ranks say what they saw, and so do those that
 * they start, which are the same program with "child". */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static MPI_Comm parent;
static char *own;

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s %d: line %d: ", parent == MPI_COMM_NULL ? "rank" : "child", rank,  \
                    __LINE__);                                                                     \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            MPI_Abort(MPI_COMM_WORLD, 99);                                                         \
        }                                                                                          \
    } while (0)

/* Both sides in one communicator, and data through it. */
static void meet(MPI_Comm inter)
{
    MPI_Comm all;
    int sum = 0, one = 1, others, everybody;
    MPI_Comm_remote_size(inter, &others);
    MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &all);
    MPI_Comm_size(all, &everybody);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    CHECK(sum == everybody && sum == size + others, "%d of %d + %d", sum, size, others);
    MPI_Comm_free(&all);
}

static MPI_Comm spawn(int count, char **arguments, MPI_Info info)
{
    MPI_Comm inter;
    int errors[64];
    MPI_Comm_spawn(own, arguments, count, info, 0, MPI_COMM_WORLD, &inter, errors);
    for (int i = 0; rank == 0 && i < count; i++)
        CHECK(errors[i] == MPI_SUCCESS, "error %d of child %d", errors[i], i);
    return inter;
}

static MPI_Info info_of(const char *key, const char *value)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    return info;
}

/* ---- cases ---- */

static void once(void)
{
    char *arguments[] = {"child", "a b", NULL};
    MPI_Comm inter = spawn(2, arguments, MPI_INFO_NULL);
    meet(inter);
    MPI_Comm_disconnect(&inter);
}

/* The slots of those that have ended are free again. */
static void again(int times)
{
    char *arguments[] = {"child", NULL};
    for (int i = 0; i < times; i++) {
        MPI_Comm inter = spawn(2, arguments, MPI_INFO_NULL);
        meet(inter);
        MPI_Comm_disconnect(&inter);
    }
}

/* The first children have ended before others come. */
static void later(int before, int after)
{
    char *first[] = {"child", "pid", NULL}, *more[] = {"child", NULL};
    MPI_Comm inter = spawn(before, first, MPI_INFO_NULL);
    int pids[64];
    meet(inter);
    for (int i = 0; rank == 0 && i < before; i++)
        MPI_Recv(&pids[i], 1, MPI_INT, i, 0, inter, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&inter);
    for (int i = 0; rank == 0 && i < before; i++)
        while (kill(pids[i], 0) == 0)
            usleep(1000);
    inter = spawn(after, more, MPI_INFO_NULL);
    meet(inter);
    MPI_Comm_disconnect(&inter);
}

static void multiple(void)
{
    char *commands[] = {own, own};
    char *first[] = {"child", "first", NULL}, *second[] = {"child", "second", NULL};
    char **arguments[] = {first, second};
    int counts[] = {1, 2}, errors[3];
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm inter;
    MPI_Comm_spawn_multiple(2, commands, arguments, counts, infos, 0, MPI_COMM_WORLD, &inter,
                            errors);
    meet(inter);
    MPI_Comm_disconnect(&inter);
}

static void nested(void)
{
    char *arguments[] = {"child", "nested", NULL};
    MPI_Comm inter = spawn(1, arguments, MPI_INFO_NULL);
    meet(inter);
    MPI_Comm_disconnect(&inter);
}

/* Each rank by itself, all at the same time. */
static void each(void)
{
    char *arguments[] = {"child", NULL};
    MPI_Comm inter;
    int one = 1, sum = 0;
    MPI_Comm_spawn(own, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
    MPI_Comm all;
    MPI_Intercomm_merge(inter, 0, &all);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    CHECK(sum == 2, "%d", sum);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&inter);
}

static void with_info(const char *key, const char *value)
{
    char *arguments[] = {"child", NULL};
    MPI_Info info = info_of(key, value);
    if (strcmp(key, "path") == 0)
        own = strrchr(own, '/') + 1;
    MPI_Comm inter = spawn(2, arguments, info);
    MPI_Info_free(&info);
    meet(inter);
    MPI_Comm_disconnect(&inter);
}

/* An error for the caller, and all go on. */
static void refused(const char *program, const char *count, const char *key, const char *value)
{
    char *arguments[] = {"child", NULL};
    MPI_Comm inter;
    int errors[64];
    MPI_Info info = key ? info_of(key, value) : MPI_INFO_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rc = MPI_Comm_spawn(strcmp(program, "own") == 0 ? own : program, arguments, atoi(count),
                            info, 0, MPI_COMM_WORLD, &inter, errors);
    CHECK(rc != MPI_SUCCESS, "no error");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("refused");
}

/* A program without MPI, for which nobody waits. */
static void apart(void)
{
    char *arguments[] = {"-c", "echo apart", NULL};
    MPI_Info info = info_of("ompi_non_mpi", "true");
    MPI_Comm none;
    int error;
    MPI_Comm_spawn("/bin/sh", arguments, 1, info, 0, MPI_COMM_SELF, &none, &error);
    CHECK(none == MPI_COMM_NULL && error == MPI_SUCCESS, "error %d", error);
    MPI_Info_free(&info);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A child does not do its part while its parents wait for it. */
static void lost(const char *how)
{
    char *arguments[] = {"child", (char *)how, NULL};
    MPI_Comm inter = spawn(2, arguments, MPI_INFO_NULL);
    int never;
    meet(inter);
    MPI_Recv(&never, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
}

/* ---- the other side ---- */

static void tell_child(const char *word)
{
    char line[4096] = "", where[4096] = "", cpus[1024] = "?", *host = getenv("DRARUN_WORKER");
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        sscanf(line, "Cpus_allowed_list: %1023s", cpus);
    if (status)
        fclose(status);
    printf("child %d of %d on %s in %s on CPUs %s%s with %s=%s%s%s\n", rank, size,
           host ? host : "?", getcwd(where, sizeof where), cpus,
           getenv("OMPI_MCA_mpi_yield_when_idle") ? " yielding" : "", "SPAWN_VARIABLE",
           getenv("SPAWN_VARIABLE") ? getenv("SPAWN_VARIABLE") : "", word ? " as " : "",
           word ? word : "");
    fflush(stdout);
}

static void child(const char *word)
{
    if (word && strcmp(word, "exit") == 0 && rank == 1)
        exit(7);
    tell_child(word);
    meet(parent);
    if (word && strcmp(word, "abort") == 0 && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 5);
    if (word && strcmp(word, "segv") == 0 && rank == 1)
        raise(SIGSEGV);
    if (word && (strcmp(word, "abort") == 0 || strcmp(word, "segv") == 0))
        MPI_Barrier(MPI_COMM_WORLD);
    if (word && strcmp(word, "hang") == 0) {
        char name[32];
        snprintf(name, sizeof name, "hanging.%d", rank);
        CHECK(fopen(name, "w"), "no file %s", name);
        for (;;)
            pause();
    }
    if (word && strcmp(word, "pid") == 0) {
        int pid = getpid();
        MPI_Send(&pid, 1, MPI_INT, 0, 0, parent);
    }
    if (word && strcmp(word, "nested") == 0) {
        char *arguments[] = {"child", "grandchild", NULL};
        MPI_Comm inter, all;
        int one = 1, sum = 0;
        MPI_Comm_spawn(own, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                       MPI_ERRCODES_IGNORE);
        MPI_Intercomm_merge(inter, 0, &all);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
        CHECK(sum == 2, "%d", sum);
        MPI_Comm_free(&all);
        MPI_Comm_disconnect(&inter);
    }
    MPI_Comm_disconnect(&parent);
}

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    if (argc > 2 && strcmp(argv[2], "silent") == 0 && strcmp(argv[1], "child") == 0)
        return 0; /* without MPI_Init, for which its parents wait */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    own = argv[0];
    const char *name = argc > 1 ? argv[1] : "once";
    if (parent != MPI_COMM_NULL) {
        child(argc > 2 ? argv[2] : NULL);
        MPI_Finalize();
        return 0;
    }
    MPI_Get_library_version(version, &length);
    if (rank == 0)
        printf("%s\n", version);
    if (strcmp(name, "once") == 0)
        once();
    else if (strcmp(name, "again") == 0)
        again(argc > 2 ? atoi(argv[2]) : 3);
    else if (strcmp(name, "later") == 0)
        later(argc > 2 ? atoi(argv[2]) : 1, argc > 3 ? atoi(argv[3]) : 3);
    else if (strcmp(name, "multiple") == 0)
        multiple();
    else if (strcmp(name, "nested") == 0)
        nested();
    else if (strcmp(name, "each") == 0)
        each();
    else if (strcmp(name, "apart") == 0)
        apart();
    else if (strcmp(name, "info") == 0)
        with_info(argv[2], argv[3]);
    else if (strcmp(name, "refused") == 0)
        refused(argv[2], argv[3], argc > 4 ? argv[4] : NULL, argc > 5 ? argv[5] : NULL);
    else if (strcmp(name, "lost") == 0)
        lost(argv[2]);
    else
        CHECK(0, "no case %s", name);
    MPI_Finalize();
    return 0;
}
