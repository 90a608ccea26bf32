/* SPDX-License-Identifier: Apache-2.0 */
/* What this process writes to its standard output goes to another descriptor, too. A thread of its
 * own carries it, and touches nothing else. */
#ifndef DRARUN_LAUNCHER_CLUSTER_TEE_H
#define DRARUN_LAUNCHER_CLUSTER_TEE_H

#include "drarun/error.h"

struct tee;

/* copy_fd stays the caller's. hide: lines that begin so go to the copy alone; NULL: none. */
int tee_begin(int copy_fd, const char *hide, struct tee **ret_tee, struct drarun_error *err);
/* Puts standard output back when all that was written has gone through. NULL: nothing. */
void tee_end(struct tee *tee);

#endif
