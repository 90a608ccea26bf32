/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/accept/accept.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/accept/median.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define SLOWER 0.1
#define STRIKES 2 /* failures with partners that are well, before a node is named */

enum phase { ALONE, ALONE_AGAIN, PAIRS, LEFT, SEPARATE, PAIR_AGAIN, DONE };

/* A pair that failed in this round. */
struct suspicion {
    uint32_t node[2];
    char reason[ACCEPT_REASON];
};

/* One of a suspicion's two, while it is found out. */
struct suspect {
    uint32_t node, tried[STRIKES];
    unsigned strikes;
    bool cleared;
};

struct accept {
    struct accept_options options;
    struct accept_node *nodes;
    size_t count;

    enum phase phase;
    unsigned wave, round, rounds;
    struct accept_test *tests;
    size_t test_count;
    char name[96];

    struct median slow;   /* of the last full wave */
    size_t alone, paired; /* results of the full waves: of the first, and the most of a round */
    uint32_t *members;    /* of the rounds' pairs, by their place in them */
    size_t member_count;
    bool *proven;  /* well in this round */
    bool *doubted; /* failed, and nobody could tell whose fault it was; `reason` says how */
    uint32_t left; /* the odd one of the round, or ACCEPT_NOBODY */
    struct suspicion *suspicions;
    size_t suspicion_count;
    struct suspect *suspects;
    size_t suspect_count;
    struct accept_path *paths;
    size_t path_count;
    double *scratch;
};

void accept_free(struct accept *a)
{
    if (!a)
        return;
    free(a->nodes);
    free(a->tests);
    free(a->members);
    free(a->proven);
    free(a->doubted);
    free(a->suspicions);
    free(a->suspects);
    free(a->paths);
    free(a->scratch);
    free(a);
}

static void add_test(struct accept *a, uint32_t node, uint32_t partner)
{
    a->tests[a->test_count++] = (struct accept_test){.node = node, .partner = partner};
}

static void begin_wave(struct accept *a, enum phase phase)
{
    a->phase = phase;
    a->test_count = 0;
    a->wave++;
}

static bool takes_part(const struct accept *a, uint32_t node)
{
    return a->nodes[node].state == ACCEPT_PASSED;
}

/* Why this test is not well, or false. */
static bool is_bad(const struct accept *a, const struct accept_test *t, char reason[ACCEPT_REASON])
{
    if (t->answer.outcome == ACCEPT_FAILED) {
        memcpy(reason, t->answer.reason, ACCEPT_REASON);
        return true;
    }
    const struct median *slow = &a->slow;
    if (t->answer.outcome == ACCEPT_NOT_RUN || t->answer.busbw >= slow->cut)
        return false;
    if (t->answer.busbw < slow->usual * (1 - slow->part))
        snprintf(reason, ACCEPT_REASON, "%.4g GB/s, %.0f %% below %s %.4g", t->answer.busbw,
                 100 * (1 - t->answer.busbw / slow->usual),
                 slow->measured == 2 ? "the only other," : "the median of", slow->usual);
    else
        snprintf(reason, ACCEPT_REASON, "%.4g GB/s, below %.4g", t->answer.busbw, slow->cut);
    return true;
}

static void judge_wave(struct accept *a, double floor, size_t *most)
{
    median_of(a->tests, a->test_count, a->options.slower, floor, a->scratch, &a->slow);
    *most = a->slow.measured > *most ? a->slow.measured : *most;
}

static void suspect(struct accept_node *node)
{
    size_t length = strnlen(node->reason, ACCEPT_REASON - 64);
    node->state = ACCEPT_SUSPECT;
    snprintf(node->reason + length, ACCEPT_REASON - length,
             "; no third node tells which of two it is");
}

static void name(struct accept *a, uint32_t node, const char *when, const char *reason)
{
    a->nodes[node].state = ACCEPT_BAD;
    snprintf(a->nodes[node].reason, ACCEPT_REASON, "%s: %.200s", when, reason);
}

/* ---- each alone ---- */

/* The test was not run; reason before: why it was not well the first time. */
static void leave_unknown(struct accept_node *node, const char *why)
{
    char before[ACCEPT_REASON];
    memcpy(before, node->reason, ACCEPT_REASON);
    node->state = ACCEPT_UNKNOWN;
    snprintf(node->reason, ACCEPT_REASON, "%.120s%s%.100s", why,
             before[0] ? "; the first time it was not well: " : "", before);
}

