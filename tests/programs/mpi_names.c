/* SPDX-License-Identifier: Apache-2.0 */
/* Ports with names: mpi_names serve NAME [COUNT] accepts a job that connects, or so many, one after
 * the other, mpi_names call NAME is that job; queue NAME [COUNT] does so once the file "accept" is
 * there, each NAME connects with each rank alone, again NAME does until it is accepted; mpi_names
 * inside NAME does both, rank 0 accepts the others; mpi_names chain NAME accepts two jobs, the
 * second together with the first, which is mpi_names join NAME. The other words do a part of it:
 * publish NAME (until the file "stop" is there), look NAME, refused NAME (it is there already),
 * open NAME (nobody accepts); hold NAME and hang NAME connect as serve and call do, and then wait
 * for each other forever; fail NAME calls and then fails; late NAME calls once the file "go" is
 * there; brief NAME publishes and ends; pass PORT connects to a port that is known in another way.
 */
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

/* Both sides in one communicator, and data through it. */
static void meet(MPI_Comm inter, int high)
{
    MPI_Comm all;
    int sum = 0, one = 1, own, others, everybody;
    MPI_Comm_size(inter, &own);
    MPI_Comm_remote_size(inter, &others);
    MPI_Intercomm_merge(inter, high, &all);
    MPI_Comm_size(all, &everybody);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    CHECK(sum == everybody && sum == own + others, "%d of %d + %d", sum, own, others);
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

/* Every rank hears of an error, or none. */
static MPI_Comm accept_at(const char *port, MPI_Comm with)
{
    MPI_Comm inter;
    int rc = MPI_Comm_accept(port, MPI_INFO_NULL, 0, with, &inter);
    CHECK(rc == MPI_SUCCESS, "MPI_Comm_accept: %s", reason(rc));
    return inter;
}

static MPI_Comm connect_to(const char *port, MPI_Comm with)
{
    MPI_Comm inter;
    int rc = MPI_Comm_connect(port, MPI_INFO_NULL, 0, with, &inter);
    CHECK(rc == MPI_SUCCESS, "MPI_Comm_connect: %s", reason(rc));
    return inter;
}

static void accept_all(const char *port, MPI_Comm with, int count)
{
    while (count-- > 0) {
        MPI_Comm inter = accept_at(port, with);
        meet(inter, 0);
        MPI_Comm_disconnect(&inter);
    }
}

static void await_file(const char *file)
{
    while (rank == 0 && access(file, F_OK) != 0)
        usleep(10000);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* file: NULL: it accepts at once. */
static void serve(const char *name, int count, const char *file)
{
    char port[MPI_MAX_PORT_NAME] = "";
    open_port(name, port);
    if (file)
        await_file(file);
    accept_all(port, MPI_COMM_WORLD, count);
    close_port(name, port);
}

/* Publishes and unpublishes. */
static void brief(const char *name)
{
    char port[MPI_MAX_PORT_NAME] = "";
    open_port(name, port);
    close_port(name, port);
}

/* Waits for what nobody sends. */
static void hang(MPI_Comm inter)
{
    int nothing;
    say("hangs", "");
    MPI_Recv(&nothing, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
}

static void hold(const char *name)
{
    char port[MPI_MAX_PORT_NAME] = "";
    open_port(name, port);
    hang(accept_at(port, MPI_COMM_WORLD));
}

static void open_only(const char *name)
{
    char port[MPI_MAX_PORT_NAME] = "";
    open_port(name, port);
    for (;;)
        pause();
}

static int look(const char *name, char port[MPI_MAX_PORT_NAME])
{
    int rc = rank == 0 ? MPI_Lookup_name(name, MPI_INFO_NULL, port) : MPI_SUCCESS;
    MPI_Bcast(&rc, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return rc;
}

static void look_known(const char *name, char port[MPI_MAX_PORT_NAME])
{
    int rc = look(name, port);
    CHECK(rc == MPI_SUCCESS, "MPI_Lookup_name: %s", reason(rc));
}

static MPI_Comm connect_by_name(const char *name)
{
    char port[MPI_MAX_PORT_NAME] = "";
    look_known(name, port);
    return connect_to(port, MPI_COMM_WORLD);
}

/* The root is told that nobody has accepted; the other ranks wait in their first call. */
static MPI_Comm connect_again(const char *name)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    look_known(name, port);
    while (MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter) != MPI_SUCCESS)
        say("again", "");
    return inter;
}

static MPI_Comm connect_late(const char *name)
{
    char port[MPI_MAX_PORT_NAME] = "";
    look_known(name, port);
    say("found", "");
    await_file("go");
    return connect_to(port, MPI_COMM_WORLD);
}

static void call(MPI_Comm inter)
{
    meet(inter, 1);
    MPI_Comm_disconnect(&inter);
}

static void call_alone(const char *port)
{
    call(connect_to(port, MPI_COMM_SELF));
}

static void call_each(const char *name)
{
    char port[MPI_MAX_PORT_NAME] = "";
    look_known(name, port);
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    call_alone(port);
}

/* No job but this one. */
static void meet_inside(const char *name)
{
    char port[MPI_MAX_PORT_NAME] = "";
    open_port(name, port);
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0)
        accept_all(port, MPI_COMM_SELF, size - 1);
    else
        call_alone(port);
    close_port(name, port);
}

/* Three jobs in one communicator: the first accepts the second, and both accept the third. */
static void chain(const char *name, int first)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter, both;
    if (first)
        open_port(name, port);
    inter = first ? accept_at(port, MPI_COMM_WORLD) : connect_by_name(name);
    MPI_Intercomm_merge(inter, !first, &both);
    if (first && rank == 0)
        printf("two\n"), fflush(stdout);
    MPI_Comm third = accept_at(port, both);
    int others, everybody;
    MPI_Comm_remote_size(third, &others);
    MPI_Comm_size(both, &everybody);
    if (rank == 0)
        printf("three %d + %d\n", everybody, others);
    MPI_Barrier(third);
    MPI_Comm_disconnect(&third);
    MPI_Comm_free(&both);
    MPI_Comm_disconnect(&inter);
    if (first)
        close_port(name, port);
}

