/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a plan's first worker as text. */
#ifndef DRARUN_LAUNCHER_ENV_PRINT_H
#define DRARUN_LAUNCHER_ENV_PRINT_H

#include <stdbool.h>
#include "jobs/derive/plan.h"
#include "lib/base/buf.h"

/* Holds the lines NAME=VALUE that sh set, so that the next drarun env in the same shell knows them
 * from what the user set. */
#define ENV_DERIVED "DRARUN_DERIVED"

/* Each variable of a pod, in the order of printing; prepend: it goes before what is there. */
typedef void (*env_fn)(void *arg, const struct plan_var *var, bool prepend);
void env_each(const struct plan *plan, env_fn fn, void *arg);

enum env_format { ENV_SH = 1, ENV_DOCKER, ENV_NCCL_CONF };

/* What a pod can know alone: no RANK, WORLD_SIZE or MASTER_*. sh: exports for eval, quoted, which
 * evaluated twice do what they do once; docker: lines for --env-file, each the whole value;
 * nccl.conf: NCCL's variables alone. explain: before each a comment with rule, fact, reason and
 * source. */
void env_print(const struct plan *plan, enum env_format format, bool explain, struct buf *out);

#endif
