/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions for matches(): the part of RE2's syntax that Kubernetes users write, matched
 * in time linear in the text by simulating an automaton. What RE2 has and we have not is refused by
 * name: \p{...}, \C, \Q...\E. */
#ifndef DRARUN_CEL_REGEX_H
#define DRARUN_CEL_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include "drarun/error.h"
#include "lib/cel/arena.h"

struct cel_regex;

/* The regex lives in the arena. */
int cel_regex_compile(struct cel_arena *arena, const char *pattern, size_t len,
                      const struct cel_regex **ret_regex, struct drarun_error *err);
/* Whether some part of the text matches. 0, 1 or -ENOMEM; scratch comes from the arena. */
int cel_regex_search(struct cel_arena *arena, const struct cel_regex *regex, const char *text,
                     size_t len);

#endif
