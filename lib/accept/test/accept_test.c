/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters that are played: every node has a speed, every pair the lesser of two, with noise. */
#include "lib/accept/accept.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NODES_MAX 600
#define GBPS 380.0

struct play {
    size_t nodes;
    double speed[NODES_MAX]; /* 1: as it should be */
    bool crashes[NODES_MAX]; /* with a partner; alone it is well */
    uint32_t path[2];        /* slow with each other; equal: none */
    double noise, not_run;   /* parts */
    bool pairs_not_run;
    size_t busy;    /* the first of them: not run */
    bool all_crash; /* the job itself is wrong */
    bool refused;   /* by what each node's devices are */
    bool ran;       /* and comes to figures all the same */
    struct accept_options options;
    uint64_t random;
    unsigned waves, tests;
};

static double draw(struct play *p)
{
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(p->random >> 33) / (double)(1u << 31);
}

static struct play play_of(size_t nodes, uint64_t seed)
{
    struct play p = {.nodes = nodes, .noise = 0.03, .random = seed * 2654435761u + 1};
    for (size_t i = 0; i < nodes; i++)
        p.speed[i] = 1;
    return p;
}

static struct accept_answer answer_of(struct play *p, const struct accept_test *t)
{
    struct accept_answer answer = {.outcome = ACCEPT_MEASURED};
    bool alone = t->partner == ACCEPT_NOBODY;
    double speed = p->speed[t->node];
    if (!alone && p->speed[t->partner] < speed)
        speed = p->speed[t->partner];
    if (p->all_crash && t->node >= p->busy) {
        answer.outcome = ACCEPT_FAILED;
        answer.refused = p->refused;
        answer.ran = p->ran;
        snprintf(answer.reason, sizeof answer.reason, "rank 0 exited with status 127");
        return answer;
    }
    if (t->node < p->busy || draw(p) < p->not_run || (p->pairs_not_run && !alone)) {
        answer.outcome = ACCEPT_NOT_RUN;
        snprintf(answer.reason, sizeof answer.reason, "preempted");
        return answer;
    }
    if (!alone && (p->crashes[t->node] || p->crashes[t->partner])) {
        answer.outcome = ACCEPT_FAILED;
        snprintf(answer.reason, sizeof answer.reason, "a rank died of signal 9");
        return answer;
    }
    if (!alone && p->path[0] != p->path[1] &&
        ((t->node == p->path[0] && t->partner == p->path[1]) ||
         (t->node == p->path[1] && t->partner == p->path[0])))
        speed = 0.5;
    answer.busbw = GBPS * speed * (1 - p->noise / 2 + p->noise * draw(p));
    return answer;
}

/* No node is in two tests of the wave, and all take part who may. */
static void assert_disjoint(const struct accept_test *tests, size_t count, size_t nodes)
{
    bool used[NODES_MAX] = {0};
    for (size_t i = 0; i < count; i++) {
        assert_true(tests[i].node < nodes && !used[tests[i].node]);
        used[tests[i].node] = true;
        if (tests[i].partner == ACCEPT_NOBODY)
            continue;
        assert_true(tests[i].partner < nodes && !used[tests[i].partner]);
        used[tests[i].partner] = true;
    }
}

static struct accept *begin(const struct play *p)
{
    struct accept *a = NULL;
    struct drarun_error err = {0};
    assert_int_equal(accept_new(p->nodes, &p->options, &a, &err), 0);
    return a;
}

static bool play_wave(struct play *p, struct accept *a, bool backwards)
{
    struct drarun_error err = {0};
    size_t count;
    const struct accept_test *tests = accept_wave(a, &count);
    if (count == 0)
        return false;
    assert_disjoint(tests, count, p->nodes);
    assert_true(accept_wave_name(a)[0]);
    struct accept_answer answers[NODES_MAX];
    for (size_t i = 0; i < count; i++)
        answers[i] = answer_of(p, &tests[i]);
    for (size_t i = 0; i < count; i++)
        accept_answer(a, backwards ? count - 1 - i : i, &answers[backwards ? count - 1 - i : i]);
    assert_int_equal(accept_advance(a, &err), 0);
    p->waves++;
    p->tests += (unsigned)count;
    return true;
}

static struct accept *play(struct play *p)
{
    struct accept *a = begin(p);
    while (play_wave(p, a, false))
        assert_true(p->waves < 1000);
    return a;
}

