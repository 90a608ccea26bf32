/* SPDX-License-Identifier: Apache-2.0 */
/* Ports with names: mpi_names serve NAME accepts a job that connects, mpi_names call NAME is that
 * job. The other words do a part of it: publish NAME (until the file "stop" is there), look NAME,
 * refused NAME (it is there already). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "rank %d: line %d: ", rank, __LINE__);                                 \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            MPI_Abort(MPI_COMM_WORLD, 99);                                                         \
        }                                                                                          \
    } while (0)

static void say(const char *text, const char *more)
{
    if (rank == 0)
        printf("%s%s\n", text, more);
    fflush(stdout);
}

static const char *reason(int code)
{
    static char text[MPI_MAX_ERROR_STRING];
    int length;
    return MPI_Error_string(code, text, &length) == MPI_SUCCESS ? text : "?";
}

/* Both jobs in one communicator, and data through it. */
static void meet(MPI_Comm inter, int high)
{
    MPI_Comm all;
    int sum = 0, one = 1, others, everybody;
    MPI_Comm_remote_size(inter, &others);
    MPI_Intercomm_merge(inter, high, &all);
    MPI_Comm_size(all, &everybody);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    CHECK(sum == everybody && sum == size + others, "%d of %d + %d", sum, size, others);
    MPI_Comm_free(&all);
    if (rank == 0)
        printf("met %d\n", others);
}

/* Of the root's; published under the name. */
static void open_port(const char *name, char port[MPI_MAX_PORT_NAME])
{
    if (rank > 0)
        return;
    int rc = MPI_Open_port(MPI_INFO_NULL, port);
    CHECK(rc == MPI_SUCCESS, "MPI_Open_port: %s", reason(rc));
    rc = MPI_Publish_name(name, MPI_INFO_NULL, port);
    CHECK(rc == MPI_SUCCESS, "MPI_Publish_name: %s", reason(rc));
    say("published", "");
}

static void close_port(const char *name, const char *port)
{
    if (rank > 0)
        return;
    int rc = MPI_Unpublish_name(name, MPI_INFO_NULL, port);
    CHECK(rc == MPI_SUCCESS, "MPI_Unpublish_name: %s", reason(rc));
    MPI_Close_port(port);
    say("unpublished", "");
}

static void serve(const char *name)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    open_port(name, port);
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    meet(inter, 0);
    MPI_Comm_disconnect(&inter);
    close_port(name, port);
}

static int look(const char *name, char port[MPI_MAX_PORT_NAME])
{
    int rc = rank == 0 ? MPI_Lookup_name(name, MPI_INFO_NULL, port) : MPI_SUCCESS;
    MPI_Bcast(&rc, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return rc;
}

static void call(const char *name)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    int rc = look(name, port);
    CHECK(rc == MPI_SUCCESS, "MPI_Lookup_name: %s", reason(rc));
    rc = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    CHECK(rc == MPI_SUCCESS, "MPI_Comm_connect: %s", reason(rc));
    meet(inter, 1);
    MPI_Comm_disconnect(&inter);
}

/* Any text is a port for this: not every library can open one. */
static void publish(const char *name)
{
    int rc = rank == 0 ? MPI_Publish_name(name, MPI_INFO_NULL, "a-port") : MPI_SUCCESS;
    CHECK(rc == MPI_SUCCESS, "MPI_Publish_name: %s", reason(rc));
    say("published", "");
    while (rank == 0 && access("stop", F_OK) != 0)
        usleep(10000);
    MPI_Barrier(MPI_COMM_WORLD);
    rc = rank == 0 ? MPI_Unpublish_name(name, MPI_INFO_NULL, "a-port") : MPI_SUCCESS;
    CHECK(rc == MPI_SUCCESS, "MPI_Unpublish_name: %s", reason(rc));
}

/* An error, and all go on. */
static void refused(const char *name)
{
    int rc = rank == 0 ? MPI_Publish_name(name, MPI_INFO_NULL, "mine") : MPI_ERR_OTHER;
    CHECK(rc != MPI_SUCCESS, "no error");
    MPI_Barrier(MPI_COMM_WORLD);
    say("refused", "");
}

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING], port[MPI_MAX_PORT_NAME] = "";
    int length;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = 0;
    say("with ", version);
    const char *word = argc > 2 ? argv[1] : "", *name = argc > 2 ? argv[2] : "";
    if (strcmp(word, "serve") == 0)
        serve(name);
    else if (strcmp(word, "call") == 0)
        call(name);
    else if (strcmp(word, "publish") == 0)
        publish(name);
    else if (strcmp(word, "look") == 0)
        say(look(name, port) == MPI_SUCCESS ? "there: " : "not there", rank == 0 ? port : "");
    else if (strcmp(word, "refused") == 0)
        refused(name);
    else
        CHECK(0, "serve, call, publish, look or refused NAME?");
    MPI_Finalize();
    return 0;
}
