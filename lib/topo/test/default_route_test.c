/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/topo/default_route.h"

static void test_ipv4(void **state)
{
    (void)state;
    static const struct {
        const char *text, *names;
    } rows[] = {
        {"", ""},
        {"Iface\tDestination\tGateway \tFlags\n", ""},
        {"eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0", "eth0"}, /* no end */
        {"eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
         "eth1\t00000000\t0100000A\t0003\t0\t0\t50\t00000000\t0\t0\t0\n",
         "eth1"}, /* the smaller metric */
        {"eth0\t00000000\t0100000A\t0003\t0\t0\t50\t00000000\t0\t0\t0\n"
         "eth1\t00000000\t0100000A\t0003\t0\t0\t50\t00000000\t0\t0\t0\n"
         "eth0\t00000000\t0200000A\t0003\t0\t0\t50\t00000000\t0\t0\t0\n",
         "eth0 eth1"},
        {"eth0\t00000000\t0100000A\t0002\t0\t0\t0\t00000000\t0\t0\t0\n", ""}, /* not up */
        {"eth0\t00000000\t0100000A\t0203\t0\t0\t0\t00000000\t0\t0\t0\n", ""}, /* rejects */
        {"eth0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n", ""}, /* 10.0.0.0/8 */
        {"garbage\nmore\t\t\n\n\n", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct strlist names = STRLIST_INIT;
        char joined[256] = "";
        default_routes_parse(rows[i].text, false, &names);
        for (size_t n = 0; n < names.count; n++) {
            size_t len = strlen(joined);
            snprintf(joined + len, sizeof joined - len, "%s%s", n ? " " : "", names.items[n]);
        }
        assert_string_equal(joined, rows[i].names);
        strlist_done(&names);
    }
}

#define ZERO "00000000000000000000000000000000"

static void test_ipv6(void **state)
{
    (void)state;
    struct strlist names = STRLIST_INIT;
    default_routes_parse(
        ZERO " 00 " ZERO " 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 "
             "   eth0\n"
             "fe800000000000000000000000000000 40 " ZERO " 00 " ZERO
             " 00000100 00000001 00000000 00000001     eth1\n" ZERO " 00 " ZERO " 00 " ZERO
             " ffffffff 00000001 00000000 00200200       lo\n",
        true, &names);
    assert_int_equal(names.count, 1);
    assert_string_equal(names.items[0], "eth0");
    strlist_done(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ipv4),
        cmocka_unit_test(test_ipv6),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
