/* SPDX-License-Identifier: Apache-2.0 */
/* From text to tree, macros expanded. */
#ifndef DRARUN_CEL_PARSER_H
#define DRARUN_CEL_PARSER_H

#include "lib/cel/ast.h"

/* How deep brackets and operators may nest; cel-go's own bound is alike. */
enum { CEL_MAX_DEPTH = 250 };

struct cel_parser {
    struct cel_arena *arena;
    const char *text;
    size_t len;
    struct cel_token *token; /* the next one */
    uint32_t last_end;       /* where the one before it ended */
    unsigned depth;
    uint32_t slots; /* of variables handed out; 0 is device */
    struct drarun_error *err;
};

/* text is NUL-terminated and stays; the tree lives in the arena. ret_slots: variables in all. */
int cel_parse(struct cel_arena *arena, const char *text, size_t len, struct cel_node **ret_root,
              uint32_t *ret_slots, struct drarun_error *err);

/* A node with room for count arguments; NULL: out of memory. */
struct cel_node *cel_node_new(struct cel_parser *p, enum cel_node_kind kind, uint32_t begin,
                              const char *name, size_t count);
/* If node is a call of a macro, *node becomes what it stands for. */
int cel_expand_macro(struct cel_parser *p, struct cel_node **node);

#endif
