/* SPDX-License-Identifier: Apache-2.0 */
/* The facts are the same from sums that were kept and from a look at all workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/gang/gang_private.h"
#include "lib/base/cleanup.h"

#define WORKERS 12
#define CHANGES 20000

static unsigned random_below(unsigned count)
{
    static uint32_t state = 1;
    state = state * UINT32_C(1664525) + UINT32_C(1013904223);
    return (state >> 16) % count;
}

/* One in so many. */
static bool seldom(void)
{
    return random_below(8) == 0;
}

static struct pod_state random_state(void)
{
    static const char *const messages[] = {NULL, "device class a does not exist",
                                           "failed to sync secret cache", "exec format error"};
    static const char *const reasons[] = {NULL, "InvalidImageName", "ErrImagePull"};
    return (struct pod_state){
        .phase = (enum pod_phase)(POD_ABSENT + random_below(POD_ENDED - POD_ABSENT + 1)),
        .claim = (enum claim_phase)(CLAIM_NONE + random_below(CLAIM_DELETING - CLAIM_NONE + 1)),
        .end = (enum pod_end)random_below(POD_END_UNKNOWN + 1),
        .message = messages[random_below(ARRAY_LEN(messages))],
        .reason = reasons[random_below(ARRAY_LEN(reasons))],
        .group = seldom() ? "group" : NULL,
        .unschedulable = seldom(),
        .node_comes = seldom(),
        .image_comes = seldom(),
        .failing = seldom(),
        .not_ready = seldom(),
        .deleting = seldom(),
        .disrupted = seldom(),
        .vanished = seldom(),
        .ordered_ms = seldom() ? 1000 + random_below(20) : 0,
    };
}

static void assert_equal(const struct gang_facts *a, const struct gang_facts *b)
{
    assert_int_equal(a->allocated, b->allocated);
    assert_int_equal(a->placed, b->placed);
    assert_int_equal(a->up, b->up);
    assert_int_equal(a->holding, b->holding);
    assert_int_equal(a->present, b->present);
    assert_int_equal(a->claimed, b->claimed);
    assert_int_equal(a->pending, b->pending);
    assert_int_equal(a->queued, b->queued);
    assert_int_equal(a->node_comes, b->node_comes);
    assert_int_equal(a->image_comes, b->image_comes);
    assert_int_equal(a->releasing, b->releasing);
    assert_int_equal(a->ordered_ms, b->ordered_ms);
    assert_int_equal(a->vanished, b->vanished);
    assert_int_equal(a->lost, b->lost);
    assert_int_equal(a->stranded, b->stranded);
    assert_int_equal(a->blocked, b->blocked);
    assert_int_equal(a->trouble, b->trouble);
    assert_int_equal(a->fatal, b->fatal);
    assert_string_equal(a->fatal_text, b->fatal_text);
    assert_int_equal(a->refused, b->refused);
    assert_string_equal(a->refused_text, b->refused_text);
}

static void set(struct gang_sums *sums, uint32_t worker, const struct pod_state *state)
{
    gang_sums_set(sums, worker, gang_marks(state), state->ordered_ms);
}

static void test_same_facts(void **state)
{
    struct pod_state workers[WORKERS];
    struct gang_sums sums;
    struct gang_facts kept, read;
    struct gang_input input = {.workers = workers, .count = WORKERS};
    (void)state;
    assert_int_equal(gang_sums_init(&sums, WORKERS), 0);
    for (uint32_t i = 0; i < WORKERS; i++) {
        workers[i] = (struct pod_state){.phase = POD_RUNNING, .claim = CLAIM_NONE};
        set(&sums, i, &workers[i]);
    }
    for (unsigned i = 0; i < CHANGES; i++) {
        uint32_t worker = random_below(WORKERS);
        workers[worker] = seldom() ? random_state()
                                   : (struct pod_state){.phase = POD_RUNNING, .claim = CLAIM_NONE};
        set(&sums, worker, &workers[worker]);
        input.sums = &sums;
        gang_facts(&input, &kept);
        input.sums = NULL;
        gang_facts(&input, &read);
        assert_equal(&kept, &read);
    }
    gang_sums_done(&sums);
}

static void test_first(void **state)
{
    struct gang_sums sums;
    struct pod_state gone = {.phase = POD_ABSENT, .claim = CLAIM_NONE};
    struct pod_state runs = {.phase = POD_RUNNING, .claim = CLAIM_NONE};
    (void)state;
    assert_int_equal(gang_sums_init(&sums, 3), 0);
    assert_int_equal(gang_sums_first(&sums, GANG_MARK_PRESENT), GANG_NOBODY);
    set(&sums, 2, &runs);
    assert_int_equal(gang_sums_first(&sums, GANG_MARK_PRESENT), 2);
    set(&sums, 1, &runs);
    assert_int_equal(gang_sums_first(&sums, GANG_MARK_PRESENT), 1);
    set(&sums, 1, &gone);
    set(&sums, 2, &gone);
    assert_int_equal(gang_sums_first(&sums, GANG_MARK_PRESENT), GANG_NOBODY);
    assert_int_equal(sums.having[GANG_MARK_PRESENT], 0);
    gang_sums_done(&sums);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_facts),
        cmocka_unit_test(test_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
