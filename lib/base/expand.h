/* SPDX-License-Identifier: Apache-2.0 */
/* References to variables, as Kubernetes has them in a container's command, args and env: $(NAME)
 * is the variable's value where there is such a variable, and stays as it is otherwise; $$ is a $
 * that begins no reference. A value that is put in is not read again. Pure. */
#ifndef DRARUN_BASE_EXPAND_H
#define DRARUN_BASE_EXPAND_H

#include <stdbool.h>
#include "lib/base/buf.h"
#include "lib/base/strlist.h"

/* The variable's value, borrowed, or NULL: there is none. */
typedef const char *(*expand_look_up_fn)(void *context, const char *name);

/* Adds the text with its references replaced; out->data is a text then also where that is empty. */
void expand_text(const char *text, expand_look_up_fn look_up, void *context, struct buf *out);
/* The same with the variables of an environment. */
void expand_text_env(const char *text, const struct strlist *env, struct buf *out);
/* Whether there is something to replace: $$, or $(NAME) with a name as Kubernetes has always taken
 * them (letters, digits, "-", "_", "."). */
bool expand_refers(const char *text);
/* Adds the text of which expand_text makes this one again, whatever variables there are with such
 * names. */
void expand_escape(const char *text, struct buf *out);

#endif
