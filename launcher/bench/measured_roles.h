/* SPDX-License-Identifier: Apache-2.0 */
/* Of a job with roles, the job of those whose nodes and devices are measured
 * (docs/design/039-roles.md). Pure, but for a line about the roles that it leaves out. */
#ifndef DRARUN_LAUNCHER_BENCH_MEASURED_ROLES_H
#define DRARUN_LAUNCHER_BENCH_MEASURED_ROLES_H

#include <jansson.h>
#include "drarun/error.h"
#include "jobs/spec/spec.h"
#include "lib/base/buf.h"

/* The spec's document with the role called `name` alone; NULL: with those that ask for devices, or
 * all where none does. Each role has its own keys and those of the top that it takes over; a role
 * that remains alone stands at the top, as in a document without roles. What only the whole job
 * means (success) is left out. A new reference; NULL with err filled, kind DRARUN_ERR_USAGE for a
 * name that the job has not, DRARUN_ERR_SPEC for roles that are not measured together. */
json_t *measured_roles_take(const struct job_spec *spec, const char *name,
                            struct drarun_error *err);

/* The items of `roles` that the document has: NULL where there are less than two. */
json_t *measured_roles_of(const json_t *document);
/* "a, b" of such items, for people. */
void measured_roles_names(const json_t *roles, struct buf *out);

#endif
