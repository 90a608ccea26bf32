/* SPDX-License-Identifier: Apache-2.0 */
/* Pods change while the launcher asks for the compute domain, which no test on a cluster can time.
 */
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

/* The answer comes by the loop, and with it an update of each pod: what board_workers lent is not
 * valid any more. */
int cluster_get(struct cluster *cluster, const struct kube_target *target, json_t **ret_body,
                struct drarun_error *err)
{
    struct board *board = (struct board *)(void *)cluster->outer;
    (void)err;
    assert_string_equal(target->name, "job-domain");
    memset(board->names, 'x', sizeof board->names - 1);
    *ret_body = json_pack("{s:{s:[{s:s, s:s}, {s:s, s:s}]}}", "status", "nodes", "name", "n0",
                          "cliqueID", "one.1", "name", "n1", "cliqueID", "one.2");
    return 0;
}

int cluster_list(struct cluster *cluster, const struct kube_target *target,
                 const struct kube_select *select, json_t **ret_body, struct drarun_error *err)
{
    (void)cluster, (void)target, (void)select, (void)ret_body, (void)err;
    return -1;
}

const char *cluster_claims_version(const struct cluster *cluster)
{
    (void)cluster;
    return "v1";
}

const json_t *facts_node_labels(const struct facts *facts)
{
    (void)facts;
    return NULL;
}

/* ---- tests ---- */

static void test_pods_change_while_the_domain_is_read(void **state)
{
    static const char *const cliques[WORKERS] = {"one.1", "one.1", "one.2"};
    struct board board = {0};
    struct cluster cluster = {.outer = (struct event_base *)(void *)&board};
    CLEANUP(json_decrefp) json_t *asked = json_object();
    const struct lead_options options = {.namespace = "space"};
    const struct job_spec spec = {.name = "job", .workers = WORKERS, .compute_domain = asked};
    struct lead lead = {.cluster = &cluster, .options = &options, .spec = &spec, .board = &board};
    (void)state;
    assert_int_equal(lead_order_ranks(&lead, NULL), 0);
    for (uint32_t i = 0; i < WORKERS; i++) {
        assert_non_null(lead.domain.cliques[i]);
        assert_string_equal(lead.domain.cliques[i], cliques[i]);
    }
    assert_null(lead.domain.rank_order);
    free(lead.domain.cliques);
    json_decref(lead.domain.object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods_change_while_the_domain_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
