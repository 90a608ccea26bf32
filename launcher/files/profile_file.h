/* SPDX-License-Identifier: Apache-2.0 */
/* A site's own profiles (jobs/profiles/profiles.h), from its file. */
#ifndef DRARUN_LAUNCHER_PROFILE_FILE_H
#define DRARUN_LAUNCHER_PROFILE_FILE_H

#include "drarun/error.h"
#include "jobs/profiles/profiles.h"

/* The built-in profiles, and before them those of the file, YAML or JSON; path NULL: there is none.
 * An error names the file, the profile and the key. */
int profile_file_load(const char *path, struct profiles *ret_profiles, struct drarun_error *err);

#endif
