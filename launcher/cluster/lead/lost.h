/* SPDX-License-Identifier: Apache-2.0 */
/* Which workers of an allocation are lost, told once. */
#ifndef DRARUN_LAUNCHER_LEAD_LOST_H
#define DRARUN_LAUNCHER_LEAD_LOST_H

#include <stdbool.h>
#include <stdint.h>
#include "jobs/gang/pod_state.h"

struct lost {
    bool *is; /* by worker, as it was looked at last */
    uint32_t count;
    uint32_t *fresh; /* numbers of those that are lost since the last lost_tell */
    uint32_t fresh_count;
    bool changed; /* others are lost than at the last lost_tell */
};

/* -ENOMEM; lost_done is fine all the same. */
int lost_init(struct lost *lost, uint32_t workers);
void lost_done(struct lost *lost);

/* Looks at a worker again. lost_tell follows before any state changes. */
void lost_look(struct lost *lost, uint32_t worker, const struct pod_state *state);
/* Logs a line for each reason why workers (as many as lost has) are lost that were not at the last
 * call. True: others are lost than then. */
bool lost_tell(struct lost *lost, const struct pod_state *workers);

#endif
