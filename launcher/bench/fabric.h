/* SPDX-License-Identifier: Apache-2.0 */
/* The NICs of agents that run already are opened, and reach each other, as before a job's ranks
 * start; no rank is started (docs/design/038-open-nics.md). Loop thread only. */
#ifndef DRARUN_LAUNCHER_BENCH_FABRIC_H
#define DRARUN_LAUNCHER_BENCH_FABRIC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"

struct fabric_order {
    const char *agents; /* "HOST:PORT,..." */
    const char *key_file;
    int64_t start_timeout_ms; /* until all have opened their NICs; an agent may take 30 s */
    bool reach;               /* else the NICs are opened alone */
};

/* 0 with the exit status, having said why where it is not 0, and the value of
 * jobs/preflight/fabric.h (a new reference; NULL: nothing was found out). Blocks until it is over.
 * Needs remote_api(). */
int fabric_check_agents(const struct fabric_order *order, int *ret_status, json_t **ret_fabric,
                        struct drarun_error *err);

#endif
