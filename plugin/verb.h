/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of drarun-plugin, one file each: verb_NAME.c holds its options and its printing. */
#ifndef DRARUN_PLUGIN_VERB_H
#define DRARUN_PLUGIN_VERB_H

#include "lib/base/options.h"

struct plugin_verb {
    const char *name;
    const char *arguments; /* words after the options, "ADDRESS..."; NULL: none are taken */
    const char *summary;   /* a line of `drarun-plugin --help` */
    const char *more;      /* below it in the verb's own help; NULL: nothing */
    const struct option_table *options;
    /* argv holds what comes after the verb. Returns the exit status. */
    int (*run)(int argc, char *const argv[]);
};

/* Reads the options; `help` is one of them, and is obeyed: then *ret_done. Returns where the
 * arguments begin, which is argc without any. Errors have kind DRARUN_ERR_USAGE. */
int plugin_verb_parse(const struct plugin_verb *verb, int argc, char *const argv[], void *options,
                      const bool *help, bool *ret_done, struct drarun_error *err);

extern const struct plugin_verb verb_discover, verb_repaired, verb_run;

#endif
