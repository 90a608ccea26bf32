/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a prepared claim's containers need: orders for the hook, metadata, the CDI
 * specification. All are made from the checkpoint, so that they can be made again. */
#ifndef DRARUN_PLUGIN_PREPARE_CLAIM_FILES_H
#define DRARUN_PLUGIN_PREPARE_CLAIM_FILES_H

#include "plugin/prepare/preparer_private.h"

/* Orders before the CDI specification: a container that has the one finds the others. */
int claim_files_write(const struct task *task, struct drarun_error *err);

/* Of the agent's program, NULL for none: without it a container would have nothing to run, better
 * that it does not start. -ENOENT. */
int claim_files_check_agent(const char *path, struct drarun_error *err);

#endif
