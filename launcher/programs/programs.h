/* SPDX-License-Identifier: Apache-2.0 */
/* Our own other programs, found relative to the running one, so that a build tree and an installed
 * tree both work and can be moved. */
#ifndef DRARUN_LAUNCHER_PROGRAMS_H
#define DRARUN_LAUNCHER_PROGRAMS_H

#include <limits.h>
#include "drarun/error.h"

/* Writes the path of the program called name. variable: one of the environment that overrides the
 * search, or NULL. The error says where it was sought. */
int program_find(const char *name, const char *variable, char path[PATH_MAX],
                 struct drarun_error *err);

/* The agent, which DRARUN_WORKER_PROGRAM overrides. DRARUN_WORKER, its former name, counts only
 * with a slash: in a rank or a worker's pod it is the worker's number. */
int program_find_agent(char path[PATH_MAX], struct drarun_error *err);

#endif
