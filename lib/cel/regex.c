// SPDX-License-Identifier: Apache-2.0
// Thompson's construction, simulated: all states at once, so that no pattern is exponential.
#include "lib/cel/regex.h"

#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/cel/regex_parse.h"
#include "lib/cel/utf8.h"

enum { MAX_STATES = 20000, END_OF_TEXT = 0x110000 };

enum step_kind { STEP_CLASS, STEP_ASSERT, STEP_SPLIT, STEP_JUMP, STEP_MATCH };

struct step {
    enum step_kind kind;
    uint32_t next, other; /* other: of a split */
    const struct rx_class *class;
    enum rx_assertion assertion;
};

struct cel_regex {
    struct step *steps;
    uint32_t count;
};

struct builder {
    struct step *steps; /* NULL: only counts */
    uint32_t count;
};

static struct step *put(struct builder *b, enum step_kind kind)
{
    static struct step spare; // written to while counting, never read
    struct step *step = b->steps && b->count < MAX_STATES ? &b->steps[b->count] : &spare;

    if (b->count <= MAX_STATES)
        b->count++;
    if (step == &spare)
        return NULL;
    *step = (struct step){.kind = kind, .next = b->count};
    return step;
}

static void emit(struct builder *b, const struct rx_node *node);

/* x*: L: split next, end; x; jump L */
static void emit_star(struct builder *b, const struct rx_node *node)
{
    uint32_t begin = b->count;
    struct step *split = put(b, STEP_SPLIT), *jump;

    emit(b, node);
    jump = put(b, STEP_JUMP);
    if (jump)
        jump->next = begin;
    if (split)
        split->other = b->count;
}

static void emit_repeat(struct builder *b, const struct rx_node *node)
{
    for (int i = 0; i < node->min && b->count <= MAX_STATES; i++)
        emit(b, node->left);
    if (node->max < 0) {
        emit_star(b, node->left);
        return;
    }
    for (int i = node->min; i < node->max && b->count <= MAX_STATES; i++) {
        struct step *split = put(b, STEP_SPLIT);
        emit(b, node->left);
        if (split)
            split->other = b->count; // (x(x)?)? and x?x? accept the same
    }
}

static void emit_alternatives(struct builder *b, const struct rx_node *node)
{
    struct step *split = put(b, STEP_SPLIT), *jump;

    emit(b, node->left);
    jump = put(b, STEP_JUMP);
    if (split)
        split->other = b->count;
    emit(b, node->right);
    if (jump)
        jump->next = b->count;
}

static void emit(struct builder *b, const struct rx_node *node)
{
    struct step *step;

    if (b->count > MAX_STATES)
        return;
    switch (node->kind) {
    case RX_EMPTY:
        break;
    case RX_CLASS:
        step = put(b, STEP_CLASS);
        if (step)
            step->class = &node->class;
        break;
    case RX_ASSERT:
        step = put(b, STEP_ASSERT);
        if (step)
            step->assertion = node->assertion;
        break;
    case RX_CAT:
        emit(b, node->left);
        emit(b, node->right);
        break;
    case RX_ALT:
        emit_alternatives(b, node);
        break;
    case RX_REPEAT:
        emit_repeat(b, node);
        break;
    }
}

int cel_regex_compile(struct cel_arena *arena, const char *pattern, size_t len,
                      const struct cel_regex **ret_regex, struct drarun_error *err)
{
    struct cel_regex *regex = cel_arena_alloc(arena, sizeof(*regex));
    struct builder builder = {0};
    struct rx_node *root;
    int rc = rx_parse(arena, pattern, len, &root, err);

    if (rc < 0)
        return rc;
    emit(&builder, root);
    if (builder.count >= MAX_STATES)
        return error_set(err, E2BIG, "the pattern needs more than %d states", MAX_STATES);
    builder.steps = cel_arena_alloc(arena, (builder.count + 1) * sizeof(*builder.steps));
    if (!regex || !builder.steps)
        return error_set(err, ENOMEM, "out of memory");
    builder.count = 0;
    emit(&builder, root);
    put(&builder, STEP_MATCH);
    regex->steps = builder.steps;
    regex->count = builder.count;
    *ret_regex = regex;
    return 0;
}

