/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a DraJob document is a job: the one check of validate, plan, render, submit, the library
 * and the controller. Beyond spec_read it tries the job's objects, so that limits of the API, and
 * what of the user's template stands against ours, are findings with their place. Pure. */
#ifndef DRARUN_JOBS_JOB_CHECK_H
#define DRARUN_JOBS_JOB_CHECK_H

#include "jobs/profiles/profiles.h"
#include "jobs/spec/spec.h"

/* As spec_read; all findings stay in the reader. profiles: the site's and the built-in ones, by
 * which nccl.profile is judged and the machine is taken; NULL: the built-in ones. */
int job_check(struct reader *reader, size_t document, const char *default_name,
              const struct profiles *profiles, struct job_spec *ret_spec, struct drarun_error *err);

#endif
