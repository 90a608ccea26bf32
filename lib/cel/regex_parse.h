/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of a regular expression; regex.c makes an automaton of it. */
#ifndef DRARUN_CEL_REGEX_PARSE_H
#define DRARUN_CEL_REGEX_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/cel/arena.h"

enum rx_kind {
    RX_EMPTY,
    RX_CLASS,  /* one code point out of ranges */
    RX_ASSERT, /* a place: assertion */
    RX_CAT,
    RX_ALT,
    RX_REPEAT, /* left, min times up to max; max -1: without end */
};

enum rx_assertion { RX_BEGIN, RX_END, RX_LINE_BEGIN, RX_LINE_END, RX_WORD, RX_NOT_WORD };

struct rx_range {
    uint32_t low, high;
};

struct rx_class {
    struct rx_range *ranges;
    size_t count, cap;
    bool negated;
    bool fold; /* ASCII letters match in both cases */
};

struct rx_node {
    enum rx_kind kind;
    struct rx_class class;
    enum rx_assertion assertion;
    int min, max;
    int repeats; /* how often the innermost part comes, at most, by bounded repetitions */
    struct rx_node *left, *right;
};

int rx_parse(struct cel_arena *arena, const char *pattern, size_t len, struct rx_node **ret_root,
             struct drarun_error *err);

#endif
