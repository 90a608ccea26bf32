/* SPDX-License-Identifier: Apache-2.0 */
/* A verb of the command line: launcher/verbs/NAME.c holds its options and its printing. */
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
        .offset = offsetof(type, help), .help = "show this help"                                   \
    }

/* -v and -q, which every verb has that does not hand its words on. */
#define VERB_LEVEL_OPTIONS                                                                         \
    {.name = "verbose",                                                                            \
     .letter = 'v',                                                                                \
     .group = "Others",                                                                            \
     .kind = OPTION_CALL,                                                                          \
     .set = verb_set_verbose,                                                                      \
     .help = "log each step; twice: details"},                                                     \
        VERB_QUIET_OPTION
#define VERB_QUIET_OPTION                                                                          \
    {                                                                                              \
        .name = "quiet", .letter = 'q', .group = "Others", .kind = OPTION_CALL,                    \
        .set = verb_set_quiet, .help = "log only errors"                                           \
    }

#define VERB_PROFILES_OPTION(of_group, at)                                                         \
    {                                                                                              \
        .name = "profiles", .value = "FILE", .choices = "FILE", .group = of_group,                 \
        .kind = OPTION_TEXT, .offset = at, .help = "file of the site's own profiles, tried first"  \
    }

int verb_set_verbose(void *target, const char *shown, const char *value, struct drarun_error *err);
int verb_set_quiet(void *target, const char *shown, const char *value, struct drarun_error *err);

struct verb {
    const char *name;
    const char *arguments; /* as the usage line shows them after the options; NULL: none */
    const char *summary;   /* one line of `drarun help` */
    const struct option_table *options;
    /* argv holds what comes after the verb; program and verb stand before it, at argv[-2],
     * argv[-1]. Returns the exit status. Errors go to stderr. */
    int (*run)(int argc, char *const argv[]);
    const char *brief; /* for a screen with all verbs: VERB_BRIEF_MAX letters at most */
    const struct verb *const
        *parts; /* verbs of their own behind its name, NULL at the end; or NULL */
};

#define VERB_BRIEF_MAX 27

/* The last word of a part's name: "judge" of "bench judge". */
const char *verb_part_word(const struct verb *part);
/* The part that is called so; NULL: the verb has none. */
const struct verb *verb_part(const struct verb *verb, const char *word);

/* Usage line, summary and options. */
void verb_help(const struct verb *verb, struct buf *out);

/* The one file of a verb: options may stand before it and behind it. *ret_file stays NULL with an
 * option --help (*help). Errors have kind DRARUN_ERR_USAGE. */
int verb_parse_file(const struct verb *verb, int argc, char *const argv[], void *options,
                    const bool *help, const char **ret_file, struct drarun_error *err);

/* The files of a verb that takes several: options may stand before, between and behind them, and
 * every word behind "--" is a file. */
int verb_parse_files(const struct verb *verb, int argc, char *const argv[], void *options,
                     struct strlist *files, struct drarun_error *err);

/* Logs the error, behind the verb's name (NULL: alone). Returns the exit status of its kind. */
int verb_fail(const char *verb, const struct drarun_error *err);

/* The exit status of a verb that talks to a cluster: 66 where something that was named does not
 * exist, as a job, a namespace, a kubeconfig; 69 where the API server cannot be reached; else that
 * of the error's kind. */
int verb_exit_status(const struct drarun_error *err);
/* The error's kind, or CLUSTER where the API server cannot be reached. */
enum drarun_errkind verb_error_kind(const struct drarun_error *err);

/* Of -o: what a verb that shows something prints. */
enum verb_format {
    VERB_TEXT = 0,
    VERB_WIDE, /* text with more columns */
    VERB_JSON,
    VERB_YAML,
    VERB_NAME, /* the names alone, one a line */
};
/* A word of "text json yaml name wide"; NULL is text. */
enum verb_format verb_format_of(const char *word);

/* Appends the value as JSON or YAML and takes it, as verb_add_json_take. */
void verb_add_take(enum verb_format format, json_t *json, struct buf *out);

/* Appends the value as indented JSON and takes it; NULL and lack of memory make out failed. */
void verb_add_json_take(json_t *json, struct buf *out);

/* Writes what the verb of that name has to say to stdout and empties out. Returns the exit status;
 * a failure is logged. */
int verb_write(const char *name, struct buf *out);
/* The same of a text that people read: on a terminal its sentences are broken between words. Not
 * for what programs or kubectl take. */
int verb_write_prose(const char *name, struct buf *out);

#endif