/* More than half of the wave, two or more, and none came to a figure: it is the job that is wrong,
 * and no node. */
static bool is_job_at_fault(const struct accept *a)
{
    size_t failed = 0;
    for (size_t i = 0; i < a->test_count; i++) {
        const struct accept_answer *answer = &a->tests[i].answer;
        if (answer->outcome == ACCEPT_MEASURED || answer->ran)
            return false;
        failed += answer->outcome == ACCEPT_FAILED && !answer->refused;
    }
    return failed > 1 && 2 * failed > a->test_count;
}

static void leave_all_unknown(struct accept *a)
{
    for (size_t i = 0; i < a->test_count; i++) {
        const struct accept_answer *answer = &a->tests[i].answer;
        bool failed = answer->outcome == ACCEPT_FAILED && !answer->refused;
        snprintf(a->nodes[a->tests[i].node].reason, ACCEPT_REASON, "%s%.190s",
                 failed ? "no node ran this job: look at the job first: " : "", answer->reason);
    }
}

/* Of two that differ nobody knows which is as it should be. */
static void name_slower(struct accept *a, const struct accept_test *t, const char *reason)
{
    bool of_two = a->slow.measured == 2 && t->answer.outcome == ACCEPT_MEASURED;
    name(a, t->node, "alone, twice", reason);
    if (of_two && t->answer.busbw >= a->options.floor_alone)
        suspect(&a->nodes[t->node]);
}

/* A node that is not well gets one more try, beside the others' figures. */
static void after_alone(struct accept *a)
{
    size_t count = a->test_count;
    char reason[ACCEPT_REASON];
    bool again = a->phase == ALONE_AGAIN;
    if (!again)
        judge_wave(a, a->options.floor_alone, &a->alone);
    begin_wave(a, ALONE_AGAIN);
    for (size_t i = 0; i < count; i++) {
        const struct accept_test t = a->tests[i];
        struct accept_node *node = &a->nodes[t.node];
        if (t.answer.outcome == ACCEPT_MEASURED && t.answer.busbw > node->alone)
            node->alone = t.answer.busbw;
        if (t.answer.outcome == ACCEPT_NOT_RUN) {
            leave_unknown(node, t.answer.reason);
        } else if (!is_bad(a, &t, reason)) {
            node->state = ACCEPT_PASSED;
            node->reason[0] = '\0';
        } else if (again) {
            name_slower(a, &t, reason);
        } else {
            memcpy(node->reason, reason, ACCEPT_REASON);
            add_test(a, t.node, ACCEPT_NOBODY); /* not past the one that is read */
        }
    }
    snprintf(a->name, sizeof a->name, "once more alone");
}

/* ---- pairs ---- */

static uint32_t bits_for(size_t count)
{
    uint32_t bits = 0;
    while (((size_t)1 << bits) < count)
        bits++;
    return bits;
}

static void begin_rounds(struct accept *a)
{
    a->member_count = 0;
    for (uint32_t i = 0; i < a->count; i++)
        if (takes_part(a, i))
            a->members[a->member_count++] = i;
    a->rounds = a->options.alone_only ? 0 : bits_for(a->member_count);
    a->round = 0;
}

/* Those whose partner is not there, pair up among themselves. */
static void begin_round(struct accept *a)
{
    uint32_t waiting = ACCEPT_NOBODY;
    begin_wave(a, PAIRS);
    for (size_t i = 0; i < a->member_count; i++) {
        size_t other = i ^ ((size_t)1 << a->round);
        uint32_t node = a->members[i];
        if (!takes_part(a, node))
            continue;
        if (other < a->member_count && takes_part(a, a->members[other])) {
            if (i < other)
                add_test(a, node, a->members[other]);
        } else if (waiting == ACCEPT_NOBODY) {
            waiting = node;
        } else {
            add_test(a, waiting, node);
            waiting = ACCEPT_NOBODY;
        }
    }
    a->left = waiting;
    a->suspicion_count = a->suspect_count = 0;
    memset(a->proven, 0, a->count * sizeof *a->proven);
    snprintf(a->name, sizeof a->name, "pairs, round %u of %u", a->round + 1, a->rounds);
}

