/* SPDX-License-Identifier: Apache-2.0 */
/* All verbs, by group, and the word in a verb's place that is none. Pure. */
#ifndef DRARUN_LAUNCHER_VERBS_H
#define DRARUN_LAUNCHER_VERBS_H

#include "drarun/error.h"
#include "launcher/cli/verb.h"

struct verb_group {
    const char *title;
    const struct verb *const *verbs; /* up to NULL */
};

/* Words in a verb's place that are no struct verb. */
#define VERB_OTHERS "help version completion"

/* Up to one without a title; VERB_OTHERS are not among them. */
extern const struct verb_group verb_groups[];

/* NULL: there is no such verb. */
const struct verb *verb_find(const char *name);

/* How many of the words are options that every verb has: they may stand before the verb, too. */
int verb_globals(int argc, char *const argv[]);

/* Whether the word in a verb's place, which is no verb, may be a program. It may not when it is
 * near to a verb, or is a verb of kubectl, docker, systemctl or a batch system: the error (kind
 * DRARUN_ERR_USAGE) names what was meant. A word with a slash is a path, whatever it is. */
int verb_check_program(const char *word, struct drarun_error *err);

/* The same error for a word that must be a verb. Returns -err->code. */
int verb_unknown(const char *word, struct drarun_error *err);

/* What bare `drarun` and `drarun --help` show: at most 24 lines of 80 columns. */
void verbs_overview(struct buf *out);

#endif
