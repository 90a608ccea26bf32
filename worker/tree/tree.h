/* SPDX-License-Identifier: Apache-2.0 */
/* The tree over a job's agents: worker 0 is the root, the children of i are i*k+1 .. i*k+k. Pure
 * arithmetic (docs/design/004-tree.md). */
#ifndef DRARUN_WORKER_TREE_H
#define DRARUN_WORKER_TREE_H

#include <stdbool.h>
#include <stdint.h>

struct tree {
    uint32_t self;
    uint32_t size;  /* number of agents */
    uint32_t radix; /* children per agent, at least 1 */
};

#define TREE_NONE UINT32_MAX

static inline uint32_t tree_parent_of(const struct tree *tree, uint32_t worker)
{
    return worker == 0 ? TREE_NONE : (worker - 1) / tree->radix;
}

static inline uint32_t tree_parent(const struct tree *tree)
{
    return tree_parent_of(tree, tree->self);
}

/* Number of children of self; they are tree_child(tree, 0 .. count-1). */
uint32_t tree_child_count(const struct tree *tree);

static inline uint32_t tree_child(const struct tree *tree, uint32_t index)
{
    return tree->self * tree->radix + 1 + index;
}

/* Index among self's children, or TREE_NONE when worker is no child of self. */
uint32_t tree_child_index(const struct tree *tree, uint32_t worker);

/* The neighbour of self on the way to destination (which is not self): a child or the parent. */
uint32_t tree_next_hop(const struct tree *tree, uint32_t destination);

/* The lowest agent that has both a and b at or below it. */
uint32_t tree_common(const struct tree *tree, uint32_t a, uint32_t b);

#endif
