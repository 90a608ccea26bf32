/* SPDX-License-Identifier: Apache-2.0 */
/* Options of mpirun, mpiexec.hydra and srun on the command line of `drarun run`, as
 * jobs/foreign/options.h says what they are here. */
#ifndef DRARUN_LAUNCHER_FOREIGN_H
#define DRARUN_LAUNCHER_FOREIGN_H

#include "drarun/error.h"
#include "launcher/run/line.h"
#include "lib/base/options.h"

extern const struct option_others foreign_others;

/* Adds to an error about a value of one of our options what another launcher means by that
 * spelling. Returns -err->code. */
int foreign_explain(const char *shown, struct drarun_error *err);

/* Heeds the variables of other launchers (jobs/foreign/variables.h) where the command line says
 * nothing, and names those that drarun does not read, each once. table: our options. */
int foreign_variables_use(const struct option_table *table, struct run_line *line,
                          struct drarun_error *err);

#endif