static void note_pair(struct accept *a, const struct accept_test *t)
{
    const uint32_t both[2] = {t->node, t->partner};
    for (int k = 0; k < 2; k++) {
        struct accept_node *node = &a->nodes[both[k]];
        if (t->answer.outcome == ACCEPT_NOT_RUN && node->pairs == 0 && !a->doubted[both[k]])
            memcpy(node->reason, t->answer.reason, ACCEPT_REASON); /* finish() may need it */
        if (t->answer.outcome != ACCEPT_MEASURED)
            continue;
        node->pairs++;
        if (t->answer.busbw >= a->slow.cut && (node->worst < 0 || t->answer.busbw < node->worst))
            node->worst = t->answer.busbw;
    }
}

static void suspect_both(struct accept *a, const struct accept_test *t,
                         const char reason[ACCEPT_REASON])
{
    struct suspicion *s = &a->suspicions[a->suspicion_count++];
    *s = (struct suspicion){.node = {t->node, t->partner}};
    memcpy(s->reason, reason, ACCEPT_REASON);
    for (int k = 0; k < 2; k++) {
        a->suspects[a->suspect_count++] = (struct suspect){.node = s->node[k]};
        a->proven[s->node[k]] = false;
    }
}

static void prove(struct accept *a, uint32_t node)
{
    a->proven[node] = true;
    a->doubted[node] = false;
    a->nodes[node].reason[0] = '\0';
}

static void after_pairs(struct accept *a)
{
    char reason[ACCEPT_REASON];
    if (a->phase == PAIRS)
        judge_wave(a, a->options.floor_pair, &a->paired);
    for (size_t i = 0; i < a->test_count; i++) {
        const struct accept_test *t = &a->tests[i];
        note_pair(a, t);
        if (is_bad(a, t, reason)) {
            suspect_both(a, t, reason);
        } else if (t->answer.outcome == ACCEPT_MEASURED) {
            prove(a, t->node);
            prove(a, t->partner);
        }
    }
}

/* The odd one, with one that is well, so that it is not left out. */
static bool begin_left(struct accept *a)
{
    if (a->left == ACCEPT_NOBODY)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->proven[i]) {
            begin_wave(a, LEFT);
            add_test(a, a->left, i);
            snprintf(a->name, sizeof a->name, "the odd one of round %u", a->round + 1);
            a->left = ACCEPT_NOBODY;
            return true;
        }
    return false;
}

/* ---- whom a pair's failure names ---- */

static struct suspect *suspect_of(struct accept *a, uint32_t node)
{
    for (size_t i = 0; i < a->suspect_count; i++)
        if (a->suspects[i].node == node)
            return &a->suspects[i];
    return NULL;
}

/* Where no pair was well, who was in none serves: when one of the two fails with it and the other
 * does not, that says enough. */
static void find_witnesses(struct accept *a)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (a->proven[i])
            return;
    for (uint32_t i = 0; i < a->count; i++)
        a->proven[i] = takes_part(a, i) && !suspect_of(a, i);
}

static bool is_settled(const struct suspect *s)
{
    return s->cleared || s->strikes == STRIKES;
}

/* One that is well, is free in this wave and was not tried with this suspect. */
static uint32_t find_partner(struct accept *a, const struct suspect *s, uint32_t from)
{
    for (uint32_t step = 0; step < a->count; step++) {
        uint32_t i = (from + step) % (uint32_t)a->count;
        bool tried = s->strikes > 0 && s->tried[0] == i;
        if (a->proven[i] && !tried)
            return i;
    }
    return ACCEPT_NOBODY;
}

static bool begin_separation(struct accept *a)
{
    uint32_t unsettled = 0;
    begin_wave(a, SEPARATE);
    for (size_t i = 0; i < a->suspect_count; i++) {
        struct suspect *s = &a->suspects[i];
        if (is_settled(s))
            continue;
        uint32_t partner = find_partner(a, s, s->node + 1);
        unsettled++;
        if (partner == ACCEPT_NOBODY)
            continue; /* all are at work: its turn comes in a later wave */
        a->proven[partner] = false;
        s->tried[s->strikes] = partner;
        add_test(a, s->node, partner);
    }
    for (size_t i = 0; i < a->test_count; i++)
        a->proven[a->tests[i].partner] = true;
    snprintf(a->name, sizeof a->name, "who of %u it is, round %u of %u", unsettled, a->round + 1,
             a->rounds);
    return a->test_count > 0;
}

static void clear(struct accept *a, struct suspect *s)
{
    s->cleared = true;
    prove(a, s->node);
}

