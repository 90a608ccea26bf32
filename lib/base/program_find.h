/* SPDX-License-Identifier: Apache-2.0 */
/* Our own other programs, found relative to the running one, so that a build tree and an installed
 * tree both work and can be moved. */
#ifndef DRARUN_BASE_PROGRAM_FIND_H
#define DRARUN_BASE_PROGRAM_FIND_H

#include <limits.h>
#include "drarun/error.h"

/* Writes the path of the program called name. variable: one of the environment that overrides the
 * search, or NULL. The error says where it was sought. */
int program_find(const char *name, const char *variable, char path[PATH_MAX],
                 struct drarun_error *err);

#endif
