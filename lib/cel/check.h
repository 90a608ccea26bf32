/* SPDX-License-Identifier: Apache-2.0 */
/* The static checks of the API server: names, types of arguments and of the result, patterns and
 * literals. Also decides which overload a call has, on which its cost depends. */
#ifndef DRARUN_CEL_CHECK_H
#define DRARUN_CEL_CHECK_H

#include "lib/cel/ast.h"

/* Fills in the tree; constants are folded into literals. *ret_estimate: the worst cost. */
int cel_check(struct cel_arena *arena, const char *text, struct cel_node *root,
              uint64_t *ret_estimate, struct drarun_error *err);

#endif
