/* SPDX-License-Identifier: Apache-2.0 */
/* The screen with all verbs: what bare `drarun` and `drarun --help` show. Pure. */
#ifndef DRARUN_LAUNCHER_OVERVIEW_H
#define DRARUN_LAUNCHER_OVERVIEW_H

#include "lib/base/buf.h"

/* At most 24 lines of 80 columns. */
void overview(struct buf *out);

#endif
