/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that each fit alone but not together, against a toy cluster: a scheduler that gives one
 * device at a time to whoever asks, in any order. All of them must finish. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/gang/gang.h"
#include "lib/base/cleanup.h"

#define SEEDS 100
#define GANGS_MAX 4
#define WORKERS_MAX 32
#define TICK_MS 50
#define RUN_MS 20000 /* of the ranks */
#define STOP_MS 800  /* a pod's end */
#define START_MS 400 /* from its node to its container */
#define BEGIN_MS INT64_C(1700000000000)

enum life { LIFE_NONE, LIFE_PENDING, LIFE_PLACED, LIFE_STOPPING };

struct player {
    uint32_t count;
    int64_t arrives;
    struct gang gang;
    bool begun, done;
    int64_t done_at, ends_at;
    enum life lives[WORKERS_MAX];
    bool looked[WORKERS_MAX]; /* the scheduler found nothing for it */
    int64_t since[WORKERS_MAX];
};

struct cluster {
    uint32_t capacity, taken;
    struct player players[GANGS_MAX];
    size_t count;
    uint64_t random;
    int64_t now;
    uint32_t releases;
};

static uint32_t dice(struct cluster *c, uint32_t sides)
{
    c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(c->random >> 33) % sides;
}

/* Some of the pods that wait, in any order: one look of the scheduler. */
static void schedule(struct cluster *c)
{
    for (uint32_t i = 0; i < 6; i++) {
        struct player *p = &c->players[dice(c, (uint32_t)c->count)];
        uint32_t w = dice(c, p->count);
        if (p->lives[w] != LIFE_PENDING)
            continue;
        p->looked[w] = c->taken == c->capacity;
        if (p->looked[w])
            continue;
        c->taken++;
        p->lives[w] = LIFE_PLACED;
        p->since[w] = c->now;
    }
}

static void stop(struct cluster *c, struct player *p)
{
    for (uint32_t w = 0; w < p->count; w++) {
        if (p->lives[w] == LIFE_PENDING)
            p->lives[w] = LIFE_NONE;
        if (p->lives[w] != LIFE_PLACED)
            continue;
        p->lives[w] = LIFE_STOPPING;
        p->since[w] = c->now;
    }
}

static void pods_go(struct cluster *c, struct player *p)
{
    for (uint32_t w = 0; w < p->count; w++) {
        if (p->lives[w] != LIFE_STOPPING || c->now - p->since[w] < STOP_MS)
            continue;
        p->lives[w] = LIFE_NONE;
        c->taken--;
    }
}

static struct pod_state state_of(const struct cluster *c, const struct player *p, uint32_t w)
{
    struct pod_state s = {.phase = POD_ABSENT, .claim = CLAIM_ABSENT, .exit_code = -1};
    if (p->lives[w] == LIFE_PENDING) {
        s.phase = POD_UNSCHEDULED;
        s.claim = CLAIM_PENDING;
        s.unschedulable = p->looked[w];
    }
    if (p->lives[w] >= LIFE_PLACED) {
        s.phase = c->now - p->since[w] < START_MS ? POD_BOUND : POD_RUNNING;
        s.claim = CLAIM_ALLOCATED;
        s.devices = 1;
    }
    if (p->lives[w] == LIFE_STOPPING)
        s.deleting = true;
    return s;
}

static void create(struct player *p)
{
    for (uint32_t w = 0; w < p->count; w++) {
        assert_int_equal(p->lives[w], LIFE_NONE);
        p->lives[w] = LIFE_PENDING;
        p->looked[w] = false;
    }
}