static bool in_ranges(const struct rx_class *class, uint32_t point)
{
    for (size_t i = 0; i < class->count; i++)
        if (point >= class->ranges[i].low && point <= class->ranges[i].high)
            return true;
    return false;
}

static bool in_class(const struct rx_class *class, uint32_t point)
{
    bool found = in_ranges(class, point);
    uint32_t lower = point | 0x20;

    if (!found && class->fold && lower >= 'a' && lower <= 'z' && point < 0x80)
        found = in_ranges(class, point ^ 0x20);
    return found != class->negated;
}

static bool is_word(uint32_t point)
{
    return (point >= '0' && point <= '9') || point == '_' ||
           ((point | 0x20) >= 'a' && (point | 0x20) <= 'z' && point < 0x80);
}

static bool holds(enum rx_assertion assertion, uint32_t before, uint32_t after)
{
    bool edge = is_word(before) != is_word(after);

    switch (assertion) {
    case RX_BEGIN:
        return before == END_OF_TEXT;
    case RX_END:
        return after == END_OF_TEXT;
    case RX_LINE_BEGIN:
        return before == END_OF_TEXT || before == '\n';
    case RX_LINE_END:
        return after == END_OF_TEXT || after == '\n';
    case RX_WORD:
        return edge;
    case RX_NOT_WORD:
        return !edge;
    }
    return false;
}

/* A set of states with constant-time membership (Briggs and Torczon). */
struct states {
    uint32_t *dense, *sparse;
    uint32_t count;
};

static void add_state(struct states *states, uint32_t state)
{
    uint32_t at = states->sparse[state];

    if (at < states->count && states->dense[at] == state)
        return;
    states->sparse[state] = states->count;
    states->dense[states->count++] = state;
}

/* Adds what can be reached without reading; true when the match can. */
static bool close_states(const struct cel_regex *regex, struct states *states, uint32_t before,
                         uint32_t after)
{
    for (uint32_t i = 0; i < states->count; i++) {
        const struct step *step = &regex->steps[states->dense[i]];
        if (step->kind == STEP_MATCH)
            return true;
        if (step->kind == STEP_CLASS ||
            (step->kind == STEP_ASSERT && !holds(step->assertion, before, after)))
            continue;
        add_state(states, step->next);
        if (step->kind == STEP_SPLIT)
            add_state(states, step->other);
    }
    return false;
}

static bool new_states(struct cel_arena *arena, struct states *states, uint32_t count)
{
    states->dense = cel_arena_alloc(arena, count * sizeof(*states->dense));
    states->sparse = cel_arena_alloc(arena, count * sizeof(*states->sparse));
    states->count = 0;
    return states->dense && states->sparse;
}

int cel_regex_search(struct cel_arena *arena, const struct cel_regex *regex, const char *text,
                     size_t len)
{
    struct states now, then;
    uint32_t before = END_OF_TEXT;
    size_t at = 0;

    if (!new_states(arena, &now, regex->count) || !new_states(arena, &then, regex->count))
        return -ENOMEM;
    for (;;) {
        size_t next = at;
        uint32_t point = at < len ? cel_utf8_next(text, len, &next) : END_OF_TEXT;
        struct states swap = then;
        add_state(&now, 0); // a match may begin anywhere
        if (close_states(regex, &now, before, point))
            return 1;
        if (at >= len)
            return 0;
        then.count = 0;
        for (uint32_t i = 0; i < now.count; i++) {
            const struct step *step = &regex->steps[now.dense[i]];
            if (step->kind == STEP_CLASS && in_class(step->class, point))
                add_state(&then, step->next);
        }
        swap = now;
        now = then;
        then = swap;
        before = point;
        at = next;
    }
}