static void assert_states(const struct accept *a, const struct play *p, const uint32_t *bad,
                          size_t bad_count)
{
    size_t count;
    const struct accept_node *nodes = accept_nodes(a, &count);
    assert_int_equal(count, p->nodes);
    for (uint32_t i = 0; i < count; i++) {
        bool planted = false;
        for (size_t k = 0; k < bad_count; k++)
            planted = planted || bad[k] == i;
        if ((nodes[i].state == ACCEPT_BAD) != planted)
            fail_msg("node %u of %zu is in state %d: %s", i, count, nodes[i].state,
                     nodes[i].reason);
        assert_true(planted == !!nodes[i].reason[0]);
    }
}

static void three_of_500_are_named(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct play p = play_of(500, seed);
        uint32_t bad[3] = {(uint32_t)(seed * 7 % 500), (uint32_t)((seed * 31 + 1) % 500),
                           (uint32_t)((seed * 101 + 2) % 500)};
        if (bad[0] == bad[1] || bad[1] == bad[2] || bad[0] == bad[2])
            continue;
        p.speed[bad[0]] = 0.85; /* alone too */
        p.crashes[bad[1]] = true;
        p.speed[bad[2]] = 0.8;
        struct accept *a = play(&p);
        size_t paths;
        assert_states(a, &p, bad, 3);
        accept_paths(a, &paths);
        assert_int_equal(paths, 0);
        assert_true(p.tests < 500 + 9 * 251 + 40);
        accept_free(a);
    }
}

static void nobody_of_clean_clusters_is_named(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++)
        for (size_t nodes = 1; nodes <= 40; nodes++) {
            struct play p = play_of(nodes, seed * 100 + nodes);
            struct accept *a = play(&p);
            size_t count, paths;
            const struct accept_node *found = accept_nodes(a, &count);
            accept_paths(a, &paths);
            assert_states(a, &p, NULL, 0);
            assert_int_equal(paths, 0);
            for (size_t i = 0; i < count; i++) {
                assert_int_equal(found[i].state, ACCEPT_PASSED);
                assert_true(nodes == 1 || found[i].pairs >= (nodes > 2 ? 2 : 1));
                assert_true(found[i].alone > 0);
            }
            accept_free(a);
        }
}

/* Wherever it is, and however few there are to tell. */
static void one_that_dies_with_a_partner_is_named(void **state)
{
    (void)state;
    for (size_t nodes = 3; nodes <= 33; nodes++)
        for (uint32_t bad = 0; bad < nodes; bad++) {
            struct play p = play_of(nodes, nodes);
            p.crashes[bad] = true;
            struct accept *a = play(&p);
            assert_states(a, &p, &bad, 1);
            accept_free(a);
        }
}

static void of_two_alone_both_are_suspect(void **state)
{
    (void)state;
    struct play p = play_of(2, 1);
    p.crashes[1] = true;
    struct accept *a = play(&p);
    size_t count;
    const struct accept_node *nodes = accept_nodes(a, &count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(nodes[i].state, ACCEPT_SUSPECT);
        assert_string_equal(nodes[i].reason,
                            "a rank died of signal 9; no third node tells which of two it is");
    }
    accept_free(a);
}

static void path_between_two_is_named(void **state)
{
    (void)state;
    struct play p = play_of(64, 5);
    p.path[0] = 8;
    p.path[1] = 12; /* partners of round 3 */
    struct accept *a = play(&p);
    size_t count;
    const struct accept_path *paths = accept_paths(a, &count);
    assert_states(a, &p, NULL, 0);
    assert_int_equal(count, 1);
    assert_int_equal(paths[0].node, 8);
    assert_int_equal(paths[0].partner, 12);
    assert_non_null(strstr(paths[0].reason, "below the median of"));
    accept_free(a);
}

static void half_of_the_nodes_are_bad(void **state)
{
    (void)state;
    struct play p = play_of(32, 9);
    uint32_t bad[16];
    for (uint32_t i = 0; i < 16; i++)
        p.crashes[bad[i] = 2 * i + (i % 3 == 0)] = true;
    struct accept *a = play(&p);
    assert_states(a, &p, bad, 16);
    accept_free(a);
}

static void floor_names_where_too_few_are_beside(void **state)
{
    (void)state;
    struct play p = play_of(3, 2);
    p.options = (struct accept_options){.floor_alone = 300, .floor_pair = 300};
    p.speed[1] = 0.7;
    uint32_t bad = 1;
    struct accept *a = play(&p);
    size_t count;
    assert_states(a, &p, &bad, 1);
    assert_non_null(strstr(accept_nodes(a, &count)[1].reason, "alone, twice: "));
    assert_non_null(strstr(accept_nodes(a, &count)[1].reason, "below 300"));
    accept_free(a);
}