static void end_chain(MPI_Comm inter)
{
    MPI_Barrier(inter);
    MPI_Comm_disconnect(&inter);
}

/* Any text is a port for this: not every library can open one. */
static void publish(const char *name)
{
    int rc = rank == 0 ? MPI_Publish_name(name, MPI_INFO_NULL, "a-port") : MPI_SUCCESS;
    CHECK(rc == MPI_SUCCESS, "MPI_Publish_name: %s", reason(rc));
    say("published", "");
    await_file("stop");
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
    int count = argc > 3 ? atoi(argv[3]) : 1;
    if (strcmp(word, "serve") == 0)
        serve(name, count, NULL);
    else if (strcmp(word, "queue") == 0)
        serve(name, count, "accept");
    else if (strcmp(word, "each") == 0)
        call_each(name);
    else if (strcmp(word, "again") == 0)
        call(connect_again(name));
    else if (strcmp(word, "inside") == 0)
        meet_inside(name);
    else if (strcmp(word, "call") == 0)
        call(connect_by_name(name));
    else if (strcmp(word, "fail") == 0)
        call(connect_by_name(name));
    else if (strcmp(word, "late") == 0)
        call(connect_late(name));
    else if (strcmp(word, "brief") == 0)
        brief(name);
    else if (strcmp(word, "pass") == 0)
        call(connect_to(name, MPI_COMM_WORLD));
    else if (strcmp(word, "hold") == 0)
        hold(name);
    else if (strcmp(word, "hang") == 0)
        hang(connect_by_name(name));
    else if (strcmp(word, "open") == 0)
        open_only(name);
    else if (strcmp(word, "chain") == 0 || strcmp(word, "join") == 0)
        chain(name, word[0] == 'c');
    else if (strcmp(word, "third") == 0)
        end_chain(connect_by_name(name));
    else if (strcmp(word, "publish") == 0)
        publish(name);
    else if (strcmp(word, "look") == 0)
        say(look(name, port) == MPI_SUCCESS ? "there: " : "not there", rank == 0 ? port : "");
    else if (strcmp(word, "refused") == 0)
        refused(name);
    else
        CHECK(0, "which word and NAME?");
    MPI_Finalize();
    return strcmp(word, "fail") == 0 ? 3 : 0;
}
