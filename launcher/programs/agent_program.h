/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRARUN_LAUNCHER_AGENT_PROGRAM_H
#define DRARUN_LAUNCHER_AGENT_PROGRAM_H

#include <limits.h>
#include "drarun/error.h"

/* The agent, which DRARUN_WORKER_PROGRAM overrides. DRARUN_WORKER, its former name, counts only
 * with a slash: in a rank or a worker's pod it is the worker's number. */
int program_find_agent(char path[PATH_MAX], struct drarun_error *err);

#endif
