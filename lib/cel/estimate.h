/* SPDX-License-Identifier: Apache-2.0 */
/* The worst case of what an expression may cost, as the API server estimates it when a claim or
 * class is created: cel-go's checker/cost.go with apiserver's library/cost.go, and the sizes of a
 * device in k8s.io/dynamic-resource-allocation/cel. */
#ifndef DRARUN_CEL_ESTIMATE_H
#define DRARUN_CEL_ESTIMATE_H

#include "lib/cel/ast.h"

/* Of a checked tree whose constants are not folded yet; UINT64_MAX means that there is no bound.
 * Running out of memory shows in the arena. */
uint64_t cel_estimate(struct cel_arena *arena, struct cel_bindings *bindings,
                      struct cel_node *root);

#endif
