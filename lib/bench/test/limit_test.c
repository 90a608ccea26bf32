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

/* Workers of two roles: hosts of other GPUs, NICs and numbers of ranks. The smallest bounds a ring,
 * in whichever order the ranks are. */
static void test_hosts_that_differ(void **state)
{
    static struct known_machine machines[] = {
        {.name = "large", .gpu = "NVIDIA B200", .gpus = 8, .nics = 8, .nic_gbit = 400},
        {.name = "small", .gpu = "NVIDIA H100", .gpus = 8, .nics = 4, .nic_gbit = 200}};
    static const struct known known = {machines, 2};
    static const struct {
        const char *collective;
        double own[2];
        size_t ranks[2];
        const char *model[2];
        struct limit_given given;
        double gbs;
        const char *why;
    } cases[] = {
        {"all_reduce",
         {400, 100},
         {4, 4},
         {"g", "g"},
         {0},
         50,
         "NICs of 400 Gb/s a host (NCCL_IB_HCA and the speed of their ports); the least of 2 "
         "hosts, h1"},
        {"all_reduce", {50, 400}, {4, 4}, {"g", "g"}, {0}, 25, "; the least of 2 hosts, h0"},
        {"all_reduce",
         {100, 100},
         {2, 4},
         {"g", "g"},
         {0},
         25,
         "NICs of 200 Gb/s a host (NCCL_IB_HCA and the speed of their ports); the least of 2 "
         "hosts, h0"},
        {"all_reduce", {100, 100}, {4, 4}, {"g", "g"}, {0}, 50, "their ports)"},
        /* of a host of which nothing is known, nothing is made up */
        {"all_reduce", {0, 100}, {4, 4}, {"g", "g"}, {0}, 50, "their ports)"},
        {"sendrecv", {100, 100}, {2, 4}, {"g", "g"}, {0}, 12.5, "their ports)"},
        {"alltoall",
         {80, 80},
         {2, 4},
         {"g", "g"},
         {0},
         12.5,
         "their ports); the least of 2 hosts, h0"},
        {"all_reduce",
         {0, 0},
         {4, 4},
         {"g", "g"},
         {.claimed_nics = 2, .claimed_role = "b", .nic_gbit = 400},
         100,
         "2 NICs of 400 Gb/s a host (what role b claims, the fewest of all, --nic-gbit)"},
        {"all_reduce",
         {0, 0},
         {8, 8},
         {"NVIDIA B200", "NVIDIA H100"},
         {.known = &known},
         100,
         "4 NICs of 200 Gb/s a host (a NIC for each GPU), as small has them; the least of 2 hosts, "
         "h1"},
        {"all_reduce",
         {0, 0},
         {8, 8},
         {"NVIDIA B200", "NVIDIA H100"},
         {0},
         0,
         "nothing is known of the NICs"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct run run = {0};
        struct limit limit;
        result_init(&run.result);
        result_name_collective(&run.result, cases[i].collective);
        for (unsigned h = 0; h < 2; h++)
            for (size_t k = 0; k < cases[i].ranks[h]; k++) {
                struct result_rank *rank = result_add_rank(&run.result);
                assert_non_null(rank);
                rank->nic_gbit = cases[i].own[h];
                snprintf(rank->host, sizeof rank->host, "h%u", h);
                snprintf(rank->model, sizeof rank->model, "%s", cases[i].model[h]);
            }
        limit_of(&run, NULL, &cases[i].given, &limit);
        size_t length = strlen(limit.why), tail = strlen(cases[i].why);
        bool ends = length >= tail && strcmp(limit.why + length - tail, cases[i].why) == 0;
        if (limit.gbs != cases[i].gbs ||
            !(ends || (limit.gbs == 0 && strstr(limit.why, cases[i].why))))
            fail_msg("case %zu: %g: %s", i, limit.gbs, limit.why);
        result_done(&run.result);
    }
}

/* nccl-tests' NCCL_TESTS_SPLIT on 2 hosts of 8: groups share what a host has. */
static void test_groups_side_by_side(void **state)
{
    static const struct known_machine machine = {
        .name = "m", .gpus = 8, .nics = 8, .nic_gbit = 400, .nvlink_gbs = 450};
    static const struct {
        const char *collective;
        unsigned divide, modulo; /* the group of rank i: i / divide % modulo */
        double own;
        struct limit_given given;
        double gbs;
        const char *why;
        unsigned per_host; /* 0: 8 */
    } cases[] = {
        {"all_reduce", 1, 8, 0, {0}, 50, "1 NIC of 400 Gb/s a host (a NIC for each GPU), as m"},
        {"all_reduce", 1, 8, 0, {.nics = 4}, 25, "0.5 NICs of 400 Gb/s a host (--nics, --nic-"},
        {"all_reduce", 1, 8, 200, {0}, 25, "NICs of 200 Gb/s a host (NCCL_IB_HCA"},
        {"all_reduce", 1, 8, 0, {0}, 50, ", for each of 8 groups"},
        {"all_reduce", 1, 4, 0, {0}, 100, "2 NICs of 400 Gb/s a host"},
        {"alltoall", 1, 8, 0, {0}, 50, "1 NIC of 400 Gb/s a host"},
        {"all_reduce", 8, 16, 0, {0}, 450, "NVLink of 450 GB/s each direction, as m has it, for "},
        {"all_reduce", 6, 16, 0, {0}, 0, "groups of different numbers of ranks"},
        {"all_reduce", 1, 16, 0, {0}, 0, "one rank: its bus bandwidth is 0"},
        {"all_reduce", 16, 16, 0, {0}, 400, "8 NICs of 400 Gb/s a host (a NIC for each GPU), as m"},
        {"all_reduce", 4, 16, 0, {0}, 0, "groups that lie on hosts in different ways", 6},
        {"all_reduce", 1, 4, 0, {0}, 50, "; the least of 2 hosts, h1, for each of 4 groups", 6},
        {"all_reduce", 1, 6, 0, {0}, 50, "1 NIC of 400 Gb/s a host (a NIC for each GPU)", 6},
        {"all_reduce", 3, 16, 0, {0}, 450, "NVLink of 450 GB/s each direction, as m has it, f", 6},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct run run = {0};
        struct limit limit;
        unsigned per_host = cases[i].per_host ? cases[i].per_host : 8;
        result_init(&run.result);
        result_name_collective(&run.result, cases[i].collective);
        for (unsigned k = 0; k < 2 * per_host; k++) {
            struct result_rank *rank = result_add_rank(&run.result);
            assert_non_null(rank);
            rank->rank = k;
            rank->group = k / cases[i].divide % cases[i].modulo;
            rank->nic_gbit = cases[i].own;
            snprintf(rank->host, sizeof rank->host, "h%u", k / per_host);
        }
        limit_of(&run, &machine, &cases[i].given, &limit);
        if (limit.gbs != cases[i].gbs || !strstr(limit.why, cases[i].why))
            fail_msg("case %zu: %g: %s", i, limit.gbs, limit.why);
        result_done(&run.result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sources_of_nics),
                                       cmocka_unit_test(test_groups_side_by_side),
                                       cmocka_unit_test(test_hosts_that_differ)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
