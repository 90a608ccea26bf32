/* SPDX-License-Identifier: Apache-2.0 */
/* floor N PROGRAM: the least that a launcher does. Spawns N processes with /dev/null as input and
 * a pipe each for stdout and stderr, passes on what comes through, waits for all. */
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what)
{
    perror(what);
    exit(70);
}

static void start(char **argv, struct pollfd ends[2])
{
    posix_spawn_file_actions_t actions;
    int pipes[2][2];
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    for (int i = 0; i < 2; i++) {
        if (pipe2(pipes[i], O_CLOEXEC) != 0)
            fail("pipe2");
        posix_spawn_file_actions_adddup2(&actions, pipes[i][1], i + 1);
        ends[i] = (struct pollfd){.fd = pipes[i][0], .events = POLLIN};
    }
    if (posix_spawn(&pid, argv[0], &actions, NULL, argv, environ) != 0)
        fail("posix_spawn");
    posix_spawn_file_actions_destroy(&actions);
    close(pipes[0][1]);
    close(pipes[1][1]);
}

/* Returns whether the end is still open. Even entries are stdout. */
static int pass_on(struct pollfd *end, int to)
{
    char data[65536];
    ssize_t got = read(end->fd, data, sizeof data);
    if (got > 0)
        return write(to, data, (size_t)got) == got;
    close(end->fd);
    end->fd = -1;
    return 0;
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? atoi(argv[1]) : 0;
    if (count < 1)
        return 64;
    struct pollfd *ends = calloc((size_t)count * 2, sizeof *ends);
    if (!ends)
        return 70;
    for (int i = 0; i < count; i++)
        start(argv + 2, ends + 2 * i);
    for (int open_ends = 2 * count; open_ends > 0;) {
        if (poll(ends, (nfds_t)count * 2, -1) < 0)
            fail("poll");
        for (int i = 0; i < 2 * count; i++)
            if (ends[i].fd >= 0 && ends[i].revents && !pass_on(&ends[i], 1 + i % 2))
                open_ends--;
    }
    int failed = 0, status;
    for (int i = 0; i < count; i++)
        if (wait(&status) < 0 || status != 0)
            failed = 1;
    free(ends);
    return failed;
}
