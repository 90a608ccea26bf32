/* SPDX-License-Identifier: Apache-2.0 */
/* The words behind `drarun run` as values: options and programs, or a job's file, and what of
 * them does not go together. */
#ifndef DRARUN_LAUNCHER_RUN_COMMAND_LINE_H
#define DRARUN_LAUNCHER_RUN_COMMAND_LINE_H

#include <stdbool.h>
#include "drarun/error.h"
#include "launcher/run/line.h"

/* Fills line, which borrows from argv and is the caller's also on failure. argv holds what comes
 * after the verb. Without --help or --version there is at least one program afterwards. */
int command_line_parse(int argc, char *const argv[], struct run_line *line,
                       struct drarun_error *err);

/* The program is the file of a job spec, by its name. All words behind it are its own. */
bool command_line_is_spec(const struct run_line *line);

/* The one program is the file of a job spec: options and, behind "--", arguments may follow it.
 * Fills line->cluster, which borrows from line. */
int command_line_parse_spec(struct run_line *line, struct drarun_error *err);

/* No option of a cluster's job stands with programs. */
int command_line_check_program(const struct run_line *line, struct drarun_error *err);

#endif