static void after_separation(struct accept *a)
{
    char reason[ACCEPT_REASON];
    for (size_t i = 0; i < a->test_count; i++) {
        const struct accept_test *t = &a->tests[i];
        struct suspect *s = suspect_of(a, t->node);
        note_pair(a, t);
        if (t->answer.outcome == ACCEPT_NOT_RUN)
            s->cleared = true; /* it accuses nobody */
        else if (!is_bad(a, t, reason))
            clear(a, s);
        else if (++s->strikes == STRIKES)
            name(a, s->node, "in three pairs, with partners that are well", reason);
    }
}

/* Whom too few could tell of. */
static void settle_rest(struct accept *a, const struct suspicion *s, const struct suspect pair[2])
{
    for (int k = 0; k < 2; k++) {
        struct accept_node *node = &a->nodes[pair[k].node];
        if (is_settled(&pair[k]) || node->state != ACCEPT_PASSED)
            continue;
        if (pair[k].strikes > 0 && pair[!k].cleared) {
            name(a, pair[k].node, "in two pairs, with partners that are well", s->reason);
        } else if (!is_settled(&pair[!k])) {
            a->doubted[pair[k].node] = true; /* a later round may tell */
            memcpy(node->reason, s->reason, ACCEPT_REASON);
        }
    }
}

/* Both are well with others. */
static bool begin_pairs_again(struct accept *a)
{
    begin_wave(a, PAIR_AGAIN);
    for (size_t i = 0; i < a->suspicion_count; i++)
        if (a->suspects[2 * i].cleared && a->suspects[2 * i + 1].cleared)
            add_test(a, a->suspicions[i].node[0], a->suspicions[i].node[1]);
    snprintf(a->name, sizeof a->name, "pairs once more, round %u of %u", a->round + 1, a->rounds);
    return a->test_count > 0;
}

static int after_pairs_again(struct accept *a, struct drarun_error *err)
{
    char reason[ACCEPT_REASON];
    for (size_t i = 0; i < a->test_count; i++) {
        const struct accept_test *t = &a->tests[i];
        note_pair(a, t);
        if (!is_bad(a, t, reason))
            continue;
        struct accept_path *paths = reallocarray(a->paths, a->path_count + 1, sizeof *paths);
        if (!paths)
            return error_set(err, ENOMEM, "out of memory");
        a->paths = paths;
        paths[a->path_count] = (struct accept_path){.node = t->node, .partner = t->partner};
        memcpy(paths[a->path_count++].reason, reason, ACCEPT_REASON);
    }
    return 0;
}

/* ---- waves ---- */

/* It passed alone, and was measured with none of the others. */
static void leave_unpaired(struct accept_node *node)
{
    char why[ACCEPT_REASON];
    memcpy(why, node->reason, ACCEPT_REASON);
    node->state = ACCEPT_UNKNOWN;
    snprintf(node->reason, ACCEPT_REASON, "passed alone; no pair could be run: %.200s",
             why[0] ? why : "no partner was left");
}

static void finish(struct accept *a)
{
    begin_wave(a, DONE);
    a->name[0] = '\0';
    for (size_t i = 0; i < a->count; i++) {
        struct accept_node *node = &a->nodes[i];
        if (node->state != ACCEPT_PASSED)
            continue;
        if (a->doubted[i])
            suspect(node);
        else if (node->pairs == 0 && !a->options.alone_only && a->count > 1)
            leave_unpaired(node);
        else
            node->reason[0] = '\0';
    }
}

/* From a->round on. */
static void next_round(struct accept *a)
{
    for (; a->round < a->rounds; a->round++) {
        begin_round(a);
        if (a->test_count > 0)
            return;
    }
    finish(a);
}

static void finish_round(struct accept *a)
{
    for (size_t i = 0; i < a->suspicion_count; i++)
        settle_rest(a, &a->suspicions[i], &a->suspects[2 * i]);
    a->round++;
    next_round(a);
}

int accept_advance(struct accept *a, struct drarun_error *err)
{
    int rc = 0;
    switch (a->phase) {
    case ALONE:
    case ALONE_AGAIN:
        if (a->phase == ALONE && is_job_at_fault(a)) {
            leave_all_unknown(a);
            finish(a);
            break;
        }
        after_alone(a);
        if (a->test_count > 0)
            break;
        begin_rounds(a);
        next_round(a);
        break;
    case PAIRS:
    case LEFT:
        after_pairs(a);
        if (begin_left(a))
            break;
        find_witnesses(a);
        if (!begin_separation(a))
            finish_round(a);
        break;
    case SEPARATE:
        after_separation(a);
        if (!begin_separation(a) && !begin_pairs_again(a))
            finish_round(a);
        break;
    case PAIR_AGAIN:
        rc = after_pairs_again(a, err);
        finish_round(a);
        break;
    case DONE:
        break;
    }
    return rc;
}

