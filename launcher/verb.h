/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs beside `run`, one file each: verb_NAME.c holds its options and its printing. */
#ifndef DRARUN_LAUNCHER_VERB_H
#define DRARUN_LAUNCHER_VERB_H

#include "launcher/options.h"

struct verb {
    const char *name;
    const char *arguments; /* as the usage line shows them after the options; NULL: none */
    const char *summary;   /* one line of `drarun help` */
    const struct option_table *options;
    /* argv holds what comes after the verb. Returns the exit status. Errors go to stderr. */
    int (*run)(int argc, char *const argv[]);
};

/* Usage line, summary and options. */
void verb_help(const struct verb *verb, struct buf *out);

#endif
