/* SPDX-License-Identifier: Apache-2.0 */
/* CEL's tokens. */
#ifndef DRARUN_CEL_LEXER_H
#define DRARUN_CEL_LEXER_H

#include "lib/cel/ast.h"

enum cel_token_kind {
    CEL_TOKEN_END,
    CEL_TOKEN_IDENT,
    CEL_TOKEN_LITERAL, /* a number (never negative), string, bytes, true, false, null */
    CEL_TOKEN_MARK,    /* an operator or bracket: mark */
};

struct cel_token {
    enum cel_token_kind kind;
    uint32_t begin, end;
    char mark[3];  /* "&&", "(", "in", ... */
    bool reserved; /* an identifier that only a field may be */
    bool smallest; /* 9223372036854775808: an integer only behind a minus */
    struct cel_value value;
};

/* The token at or behind *at (text has len bytes and is NUL-terminated). Text of literals goes to
 * the arena. */
int cel_lex(struct cel_arena *arena, const char *text, size_t len, uint32_t at,
            struct cel_token *ret_token, struct drarun_error *err);

#endif
