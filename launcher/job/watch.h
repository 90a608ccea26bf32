/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the ranks while they run and ends a job whose ranks wait for one that does not come
 * (jobs/gang/hang judges): --hang-after. Loop thread only. */
#ifndef DRARUN_LAUNCHER_JOB_WATCH_H
#define DRARUN_LAUNCHER_JOB_WATCH_H

#include <stdint.h>
#include "lib/wire/wire.pb-c.h"

struct job;
struct job_watch;

/* Starts job.liveness.watch_clock; NULL without memory. */
struct job_watch *job_watch_new(struct job *job, int64_t after_ms);
void job_watch_free(struct job_watch *watch);
/* The clock is due. */
void job_watch_tick(struct job_watch *watch);
/* An answer to what it asked. */
void job_watch_take(struct job_watch *watch, uint32_t worker, const Drarun__Wire__Vitals *vitals);
/* How often it looks; and a look is so late, as job_tick says. */
int64_t job_watch_every_ms(const struct job_watch *watch);
void job_watch_skip(struct job_watch *watch, int64_t late_ms, int64_t now_ms);

#endif
