/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/derive/nccl/gid_table.h"
#include "jobs/derive/nccl/nccl_topology.h"
#include "lib/base/cleanup.h"

/* Two letters an entry: 4 an IPv4 address, a 169.254, 6 an IPv6 address, l fe80, - nothing; then
 * its type: 1, 2, or ? where another namespace has its interface; x and y are 1 and 2 which are
 * told although another has it. */
struct row {
    const char *table;
    int32_t ipv4, ipv6, local;
    bool known;
    int32_t picks[4];      /* IPv4: 2.20, 2.21, 2.26, 2.30 */
    int32_t picks_ipv6[2]; /* 2.21, 2.30 */
};

#define E GID_PICK_ERROR

static const struct row rows[] = {
    {"l1l24142", 3, -1, 1, true, {0, 3, 3, 3}, {0, 0}},
    {"l2l14241", 2, -1, 0, true, {0, 2, 2, 2}, {0, 0}},
    {"l1l26162", -1, 3, 1, true, {0, 0, 0, 0}, {3, 3}},
    {"l1l2", -1, -1, 1, true, {0, 0, 0, 0}, {0, 0}},
    {"l1l2a1a2", -1, -1, 3, true, {0, 3, 3, 3}, {0, 0}},
    {"l1l2a1a24142", 5, -1, 3, true, {0, 3, 3, 3}, {0, 0}},
    {"l1l241426162", 3, 5, 1, true, {0, 3, 3, 3}, {5, 5}},
    {"4?4?4?4142", 4, -1, -1, true, {0, E, 4, 4}, {0, 0}},
    {"l1l241424?4?", 3, -1, 1, true, {0, E, 3, 3}, {0, 0}},
    {"l1l24?4142", 4, -1, 1, true, {0, E, 4, 4}, {0, 0}},
    {"l1l26?6162", -1, 4, 1, true, {0, 0, 0, 0}, {E, 4}},
    {"--l24142", 3, -1, 1, true, {0, 3, 3, 3}, {0, 0}},
    {"l1l24x4y4142", 5, -1, 1, true, {0, 3, 3, 3}, {0, 0}},
    {"4x4y6x6y", -1, -1, -1, true, {0, 1, 1, 1}, {3, 3}},
    {"4?4?", -1, -1, -1, false, {0, E, 0, 0}, {0, 0}},
    {"", -1, -1, -1, false, {0, 0, 0, 0}, {0, 0}},
    {"l14141", -1, -1, -1, true, {0, 1, 1, 1}, {0, 0}},
};

static struct topo_port make_port(const char *table, struct topo_gid gids[16])
{
    struct topo_port port = {.gids = gids, .link = TOPO_LINK_ETHERNET};
    for (uint32_t i = 0; table[2 * i]; i++) {
        struct topo_gid *gid = &gids[port.gid_count];
        char what = table[2 * i], type = table[2 * i + 1];
        if (what == '-')
            continue;
        *gid = (struct topo_gid){.index = i};
        if (what == '4' || what == 'a')
            memcpy(gid->bytes, (uint8_t[]){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 12);
        gid->bytes[0] = what == 'l' ? 0xfe : what == '6' ? 0xfd : 0;
        gid->bytes[1] = what == 'l' ? 0x80 : 0;
        gid->bytes[12] = what == 'a' ? 169 : 10;
        gid->bytes[13] = what == 'a' ? 254 : 0;
        gid->type = type == '1' || type == 'x'   ? TOPO_GID_ROCE1
                    : type == '2' || type == 'y' ? TOPO_GID_ROCE2
                                                 : TOPO_GID_UNKNOWN;
        gid->elsewhere = type == 'x' || type == 'y';
        port.gid_count++;
    }
    return port;
}

static void finds_the_ports_own(void **state)
{
    (void)state;
    for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
        struct topo_gid gids[16];
        struct topo_port port = make_port(rows[r].table, gids);
        struct gid_table t;
        gid_table_read(&port, &t);
        if (t.ipv4 != rows[r].ipv4 || t.ipv6 != rows[r].ipv6 || t.local != rows[r].local ||
            t.known != rows[r].known)
            fail_msg("%s: %d, %d, %d, known %d", rows[r].table, t.ipv4, t.ipv6, t.local, t.known);
    }
}

static void picks_as_nccl_does(void **state)
{
    (void)state;
    static const uint32_t versions[] = {NCCL_VERSION(2, 20, 5), NCCL_VERSION(2, 21, 5),
                                        NCCL_VERSION(2, 26, 2), NCCL_VERSION(2, 30, 7)};
    for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
        struct topo_gid gids[16];
        struct topo_port port = make_port(rows[r].table, gids);
        for (size_t v = 0; v < ARRAY_LEN(versions); v++) {
            int32_t pick = gid_nccl_pick(&port, versions[v], false);
            if (pick != rows[r].picks[v])
                fail_msg("%s, %u: %d", rows[r].table, versions[v], pick);
        }
        for (size_t v = 0; v < 2; v++) {
            int32_t pick = gid_nccl_pick(&port, versions[v ? 3 : 1], true);
            if (pick != rows[r].picks_ipv6[v])
                fail_msg("%s, %u, IPv6: %d", rows[r].table, versions[v ? 3 : 1], pick);
        }
    }
}

static void names_the_link_local_address(void **state)
{
    (void)state;
    struct topo_gid gids[16];
    struct gid_table t;
    struct topo_port port = make_port("l1l2a1a2", gids);
    gid_table_read(&port, &t);
    assert_string_equal(t.local_text, "169.254.0.0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_ports_own),
        cmocka_unit_test(picks_as_nccl_does),
        cmocka_unit_test(names_the_link_local_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
