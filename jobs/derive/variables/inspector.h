/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's inspector, a profiler plugin of its tree (plugins/profiler/inspector, from 2.28): where
 * an image may have its library, and where it writes. Pure. */
#ifndef DRARUN_JOBS_INSPECTOR_H
#define DRARUN_JOBS_INSPECTOR_H

#include "lib/base/strlist.h"

#define INSPECTOR_ENABLE "NCCL_INSPECTOR_ENABLE"
#define INSPECTOR_FOLDER "NCCL_INSPECTOR_DUMP_DIR"

/* Appends the paths that a worker is to look for, the likeliest first: the one that the user names
 * by NCCL_PROFILER_PLUGIN alone. user_env: NAME=VALUE, NULL-terminated; NULL: none. */
void inspector_paths(char *const *user_env, struct strlist *paths);
/* Appends what switches it on where nothing is derived, as NAME=VALUE; what env has already stays.
 * library: its path. */
void inspector_env(const char *library, struct strlist *env);

#endif
