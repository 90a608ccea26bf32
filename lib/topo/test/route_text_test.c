/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>

#include "lib/topo/route_text.h"
#include "lib/topo/test/tree.h"

static void test_lines(void **state)
{
    (void)state;
    struct topo_route route;
    char text[INET6_ADDRSTRLEN];
    assert_false(route_parse("Iface\tDestination\tGateway \tFlags\n", false, &route));
    assert_true(route_parse("eth1\t0000060A\t0100050A\t0003\t0\t0\t7\t0000FFFF\t0\t0\t0\nmore",
                            false, &route));
    assert_string_equal(route.name, "eth1");
    assert_string_equal(inet_ntop(AF_INET, route.destination, text, sizeof text), "10.6.0.0");
    assert_string_equal(inet_ntop(AF_INET, route.gateway, text, sizeof text), "10.5.0.1");
    assert_int_equal(route.bits, 16);
    assert_int_equal(route.metric, 7);
    assert_int_equal(route.flags, ROUTE_UP | ROUTE_GATEWAY);
    assert_true(route_parse("fd000006000000000000000000000000 20 00000000000000000000000000000000 "
                            "00 fd000005000000000000000000000001 00000400 00000001 00000000 "
                            "00000003     eth1\n",
                            true, &route));
    assert_string_equal(inet_ntop(AF_INET6, route.destination, text, sizeof text), "fd00:6::");
    assert_string_equal(inet_ntop(AF_INET6, route.gateway, text, sizeof text), "fd00:5::1");
    assert_int_equal(route.bits, 32);
    assert_int_equal(route.metric, 1024);
}

static const char *way(const struct topo_routes *routes, const char *address)
{
    uint8_t bytes[16];
    bool ipv6 = strchr(address, ':');
    assert_int_equal(inet_pton(ipv6 ? AF_INET6 : AF_INET, address, bytes), 1);
    const struct topo_route *route = routes_find(routes, ipv6, bytes);
    return route ? route->name : "-";
}

static void test_longest_prefix(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    struct topo_routes routes;
    tree_file(&tree, "proc/net/route",
              "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n"
              "up\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
              "down\t0000060A\t00000000\t0000\t0\t0\t0\t0000FFFF\t0\t0\t0\n"
              "wide\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n"
              "odd\t0080050A\t00000000\t0001\t0\t0\t0\t0080FFFF\t0\t0\t0\n"
              "slow\t0000070A\t00000000\t0001\t0\t0\t9\t0000FFFF\t0\t0\t0\n"
              "fast\t0000070A\t00000000\t0001\t0\t0\t8\t0000FFFF\t0\t0\t0\n");
    assert_int_equal(routes_read(tree.root, &routes, NULL), 0);
    assert_int_equal(routes.count, 5);
    assert_string_equal(way(&routes, "10.5.128.1"), "odd");
    assert_string_equal(way(&routes, "10.5.127.1"), "wide");
    assert_string_equal(way(&routes, "10.6.0.1"), "wide");
    assert_string_equal(way(&routes, "10.7.0.1"), "fast");
    assert_string_equal(way(&routes, "11.0.0.1"), "up");
    assert_string_equal(way(&routes, "fd00::1"), "-");
    routes_done(&routes);
    tree_drop(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_longest_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
