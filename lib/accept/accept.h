/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes are fit: what to run on them, and whom the results name.
 *
 * Tests come in waves; within one no node is in two tests, so that a wave may run side by side. The
 * first has each node alone. Then come ceil(log2(n)) rounds of pairs, in which every node meets
 * another partner each time (i with i XOR 2^r). A pair that fails, or is slow, says nothing of
 * which of its two is to blame: both are tried with partners that have just proved well, and the
 * one that fails there, twice with different partners, is named and left out from then on. When
 * neither fails, the pair is tried once more, and then it is the path between the two that is
 * named.
 *
 * What comes next depends on the answers alone and not on their order or time: a caller that keeps
 * them can continue after a break by giving them again. Slow is what is below a floor, or a tenth
 * (or what `slower` says) below the median of all that ran beside it, of at least five; of fewer,
 * without a floor, what is below half (median.h). Where more than half failed alone and none came
 * to figures, the job is at fault and nothing is said of any. Pure; one thread at a time. */
#ifndef DRARUN_LIB_ACCEPT_H
#define DRARUN_LIB_ACCEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"

#define ACCEPT_NODES_MAX 65536u
#define ACCEPT_REASON 256
#define ACCEPT_NOBODY UINT32_MAX

enum accept_outcome {
    ACCEPT_MEASURED,
    ACCEPT_FAILED,  /* it ran and was not well: `reason` */
    ACCEPT_NOT_RUN, /* no room, no API server: says nothing of the nodes */
};

struct accept_answer {
    enum accept_outcome outcome;
    bool ran;     /* when failed: it came to figures all the same */
    bool refused; /* when failed: by what a worker found on its node, before the program ran */
    double busbw; /* GB/s, when measured, or when it ran */
    char reason[ACCEPT_REASON];
    char not_looked[ACCEPT_REASON]; /* at what the test could not look, for people; "" */
};

struct accept_test {
    uint32_t node, partner; /* partner ACCEPT_NOBODY: the node alone */
    bool answered;
    struct accept_answer answer;
};

enum accept_state {
    ACCEPT_UNKNOWN, /* not measured, or not with a partner: `reason` says why */
    ACCEPT_PASSED,
    ACCEPT_BAD,
    ACCEPT_SUSPECT, /* one of two, and no third was there to tell which */
};

struct accept_node {
    enum accept_state state;
    char reason[ACCEPT_REASON];
    char not_looked[ACCEPT_REASON]; /* at what no test could look, as the last one says; "" */
    double alone, worst; /* GB/s: alone, and in the slowest pair that was well; below 0: none */
    unsigned pairs;      /* that it was measured in */
};

/* Two that are well with others and not with each other. */
struct accept_path {
    uint32_t node, partner;
    char reason[ACCEPT_REASON];
};

struct accept_options {
    double slower;                  /* part below the median that counts as slow; 0: 0.1 */
    double floor_alone, floor_pair; /* GB/s; 0: none */
    bool alone_only;                /* no pairs */
};

struct accept;

/* -EINVAL: no node, or more than ACCEPT_NODES_MAX. The caller frees it. */
int accept_new(size_t nodes, const struct accept_options *options, struct accept **ret,
               struct drarun_error *err);
void accept_free(struct accept *accept);
static inline void accept_freep(struct accept **accept)
{
    accept_free(*accept);
}

/* The tests of the wave; none: all is said. Borrowed until the next accept_advance. */
const struct accept_test *accept_wave(const struct accept *accept, size_t *ret_count);
/* In words: "each node alone", "pairs, round 2 of 9", "who of 6 it is". */
const char *accept_wave_name(const struct accept *accept);
unsigned accept_wave_number(const struct accept *accept);
void accept_answer(struct accept *accept, size_t test, const struct accept_answer *answer);
/* When all of the wave are answered. -ENOMEM. */
int accept_advance(struct accept *accept, struct drarun_error *err);

const struct accept_node *accept_nodes(const struct accept *accept, size_t *ret_count);
/* Sentences on speeds that too few results, or those of one rank, could show to be slow; none where
 * floors decide. */
void accept_not_compared(const struct accept *accept, struct strlist *ret_sentences);
const struct accept_path *accept_paths(const struct accept *accept, size_t *ret_count);

#endif
