/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_check CASE: what a job does with MPI, and how its ranks end. Each rank checks what it gets;
 * what is wrong is said, with status 3. Any MPI compiles it. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, size;

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            char text_[256];                                                                       \
            snprintf(text_, sizeof text_, __VA_ARGS__);                                            \
            fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, text_);                      \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

/* As the launcher has it: an MPI library that does not find its server is alone. */
static int launched(const char *name)
{
    const char *text = getenv(name);
    if (!text) {
        fprintf(stderr, "no %s in the environment\n", name);
        exit(3);
    }
    return atoi(text);
}

static void check_sum(MPI_Comm comm)
{
    static double in[5000], out[5000];
    int me, all;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &all);
    for (int i = 0; i < 5000; i++)
        in[i] = (me + 1) * (double)(i % 17 + 1);
    MPI_Allreduce(in, out, 5000, MPI_DOUBLE, MPI_SUM, comm);
    for (int i = 0; i < 5000; i++)
        CHECK(out[i] == all * (all + 1) / 2 * (double)(i % 17 + 1), "element %d is %g", i, out[i]);
}

/* Everyone to everyone, so that every pair of ranks has a working connection. */
static void check_pairs(void)
{
    int *in = calloc(size, sizeof *in), *out = calloc(size, sizeof *out);
    for (int i = 0; i < size; i++)
        in[i] = rank * 1000 + i;
    MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        CHECK(out[i] == i * 1000 + rank, "%d from rank %d", out[i], i);
    free(in);
    free(out);
}

static void check_split(void)
{
    MPI_Comm half;
    int in, sum, count;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_size(half, &count);
    CHECK(count == (size + (rank % 2 == 0)) / 2, "%d ranks in this half", count);
    check_sum(half);
    MPI_Comm_rank(half, &in);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_MAX, half);
    CHECK((in == 0) == (rank == sum), "rank %d in a half whose highest is %d", in, sum);
    MPI_Comm_free(&half);
}

/* To MPI each worker is a node. */
static int check_nodes(void)
{
    MPI_Comm node;
    int here, first, nodes;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &here);
    CHECK(here == launched("LOCAL_WORLD_SIZE"), "%d ranks share memory, not %d", here,
          launched("LOCAL_WORLD_SIZE"));
    check_sum(node);
    MPI_Comm_rank(node, &first);
    first = first == 0;
    MPI_Allreduce(&first, &nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_free(&node);
    return nodes;
}

static void print_library(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, "\n")] = '\0';
    if (rank == 0)
        printf("library: %s\n", text);
}

static void case_all(void)
{
    MPI_Comm copy;
    int max = 0;
    print_library();
    for (int i = 0; i < 20; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    check_sum(MPI_COMM_WORLD);
    check_pairs();
    check_split();
    int nodes = check_nodes();
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    check_sum(copy);
    MPI_Allreduce(&rank, &max, 1, MPI_INT, MPI_MAX, copy);
    CHECK(max == size - 1, "the highest rank is %d", max);
    MPI_Comm_free(&copy);
    if (rank == 0)
        printf("ok: %d ranks, %d nodes\n", size, nodes);
}

/* Open MPI 5 calls itself MPI 3.1, but has sessions. */
#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
static void use_group(MPI_Group group, const char *tag, int members)
{
    MPI_Comm comm;
    int count, sum = 0, one = 1;
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_size(comm, &count);
    CHECK(count == members, "%d ranks in %s", count, tag);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == members, "the sum is %d", sum);
    check_sum(comm);
    MPI_Comm_free(&comm);
}

static void case_sessions(int sessions)
{
    MPI_Session session;
    MPI_Group world, even;
    int count, range[1][3] = {{0, size - 1, 2}};
    for (int i = 0; i < sessions; i++) {
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
        MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
        MPI_Group_size(world, &count);
        MPI_Group_rank(world, &rank);
        CHECK(count == size, "%d ranks in mpi://WORLD", count);
        for (int k = 0; k < 3; k++) /* the same tag again and again */
            use_group(world, "drarun.world", size);
        MPI_Group_range_incl(world, 1, range, &even);
        if (rank % 2 == 0)
            use_group(even, "drarun.even", (size + 1) / 2);
        MPI_Group_free(&even);
        MPI_Group_free(&world);
        MPI_Session_finalize(&session);
    }
    if (rank == 0)
        printf("ok: %d ranks, sessions\n", size);
}
#else
static void case_sessions(int sessions)
{
    fprintf(stderr, "MPI %d.%d has no sessions, nor %d of them\n", MPI_VERSION, MPI_SUBVERSION,
            sessions);
    exit(4);
}
#endif

