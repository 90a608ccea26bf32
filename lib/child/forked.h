/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a function in a process of its own, beside the loop: for work that needs the whole process,
 * since it runs a loop until it is done, takes the signals or owns every child. */
#ifndef DRARUN_CHILD_FORKED_H
#define DRARUN_CHILD_FORKED_H

#include <event2/event.h>
#include <sys/types.h>
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"

/* In the child, a copy of this process, whose changes are lost: writes what it has to say to
 * `answer`. That is its only descriptor beside the standard streams, which are /dev/null: it must
 * not use what has others, as a loop and connections do, and makes its own. Signals are as a new
 * program has them. It gets SIGTERM when we end, and a process group of its own, so that a
 * terminal's signals are ours alone. */
typedef void (*forked_fn)(void *arg, int answer);

/* answer: all that it wrote, borrowed until the callback returns. The process is gone then. */
typedef void (*forked_ended_fn)(const struct buf *answer, void *arg);

struct forked;

/* arg: for both functions. ended is never called from inside. -errno of fork(2) and its like. */
int forked_start(struct event_base *base, forked_fn fn, forked_ended_fn ended, void *arg,
                 struct forked **ret_forked);
/* NULL is fine. */
void forked_signal(struct forked *forked, int signo);
/* Kills it; ended is not called. NULL is fine. One that a driver's call keeps from being killed is
 * left behind. */
void forked_free(struct forked *forked);
DEFINE_CLEANUP(struct forked, forked_free)

/* As fork(2), for those that have their own way to speak with the child: 0 in it, with signals as a
 * new program has them, and with this one when we end; else its number, or -errno. */
pid_t forked_process(int signo);

#endif
