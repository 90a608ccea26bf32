/* SPDX-License-Identifier: Apache-2.0 */
/* The NICs of a job's workers write to each other before anything starts (jobs/preflight/reach.h):
 * carries lines between that and the agents. Loop thread only. */
#ifndef DRARUN_LAUNCHER_JOB_REACH_H
#define DRARUN_LAUNCHER_JOB_REACH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/wire/wire.pb-c.h"

struct job_reach;

void job_reach_free(struct job_reach *reach);
/* Starts job.preflight.reach_clock. */
int job_reach_begin(struct job_reach *reach, struct drarun_error *err);
/* That is due. */
void job_reach_expire(struct job_reach *reach);
/* -EPROTO: nothing that it can say now. */
int job_reach_take(struct job_reach *reach, uint32_t worker, const Drarun__Wire__Reach *message,
                   struct drarun_error *err);
bool job_reach_over(const struct job_reach *reach);
/* Says what is wrong; a refusal has kind DRARUN_ERR_PREFLIGHT. */
int job_reach_judge(const struct job_reach *reach, struct drarun_error *err);

#endif
