/* SPDX-License-Identifier: Apache-2.0 */
/* The profile of a worker's machine: the one that was asked for, else the one that its node, its
 * NICs or its pod show (rule D2 of docs/design/017-derivation-rules.md). Pure. */
#ifndef DRARUN_JOBS_PROFILE_CHOICE_H
#define DRARUN_JOBS_PROFILE_CHOICE_H

#include "drarun/error.h"
#include "jobs/derive/inventory/inventory.h"
#include "jobs/profiles/profiles.h"

struct profile_choice {
    const struct profile *profile;
    const char *fact; /* what was seen that told it; in the notes */
};

/* -ENOENT: no profile has the name that was asked for. */
int profile_choose(const struct plan_input *input, const struct inventory *inventory,
                   struct plan_notes *notes, struct profile_choice *ret_choice,
                   struct drarun_error *err);

#endif
