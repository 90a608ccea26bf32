/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/inspect/traffic.h"
#include "lib/topo/test/tree.h"

#define IB "sys/class/infiniband/"

static void adds_up(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    struct traffic traffic;
    tree_file(&tree, IB "mlx5_0/ports/1/counters/port_xmit_data", "1000\n");
    tree_file(&tree, IB "mlx5_0/ports/1/counters/port_rcv_data", "10\n");
    tree_file(&tree, IB "rdmap0/ports/1/hw_counters/tx_bytes", "5\n"); /* EFA */
    tree_file(&tree, IB "rdmap0/ports/1/hw_counters/rx_bytes", "6\n");
    tree_file(&tree, IB "odd/ports/1/counters/port_xmit_data", "N/A (no PMA)\n");
    tree_file(&tree, "sys/class/net/eth0/statistics/tx_bytes", "300\n");
    tree_file(&tree, "sys/class/net/eth0/statistics/rx_bytes", "20\n");
    tree_file(&tree, "sys/class/net/lo/statistics/tx_bytes", "7\n");
    traffic_read(tree.root, &traffic);
    assert_int_equal(traffic.rdma, 4040 + 11);
    assert_int_equal(traffic.net, 320);
    assert_int_equal(traffic.loop, 7);
    tree_drop(&tree);
}

static void nothing_is_nothing(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    struct traffic traffic = {1, 1, 1};
    traffic_read(tree.root, &traffic);
    assert_int_equal(traffic.rdma + traffic.net + traffic.loop, 0);
    traffic_read(-1, &traffic); /* this machine, whatever it has */
    tree_drop(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_up),
        cmocka_unit_test(nothing_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
