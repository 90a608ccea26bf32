/* SPDX-License-Identifier: Apache-2.0 */
/* One table per verb makes the parser and the help; completion and pages are made of it, too. Pure.
 */
#ifndef DRARUN_BASE_OPTIONS_H
#define DRARUN_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/buf.h"
#include "lib/base/strlist.h"

enum option_kind {
    OPTION_FLAG = 1, /* bool at offset */
    OPTION_TEXT,     /* const char *, borrowed */
    OPTION_COUNT,    /* uint32_t from min to max */
    OPTION_DURATION, /* int64_t, milliseconds */
    OPTION_LIST,     /* struct strlist at offset, one entry more each time */
    OPTION_CALL,     /* set() */
};

/* shown: the option as it was typed, for messages. value: NULL for one that takes none. */
typedef int (*option_set_fn)(void *target, const char *shown, const char *value,
                             struct drarun_error *err);

struct option_spec {
    const char *name;    /* without dashes */
    char letter;         /* 0: none */
    const char *aliases; /* further spellings with their dashes, "-np --np"; NULL: none */
    const char *value;   /* what its value is called; NULL: it takes none */
    const char *choices; /* "text json": for completion, and checked; "FILE", "DIR": a path */
    const char *group;   /* heading in the help; NULL: hidden */
    const char *help;
    enum option_kind kind;
    size_t offset; /* into the target */
    int64_t min, max;
    option_set_fn set;
    bool each; /* may be given again for each program of a job */
    /* For the verb alone: to what the option applies (0: to everything), and what a user has in
     * its place elsewhere (NULL: nothing). */
    unsigned applies;
    const char *instead;
};

struct option_table;

/* Options that are not ours but that people type, as those of other programs that do the same. */
struct option_others {
    /* The option argv[0], which the table lacks, and its values behind it. Returns how many words
     * it was, 0 when it is unknown here too, or -errno. */
    int (*take)(const struct option_table *table, int argc, char *const argv[], bool each_only,
                void *target, struct drarun_error *err);
    /* Adds their spellings, each with a space behind it. */
    void (*spellings)(struct buf *out);
    /* Whether that spelling is taken, so that a message may suggest it. */
    bool (*is_taken)(const char *word);
};

struct option_table {
    const struct option_spec *list;
    size_t count;
    const struct option_others *others; /* NULL: none */
    /* Told of each option that is about to be set; NULL: nobody is. */
    void (*seen)(void *target, const struct option_spec *spec);
};

/* Reads options from argv[0 .. argc) up to the first word that is none, or past "--"; returns how
 * many words were consumed. each_only: refuse those that belong to the whole job. Errors have kind
 * DRARUN_ERR_USAGE, name the word, and suggest the nearest known option. */
int options_parse(const struct option_table *table, int argc, char *const argv[], bool each_only,
                  void *target, struct drarun_error *err);

/* Sets the option "--name" (or "--name=value" when value is NULL) as if it had been typed; messages
 * call it `shown`. */
int options_set(const struct option_table *table, const char *name, const char *shown,
                const char *value, bool each_only, void *target, struct drarun_error *err);

/* The same as options_parse for a command that hands words on: reads the options that the table
 * has, up to "--", and adds every other word to others. */
int options_pick(const struct option_table *table, int argc, char *const argv[], void *target,
                 struct strlist *others, struct drarun_error *err);

/* The options by group, one entry each. */
void options_help(const struct option_table *table, struct buf *out);

#endif
