/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/inspect/error_counts.h"
#include "lib/topo/test/tree.h"

#define IB "sys/class/infiniband/"
#define NET "sys/class/net/"

static struct tree machine(void)
{
    struct tree tree = tree_new();
    tree_file(&tree, IB "mlx5_0/ports/1/counters/symbol_error", "4\n");
    tree_file(&tree, IB "mlx5_0/ports/1/counters/link_downed", "1\n");
    tree_file(&tree, IB "mlx5_0/ports/1/counters/port_xmit_data", "1000\n");
    tree_file(&tree, IB "mlx5_0/ports/2/counters/port_rcv_errors", "0\n");
    tree_file(&tree, IB "odd/ports/1/counters/symbol_error", "N/A (no PMA)\n");
    tree_file(&tree, NET "eth0/statistics/rx_crc_errors", "9\n");
    tree_file(&tree, NET "lo/statistics/rx_crc_errors", "5\n");
    return tree;
}

static struct error_counts read_all(const struct tree *tree)
{
    struct error_counts counts = {0};
    assert_int_equal(error_counts_of_ports(tree->root, &counts), 2);
    assert_int_equal(error_counts_of_interfaces(tree->root, &counts), 1);
    assert_false(counts.failed);
    return counts;
}

static void what_rose_is_named(void **state)
{
    (void)state;
    struct tree tree = machine();
    struct error_counts begun = read_all(&tree);
    struct strlist rose = STRLIST_INIT;
    struct error_counts same = read_all(&tree);
    assert_int_equal(same.count, 4);
    error_counts_rose(&begun, &same, &rose);
    assert_int_equal(rose.count, 0);
    tree_file(&tree, IB "mlx5_0/ports/1/counters/symbol_error", "7\n");
    tree_file(&tree, IB "mlx5_0/ports/1/counters/link_downed", "0\n"); /* set back */
    tree_file(&tree, IB "mlx5_0/ports/1/counters/port_xmit_data", "5000\n");
    tree_file(&tree, IB "mlx5_0/ports/1/counters/port_rcv_errors", "2\n"); /* new */
    tree_file(&tree, NET "eth0/statistics/rx_crc_errors", "10\n");
    struct error_counts now = read_all(&tree);
    error_counts_rose(&begun, &now, &rose);
    assert_int_equal(rose.count, 3);
    assert_true(strlist_has(&rose, "mlx5_0 port 1 symbol_error +3"));
    assert_true(strlist_has(&rose, "mlx5_0 port 1 port_rcv_errors +2"));
    assert_true(strlist_has(&rose, "eth0 rx_crc_errors +1"));
    strlist_done(&rose);
    error_counts_done(&begun);
    error_counts_done(&same);
    error_counts_done(&now);
    tree_drop(&tree);
}

static void nothing_there(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    struct error_counts counts = {0};
    assert_int_equal(error_counts_of_ports(tree.root, &counts), 0);
    assert_int_equal(error_counts_of_interfaces(tree.root, &counts), 0);
    assert_int_equal(counts.count, 0);
    error_counts_done(&counts);
    tree_drop(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_rose_is_named),
        cmocka_unit_test(nothing_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
