/* SPDX-License-Identifier: Apache-2.0 */
/* Copying the agent, or drarun or drarun-bench beside it, to where another container finds it
 * (docs/design/010-claims.md): the image that brings them has no cp. */
#ifndef DRARUN_WORKER_INSTALL_H
#define DRARUN_WORKER_INSTALL_H

#include "drarun/error.h"

#define INSTALL_SELF "drarun-worker" /* this program, whatever its file is called */
#define INSTALL_BENCH "drarun-bench"

/* Makes dir (its parent must exist) and in it the program of that name, which lies in this one's
 * folder, executable by all, at once or not at all. Again: the same result. Kind DRARUN_ERR_USAGE.
 */
int install_program(const char *name, const char *dir, struct drarun_error *err);

/* This program and drarun-bench, with the modules that lie in ../lib/drarun beside it, to where it
 * finds them. As above. */
int install_bench(const char *dir, struct drarun_error *err);

#endif
