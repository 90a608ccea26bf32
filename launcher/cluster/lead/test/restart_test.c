/* SPDX-License-Identifier: Apache-2.0 */
/* More nodes fail than any cluster of the tests has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/manifests/avoid_node.h"
#include "launcher/cluster/lead/private.h"
#include "lib/base/cleanup.h"

static const struct cause_restart lost = {.retry = true, .avoid_node = true, .new_claims = true};

/* A worker was lost with that node, and the next attempt follows. */
static void lose(struct lead *lead, unsigned number)
{
    char name[16];
    snprintf(name, sizeof name, "n%u", number);
    CLEANUP(json_decrefp)
    json_t *end =
        json_pack("{s:{s:s, s:s, s:s}}", "cause", "kind", "pod", "end", "refused", "node", name);
    lead_note_end(lead, end, lost);
    lead_avoid_nodes(lead);
}

/* The pod of the next attempt can be made, and must not run on that node. */
static bool is_avoided(const struct lead *lead, const char *node)
{
    CLEANUP(json_decrefp) json_t *pod = json_object();
    assert_int_equal(avoid_nodes(pod, lead->render.avoid, lead->render.avoid_count, NULL), 0);
    for (size_t i = 0; i < lead->render.avoid_count; i++)
        if (strcmp(lead->render.avoid[i], node) == 0)
            return true;
    return false;
}

static void test_more_nodes_fail_than_a_pod_avoids(void **unused)
{
    struct job_spec spec = {0};
    struct lead lead = {.spec = &spec};
    (void)unused;
    for (unsigned i = 0; i < AVOID_NODES_MAX; i++)
        lose(&lead, i);
    assert_true(is_avoided(&lead, "n0"));
    for (unsigned i = AVOID_NODES_MAX; i < 3 * AVOID_NODES_MAX; i++)
        lose(&lead, i);
    assert_false(is_avoided(&lead, "n0"));
    assert_false(is_avoided(&lead, "n63"));
    assert_true(is_avoided(&lead, "n64"));
    assert_true(is_avoided(&lead, "n95"));
    assert_true(lead.restarts.next.restart);
    lose(&lead, 0); /* it was used again */
    assert_true(is_avoided(&lead, "n0"));
    lose(&lead, 95); /* is known */
    assert_int_equal(lead.render.avoid_count, AVOID_NODES_MAX);
    assert_true(is_avoided(&lead, "n65"));
    strlist_done(&lead.restarts.avoid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_more_nodes_fail_than_a_pod_avoids)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
