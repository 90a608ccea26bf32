/* SPDX-License-Identifier: Apache-2.0 */
/* The order of ranks, from the nodes of a ComputeDomain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/cluster/lead/private.h"
#include "lib/base/cleanup.h"

#define WORKERS 3u

/* ---- the cluster ---- */

struct board {
    char names[WORKERS][8]; /* of their nodes; those of `states` */
    struct pod_state states[WORKERS];
};

static void fill(struct board *board)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        snprintf(board->names[i], sizeof board->names[i], "n%u", i / 2);
        board->states[i] = (struct pod_state){.node = board->names[i]};
    }
}

const struct pod_state *board_workers(struct board *board, uint32_t attempt)
{
    (void)attempt;
    fill(board);
    return board->states;
}

const json_t *facts_node_labels(const struct facts *facts)
{
    (void)facts;
    return NULL;
}

/* ---- tests ---- */

static void test_cliques_of_nodes(void **state)
{
    static const char *const cliques[WORKERS] = {"one.1", "one.1", "one.2"};
    struct board board = {0};
    CLEANUP(json_decrefp) json_t *asked = json_object();
    const struct job_spec spec = {.name = "job", .workers = WORKERS, .compute_domain = asked};
    struct lead lead = {.spec = &spec, .board = &board};
    (void)state;
    lead.domain.object = json_pack("{s:{s:[{s:s, s:s}, {s:s, s:s}]}}", "status", "nodes", "name",
                                   "n0", "cliqueID", "one.1", "name", "n1", "cliqueID", "one.2");
    assert_int_equal(lead_order_ranks(&lead, NULL), 0);
    for (uint32_t i = 0; i < WORKERS; i++) {
        assert_non_null(lead.domain.cliques[i]);
        assert_string_equal(lead.domain.cliques[i], cliques[i]);
    }
    assert_null(lead.domain.rank_order);
    lead_forget_order(&lead);
    assert_null(lead.domain.cliques);
    assert_null(lead.domain.object);
}

/* Of a domain that could not be read no clique is known: ranks follow the workers' numbers. */
static void test_no_domain(void **state)
{
    struct board board = {0};
    CLEANUP(json_decrefp) json_t *asked = json_object();
    const struct job_spec spec = {.name = "job", .workers = WORKERS, .compute_domain = asked};
    struct lead lead = {.spec = &spec, .board = &board};
    (void)state;
    assert_int_equal(lead_order_ranks(&lead, NULL), 0);
    for (uint32_t i = 0; i < WORKERS; i++)
        assert_null(lead.domain.cliques[i]);
    assert_null(lead.domain.rank_order);
    lead_forget_order(&lead);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cliques_of_nodes),
        cmocka_unit_test(test_no_domain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
