/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several sources says what NICs carry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bench/limit.h"

#define HOSTS 2
#define OF_HOST 4

static void test_sources_of_nics(void **state)
{
    static const struct known_machine machine = {
        .name = "m", .gpus = 8, .nics = 8, .nic_gbit = 100, .nvlink_gbs = 900};
    static const struct {
        double own;    /* Gb/s that each rank knows of */
        size_t logged; /* NICs in NCCL's log */
        const struct known_machine *machine;
        struct limit_given given;
        double gbs;
        const char *why;
    } cases[] = {
        {100, 8, &machine, {0}, 50, "NICs of 400 Gb/s a host (NCCL_IB_HCA and"},
        {100, 8, &machine, {.claimed_nics = 8}, 50, "NICs of 400 Gb/s a host (NCCL_IB_HCA and"},
        {100, 8, &machine, {.nics = 2}, 25, "2 NICs of 100 Gb/s a host (--nics, --nic-gbit), as m"},
        {100, 8, NULL, {.claimed_nics = 2, .nic_gbit = 400}, 100, "(what was claimed, --nic-gbit)"},
        {0, 8, NULL, {.claimed_nics = 2, .nic_gbit = 400}, 100, "(what was claimed, --nic-gbit)"},
        {0, 8, &machine, {.claimed_nics = 2}, 25, "Gb/s a host (what was claimed), as m has them"},
        {0, 8, NULL, {.nic_gbit = 400}, 400, "(their number from NCCL's log, --nic-gbit)"},
        {0, 0, &machine, {0}, 50, "4 NICs of 100 Gb/s a host (a NIC for each GPU), as m has"},
        {0, 0, NULL, {.claimed_nics = 2}, 0, "nothing is known of the NICs"},
        {0, 0, NULL, {.nic_gbit = 400}, 0, "nothing is known of the NICs"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct run run = {.log.nic_count = cases[i].logged};
        struct limit limit;
        result_init(&run.result);
        result_name_collective(&run.result, "all_gather");
        for (unsigned k = 0; k < HOSTS * OF_HOST; k++) {
            struct result_rank *rank = result_add_rank(&run.result);
            assert_non_null(rank);
            rank->rank = k;
            rank->nic_gbit = cases[i].own;
            snprintf(rank->host, sizeof rank->host, "h%u", k / OF_HOST);
        }
        limit_of(&run, cases[i].machine, &cases[i].given, &limit);
        if (limit.gbs != cases[i].gbs || !strstr(limit.why, cases[i].why))
            fail_msg("case %zu: %g: %s", i, limit.gbs, limit.why);
        result_done(&run.result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sources_of_nics)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
