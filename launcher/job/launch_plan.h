/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan says of the ranks' environments and CPUs, as parts of the launch messages. Variables
 * that only the launcher knows (RANK, MASTER_ADDR and similar ones) are left to it; what the user
 * set stays the user's. */
#ifndef DRARUN_LAUNCHER_LAUNCH_PLAN_H
#define DRARUN_LAUNCHER_LAUNCH_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include "jobs/derive/plan.h"
#include "jobs/ranks/rankmap.h"
#include "lib/wire/wire.pb-c.h"

struct launch_plan;

/* The plans' workers are the map's, in its order; nothing of either is kept. What all plans say
 * alike is said to all ranks once. A rank's own part is there for workers that have as many ranks
 * as the plan says. NULL: out of memory. */
struct launch_plan *launch_plan_new(const struct plan *plans, size_t count,
                                    const struct rankmap *map);
void launch_plan_free(struct launch_plan *plan);

/* Both belong to the plan. */
Drarun__Wire__Environment *launch_plan_all(struct launch_plan *plan);
Drarun__Wire__WorkerSetting *launch_plan_worker(struct launch_plan *plan, uint32_t worker);

#endif
