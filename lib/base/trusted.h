/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a path leads where it led. Links are fine, /var/run is one, as long as nobody but root
 * and this process' user can put another in their place. */
#ifndef DRARUN_BASE_TRUSTED_H
#define DRARUN_BASE_TRUSTED_H

#include "drarun/error.h"

/* Walks an absolute path, through links: each directory on the way belongs to root or us and nobody
 * else may write it, but for a sticky one that is not the last, where the next name is root's or
 * ours. What is missing at the end may be made (in a sticky one somebody else may be faster: check
 * again then). -EPERM: the error names the directory and the cure. -ENOTDIR, -ELOOP. */
int dir_check_trusted(const char *path, struct drarun_error *err);
/* Makes it where it is missing, with those above it; checked before and after. */
int dir_make_trusted(const char *path, unsigned mode, struct drarun_error *err);

#endif
