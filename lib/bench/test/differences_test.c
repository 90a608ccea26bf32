/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bench/differences.h"

/* paths: one letter a rank, P for PIX and N for NODE. */
static void make(struct result *r, const char *library, const char *paths, const char *about)
{
    result_init(r);
    snprintf(r->library, sizeof r->library, "%s", library);
    for (size_t i = 0; paths[i]; i++) {
        struct result_rank *rank = result_add_rank(r);
        assert_non_null(rank);
        rank->rank = (unsigned)i;
        snprintf(rank->host, sizeof rank->host, "w-0");
        snprintf(rank->kernel, sizeof rank->kernel, "6.1.0");
        snprintf(rank->path, sizeof rank->path, "%s", paths[i] == 'P' ? "PIX" : "NODE");
    }
    r->about = about ? json_loads(about, 0, NULL) : NULL;
    assert_true(!about || r->about);
}

static void check(struct result *a, struct result *b, const char *const *wanted)
{
    struct strlist list = STRLIST_INIT;
    differences_add(a, b, &list);
    for (size_t i = 0; i < list.count && wanted[i]; i++)
        assert_string_equal(list.items[i], wanted[i]);
    for (size_t i = 0; i <= list.count; i++)
        if ((i < list.count) != (wanted[i] != NULL))
            fail_msg("%zu: %s", i, i < list.count ? list.items[i] : wanted[i]);
    strlist_done(&list);
    result_done(a);
    result_done(b);
}

static void test_nothing(void **state)
{
    struct result a, b;
    (void)state;
    make(&a, "NCCL 2.27.3", "PP", NULL);
    make(&b, "NCCL 2.27.3", "PP", NULL);
    check(&a, &b, (const char *const[]){NULL});
}

static void test_alignment_and_versions(void **state)
{
    struct result a, b;
    (void)state;
    make(&a, "NCCL 2.26.2", "PPPP", NULL);
    make(&b, "NCCL 2.27.3", "PNPN", NULL);
    strlist_add(&b.env, "NCCL_ALGO=Ring");
    snprintf(b.ranks[1].driver, sizeof b.ranks[1].driver, "570.1"); /* of the first: not known */
    check(&a, &b,
          (const char *const[]){"library: NCCL 2.26.2, then NCCL 2.27.3",
                                "GPUs to their nearest NICs: PIX, then NODE on 2, PIX on 2",
                                "only the second: NCCL_ALGO=Ring", NULL});
}

#define ABOUT(align, more, command, version, devices)                                              \
    "{\"job\": {\"metadata\": {\"name\": \"" command                                               \
    "\"}, \"spec\": {\"workers\": 2, \"devices\": "                                                \
    "{" align "\"nics\": {\"count\": 8}}, \"template\": {\"spec\": {\"containers\": [{\"env\": "   \
    "[{\"name\": \"" command "\"}], \"command\": [\"drarun-bench\", \"" command "\"]}]}}" more     \
    "}}, \"status\": {\"launcher\": {\"version\": \"" version "\"}, \"workers\": {\"lines\": "     \
    "[{\"devices\": \"" devices "\"}, {\"devices\": \"" devices "\"}, {}]}}}"

static void test_jobs(void **state)
{
    struct result a, b;
    (void)state;
    make(&a, "", "", ABOUT("\"align\": \"required\", ", "", "x", "1", "8 NICs: 8 PIX"));
    make(&b, "", "", ABOUT("", ", \"hangAfter\": \"4s\\u001b[2J\"", "y", "2", "8 NICs: 8 SYS"));
    check(
        &a, &b,
        (const char *const[]){"spec.devices.align: required, then not set",
                              "spec.template.spec.containers[0].command: [\"drarun-bench\",\"x\"], "
                              "then [\"drarun-bench\",\"y\"]",
                              "spec.hangAfter: not set, then 4s?[2J", "launcher: 1, then 2",
                              "workers' devices: 8 NICs: 8 PIX, then 8 NICs: 8 SYS", NULL});
    make(&a, "", "", ABOUT("", "", "x", "1", "8 NICs: 8 PIX"));
    make(&b, "", "", NULL); /* a run on one machine, or an older file */
    check(&a, &b, (const char *const[]){NULL});
    make(&a, "", "", "{\"job\": 3, \"status\": []}");
    make(&b, "", "", ABOUT("", "", "x", "1", "8 NICs: 8 PIX"));
    check(&a, &b, (const char *const[]){NULL});
}