static void assert_node(const struct accept *a, size_t node, enum accept_state state,
                        const char *reason)
{
    size_t count;
    const struct accept_node *nodes = accept_nodes(a, &count);
    assert_true(node < count);
    if (!strstr(nodes[node].reason, reason))
        fail_msg("%s", nodes[node].reason);
    assert_int_equal(nodes[node].state, state);
}

static void assert_not_compared(const struct accept *a, const char *first, const char *second)
{
    struct strlist list = STRLIST_INIT;
    const char *wanted[] = {first, second};
    accept_not_compared(a, &list);
    assert_int_equal(list.count, !!first + !!second);
    for (size_t i = 0; i < list.count; i++)
        assert_string_equal(list.items[i], wanted[i]);
    strlist_done(&list);
}

/* A quarter of the speed is plain where a tenth is not, and what could not be seen is said. */
static void what_is_plain_is_named_among_few(void **state)
{
    (void)state;
    for (size_t nodes = 3; nodes <= 4; nodes++)
        for (uint32_t bad = 0; bad < nodes; bad++) {
            struct play p = play_of(nodes, 7);
            p.speed[bad] = 0.25;
            struct accept *a = play(&p);
            assert_states(a, &p, &bad, 1);
            assert_node(a, bad, ACCEPT_BAD, " % below the median of ");
            accept_free(a);
        }
    struct play p = play_of(4, 7);
    p.speed[3] = 0.8;
    struct accept *a = play(&p);
    assert_node(a, 3, ACCEPT_PASSED, "");
    assert_not_compared(
        a,
        "speeds of nodes alone above half of the others': there are only 4 results; give "
        "--min-alone",
        "speeds of pairs above half of the others': there are only 2 results in a round; give "
        "--min-pair");
    accept_free(a);
    p = play_of(40, 7);
    a = play(&p);
    assert_not_compared(a, NULL, NULL);
    accept_free(a);
}

/* A node with one GPU, alone: no number of nodes makes a speed of it. */
static void one_rank_has_no_speed(void **state)
{
    (void)state;
    for (size_t nodes = 1; nodes <= 40; nodes += 39) {
        struct play p = play_of(nodes, 7);
        for (size_t i = 0; i < nodes; i++)
            p.speed[i] = 0;
        p.options.alone_only = true;
        struct accept *a = play(&p);
        assert_node(a, 0, ACCEPT_PASSED, "");
        assert_not_compared(a,
                            "speeds of nodes alone: all are 0, as that of one rank is on any node; "
                            "let the job have several ranks on a node",
                            NULL);
        accept_free(a);
    }
}

static void of_two_the_slower_is_suspect(void **state)
{
    (void)state;
    struct play p = play_of(2, 3);
    p.speed[0] = 0.25;
    struct accept *a = play(&p);
    assert_node(a, 0, ACCEPT_SUSPECT, " % below the only other, 3");
    assert_node(a, 0, ACCEPT_SUSPECT, "; no third node tells which of two it is");
    assert_node(a, 1, ACCEPT_UNKNOWN, "passed alone; no pair could be run: no partner was left");
    accept_free(a);
    p = play_of(2, 3);
    p.speed[0] = 0.25;
    p.options.alone_only = true;
    a = play(&p);
    assert_node(a, 1, ACCEPT_PASSED, "");
    accept_free(a);
    p = play_of(2, 3);
    a = play(&p);
    assert_not_compared(
        a,
        "speeds of nodes alone above half of the others': there are only 2 results; give "
        "--min-alone",
        "speeds of pairs: there is only one result in a round; give --min-pair");
    accept_free(a);
}

static void without_a_pair_no_node_passes(void **state)
{
    (void)state;
    for (size_t nodes = 1; nodes <= 6; nodes++) {
        struct play p = play_of(nodes, nodes);
        p.pairs_not_run = true;
        struct accept *a = play(&p);
        for (size_t i = 0; i < nodes; i++)
            assert_node(a, i, nodes == 1 ? ACCEPT_PASSED : ACCEPT_UNKNOWN,
                        nodes == 1 ? "" : "passed alone; no pair could be run: preempted");
        accept_free(a);
    }
}

