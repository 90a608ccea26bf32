/* SPDX-License-Identifier: Apache-2.0 */
/* What the API server computes when it plans an expression: it costs nothing when a device is
 * looked at, and what fails here refuses the expression, wherever it stands. */
#ifndef DRARUN_CEL_FOLD_H
#define DRARUN_CEL_FOLD_H

#include "lib/cel/ast.h"

/* Makes a literal of a list, map or conversion of literals; compiles constant patterns; marks "in"
 * a list of constants. The arguments of node were folded before. */
int cel_fold_constant(struct cel_arena *arena, const char *text, struct cel_node *node,
                      struct drarun_error *err);

#endif
