// SPDX-License-Identifier: Apache-2.0
#include "lib/cel/cel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/cel/check.h"
#include "lib/cel/device.h"
#include "lib/cel/eval.h"
#include "lib/cel/parser.h"

enum {
    MAX_PROGRAM_BYTES = 16 << 20,
    MAX_EVAL_BYTES = 64 << 20, /* strings grow twofold by cel.bind at next to no cost */
    FIRST_BYTES = 2048,
    FIRST_SLOTS = 16,
};

struct cel_program {
    struct cel_arena arena;
    struct cel_node *root;
    uint32_t slots;
    uint64_t estimate;
    size_t term_count;
    const struct cel_node **terms;
    const char **term_texts;
};

static void count_terms(const struct cel_node *node, struct cel_program *program)
{
    if (node->kind != CEL_NODE_AND) {
        if (program->terms)
            program->terms[program->term_count] = node;
        program->term_count++;
        return;
    }
    for (size_t i = 0; i < node->count; i++)
        count_terms(node->args[i], program);
}

static bool find_terms(struct cel_program *program, const char *text)
{
    size_t count;

    count_terms(program->root, program);
    count = program->term_count;
    program->terms = cel_arena_alloc(&program->arena, count * sizeof(struct cel_node *));
    program->term_texts = cel_arena_alloc(&program->arena, count * sizeof(char *));
    if (!program->terms || !program->term_texts)
        return false;
    program->term_count = 0;
    count_terms(program->root, program);
    for (size_t i = 0; i < count; i++) {
        const struct cel_node *term = program->terms[i];
        program->term_texts[i] =
            cel_arena_copy(&program->arena, text + term->begin, term->end - term->begin);
        if (!program->term_texts[i])
            return false;
    }
    return true;
}

struct cel_program *cel_compile(const char *text, struct drarun_error *err)
{
    CLEANUP(cel_program_freep) struct cel_program *program = calloc(1, sizeof(*program));
    size_t len = strlen(text);

    if (!program) {
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    cel_arena_init(&program->arena, NULL, 0, MAX_PROGRAM_BYTES);
    if (len > CEL_MAX_LENGTH) {
        error_kind(err, DRARUN_ERR_SPEC, E2BIG, "%zu bytes long, of at most %d", len,
                   CEL_MAX_LENGTH);
        return NULL;
    }
    if (cel_parse(&program->arena, text, len, &program->root, &program->slots, err) < 0 ||
        cel_check(&program->arena, text, program->root, &program->estimate, err) < 0)
        return NULL;
    if (!find_terms(program, text)) {
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    return TAKE_PTR(program);
}

void cel_program_free(struct cel_program *program)
{
    if (!program)
        return;
    cel_arena_done(&program->arena);
    free(program);
}

uint64_t cel_program_estimate(const struct cel_program *program)
{
    return program->estimate;
}

int cel_program_admit(const struct cel_program *program, struct drarun_error *err)
{
    if (program->estimate <= CEL_MAX_COST)
        return 0;
    if (program->estimate == UINT64_MAX)
        return error_kind(err, DRARUN_ERR_SPEC, E2BIG,
                          "too complex: there is no bound to what it may cost, of the %d that the "
                          "API server allows",
                          CEL_MAX_COST);
    return error_kind(err, DRARUN_ERR_SPEC, E2BIG,
                      "too complex: it may cost %llu, of the %d that the API server allows",
                      (unsigned long long)program->estimate, CEL_MAX_COST);
}

int cel_admit(const char *text, struct drarun_error *err)
{
    struct drarun_error why = {0};
    CLEANUP(cel_program_freep) struct cel_program *program = cel_compile(text, &why);

    if (program)
        return cel_program_admit(program, err);
    if (strstr(why.text, "not supported"))
        why.code = EOPNOTSUPP;
    if (err)
        *err = why;
    return -why.code;
}

static int verdict(const struct cel_eval *eval, const struct cel_value *value, bool *ret_match,
                   struct drarun_error *err)
{
    if (eval->arena->failed)
        return error_kind(err, DRARUN_ERR_SPEC, E2BIG, "needs more than %d MiB of memory",
                          MAX_EVAL_BYTES >> 20);
    if (eval->over)
        return error_kind(err, DRARUN_ERR_SPEC, E2BIG,
                          "costs more than the %d units that one evaluation may", CEL_MAX_COST);
    if (value->kind == CEL_ERROR)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%.*s", (int)value->text.len,
                          value->text.data);
    if (value->kind != CEL_BOOL)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "the result is a %s, not a bool",
                          cel_kind_name(value));
    *ret_match = value->boolean;
    return 0;
}

static int evaluate(const struct cel_program *program, const struct cel_node *node,
                    const struct cel_device *device, bool *ret_match, uint64_t *ret_cost,
                    struct drarun_error *err)
{
    char first[FIRST_BYTES];
    struct cel_slot few[FIRST_SLOTS];
    struct cel_arena arena;
    struct cel_eval eval = {.arena = &arena, .slots = few, .limit = CEL_MAX_COST};
    struct cel_value value = device->value;
    int rc;

    cel_arena_init(&arena, first, sizeof(first), MAX_EVAL_BYTES);
    if (program->slots > FIRST_SLOTS)
        eval.slots = cel_arena_alloc(&arena, program->slots * sizeof(*eval.slots));
    if (eval.slots && value.kind != CEL_ERROR) {
        memset(eval.slots, 0, program->slots * sizeof(*eval.slots));
        eval.slots[0].value = device->value;
        value = cel_eval_node(&eval, node);
    }
    rc = verdict(&eval, &value, ret_match, err);
    if (ret_cost)
        *ret_cost = eval.cost;
    cel_arena_done(&arena);
    return rc;
}

int cel_eval_device(const struct cel_program *program, const struct cel_device *device,
                    bool *ret_match, struct drarun_error *err)
{
    return evaluate(program, program->root, device, ret_match, NULL, err);
}

int cel_eval_cost(const struct cel_program *program, const struct cel_device *device,
                  bool *ret_match, uint64_t *ret_cost, struct drarun_error *err)
{
    return evaluate(program, program->root, device, ret_match, ret_cost, err);
}

size_t cel_term_count(const struct cel_program *program)
{
    return program->term_count;
}

const char *cel_term_text(const struct cel_program *program, size_t term)
{
    return term < program->term_count ? program->term_texts[term] : NULL;
}

int cel_eval_term(const struct cel_program *program, size_t term, const struct cel_device *device,
                  bool *ret_match, struct drarun_error *err)
{
    if (term >= program->term_count)
        return error_set(err, ERANGE, "the expression has %zu terms", program->term_count);
    return evaluate(program, program->terms[term], device, ret_match, NULL, err);
}
