/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/topo/data_nics.h"

#define IB(mbps)                                                                                   \
    {                                                                                              \
        .number = 1, .active = TOPO_YES, .link = TOPO_LINK_IB, .rate_mbps = (mbps)                 \
    }
#define ETH(mbps)                                                                                  \
    {                                                                                              \
        .number = 1, .active = TOPO_YES, .link = TOPO_LINK_ETHERNET, .rate_mbps = (mbps)           \
    }
#define PORT(n, is_active, word, of, mbps)                                                         \
    {                                                                                              \
        .number = (n), .active = (is_active), .state = (word), .link = (of), .rate_mbps = (mbps)   \
    }

static struct topo_port ib400[] = {IB(400000)}, eth400[] = {ETH(400000)}, eth100[] = {ETH(100000)};
static struct topo_port eth200[] = {ETH(200000)};
static struct topo_port eth_unknown[] = {ETH(0)};
static struct topo_port unknown[] = {{.number = 1}};
static struct topo_port efa[] = {PORT(1, TOPO_YES, "ACTIVE", TOPO_LINK_OTHER, 100000)};
static struct topo_port ib_down[] = {PORT(1, TOPO_NO, "DOWN", TOPO_LINK_IB, 400000)};
static struct topo_port eth_down[] = {PORT(1, TOPO_NO, "INIT", TOPO_LINK_ETHERNET, 400000)};
static struct topo_port second[] = {PORT(1, TOPO_NO, "DOWN", TOPO_LINK_IB, 400000),
                                    PORT(2, TOPO_YES, "ACTIVE", TOPO_LINK_IB, 400000)};
static struct topo_port of_each[] = {PORT(1, TOPO_YES, "ACTIVE", TOPO_LINK_ETHERNET, 400000),
                                     PORT(2, TOPO_YES, "ACTIVE", TOPO_LINK_IB, 400000)};

#define NIC(p, ...)                                                                                \
    {                                                                                              \
        .name = "nic", .ports = (p), .port_count = ARRAY_LEN(p), __VA_ARGS__                       \
    }

struct row {
    const char *what;
    struct data_nic nics[4];
    const char *uses; /* one letter each, below */
    uint32_t ports;   /* of the first */
};

static const char letters[] = "?DWLUOS"; /* of enum nic_use; L: down */

static const struct row rows[] = {
    {"all alike", {NIC(ib400), NIC(ib400)}, "DD", 1},
    {"nothing is known", {NIC(unknown), NIC(unknown), {.name = "no ports"}}, "DDD", 1},
    {"withheld", {NIC(ib400, .usable = TOPO_NO), NIC(eth100)}, "WD", 0},
    {"the second port", {NIC(second)}, "D", 2},
    {"a port of each link", {NIC(of_each), NIC(ib400)}, "DD", 2},
    {"down", {NIC(ib_down), NIC(ib400)}, "LD", 0},
    {"all are down", {NIC(ib_down), NIC(eth_down)}, "LL", 0},
    {"the fabric of most", {NIC(ib400), NIC(ib400), NIC(eth400)}, "DDO", 1},
    {"InfiniBand of as many", {NIC(ib400), NIC(eth400)}, "DO", 1},
    {"a slower fabric of many", {NIC(ib400), NIC(eth100), NIC(eth100), NIC(eth100)}, "DOOO", 1},
    {"slower", {NIC(eth100), NIC(eth400)}, "SD", 0},
    {"few faster ones", {NIC(eth200), NIC(eth200), NIC(eth200), NIC(eth400)}, "DDDS", 1},
    {"as much in all", {NIC(eth200), NIC(eth200), NIC(eth400)}, "SSD", 0},
    {"a faster fabric of few", {NIC(eth200), NIC(eth200), NIC(eth200), NIC(ib400)}, "DDDO", 1},
    {"slower, and claimed", {NIC(eth100, .claimed = true), NIC(eth400, .claimed = true)}, "DD", 1},
    {"an unknown rate", {NIC(eth_unknown), NIC(eth400)}, "DD", 1},
    {"the uplink", {NIC(eth400, .uplink = "eth0"), NIC(eth400)}, "UD", 0},
    {"the only one", {NIC(eth400, .uplink = "eth0")}, "D", 1},
    {"a port without a cable", {NIC(eth400, .uplink = "eth0"), NIC(eth_down)}, "DL", 1},
    {"its fabric is down", {NIC(eth400, .uplink = "eth0"), NIC(ib_down)}, "UL", 0},
    {"others are not here",
     {NIC(eth400, .uplink = "eth0"), NIC(ib400, .usable = TOPO_NO)},
     "DW",
     1},
    {"the whole bond is down", {NIC(eth_down, .uplink = "bond0"), NIC(ib400)}, "LD", 0},
    {"neither link layer", {NIC(efa), NIC(efa)}, "DD", 1},
};

static void chooses(void **state)
{
    (void)state;
    for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
        struct data_nic nics[4];
        char uses[5] = "";
        size_t count = strlen(rows[r].uses);
        memcpy(nics, rows[r].nics, sizeof nics);
        data_nics_choose(nics, count);
        for (size_t i = 0; i < count; i++)
            uses[i] = letters[nics[i].use];
        if (strcmp(uses, rows[r].uses) != 0 || nics[0].data_ports != rows[r].ports)
            fail_msg("%s: %s, ports %x", rows[r].what, uses, nics[0].data_ports);
        const struct topo_port *port = data_nic_port(&nics[0]);
        assert_int_equal(port != NULL, rows[r].ports != 0);
    }
}

static void names_the_reason(void **state)
{
    (void)state;
    static struct topo_port two_down[] = {PORT(1, TOPO_NO, "DOWN", TOPO_LINK_IB, 0),
                                          PORT(2, TOPO_NO, "", TOPO_LINK_IB, 0)};
    struct data_nic nics[] = {NIC(ib400),
                              NIC(ib400),
                              NIC(two_down),
                              NIC(eth400),
                              NIC(eth400, .uplink = "bond0"),
                              NIC(eth400, .usable = TOPO_NO)};
    static const char *const texts[] = {
        "nic",
        "nic",
        "nic (port 1 is DOWN, port 2 is not active)",
        "nic (Ethernet, most others are InfiniBand)",
        "nic (part of the uplink bond0)",
        "nic (not given to this pod)",
    };
    data_nics_choose(nics, ARRAY_LEN(nics));
    for (size_t i = 0; i < ARRAY_LEN(nics); i++) {
        char text[128];
        data_nic_reason(&nics[i], text, sizeof text);
        assert_string_equal(text, texts[i]);
        data_nic_reason(&nics[i], text, 8); /* cut, never beyond */
        assert_memory_equal(text, texts[i], i < 2 ? 3 : 7);
    }
    struct data_nic slow[] = {NIC(eth100), NIC(eth400)};
    char text[128];
    data_nics_choose(slow, 2);
    data_nic_reason(&slow[0], text, sizeof text);
    assert_string_equal(text, "nic (100 Gb/s, others have 400)");
}

/* More ports than are looked at. */
static void has_a_limit_of_ports(void **state)
{
    (void)state;
    struct topo_port many[DATA_NIC_PORTS_MAX + 4] = {{0}};
    for (size_t i = 0; i < ARRAY_LEN(many); i++)
        many[i] = (struct topo_port)IB(400000);
    struct data_nic nic[] = {NIC(many)};
    data_nics_choose(nic, 1);
    assert_int_equal(nic[0].data_ports, (1u << DATA_NIC_PORTS_MAX) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chooses),
        cmocka_unit_test(names_the_reason),
        cmocka_unit_test(has_a_limit_of_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
