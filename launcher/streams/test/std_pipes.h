/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: pipes in the place of this process's standard output and standard error. Nothing may
 * be asserted from std_pipes_begin to std_pipes_done, which puts back what was there: cmocka writes
 * there. */
#ifndef DRARUN_LAUNCHER_STD_PIPES_H
#define DRARUN_LAUNCHER_STD_PIPES_H

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "lib/base/cleanup.h"

struct std_pipes { /* by descriptor */
    int saved[STDERR_FILENO + 1];
    int read_ends[STDERR_FILENO + 1]; /* of those that were put there; -1: none, or closed */
};

/* Puts nothing there yet. */
static inline void std_pipes_begin(struct std_pipes *pipes)
{
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        pipes->read_ends[fd] = -1;
        pipes->saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
        if (pipes->saved[fd] < 0)
            abort();
    }
}

/* The read end does not block. */
static inline void std_pipes_put(struct std_pipes *pipes, int fd)
{
    int ends[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC) < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
        abort();
    pipes->read_ends[fd] = fcntl(ends[0], F_DUPFD_CLOEXEC, 10);
    if (pipes->read_ends[fd] < 0 || dup2(ends[1], fd) < 0)
        abort();
    close(ends[0]);
    close(ends[1]);
}

static inline void std_pipes_done(struct std_pipes *pipes)
{
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        dup2(pipes->saved[fd], fd);
        close_fd(&pipes->saved[fd]);
        close_fd(&pipes->read_ends[fd]);
    }
}

#endif
