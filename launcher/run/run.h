/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `drarun run`, and its function. */
#ifndef DRARUN_LAUNCHER_RUN_H
#define DRARUN_LAUNCHER_RUN_H

#include <jansson.h>
#include "launcher/cli/verb.h"
#include "launcher/run/line.h"

extern const struct verb verb_run;

/* all: the whole command line of this process, for drarun-remote; argc and argv: what comes after
 * the verb. Returns the exit status. */
int run_verb(char *const all[], int argc, char *const argv[]);

/* Runs the line's request, which is of programs (command_line_parse), to its end. Returns the exit
 * status, with the end said as the line asks for it. ret_report: the report (report.h), a new
 * reference; untouched where there was no job; NULL: not wanted. */
int run_programs(char *const all[], struct run_line *line, json_t **ret_report);

#endif