/* Each rank by itself: in Open MPI 4 the others would wait for a root that was refused. */
static void case_spawn(void)
{
    MPI_Comm children = MPI_COMM_NULL;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int rc = MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF,
                            &children, MPI_ERRCODES_IGNORE);
    CHECK(rc != MPI_SUCCESS, "MPI_Comm_spawn succeeds");
    MPI_Error_string(rc, text, &length);
    text[strcspn(text, "\n")] = '\0';
    if (rank == 0)
        printf("refused: %s\n", text);
}

/* Without an error handler of the program's. */
static void case_spawn_all(void)
{
    MPI_Comm children;
    MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                   MPI_ERRCODES_IGNORE);
    printf("spawned\n");
}

static void case_publish(void)
{
    char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "";
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0) {
        snprintf(port, sizeof port, "tag=77,anything=%d", size);
        int rc = MPI_Publish_name("drarun-test", MPI_INFO_NULL, port);
        CHECK(rc == MPI_SUCCESS, "MPI_Publish_name fails");
    }
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    int rc = MPI_Lookup_name("drarun-test", MPI_INFO_NULL, found);
    CHECK(rc == MPI_SUCCESS, "MPI_Lookup_name fails");
    CHECK(strcmp(port, found) == 0, "port \"%s\", not \"%s\"", found, port);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        rc = MPI_Unpublish_name("drarun-test", MPI_INFO_NULL, port);
        CHECK(rc == MPI_SUCCESS, "MPI_Unpublish_name fails");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) {
        rc = MPI_Lookup_name("drarun-test", MPI_INFO_NULL, found);
        CHECK(rc != MPI_SUCCESS, "the name is still there");
        printf("ok: published and found\n");
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The others wait for rank 1, which leaves. */
static void leave(const char *how)
{
    if (rank == 0 && strcmp(how, "forever") == 0)
        printf("running\n");
    fflush(stdout);
    while (strcmp(how, "forever") == 0) {
        check_sum(MPI_COMM_WORLD);
        usleep(10000);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1 && strcmp(how, "segv") == 0)
        raise(SIGSEGV);
    if (rank == 1 && strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (rank == 1 && strcmp(how, "exit") == 0)
        _exit(5);
    if (rank == 1 && strcmp(how, "quit") == 0)
        _exit(0);
    if (rank == 1 && strcmp(how, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 7);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 1 leaves before MPI_Init, in which the others wait. */
static void leave_early(const char *how)
{
    if (strncmp(how, "early-", 6) != 0 || launched("RANK") != 1)
        return;
    usleep(300000); /* so that they do */
    if (strcmp(how, "early-kill") == 0)
        raise(SIGKILL);
    if (strcmp(how, "early-exit") == 0)
        _exit(5);
    if (strcmp(how, "early-quit") == 0)
        _exit(0);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "all";
    leave_early(name);
    if (strcmp(name, "sessions") == 0) {
        size = launched("WORLD_SIZE");
        case_sessions(argc > 2 ? atoi(argv[2]) : 3);
        return 0;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size == launched("WORLD_SIZE"), "%d ranks in the world, not %d: each is alone", size,
          launched("WORLD_SIZE"));
    CHECK(rank == launched("RANK"), "this is rank %d", launched("RANK"));
    if (strcmp(name, "all") == 0)
        case_all();
    else if (strcmp(name, "spawn") == 0)
        case_spawn();
    else if (strcmp(name, "spawn-all") == 0)
        case_spawn_all();
    else if (strcmp(name, "publish") == 0)
        case_publish();
    else
        leave(name);
    MPI_Finalize();
    return 0;
}
