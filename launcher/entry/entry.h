/* SPDX-License-Identifier: Apache-2.0 */
/* A job without a launcher pod (docs/design/029-entry.md): every pod of somebody's controller runs
 * this as its program, worker 0 leads, and all end as the job does. In drarun-remote. */
#ifndef DRARUN_LAUNCHER_ENTRY_H
#define DRARUN_LAUNCHER_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#define ENTRY_PORT 7173 /* where pods listen unless they are told otherwise */

struct entry_options { /* borrowed */
    const char *peers, *key_file, *network, *launch, *bind;
    const char *on_rank_failure;  /* as --on-rank-failure of drarun; NULL: not said */
    int64_t index;                /* -1: not said */
    uint32_t workers, per_worker; /* 0: not said */
    uint32_t slots;               /* as --slots of drarun; 0: not said */
    bool oversubscribe, report_bindings;
    uint32_t port;
    int64_t start_timeout_ms;
    bool label, verbose;
    char *const *argv; /* the program, NULL-terminated */
};

/* Returns the exit status; errors are logged. Replaces the process where it is the agent alone. */
int entry_run(const struct entry_options *options);

#endif
