/* SPDX-License-Identifier: Apache-2.0 */
/* A job spec whose ranks run on this machine (drarun run --local FILE): each worker is an agent
 * here, each role a program on workers of its own. What only a cluster gives (claims, images,
 * volumes, values of Secrets) there is not. */
#ifndef DRARUN_LAUNCHER_LOCAL_SPEC_H
#define DRARUN_LAUNCHER_LOCAL_SPEC_H

#include "launcher/run/line.h"
#include "lib/base/cleanup.h"

struct local_spec;

/* Puts the spec of the line's file in the place of its request's program; the request borrows from
 * *ret_spec. Of several workers only how many they are in drarun, which gives place to
 * drarun-remote. Returns the exit status, having said everything. */
int local_spec_use(struct run_line *line, struct local_spec **ret_spec);
/* Logs what the ranks do not get here. For the program that starts them: others that it becomes
 * read the spec again. */
int local_spec_tell(const struct local_spec *spec, struct drarun_error *err);
void local_spec_free(struct local_spec *spec);
DEFINE_CLEANUP(struct local_spec, local_spec_free)

#endif