/* Both have the same GPUs and NICs, of which two are crossed; and what else a plan decides. */
static void test_crossed(void **state)
{
    struct result runs[2];
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        struct result *r = &runs[k];
        make(r, "", "PPPPPP", NULL);
        for (unsigned i = 0; i < 6; i++) {
            unsigned nic = k && i > 1 ? i ^ 1 : i;
            snprintf(r->ranks[i].address, sizeof r->ranks[i].address, "0000:%u0:00.0", i);
            snprintf(r->ranks[i].nearest, sizeof r->ranks[i].nearest, "mlx5_%u", nic);
        }
        r->config = (struct result_config){.known = true, .iterations = 20, .warmup = k};
        strlist_add(&r->env, k ? "NCCL_ALGO=Tree" : "NCCL_ALGO=Ring");
        strlist_add(&r->env, "NCCL_NET=IB");
    }
    check(&runs[0], &runs[1],
          (const char *const[]){
              "rank 2: 0000:20:00.0 with mlx5_2 (PIX), then 0000:20:00.0 with mlx5_3 (PIX)",
              "rank 3: 0000:30:00.0 with mlx5_3 (PIX), then 0000:30:00.0 with mlx5_2 (PIX)",
              "rank 4: 0000:40:00.0 with mlx5_4 (PIX), then 0000:40:00.0 with mlx5_5 (PIX)",
              "rank 5: 0000:50:00.0 with mlx5_5 (PIX), then 0000:50:00.0 with mlx5_4 (PIX)",
              "calls to warm up: 0, then 1", "NCCL_ALGO: Ring, then Tree", NULL});
}

static void test_slow_and_failed(void **state)
{
    struct result a, b;
    (void)state;
    make(&a, "", "PP", NULL);
    make(&b, "", "PP", NULL);
    a.probed.known = b.probed.known = true;
    struct probed_slow *slow = probed_add(&b.probed);
    slow->kind = PROBED_NIC;
    slow->at.rank = 1;
    slow->at.rail = 1;
    slow->seconds = 3e-6;
    slow->usual = 2e-6;
    snprintf(slow->at.host, sizeof slow->at.host, "w-0");
    b.failure = (struct result_failure){.kind = "failure", .text = "rank 1 hangs", .status = 124};
    check(&a, &b,
          (const char *const[]){"slow in the second alone: nic rail 1 of w-0 (its NIC, rank 1): "
                                "+50.0 %",
                                "the second's job failed: rank 1 hangs", NULL});
}

static void test_many(void **state)
{
    struct result a, b;
    struct strlist list = STRLIST_INIT;
    (void)state;
    make(&a, "", "PPPPPPPPPPPP", NULL);
    make(&b, "", "PPPPPPPPPPPP", NULL);
    for (unsigned i = 0; i < 12; i++) {
        snprintf(a.ranks[i].node, sizeof a.ranks[i].node, "node-%02u", i);
        snprintf(b.ranks[i].node, sizeof b.ranks[i].node, "node-%02u", i == 11 ? 99 : i);
    }
    differences_add(&a, &b, &list);
    assert_int_equal(list.count, 1);
    assert_non_null(strstr(list.items[0], "node-07 on 1, and others: those differ"));
    strlist_done(&list);
    result_done(&a);
    result_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_alignment_and_versions),
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_crossed),
        cmocka_unit_test(test_slow_and_failed),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
