/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program beside the loop, without a shell. */
#ifndef DRARUN_CHILD_CHILD_H
#define DRARUN_CHILD_CHILD_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"

#define CHILD_OUTPUT_MAX ((size_t)1 << 20) /* bytes of its stdout */
#define CHILD_SAID_MAX 300u                /* bytes of its stderr's end, for messages */

struct child_program {
    char *const *argv; /* argv[0]: a path, or looked up in PATH */
    char *const *env;
    int64_t deadline_ms; /* then its process group is killed, even if the program itself has ended
                            and others of the group keep its stdout open; 0: never */
    bool interactive;    /* it keeps our stdin, stderr and process group */
    bool shows;          /* it keeps our stderr: somebody reads that */
    /* Each line of its stdout as soon as it is whole, without its newline, in place of
     * child_end.out; child_write speaks to it then. Must not free the child. NULL: no. */
    void (*line)(void *arg, const char *text, size_t length);
};

struct child_end {
    const struct buf *out; /* its stdout; borrowed until the callback returns */
    const char *said;      /* the end of its stderr, on one line; "", also where that is ours */
    bool known;            /* false: somebody else took the status */
    int status;            /* exit status, or the negative signal that killed it */
};

/* err: NULL when it has ended by itself; else ETIMEDOUT or EFBIG, and it is being killed. The child
 * is gone when fn returns, unless a driver's call keeps it from being killed. */
typedef void (*child_fn)(const struct child_end *end, const struct drarun_error *err, void *arg);

struct child;

/* fn is never called from inside. Over when the program has ended and its stdout is closed; what it
 * leaves behind may keep its stderr. Returns the error of the spawn, -ENOENT for no such program.
 */
int child_start(struct event_base *base, const struct child_program *program, child_fn fn,
                void *arg, struct child **ret_child);
/* To the stdin of one with a `line`. -errno where not all of it goes into the kernel's buffer (some
 * 100 KiB), or it does not read any more: it is of no use then. */
int child_write(struct child *child, const void *data, size_t length);
/* To its process group, while it runs. NULL is fine. */
void child_signal(struct child *child, int signo);
/* Kills it; fn is not called. NULL is fine. One that a driver's call keeps from being killed is
 * left behind. */
void child_free(struct child *child);
/* The same. -1; or a descriptor, which the caller owns, of a process that is left behind. */
int child_kill(struct child *child);
/* Whether that process is still there: once it has ended, its descriptor is closed and set to -1.
 * False of -1. */
bool child_is_left(int *pidfd);

#define CHILD_KILLED_MS 1000 /* for the end of a process that was killed */
/* Whether a process has ended, or does so within that time. */
bool child_has_ended(int pidfd, int ms);
DEFINE_CLEANUP(struct child, child_free)

#endif
