/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of an expression. Macros are expanded as cel-go expands them, so that the checker, the
 * evaluator and the cost have one form to know. Everything lives in the program's arena. */
#ifndef DRARUN_CEL_AST_H
#define DRARUN_CEL_AST_H

#include "drarun/error.h"
#include "lib/cel/type.h"
#include "lib/cel/value.h"

enum cel_node_kind {
    CEL_NODE_LITERAL,
    CEL_NODE_IDENT,
    CEL_NODE_SELECT, /* args[0].name; test_only for has(), optional for ".?" */
    CEL_NODE_INDEX,  /* args[0][args[1]]; optional for "[?" */
    CEL_NODE_AND,
    CEL_NODE_OR,
    CEL_NODE_TERNARY,
    CEL_NODE_CALL, /* the target first when member; operators are called "_+_" and the like */
    CEL_NODE_LIST,
    CEL_NODE_MAP,  /* key, value, key, value, ... */
    CEL_NODE_FOLD, /* a comprehension: enum cel_fold_arg */
};

enum cel_fold_arg { FOLD_RANGE, FOLD_INIT, FOLD_CONDITION, FOLD_STEP, FOLD_RESULT, FOLD_ARGS };

struct cel_overload;
struct cel_size_note;

struct cel_node {
    enum cel_node_kind kind;
    uint32_t begin, end; /* bytes of the source text */
    const char *name;    /* identifier, field, function */
    struct cel_node **args;
    size_t count;
    bool *optional_args; /* of a list's items or a map's entries; NULL: none is */
    bool member, test_only, optional;
    bool global;             /* an identifier behind a leading dot: no variable of a macro */
    struct cel_value value;  /* of a literal */
    const char *item, *accu; /* variables of a fold */
    uint32_t item_slot, accu_slot;
    /* by the checker */
    const struct cel_type *type;
    uint32_t slot;                       /* of an identifier: 0 is device */
    const struct cel_overload *overload; /* any of the function's; its fn serves all */
    uint32_t overloads;                  /* bits: which of its name the call may have, in order */
    struct cel_size_note *note;          /* of the estimator */
    uint8_t cost;                        /* enum cel_cost */
    bool ends_at_error;                  /* arguments behind one that failed are not looked at */
    bool constant_set;                   /* "in" a list of constants */
    const struct cel_regex *regex;       /* compiled when the pattern is constant */
};

/* "column 7: ..." with kind SPEC and EINVAL. */
int cel_error_at(struct drarun_error *err, const char *text, uint32_t offset, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));

#endif
