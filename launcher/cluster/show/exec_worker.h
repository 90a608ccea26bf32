/* SPDX-License-Identifier: Apache-2.0 */
/* Which worker has a rank, as the job's status.json tells. Pure. */
#ifndef DRARUN_LAUNCHER_CLUSTER_EXEC_WORKER_H
#define DRARUN_LAUNCHER_CLUSTER_EXEC_WORKER_H

#include <jansson.h>
#include <stdint.h>
#include "drarun/error.h"

/* job: its name, for messages. -ENOENT, kind DRARUN_ERR_USAGE: it has no such rank. */
int exec_worker_of_rank(const json_t *doc, const char *job, uint32_t rank, uint32_t *ret_worker,
                        struct drarun_error *err);

#endif
