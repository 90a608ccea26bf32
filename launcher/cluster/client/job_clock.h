/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of a job's documents. */
#ifndef DRARUN_LAUNCHER_CLUSTER_JOB_CLOCK_H
#define DRARUN_LAUNCHER_CLUSTER_JOB_CLOCK_H

#include <stdint.h>

/* It never goes back; milliseconds since 1970. Any thread. */
int64_t lead_now(void);

#endif
