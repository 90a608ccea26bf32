/* SPDX-License-Identifier: Apache-2.0 */
/* The DraJob of a measurement on a cluster: of a file (--job), of the options, and of where the
 * cluster's devices come from. Pure, but for reading the file. */
#ifndef DRARUN_LAUNCHER_BENCH_BENCH_JOB_H
#define DRARUN_LAUNCHER_BENCH_BENCH_JOB_H

#include <jansson.h>
#include "launcher/bench/choice.h"
#include "launcher/bench/served.h"

/* The document of --job, of the roles that are measured, or an empty job; a new reference. NULL:
 * every finding was logged, and *ret_status is the exit status. */
json_t *bench_job_base(const struct bench_choice *choice, int *ret_status);

/* Which devices neither an option nor the file names the source of. */
bool bench_job_seeks_gpus(const struct bench_choice *choice, const json_t *base);
bool bench_job_seeks_nics(const struct bench_choice *choice, const json_t *base);
/* The profile is neither an option's nor the file's. */
bool bench_job_seeks_profile(const struct bench_choice *choice, const json_t *base);

/* The NICs of each worker that bound what is measured; 0: none, or not known. Of several roles the
 * fewest: *ret_role is the name of a role that has fewer than another, else NULL; borrowed from
 * base. */
uint32_t bench_job_nics(const struct bench_choice *choice, const json_t *base,
                        const char **ret_role);

/* Options that are missing, or not for a cluster. Kind DRARUN_ERR_USAGE. */
int bench_job_check(const struct bench_choice *choice, struct drarun_error *err);

/* The DraJob: a new reference; NULL with err filled. */
json_t *bench_job_spec(const struct bench_choice *choice, const json_t *base,
                       const struct served *served, struct drarun_error *err);

#endif
