/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluation with the API server's cost: after cel-go's interpreter (interpretable.go,
 * attributes.go, runtimecost.go). A program is read-only here, so that threads may share it. */
#ifndef DRARUN_CEL_EVAL_H
#define DRARUN_CEL_EVAL_H

#include "lib/cel/ast.h"

struct cel_slot {
    struct cel_value value;
    const struct cel_node *pending; /* what a variable of cel.bind is, until it is used */
};

struct cel_eval {
    struct cel_arena *arena;
    struct cel_slot *slots;
    uint64_t cost;
    uint64_t limit;
    bool stopped; /* over the limit, or something that nothing absorbs */
    bool over;    /* it was the limit */
};

/* An error that && and || do not absorb. */
struct cel_value cel_stop(struct cel_eval *eval, const char *text);

struct cel_value cel_eval_node(struct cel_eval *eval, const struct cel_node *node);
/* A node whose arguments are literals. */
struct cel_value cel_eval_constant(struct cel_arena *arena, const struct cel_node *node);
/* The cost of a call, whose result may be an error. */
uint64_t cel_call_cost(const struct cel_node *call, const struct cel_value *args,
                       const struct cel_value *result);

#endif
