/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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
    assert_int_equal(traffic.untold, 1);
    tree_drop(&tree);
}

/* Of drivers without InfiniBand's counters. */
static void has_drivers_of_their_own(void **state)
{
    static const struct {
        const char *names[4];
        uint64_t rdma;
        unsigned untold;
    } cases[] = {
        {{"tx_bytes", "rx_bytes"}, 3, 0},
        {{"tx_bytes_cnt", "rx_bytes_cnt"}, 3, 0},
        {{"hw_tx_bytes_cnt", "hw_rx_bytes_cnt"}, 3, 0},
        {{"tx_rdma_ucast_bytes", "rx_rdma_ucast_bytes"}, 3, 0},
        {{"ip4OutOctets", "ip4InOctets", "ip6OutOctets", "ip6InOctets"}, 10, 0},
        {{"sent_pkts", "rcvd_pkts"}, 0, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tree tree = tree_new();
        struct traffic traffic;
        for (size_t k = 0; k < 4 && cases[i].names[k]; k++) {
            char path[128], value[16];
            snprintf(path, sizeof path, IB "d0/ports/1/hw_counters/%s", cases[i].names[k]);
            snprintf(value, sizeof value, "%zu\n", k + 1);
            tree_file(&tree, path, value);
        }
        traffic_read(tree.root, &traffic);
        assert_int_equal(traffic.rdma, cases[i].rdma);
        assert_int_equal(traffic.untold, cases[i].untold);
        tree_drop(&tree);
    }
}

static void nothing_is_nothing(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    struct traffic traffic = {1, 1, 1, 1};
    traffic_read(tree.root, &traffic);
    assert_int_equal(traffic.rdma + traffic.net + traffic.loop, 0);
    traffic_read(-1, &traffic); /* this machine, whatever it has */
    tree_drop(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_up),
        cmocka_unit_test(has_drivers_of_their_own),
        cmocka_unit_test(nothing_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