static void a_wrong_job_names_no_node(void **state)
{
    (void)state;
    struct play p = play_of(6, 1);
    p.all_crash = true;
    struct accept *a = play(&p);
    assert_int_equal(p.waves, 1);
    for (size_t i = 0; i < 6; i++)
        assert_node(a, i, ACCEPT_UNKNOWN,
                    "no node ran this job: look at the job first: rank 0 exited with status 127");
    accept_free(a);
    p = play_of(2, 1); /* both ran it, and received wrong data */
    p.all_crash = p.ran = true;
    a = play(&p);
    assert_node(a, 0, ACCEPT_BAD, "alone, twice: rank 0 exited with status 127");
    accept_free(a);
    p = play_of(2, 1);
    p.all_crash = p.refused = true;
    a = play(&p);
    assert_node(a, 1, ACCEPT_BAD, "alone, twice: rank 0 exited with status 127");
    accept_free(a);
    for (p = play_of(20, 1), p.busy = 8; p.busy < 20; p.busy++) { /* nobody knows of those */
        p.all_crash = true;
        p.waves = 0;
        a = play(&p);
        assert_node(a, 0, ACCEPT_UNKNOWN, "preempted");
        if (p.busy < 10)
            assert_node(a, 19, ACCEPT_UNKNOWN, "no node ran this job: ");
        else
            assert_node(a, 19, ACCEPT_BAD, "alone, twice: rank 0 exited with status 127");
        accept_free(a);
    }
    p = play_of(1, 1); /* of one nobody can tell */
    p.all_crash = true;
    a = play(&p);
    assert_node(a, 0, ACCEPT_BAD, "alone, twice: rank 0 exited with status 127");
    accept_free(a);
}

static void what_was_not_run_accuses_nobody(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct play p = play_of(50, seed);
        p.not_run = 0.1;
        struct accept *a = play(&p);
        size_t count, unknown = 0;
        const struct accept_node *nodes = accept_nodes(a, &count);
        for (size_t i = 0; i < count; i++) {
            assert_true(nodes[i].state == ACCEPT_PASSED || nodes[i].state == ACCEPT_UNKNOWN);
            assert_true(nodes[i].state == ACCEPT_PASSED || !strcmp(nodes[i].reason, "preempted"));
            unknown += nodes[i].state == ACCEPT_UNKNOWN;
        }
        assert_true(unknown < 20);
        accept_free(a);
    }
}

/* The order of answers changes nothing: whoever resumes gives them as a file has them. */
static void order_of_answers_does_not_matter(void **state)
{
    (void)state;
    struct play p = play_of(100, 3), q;
    p.crashes[40] = p.crashes[77] = true;
    p.speed[5] = 0.6;
    q = p;
    struct accept *a = begin(&p), *b = begin(&q);
    while (play_wave(&p, a, false)) {
        size_t count, other;
        assert_true(play_wave(&q, b, true));
        const struct accept_test *x = accept_wave(a, &count), *y = accept_wave(b, &other);
        assert_int_equal(count, other);
        for (size_t i = 0; i < count; i++)
            assert_true(x[i].node == y[i].node && x[i].partner == y[i].partner);
        assert_int_equal(accept_wave_number(a), accept_wave_number(b));
    }
    accept_free(a);
    accept_free(b);
}

static void alone_only(void **state)
{
    (void)state;
    struct play p = play_of(20, 3);
    p.options.alone_only = true;
    struct accept *a = play(&p);
    assert_int_equal(p.waves, 1);
    assert_int_equal(p.tests, 20);
    accept_free(a);
}

static void bad_counts(void **state)
{
    (void)state;
    struct accept *a = NULL;
    struct accept_options options = {0};
    struct drarun_error err = {0};
    assert_int_equal(accept_new(0, &options, &a, &err), -EINVAL);
    assert_string_equal(err.text, "0 nodes cannot be tested: there must be 1 to 65536");
    assert_int_equal(accept_new(ACCEPT_NODES_MAX + 1, &options, &a, &err), -EINVAL);
    assert_null(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_of_500_are_named),
        cmocka_unit_test(nobody_of_clean_clusters_is_named),
        cmocka_unit_test(one_that_dies_with_a_partner_is_named),
        cmocka_unit_test(of_two_alone_both_are_suspect),
        cmocka_unit_test(path_between_two_is_named),
        cmocka_unit_test(half_of_the_nodes_are_bad),
        cmocka_unit_test(floor_names_where_too_few_are_beside),
        cmocka_unit_test(what_is_plain_is_named_among_few),
        cmocka_unit_test(one_rank_has_no_speed),
        cmocka_unit_test(of_two_the_slower_is_suspect),
        cmocka_unit_test(without_a_pair_no_node_passes),
        cmocka_unit_test(a_wrong_job_names_no_node),
        cmocka_unit_test(what_was_not_run_accuses_nobody),
        cmocka_unit_test(order_of_answers_does_not_matter),
        cmocka_unit_test(alone_only),
        cmocka_unit_test(bad_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
