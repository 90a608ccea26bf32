/* SPDX-License-Identifier: Apache-2.0 */
/* A POSIX shell's script as simple commands (POSIX.1 XCU 2.3 tokens, 2.9 commands), and what a
 * word of it is worth without a shell. Nothing is run. Pure. */
#ifndef DRARUN_JOBS_RANKS_SHELL_SCRIPT_H
#define DRARUN_JOBS_RANKS_SHELL_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include "lib/base/buf.h"
#include "lib/base/strlist.h"

enum shell_join {                      /* how a command follows the one before */
                  SHELL_JOIN_NONE = 1, /* the first */
                  SHELL_JOIN_THEN,     /* ; & or a newline */
                  SHELL_JOIN_AND,
                  SHELL_JOIN_OR,
                  SHELL_JOIN_PIPE,
};

struct shell_command {
    enum shell_join join;
    unsigned int depth; /* of if, loops, functions, groups and subshells around it */
    bool in_background;
    struct strlist words;   /* as they are written, with their quotes */
    struct strlist inputs;  /* redirections as they are written: "< file", "<<EOF" */
    struct strlist outputs; /* "2>&1", "> file" */
};

#define SHELL_DEPTH_MAX 64u /* quotations and brackets inside one another */

struct shell_script {
    struct shell_command *commands;
    size_t count, cap;
    bool failed;   /* no memory */
    bool too_deep; /* more than SHELL_DEPTH_MAX */
};

/* False when a quote or a bracket is open, too deep, or without memory (failed). */
bool shell_parse(const char *text, struct shell_script *ret_script);
void shell_script_done(struct shell_script *script);

/* From the plainest to what only the script's own shell can know. */
enum shell_worth {
    SHELL_LITERAL = 1, /* the text, whatever user runs it */
    SHELL_KEPT,        /* a shell elsewhere can expand it: unknown variables, patterns, ~ */
    SHELL_COMPUTED,    /* a command's output, arithmetic, the script's own arguments */
};

/* A variable for shell_expand: LITERAL with *ret_value (borrowed), KEPT or COMPUTED. */
typedef enum shell_worth (*shell_lookup_fn)(void *context, const char *name,
                                            const char **ret_value);

/* Adds the fields that a shell makes of the word when it is LITERAL; else nothing is added, and
 * culprit gets what it is that cannot be told ("$N"). */
enum shell_worth shell_expand(const char *word, shell_lookup_fn lookup, void *context,
                              struct strlist *fields, struct buf *culprit);

/* A letter, a digit or "_": what a variable's name has. */
bool shell_is_in_name(char c);
/* "NAME=...". */
bool shell_is_assignment(const char *word);
/* The word without its quotes, nothing expanded. */
void shell_unquote(const char *word, struct buf *out);
/* The text as one word that a shell takes as it is. */
void shell_quote(const char *text, struct buf *out);

#endif
