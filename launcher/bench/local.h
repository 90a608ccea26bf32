/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun bench` on this machine or on agents that run already: a job of drarun-bench. */
#ifndef DRARUN_LAUNCHER_BENCH_LOCAL_H
#define DRARUN_LAUNCHER_BENCH_LOCAL_H

#include "launcher/bench/choice.h"

/* all: the whole command line of this process, for drarun-remote. Returns the exit status, having
 * said everything. */
int bench_local(char *const all[], const struct bench_choice *choice);

#endif
