/* SPDX-License-Identifier: Apache-2.0 */
/* Copying the agent itself to where another container finds it (docs/design/010-claims.md): the
 * image that brings it has no cp. */
#ifndef DRARUN_WORKER_INSTALL_H
#define DRARUN_WORKER_INSTALL_H

#include "drarun/error.h"

/* Makes dir (its parent must exist) and in it drarun-worker, executable by all, at once or not at
 * all. Again: the same result. Kind DRARUN_ERR_USAGE. */
int install_agent(const char *dir, struct drarun_error *err);

#endif
