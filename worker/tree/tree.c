/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/tree/tree.h"

uint32_t tree_child_count(const struct tree *tree)
{
    uint64_t first = (uint64_t)tree->self * tree->radix + 1;
    if (first >= tree->size)
        return 0;
    uint64_t left = tree->size - first;
    return left < tree->radix ? (uint32_t)left : tree->radix;
}

uint32_t tree_child_index(const struct tree *tree, uint32_t worker)
{
    if (worker >= tree->size || tree_parent_of(tree, worker) != tree->self)
        return TREE_NONE;
    return worker - tree_child(tree, 0);
}

uint32_t tree_next_hop(const struct tree *tree, uint32_t destination)
{
    uint32_t at = destination;
    while (at > tree->self) { /* an ancestor's number is always smaller */
        uint32_t parent = tree_parent_of(tree, at);
        if (parent == tree->self)
            return at;
        at = parent;
    }
    return tree_parent(tree);
}

uint32_t tree_common(const struct tree *tree, uint32_t a, uint32_t b)
{
    while (a != b) {
        if (a > b)
            a = tree_parent_of(tree, a);
        else
            b = tree_parent_of(tree, b);
    }
    return a;
}
