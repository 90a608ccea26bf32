/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/bench/result_json.h"

static void add(struct probed *p, enum probed_kind kind, int rank, const char *host, int other)
{
    struct probed_slow *slow = probed_add(p);
    assert_non_null(slow);
    slow->kind = kind;
    slow->seconds = 15e-6;
    slow->usual = 10e-6;
    slow->at.rank = rank;
    slow->at.rail = 2;
    snprintf(slow->at.host, sizeof slow->at.host, "%s", host);
    snprintf(slow->at.device, sizeof slow->at.device, "GPU 0000:18:00.0");
    slow->other.rank = other;
    slow->other.rail = 3;
    snprintf(slow->other.host, sizeof slow->other.host, "h9");
}

static void fill(struct result *r)
{
    struct probed *p = &r->probed;
    result_init(r);
    p->known = true;
    p->pairs = 96;
    p->rails = p->hosts = 4;
    p->rail_pairs = 24;
    add(p, PROBED_RANK, 5, "h1", -1);
    add(p, PROBED_PAIR, 1, "h0", 6);
    add(p, PROBED_HOST, -1, "h2", -1);
    add(p, PROBED_NIC, 6, "h1", -1);
    snprintf(p->slow[3].at.nic, sizeof p->slow[3].at.nic, "mlx5_2");
    snprintf(p->slow[3].at.node, sizeof p->slow[3].at.node, "n1");
    add(p, PROBED_PATH, 1, "h0", 6);
}

static void test_words(void **state)
{
    static const char wanted[] =
        "# All pairs of ranks   : 96 measured\n"
        "# Slow rank            : 5 on h1 (GPU 0000:18:00.0): its pairs take 15.00 us, others' "
        "10.00: +50.0 %\n"
        "# Slow pair            : 1 on h0 and 6 on h9: 15.00 us, others' 10.00: +50.0 %\n"
        "# Rails of the hosts   : 4 on each of 4 hosts, 24 pairs measured\n"
        "# Slow host            : h2: all its rails: its pairs take at least 15.00 us, others' "
        "10.00: +50.0 %\n"
        "# Slow NIC             : rail 2 of n1 (mlx5_2, rank 6): its pairs take 15.00 us, others' "
        "10.00: +50.0 %\n"
        "# Slow path            : rail 2 of h0 and rail 3 of h9: 15.00 us, others' 10.00: +50.0 "
        "%\n";
    struct result r;
    struct buf text = BUF_INIT;
    (void)state;
    fill(&r);
    probed_text(&r.probed, &text);
    assert_string_equal(text.data, wanted);
    assert_true(probed_is_slow(&r.probed, 6) && probed_is_slow(&r.probed, 5));
    assert_false(probed_is_slow(&r.probed, 1)); /* of a path nobody knows which end */
    assert_true(probed_host_is_slow(&r.probed, "h2") && !probed_host_is_slow(&r.probed, "h1"));
    buf_done(&text);
    result_done(&r);
}

/* What is written is read again as it was; of a later version's kinds nothing is made. */
static void test_json(void **state)
{
    struct result r, again;
    struct drarun_error err = {0};
    struct buf text = BUF_INIT, then = BUF_INIT;
    (void)state;
    fill(&r);
    r.failure = (struct result_failure){.kind = "failure", .text = "rank 2 hangs", .status = 124};
    json_t *json = result_json(&r);
    assert_non_null(json);
    json_t *slow = json_object_get(json_object_get(json, "pairs"), "slow");
    assert_int_equal(json_array_size(slow), 5);
    assert_null(json_object_get(json_array_get(slow, 2), "rank"));
    json_array_insert_new(slow, 0, json_pack("{s:s, s:i}", "what", "planet", "rank", 3));
    result_init(&again);
    assert_int_equal(result_json_read(json, "a.json", 0, &again, &err), 0);
    probed_text(&r.probed, &text);
    probed_text(&again.probed, &then);
    assert_string_equal(text.data, then.data);
    assert_string_equal(again.failure.text, "rank 2 hangs");
    assert_int_equal(again.failure.status, 124);
    json_object_set_new(json_array_get(slow, 1), "rank", json_string("five"));
    assert_true(result_json_read(json, "a.json", 0, &again, &err) < 0);
    assert_string_equal(
        err.text, "a.json: pairs.slow[1].rank: expected a whole number from -1 to 2147483647");
    json_decref(json);
    buf_done(&text);
    buf_done(&then);
    result_done(&r);
    result_done(&again);
}

static void test_nothing_measured(void **state)
{
    struct probed p = {.known = true, .why_not = "ranks share CPUs"}, unknown = {0};
    struct buf text = BUF_INIT;
    (void)state;
    probed_text(&unknown, &text);
    assert_int_equal(text.len, 0);
    probed_text(&p, &text);
    assert_string_equal(text.data, "# All pairs of ranks   : not measured: ranks share CPUs\n");
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_nothing_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