static void play(struct cluster *c, struct player *p)
{
    static const struct spec_timeouts timeouts = {.allocation = 600000, .start = 120000};
    struct pod_state workers[WORKERS_MAX];
    struct gang_decision d;
    uint32_t holding = 0;
    for (uint32_t w = 0; w < p->count; w++) {
        workers[w] = state_of(c, p, w);
        holding += pod_state_holds(&workers[w]);
    }
    struct gang_input input = {.now_ms = BEGIN_MS + c->now,
                               .timeouts = &timeouts,
                               .workers = workers,
                               .count = p->count,
                               .inspected = p->count,
                               .steps = 1};
    assert_int_equal(gang_decide(&p->gang, &input, &d, NULL), 0);
    if (d.action == GANG_FAIL)
        fail_msg("at %" PRId64 " ms: %s", c->now, d.error.text);
    if (d.action == GANG_RELEASE_AND_RETRY) {
        assert_true(holding > 0 && holding < p->count);
        c->releases++;
        stop(c, p);
    }
    if (d.action == GANG_CREATE)
        create(p);
    if (d.action == GANG_START)
        p->ends_at = c->now + RUN_MS;
}

static void look_after(struct cluster *c, struct player *p, uint64_t seed)
{
    pods_go(c, p);
    if (p->done || c->now < p->arrives)
        return;
    if (!p->begun) {
        p->begun = true;
        gang_init(&p->gang, seed, BEGIN_MS + c->now);
        create(p);
    }
    if (p->gang.phase == GANG_RUNNING && c->now >= p->ends_at) {
        gang_end(&p->gang, BEGIN_MS + c->now);
        stop(c, p);
        p->done = true;
        p->done_at = c->now;
        return;
    }
    play(c, p);
}

/* The time at which the last has finished. */
static int64_t finish(uint32_t capacity, const uint32_t *sizes, size_t count, uint64_t seed,
                      uint32_t *releases)
{
    struct cluster c = {.capacity = capacity, .count = count, .random = seed};
    int64_t last = 0;
    for (size_t i = 0; i < count; i++) {
        c.players[i].count = sizes[i];
        c.players[i].arrives = dice(&c, 2000);
    }
    for (size_t left = count; left > 0; c.now += TICK_MS) {
        if (c.now > 600000)
            fail_msg("seed %" PRIu64 ": %zu of %zu jobs have not finished in 10 min", seed, left,
                     count);
        schedule(&c);
        left = count;
        for (size_t i = 0; i < count; i++) {
            look_after(&c, &c.players[i], seed * 131 + i);
            left -= c.players[i].done;
            last = c.players[i].done_at > last ? c.players[i].done_at : last;
        }
    }
    *releases += c.releases;
    return last;
}

static void all_finish(void **state)
{
    (void)state;
    static const struct {
        uint32_t capacity;
        size_t count;
        uint32_t sizes[GANGS_MAX];
    } plays[] = {
        {16, 2, {16, 16}}, {16, 2, {9, 9}},       {16, 2, {16, 1}},
        {8, 2, {8, 5}},    {16, 3, {16, 12, 10}}, {32, 4, {32, 20, 20, 17}},
    };
    for (size_t i = 0; i < ARRAY_LEN(plays); i++) {
        int64_t sum = 0, worst = 0;
        uint32_t releases = 0;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            int64_t t = finish(plays[i].capacity, plays[i].sizes, plays[i].count, seed, &releases);
            sum += t;
            worst = t > worst ? t : worst;
        }
        print_message("capacity %u, %zu jobs of %" PRId64 " s each: %" PRId64 " s mean, %" PRId64
                      " s worst, %.2f releases\n",
                      plays[i].capacity, plays[i].count, (int64_t)RUN_MS / 1000, sum / 1000 / SEEDS,
                      worst / 1000, (double)releases / SEEDS);
        /* the ranks take turns; what they lose to each other is bounded */
        assert_true(worst < (int64_t)plays[i].count * RUN_MS * 6);
        /* otherwise the play shows nothing: jobs of these sizes do collide */
        if (plays[i].sizes[0] > 8 && plays[i].sizes[1] > 8)
            assert_true(releases > SEEDS / 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_finish)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
