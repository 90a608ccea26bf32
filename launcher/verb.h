/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs beside `run`, one file each: verb_NAME.c holds its options and its printing. */
#ifndef DRARUN_LAUNCHER_VERB_H
#define DRARUN_LAUNCHER_VERB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "lib/base/options.h"

/* --help of a verb whose options struct has a `bool help`. */
#define VERB_HELP_OPTION(type)                                                                     \
    {                                                                                              \
        .name = "help", .letter = 'h', .group = "Others", .kind = OPTION_FLAG,                     \
        .offset = offsetof(type, help), .help = "show this"                                        \
    }

struct verb {
    const char *name;
    const char *arguments; /* as the usage line shows them after the options; NULL: none */
    const char *summary;   /* one line of `drarun help` */
    const struct option_table *options;
    /* argv holds what comes after the verb; program and verb stand before it, at argv[-2],
     * argv[-1]. Returns the exit status. Errors go to stderr. */
    int (*run)(int argc, char *const argv[]);
};

/* Usage line, summary and options. */
void verb_help(const struct verb *verb, struct buf *out);

/* The one file of a verb: options may stand before it and behind it. *ret_file stays NULL with an
 * option --help (*help). Errors have kind DRARUN_ERR_USAGE. */
int verb_parse_file(const struct verb *verb, int argc, char *const argv[], void *options,
                    const bool *help, const char **ret_file, struct drarun_error *err);

/* Appends the value as indented JSON and takes it; NULL and lack of memory make out failed. */
void verb_add_json_take(json_t *json, struct buf *out);

/* Writes what the verb of that name has to say to stdout and empties out. Returns the exit status;
 * a failure is logged. */
int verb_write(const char *name, struct buf *out);

#endif
