/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/topo/rdma_text.h"

static void parses_rates(void **state)
{
    (void)state;
    assert_int_equal(rdma_rate_parse("400 Gb/sec (4X NDR)"), 400000);
    assert_int_equal(rdma_rate_parse("2.5 Gb/sec (1X SDR)"), 2500);
    assert_int_equal(rdma_rate_parse("800 Gb/sec"), 800000);
    assert_int_equal(rdma_rate_parse("0.3125 Gb/sec"), 312);
    assert_int_equal(rdma_rate_parse("0 Gb/sec"), 0);
    assert_int_equal(rdma_rate_parse("400"), 0);
    assert_int_equal(rdma_rate_parse("-4 Gb/sec"), 0);
    assert_int_equal(rdma_rate_parse("99999999 Gb/sec"), 0);
    assert_int_equal(rdma_rate_parse(""), 0);
}

static void parses_lanes(void **state)
{
    (void)state;
    uint32_t lanes = 0;
    char speed[8] = "";
    assert_true(rdma_lanes_parse("400 Gb/sec (4X NDR)", &lanes, speed, sizeof speed));
    assert_int_equal(lanes, 4);
    assert_string_equal(speed, "NDR");
    assert_true(rdma_lanes_parse("40 Gb/sec (12X QDR)", &lanes, speed, sizeof speed));
    assert_true(rdma_lanes_parse("14 Gb/sec (1X FDR10)", &lanes, speed, sizeof speed));
    assert_string_equal(speed, "FDR10");
    static const char *const bad[] = {"800 Gb/sec",
                                      "400 Gb/sec (4X)",
                                      "400 Gb/sec (X NDR)",
                                      "400 Gb/sec (4X NDR",
                                      "400 Gb/sec (0X NDR)",
                                      "400 Gb/sec (4X TOOLONGONE)",
                                      ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(rdma_lanes_parse(bad[i], &lanes, speed, sizeof speed));
    assert_int_equal(lanes, 1); /* untouched by what was refused */
}

static void parses_gids(void **state)
{
    (void)state;
    uint8_t bytes[16] = {9};
    char text[48];
    assert_true(gid_parse("0000:0000:0000:0000:0000:ffff:c0a8:0105", bytes));
    gid_format(bytes, text);
    assert_string_equal(text, "192.168.1.5");
    assert_true(gid_parse("FE80:0000:0000:0000:0202:c9ff:fe00:0001", bytes));
    gid_format(bytes, text);
    assert_string_equal(text, "fe80::202:c9ff:fe00:1");
    assert_false(gid_is_zero(bytes));
    assert_false(gid_parse("fe80::1", bytes));
    assert_false(gid_parse("fe80:0000:0000:0000:0202:c9ff:fe00:000g", bytes));
    assert_false(gid_parse("fe80:0000:0000:0000:0202:c9ff:fe00.0001", bytes));
    assert_false(gid_parse("fe80:0000:0000:0000:0202:c9ff:fe00:00010", bytes));
    assert_int_equal(bytes[0], 0xfe); /* untouched by what was refused */
    assert_true(gid_parse("0000:0000:0000:0000:0000:0000:0000:0000", bytes));
    assert_true(gid_is_zero(bytes));
}

static void parses_words(void **state)
{
    (void)state;
    char word[8] = "";
    assert_int_equal(rdma_state_parse("4: ACTIVE", word, sizeof word), TOPO_YES);
    assert_int_equal(rdma_state_parse("1: DOWN", word, sizeof word), TOPO_NO);
    assert_string_equal(word, "DOWN");
    assert_int_equal(rdma_state_parse("ACTIVE", word, sizeof word), TOPO_UNKNOWN);
    assert_int_equal(rdma_state_parse("4: \033", word, sizeof word), TOPO_UNKNOWN);
    rdma_phys_state_parse("5: LinkUp", word, sizeof word);
    assert_string_equal(word, "LinkUp");
    rdma_phys_state_parse("4: PortConfigurationTraining", word, sizeof word);
    assert_string_equal(word, "PortCon");
    struct topo_port port;
    rdma_phys_state_parse("4: PortConfigurationTraining", port.phys_state, sizeof port.phys_state);
    assert_string_equal(port.phys_state, "PortConfigurationTraining");
    rdma_phys_state_parse("LinkUp", word, sizeof word);
    assert_string_equal(word, "");
    assert_int_equal(rdma_link_parse("InfiniBand"), TOPO_LINK_IB);
    assert_int_equal(rdma_link_parse("Unspecified"), TOPO_LINK_OTHER);
    assert_int_equal(gid_type_parse("IB/RoCE v1", TOPO_LINK_IB), TOPO_GID_IB);
    assert_int_equal(gid_type_parse("IB/RoCE v1", TOPO_LINK_ETHERNET), TOPO_GID_ROCE1);
    assert_int_equal(gid_type_parse("RoCE v2", TOPO_LINK_ETHERNET), TOPO_GID_ROCE2);
    assert_int_equal(gid_type_parse("RoCE v3", TOPO_LINK_ETHERNET), TOPO_GID_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_rates),
        cmocka_unit_test(parses_lanes),
        cmocka_unit_test(parses_gids),
        cmocka_unit_test(parses_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
