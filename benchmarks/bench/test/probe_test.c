/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "benchmarks/bench/probe.h"

#define RANKS 65u

/* In every round each has one partner, who has it; over all rounds each has had every other one. */
static void all_meet_once(void **state)
{
    (void)state;
    for (unsigned ranks = 1; ranks <= RANKS; ranks++) {
        bool met[RANKS][RANKS] = {0};
        for (unsigned round = 0; round < probe_rounds(ranks); round++) {
            unsigned pauses = 0;
            for (unsigned rank = 0; rank < ranks; rank++) {
                unsigned partner = probe_partner(rank, round, ranks);
                assert_true(partner < ranks);
                assert_int_equal(probe_partner(partner, round, ranks), rank);
                assert_false(partner != rank && met[rank][partner]);
                met[rank][partner] = true;
                pauses += partner == rank;
            }
            assert_int_equal(pauses, ranks % 2);
        }
        for (unsigned a = 0; a < ranks; a++)
            for (unsigned b = 0; b < ranks; b++)
                assert_true(a == b || met[a][b]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_meet_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
