/* SPDX-License-Identifier: Apache-2.0 */
/* The words and the variables of a role's container, as the kubelet would give them to a program:
 * $(NAME) in them is a variable's value (lib/base/expand.h). Pure. */
#ifndef DRARUN_JOBS_SPEC_WORDS_H
#define DRARUN_JOBS_SPEC_WORDS_H

#include <jansson.h>
#include "lib/base/strlist.h"

struct spec_role; /* jobs/spec/spec.h */

/* Adds command and args to argv. given: what a command line has in place of args, as it is; NULL or
 * empty: nothing. Returns how many words are the spec's, which come first: the worker replaces
 * their references, since it alone knows every variable. */
size_t spec_words_add(const struct spec_role *role, const struct strlist *given,
                      struct strlist *argv);

/* Adds "NAME=VALUE" for each variable that has a value of its own, with references to those before
 * it replaced. */
void spec_words_env(const struct spec_role *role, struct strlist *env);

/* A word or a value that is to stay as it is, for a spec. NULL: out of memory, or no UTF-8. */
json_t *spec_words_literal(const char *text);

#endif
