/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults that must not stand beside a variable of the user, the image or the pod: the library
 * that reads both fails, or ignores theirs. Pure. docs/design/005-rank-environment.md */
#ifndef DRARUN_JOBS_ENV_CONFLICT_H
#define DRARUN_JOBS_ENV_CONFLICT_H

#include <stddef.h>

/* The entry of theirs, count of "NAME=VALUE", that rules name=value out; NULL: none does.
 * *ret_why: what would happen, a constant. */
const char *env_conflict(char *const *theirs, size_t count, const char *name, const char *value,
                         const char **ret_why);

#endif
