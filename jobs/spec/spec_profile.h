/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the profile that a job spec names is one that is known. Apart from spec_read, which also
 * reads jobs that another version of us has taken: what is known differs between versions. Pure. */
#ifndef DRARUN_JOBS_SPEC_PROFILE_H
#define DRARUN_JOBS_SPEC_PROFILE_H

#include "jobs/profiles/profiles.h"
#include "lib/doc/reader.h"

/* A finding at spec.nccl.profile, with the nearest name, where it is neither auto nor one of the
 * profiles (NULL: the built-in ones). What is no profile's name at all is spec_read's to tell. To
 * be called before reader_result. -ENOMEM, or 0. */
int spec_check_profile(struct reader *reader, size_t document, const struct profiles *profiles,
                       struct drarun_error *err);

#endif
