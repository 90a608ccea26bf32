/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a function in a process of its own, within limits: for what reads other people's input and
 * may, by a fault that nobody knows yet, never return, take all memory or crash
 * (docs/design/035-drajob-objects.md). */
#ifndef DRARUN_CHILD_BOUNDED_H
#define DRARUN_CHILD_BOUNDED_H

#include <event2/event.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"

struct bounded_limits {
    unsigned cpu_s;  /* seconds of processor time */
    int64_t wall_ms; /* and of the clock, for one that sleeps or gets no processor */
    size_t memory;   /* bytes that it may allocate beyond what we have */
};

/* In the child, a copy of this process: it must be pure (no loop, log, lock or descriptor), and
 * what it changes is lost. Returns 0 or -errno with the error. */
typedef int (*bounded_fn)(void *arg, struct drarun_error *err);

/* With the result and the error of a bounded_fn. Where a limit or a crash ended it, the error names
 * that and has the kind DRARUN_ERR_SPEC, since the input is to blame:
 * -ETIME (processor time), -ENOMEM (memory), -EFAULT (a crash). Kind DRARUN_ERR_INFRASTRUCTURE, so
 * that it may be tried again: -ETIMEDOUT (the clock), and what ended it from outside. */
typedef void (*bounded_done_fn)(int rc, const struct drarun_error *err, void *arg);

struct bounded; /* under way */

/* Calls fn, with what arg is now, beside other work of the loop. done is called once, unless
 * cancelled; the call is gone then. Fails, as fork(2) and its like say, without calling done. */
int bounded_start(struct event_base *base, const struct bounded_limits *limits, bounded_fn fn,
                  void *arg, bounded_done_fn done, void *done_arg, struct bounded **ret_bounded,
                  struct drarun_error *err);
/* Ends the child; done will not be called. NULL is fine. */
void bounded_cancel(struct bounded *bounded);

#endif
