/* SPDX-License-Identifier: Apache-2.0 */
/* Signals to this process as events of the loop. Loop thread only. */
#ifndef DRARUN_LAUNCHER_SIGNALS_H
#define DRARUN_LAUNCHER_SIGNALS_H

#include <signal.h>
#include <event2/event.h>
#include "drarun/error.h"

typedef void (*signals_fn)(void *arg, int signo);

struct signals;

/* From now on fn gets SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP,
 * SIGCONT and SIGCHLD, except those that we were started to ignore (nohup, "&" in scripts).
 * SIGPIPE, SIGTTIN and SIGXFSZ are ignored. */
struct signals *signals_new(struct event_base *base, signals_fn fn, void *arg,
                            struct drarun_error *err);
/* From now on it is this fn that gets them; none is lost between. */
void signals_redirect(struct signals *signals, signals_fn fn, void *arg);
/* Calls fn now for those that have come. */
void signals_take(struct signals *signals);
/* Until signals_resume fn is not called, and signals end nobody. Those that nobody takes meanwhile,
 * by another signals_new, are kept for fn. */
void signals_pause(struct signals *signals);
int signals_resume(struct signals *signals, struct drarun_error *err);
/* Puts everything back. What came last is dropped: signals_take takes it before. */
void signals_free(struct signals *signals);

/* For a child between fork and exec: mask and dispositions as we were given them.
 * Async-signal-safe; in a vfork child too, which has its own. */
void signals_restore(const struct signals *signals);

#endif
