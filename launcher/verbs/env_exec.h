/* SPDX-License-Identifier: Apache-2.0 */
/* A program in our place, with the environment for this pod: what `eval "$(drarun env)"; exec
 * PROGRAM` does in a shell, for pods that start something else than a shell, or have none. */
#ifndef DRARUN_LAUNCHER_ENV_EXEC_H
#define DRARUN_LAUNCHER_ENV_EXEC_H

#include "drarun/env.h"

/* argv: NULL-terminated; argv[0] is searched for in PATH. Returns on failure alone, with kind
 * DRARUN_ERR_NOT_FOUND or DRARUN_ERR_NOT_EXECUTABLE; this process' environment is then changed. */
int env_exec(const struct drarun_env *env, char *const argv[], struct drarun_error *err);

#endif
