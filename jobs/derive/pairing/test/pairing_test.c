/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/derive/pairing/pairing.h"

static uint64_t state = 20261121; /* fixed: a failure can be run again */

static uint32_t next_random(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

/* Every way of giving rows columns, each pair once: the least cost. */
static int64_t brute(uint32_t rows, uint32_t columns,
                     const uint8_t classes[PAIRING_MAX][PAIRING_MAX], uint32_t row, uint32_t used,
                     uint32_t skip)
{
    int64_t best = INT64_MAX;
    if (row == rows)
        return 0;
    for (uint32_t c = 0; c < columns; c++) {
        if (used & 1u << c)
            continue;
        int64_t rest = brute(rows, columns, classes, row + 1, used | 1u << c, skip);
        if (rest != INT64_MAX && rest + pairing_cost(row, c, classes[row][c]) < best)
            best = rest + pairing_cost(row, c, classes[row][c]);
    }
    if (skip > 0) { /* more rows than columns: this one goes without */
        int64_t rest = brute(rows, columns, classes, row + 1, used, skip - 1);
        best = rest < best ? rest : best;
    }
    return best;
}

static void fill(uint32_t rows, uint32_t columns, uint8_t classes[PAIRING_MAX][PAIRING_MAX])
{
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < columns; c++)
            classes[r][c] = (uint8_t)next_random(PAIRING_CLASSES);
}

static void equals_brute_force(void **unused)
{
    (void)unused;
    static uint8_t classes[PAIRING_MAX][PAIRING_MAX];
    uint32_t machines = getenv("DRARUN_SOAK") ? 100000 : 2000, columns[PAIRING_MAX];
    for (uint32_t i = 0; i < machines; i++) {
        uint32_t rows = 1 + next_random(7), width = 1 + next_random(7);
        fill(rows, width, classes);
        int64_t got = pairing_assign(rows, width, classes, columns);
        int64_t sum = 0;
        uint32_t paired = 0, seen = 0;
        for (uint32_t r = 0; r < rows; r++) {
            if (columns[r] == PAIRING_NONE)
                continue;
            assert_false(seen & 1u << columns[r]);
            seen |= 1u << columns[r];
            sum += pairing_cost(r, columns[r], classes[r][columns[r]]);
            paired++;
        }
        assert_int_equal(paired, rows < width ? rows : width);
        assert_true(sum == got);
        assert_true(got == brute(rows, width, classes, 0, 0, rows > width ? rows - width : 0));
    }
}

static void keeps_the_order_among_equals(void **unused)
{
    (void)unused;
    static const uint8_t classes[PAIRING_MAX][PAIRING_MAX]; /* all of the best class */
    uint32_t columns[PAIRING_MAX];
    pairing_assign(8, 8, classes, columns);
    for (uint32_t r = 0; r < 8; r++)
        assert_int_equal(columns[r], r);
}

static void worse_classes_are_avoided_first(void **unused)
{
    (void)unused;
    /* two of class 2 are better than one of class 3 and one of class 0 */
    static const uint8_t classes[PAIRING_MAX][PAIRING_MAX] = {{0, 2}, {2, 3}};
    uint32_t columns[PAIRING_MAX];
    pairing_assign(2, 2, classes, columns);
    assert_int_equal(columns[0], 1);
    assert_int_equal(columns[1], 0);
}

#define WIDE 16u

/* The least cost over sets of used columns, row after row (Held and Karp's scheme): exact where
 * trying every way takes too long. rows at most columns, columns at most WIDE. */
static int64_t over_subsets(uint32_t rows, uint32_t columns,
                            const uint8_t classes[PAIRING_MAX][PAIRING_MAX])
{
    static int64_t cost[1u << WIDE];
    uint32_t sets = 1u << columns;
    int64_t best = INT64_MAX;
    for (uint32_t set = 0; set < sets; set++)
        cost[set] = set == 0 ? 0 : INT64_MAX;
    for (uint32_t set = 0; set < sets; set++) {
        uint32_t row = (uint32_t)__builtin_popcount(set);
        if (row == rows)
            best = cost[set] < best ? cost[set] : best;
        for (uint32_t c = 0; row < rows && c < columns; c++) {
            if (set & 1u << c)
                continue;
            int64_t next = cost[set] + pairing_cost(row, c, classes[row][c]);
            if (next < cost[set | 1u << c])
                cost[set | 1u << c] = next;
        }
    }
    return best;
}

static void equals_an_exact_method_on_larger_machines(void **unused)
{
    (void)unused;
    static uint8_t classes[PAIRING_MAX][PAIRING_MAX];
    uint32_t machines = getenv("DRARUN_SOAK") ? 2000 : 40, columns[PAIRING_MAX];
    for (uint32_t i = 0; i < machines; i++) {
        uint32_t width = 8 + next_random(WIDE - 7), rows = 8 + next_random(width - 7);
        fill(rows, width, classes);
        assert_true(pairing_assign(rows, width, classes, columns) ==
                    over_subsets(rows, width, classes));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_brute_force),
        cmocka_unit_test(equals_an_exact_method_on_larger_machines),
        cmocka_unit_test(keeps_the_order_among_equals),
        cmocka_unit_test(worse_classes_are_avoided_first),
    };
    return cmocka_run_group_tests_name("pairing", tests, NULL, NULL);
}
