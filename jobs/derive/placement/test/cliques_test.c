/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/placement/cliques.h"
#include "jobs/ranks/rankmap.h"
#include "lib/base/cleanup.h"

#define WORKERS_MAX 8

/* a letter for each worker's clique, "." where it has none; the order, and what is said of it with
 * two ranks a worker. */
static const struct row {
    const char *cliques, *order, *line;
} rows[] = {
    {"aaaa", "0123", "NVLink: a: workers 0-3, ranks 0-7"},
    {"aabb", "0123", "NVLink: a: workers 0-1, ranks 0-3; b: workers 2-3, ranks 4-7"},
    {"abab", "0213", "NVLink: a: workers 0,2, ranks 0-3; b: workers 1,3, ranks 4-7"},
    {"bcab", "0312",
     "NVLink: b: workers 0,3, ranks 0-3; c: workers 1, ranks 4-5; a: workers 2, ranks 6-7"},
    {"a.a.", "0213", "NVLink: a: workers 0,2, ranks 0-3"},
    {"....", "0123", ""},
};

static void test_order(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char names[WORKERS_MAX][2] = {{0}};
        const char *cliques[WORKERS_MAX];
        uint32_t count = (uint32_t)strlen(rows[r].cliques), *order = NULL;
        struct buf line = BUF_INIT;
        for (uint32_t i = 0; i < count; i++) {
            names[i][0] = rows[r].cliques[i];
            cliques[i] = names[i][0] == '.' ? NULL : names[i];
        }
        assert_int_equal(cliques_order(cliques, count, &order, NULL), 0);
        assert_int_equal(order == NULL, strcmp(rows[r].order, "0123") == 0);
        for (uint32_t i = 0; order && i < count; i++)
            assert_int_equal(order[i], (uint32_t)(rows[r].order[i] - '0'));
        CLEANUP(json_decrefp) json_t *list = cliques_json(cliques, order, count, 2);
        cliques_line(list, &line);
        assert_string_equal(line.data ? line.data : "", rows[r].line);
        buf_done(&line);
        free(order);
    }
}

static void test_ranks_that_are_not_known(void **state)
{
    static const char *const cliques[] = {"a", "a", NULL};
    (void)state;
    CLEANUP(json_decrefp) json_t *list = cliques_json(cliques, NULL, 3, 0);
    assert_int_equal(json_array_size(list), 1);
    const json_t *clique = json_array_get(list, 0);
    assert_string_equal(json_string_value(json_object_get(clique, "workers")), "0-1");
    assert_null(json_object_get(clique, "ranks"));
}

/* The blocks go to the workers in that order, the first of them get what does not divide. */
static void test_map(void **state)
{
    static const uint32_t order[] = {0, 2, 1}, wanted[] = {0, 0, 2, 2, 1};
    uint32_t count = 5;
    struct rankmap map;
    (void)state;
    assert_int_equal(rankmap_build_ordered(&count, 1, 3, 0, order, &map, NULL), 0);
    for (uint32_t rank = 0; rank < count; rank++)
        assert_int_equal(rankmap_worker(&map, rank), wanted[rank]);
    rankmap_done(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_ranks_that_are_not_known),
        cmocka_unit_test(test_map),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
