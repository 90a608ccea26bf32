/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `drarun run`. */
#ifndef DRARUN_LAUNCHER_RUN_OPTIONS_H
#define DRARUN_LAUNCHER_RUN_OPTIONS_H

#include "lib/base/buf.h"
#include "lib/base/options.h"

extern const struct option_table run_option_table; /* of struct run_line */

/* Usage line and options. */
void run_options_help(struct buf *out);

#endif
