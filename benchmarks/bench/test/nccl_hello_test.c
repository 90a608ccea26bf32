/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/nccl_hello.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define RANKS 4u

/* Two nodes with two ranks each. */
static void make(struct nccl_hello *all)
{
    memset(all, 0, RANKS * sizeof *all);
    for (unsigned i = 0; i < RANKS; i++) {
        all[i].nccl = 22304;
        snprintf(all[i].address, sizeof all[i].address, "0000:%02x:00.0", i % 2);
        snprintf(all[i].host, sizeof all[i].host, "node-%u", i / 2);
    }
}

static void expect(const struct nccl_hello *all, int code, const char *text)
{
    struct drarun_error err = {0};
    assert_int_equal(nccl_hello_check(all, RANKS, &err), -code);
    assert_string_equal(err.text, text);
}

static void test_problems(void **state)
{
    struct nccl_hello all[RANKS];
    (void)state;
    make(all);
    expect(all, 0, "");
    all[2].code = ENODEV;
    snprintf(all[2].problem, sizeof all[2].problem, "no GPU");
    all[2].nccl = 0; /* a rank with a problem does not also differ */
    expect(all, ENODEV, "rank 2 on node-1: no GPU");
    all[3] = all[2];
    expect(all, ENODEV, "rank 2 on node-1 (and 1 more rank): no GPU");
    all[0] = all[1] = all[2];
    expect(all, ENODEV, "rank 0 on node-1 (and all other ranks): no GPU");
}

static void test_versions(void **state)
{
    struct nccl_hello all[RANKS];
    (void)state;
    make(all);
    all[1].nccl = 2804;
    all[3].nccl = 23203;
    expect(all, EPROTO,
           "ranks have different versions of NCCL: rank 0 on node-0 has 2.23.4, rank 1 on node-0 "
           "has 2.8.4 (2 of 4 differ from rank 0): use one image for all");
}

static void test_devices(void **state)
{
    struct nccl_hello all[RANKS];
    (void)state;
    make(all);
    memcpy(all[3].address, all[2].address, sizeof all[3].address);
    expect(all, EBUSY,
           "ranks 2 and 3 both have GPU 0000:00:00.0 of node-1: NCCL wants one for each rank; "
           "start as many ranks as there are GPUs");
}

static void test_choice(void **state)
{
    struct drarun_error err = {0};
    int device = -1;
    (void)state;
    assert_int_equal(nccl_hello_device(3, 8, NULL, &device, &err), 0);
    assert_int_equal(device, 3);
    assert_int_equal(nccl_hello_device(3, 1, NULL, &device, &err), 0);
    assert_int_equal(device, 0);
    assert_int_equal(nccl_hello_device(3, 8, "5", &device, &err), 0);
    assert_int_equal(device, 5);
    assert_true(nccl_hello_device(3, 8, "8", &device, &err) < 0);
    assert_non_null(strstr(err.text, "NCCL_TESTS_DEVICE"));
    assert_int_equal(nccl_hello_device(3, 2, NULL, &device, &err), -EINVAL);
    assert_int_equal(device, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_problems),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
