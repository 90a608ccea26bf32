/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `drarun run`. */
#ifndef DRARUN_LAUNCHER_RUN_OPTIONS_H
#define DRARUN_LAUNCHER_RUN_OPTIONS_H

#include "drarun/error.h"
#include "lib/base/options.h"
#include "launcher/job/request.h"

extern const struct option_table run_option_table;

/* Fills request, which borrows from argv and is the caller's also on failure. argv holds what comes
 * after the verb. Without --help or --version there is at least one program afterwards. */
int run_options_parse(int argc, char *const argv[], struct job_request *request,
                      struct drarun_error *err);

/* The one program is the file of a job spec: options and, behind "--", arguments may follow it.
 * Fills request->cluster. */
int run_options_parse_spec(struct job_request *request, struct drarun_error *err);

/* No option of a cluster's job stands with programs. */
int run_options_check_program(const struct job_request *request, struct drarun_error *err);

/* Usage line and options. */
void run_options_help(struct buf *out);

#endif
