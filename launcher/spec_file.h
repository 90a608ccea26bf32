/* SPDX-License-Identifier: Apache-2.0 */
/* A job spec from a file, for verbs. */
#ifndef DRARUN_LAUNCHER_SPEC_FILE_H
#define DRARUN_LAUNCHER_SPEC_FILE_H

#include "jobs/spec.h"

/* path "-": standard input. The profile that the spec names must be one of profiles (NULL: the
 * built-in ones). Fills findings (the caller's, strlist_done it) with what is wrong, a line each;
 * total counts those that were left out too. Returns 0, or -errno with the first in err. */
int spec_file_read(const char *path, const struct profiles *profiles, struct job_spec *ret_spec,
                   struct strlist *findings, size_t *ret_total, struct drarun_error *err);

/* The same with every finding logged; returns the exit status, 0 with the spec. */
int spec_file_load(const char *path, const struct profiles *profiles, struct job_spec *ret_spec);

#endif
