/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `drarun run`. */
#ifndef DRARUN_LAUNCHER_RUN_H
#define DRARUN_LAUNCHER_RUN_H

#include "launcher/cli/verb.h"

extern const struct verb verb_run;

/* all: the whole command line of this process, for drarun-remote; argc and argv: what comes after
 * the verb. Returns the exit status. */
int run_verb(char *const all[], int argc, char *const argv[]);

#endif
