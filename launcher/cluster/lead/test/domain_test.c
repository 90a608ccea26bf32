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

#include "jobs/derive/inventory/plan_input.h"
#include "launcher/cluster/lead/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/test/quoted_json.h"

#define WORKERS 3u

/* ---- the cluster ---- */

struct board {
    char names[WORKERS][8];    /* of their nodes; those of `states` */
    const char *uids[WORKERS]; /* of their pods; NULL or "": there is none */
    struct pod_state states[WORKERS];
};

static void fill(struct board *board)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        snprintf(board->names[i], sizeof board->names[i], "n%u", i / 2);
        const char *uid = board->uids[i] && *board->uids[i] ? board->uids[i] : NULL;
        board->states[i] = (struct pod_state){.node = board->names[i], .uid = uid};
    }
}

const struct pod_state *board_workers(struct board *board, uint32_t attempt)
{
    (void)attempt;
    fill(board);
    return board->states;
}

static const json_t *node_labels; /* NULL: Nodes may not be read */

const json_t *facts_node_labels(const struct facts *facts)
{
    (void)facts;
    return node_labels;
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

/* What Nodes say themselves goes before the domain. */
static void test_cliques_of_labels(void **state)
{
    struct board board = {0};
    CLEANUP(json_decrefp) json_t *asked = json_object();
    CLEANUP(json_decrefp)
    json_t *labels = json_pack("{s:{s:s}, s:{}}", "n0", PLAN_CLIQUE_LABEL, "two.5", "n1");
    const struct job_spec spec = {.name = "job", .workers = WORKERS, .compute_domain = asked};
    struct lead lead = {.spec = &spec, .board = &board, .facts = (struct facts *)&board};
    (void)state;
    node_labels = labels;
    lead.domain.object =
        json_pack("{s:{s:[{s:s, s:s}]}}", "status", "nodes", "name", "n1", "cliqueID", "one.2");
    assert_int_equal(lead_order_ranks(&lead, NULL), 0);
    node_labels = NULL;
    assert_string_equal(lead.domain.cliques[0], "two.5");
    assert_string_equal(lead.domain.cliques[1], "two.5");
    assert_null(lead.domain.cliques[2]); /* its Node says that it has none */
    lead_forget_order(&lead);
}

static void test_job_without_a_domain(void **state)
{
    struct board board = {0};
    const struct job_spec spec = {.name = "job", .workers = WORKERS};
    struct lead lead = {.spec = &spec, .board = &board};
    (void)state;
    assert_int_equal(lead_order_ranks(&lead, NULL), 0);
    assert_null(lead.domain.cliques);
    assert_null(lead.domain.rank_order);
}

/* Claims that the job did not create are of the workers that they are reserved for, once. */
static void test_claims_of_workers(void **state)
{
    struct board board = {.uids = {"u0", "u1", ""}};
    const struct job_spec spec = {.name = "job", .workers = WORKERS};
    struct lead lead = {.spec = &spec, .board = &board};
    static const char *const expected[WORKERS] = {"own c0", "c0 c1", ""};
    CLEANUP(json_decrefp)
    json_t *claims = json_pack("[[{s:{s:s, s:s}}], [], []]", "metadata", "name", "own", "uid", "x");
    (void)state;
    lead.domain.claims = quoted_json(
        "[{'metadata':{'name':'c0','uid':'c0'},'status':{'reservedFor':[{'uid':'u0'},{'uid':'u1'},"
        "{'uid':'u1'}]}},"
        "{'metadata':{'name':'c1','uid':'c1'},'status':{'reservedFor':[{'uid':'u1'}]}},"
        "{'metadata':{'name':'c2','uid':'c2'},'status':{'reservedFor':[{'uid':'u9'},{'name':'a'}]}}"
        ","
        "{'metadata':{'name':'c3','uid':'c3'},'status':{}},"
        "{'metadata':{'name':'again','uid':'x'},'status':{'reservedFor':[{'uid':'u0'}]}}]",
        0);
    assert_int_equal(lead_add_named_claims(&lead, claims, NULL), 0);
    for (size_t w = 0; w < WORKERS; w++) {
        char names[64] = "";
        size_t i;
        json_t *claim;
        json_array_foreach(json_array_get(claims, w), i, claim)
        {
            size_t length = strlen(names);
            snprintf(names + length, sizeof names - length, "%s%s", i ? " " : "", kube_name(claim));
        }
        assert_string_equal(names, expected[w]);
    }
    json_decref(lead.domain.claims);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cliques_of_nodes),  cmocka_unit_test(test_no_domain),
        cmocka_unit_test(test_cliques_of_labels), cmocka_unit_test(test_job_without_a_domain),
        cmocka_unit_test(test_claims_of_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
