/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "worker/tree/tree.h"

static const uint32_t radices[] = {1, 2, 3, 8, 64};
static const uint32_t sizes[] = {1, 2, 3, 8, 9, 73, 200};

/* Every worker but the root is the child of exactly one, at the index that it says. */
static void children_cover_everyone_once(void **state)
{
    (void)state;
    for (size_t r = 0; r < ARRAY_LEN(radices); r++)
        for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
            uint32_t seen = 1; /* the root */
            for (uint32_t self = 0; self < sizes[s]; self++) {
                struct tree tree = {self, sizes[s], radices[r]};
                uint32_t count = tree_child_count(&tree);
                assert_true(count <= radices[r]);
                for (uint32_t i = 0; i < count; i++) {
                    uint32_t child = tree_child(&tree, i);
                    assert_true(child < sizes[s]);
                    assert_int_equal(tree_parent_of(&tree, child), self);
                    assert_int_equal(tree_child_index(&tree, child), i);
                }
                seen += count;
            }
            assert_int_equal(seen, sizes[s]);
        }
}

/* Following next_hop from anywhere reaches the destination in at most twice the depth. */
static void next_hop_arrives(void **state)
{
    (void)state;
    for (size_t r = 1; r < ARRAY_LEN(radices); r++)
        for (uint32_t from = 0; from < 73; from++)
            for (uint32_t to = 0; to < 73; to++) {
                struct tree tree = {from, 73, radices[r]};
                uint32_t hops = 0;
                while (tree.self != to) {
                    tree.self = tree_next_hop(&tree, to);
                    assert_true(tree.self < 73);
                    assert_true(++hops <= 2 * 7);
                }
            }
}

static void common_is_the_lowest(void **state)
{
    (void)state;
    struct tree tree = {0, 15, 2};
    static const struct {
        uint32_t a, b, common;
    } cases[] = {{7, 8, 3}, {7, 10, 1}, {7, 14, 0}, {3, 7, 3}, {5, 5, 5}, {0, 14, 0}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(tree_common(&tree, cases[i].a, cases[i].b), cases[i].common);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_cover_everyone_once),
        cmocka_unit_test(next_hop_arrives),
        cmocka_unit_test(common_is_the_lowest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