int accept_new(size_t nodes, const struct accept_options *options, struct accept **ret,
               struct drarun_error *err)
{
    if (nodes == 0 || nodes > ACCEPT_NODES_MAX)
        return error_set(err, EINVAL, "%zu nodes cannot be tested: there must be 1 to %u", nodes,
                         ACCEPT_NODES_MAX);
    CLEANUP(accept_freep) struct accept *a = calloc(1, sizeof *a);
    if (!a)
        return error_set(err, ENOMEM, "out of memory");
    *a = (struct accept){.options = *options, .count = nodes, .left = ACCEPT_NOBODY};
    if (a->options.slower == 0)
        a->options.slower = SLOWER;
    a->nodes = calloc(nodes, sizeof *a->nodes);
    a->tests = calloc(nodes, sizeof *a->tests);
    a->members = calloc(nodes, sizeof *a->members);
    a->proven = calloc(nodes, sizeof *a->proven);
    a->doubted = calloc(nodes, sizeof *a->doubted);
    a->suspicions = calloc(nodes / 2 + 1, sizeof *a->suspicions);
    a->suspects = calloc(nodes + 2, sizeof *a->suspects);
    a->scratch = calloc(nodes, sizeof *a->scratch);
    if (!a->nodes || !a->tests || !a->members || !a->proven || !a->doubted || !a->suspicions ||
        !a->suspects || !a->scratch)
        return error_set(err, ENOMEM, "out of memory");
    begin_wave(a, ALONE);
    for (uint32_t i = 0; i < nodes; i++) {
        a->nodes[i].alone = a->nodes[i].worst = -1;
        add_test(a, i, ACCEPT_NOBODY);
    }
    snprintf(a->name, sizeof a->name, "each node alone");
    *ret = TAKE_PTR(a);
    return 0;
}

const struct accept_test *accept_wave(const struct accept *a, size_t *ret_count)
{
    *ret_count = a->test_count;
    return a->tests;
}

const char *accept_wave_name(const struct accept *a)
{
    return a->name;
}

unsigned accept_wave_number(const struct accept *a)
{
    return a->wave;
}

void accept_answer(struct accept *a, size_t test, const struct accept_answer *answer)
{
    a->tests[test].answer = *answer;
    a->tests[test].answered = true;
    const uint32_t nodes[] = {a->tests[test].node, a->tests[test].partner};
    for (size_t i = 0; i < 2 && answer->outcome != ACCEPT_NOT_RUN; i++)
        if (nodes[i] != ACCEPT_NOBODY)
            memcpy(a->nodes[nodes[i]].not_looked, answer->not_looked, ACCEPT_REASON);
}

const struct accept_node *accept_nodes(const struct accept *a, size_t *ret_count)
{
    *ret_count = a->count;
    return a->nodes;
}

/* most: results of a wave that were compared with each other. */
static void add_not_compared(size_t most, double floor, const char *what, const char *where,
                             const char *option, struct strlist *to)
{
    if (most == 0 || most >= MEDIAN_LEAST || floor > 0)
        return;
    if (most == 1)
        strlist_addf(to, "speeds of %s: there is only one result%s; give %s", what, where, option);
    else
        strlist_addf(
            to, "speeds of %s above half of the others': there are only %zu results%s; give %s",
            what, most, where, option);
}

/* As it is of one rank, on any node: no figure is above 0. */
static bool alone_is_no_speed(const struct accept *a)
{
    bool any = false;
    for (size_t i = 0; i < a->count; i++) {
        if (a->nodes[i].alone > 0)
            return false;
        any = any || a->nodes[i].alone == 0;
    }
    return any;
}

void accept_not_compared(const struct accept *a, struct strlist *ret_sentences)
{
    const struct accept_options *o = &a->options;
    if (alone_is_no_speed(a))
        strlist_add(ret_sentences,
                    "speeds of nodes alone: all are 0, as that of one rank is on any node; let the "
                    "job have several ranks on a node");
    else
        add_not_compared(a->alone, o->floor_alone, "nodes alone", "", "--min-alone", ret_sentences);
    add_not_compared(a->paired, o->floor_pair, "pairs", " in a round", "--min-pair", ret_sentences);
}

const struct accept_path *accept_paths(const struct accept *a, size_t *ret_count)
{
    *ret_count = a->path_count;
    return a->paths;
}
