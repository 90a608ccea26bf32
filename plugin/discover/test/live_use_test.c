/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>

#include "lib/base/cleanup.h"
#include "lib/topo/test/tree.h"
#include "plugin/discover/discover.h"
#include "plugin/discover/live_use.h"

/* In the place of libc's. */
static bool no_addresses;

int getifaddrs(struct ifaddrs **ifap)
{
    *ifap = NULL;
    errno = ENOBUFS;
    return no_addresses ? -1 : 0;
}

/* A machine: eth0 is its uplink, rail0 a NIC as Google's DHCP sets it up, rail1 a NIC with an
 * address in 10.5.0.0/24. */
static struct sockaddr_in fours[3] = {
    {.sin_family = AF_INET}, {.sin_family = AF_INET}, {.sin_family = AF_INET}};
static struct sockaddr_in6 sixes[2] = {{.sin6_family = AF_INET6}, {.sin6_family = AF_INET6}};
static struct ifaddrs own[5];

static const struct ifaddrs *addresses(void)
{
    static char names[][8] = {"eth0", "rail0", "rail1", "rail1", "rail0"};
    static const char *const texts[] = {"10.0.0.2", "192.168.1.5", "10.5.0.2", "fd00:5::2",
                                        "fe80::1"};
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        own[i].ifa_next = i + 1 < ARRAY_LEN(own) ? &own[i + 1] : NULL;
        own[i].ifa_name = names[i];
        if (i < 3) {
            inet_pton(AF_INET, texts[i], &fours[i].sin_addr);
            own[i].ifa_addr = (struct sockaddr *)&fours[i];
        } else {
            inet_pton(AF_INET6, texts[i], &sixes[i - 3].sin6_addr);
            own[i].ifa_addr = (struct sockaddr *)&sixes[i - 3];
        }
    }
    return own;
}

#define ROUTE(name, to, by, flags, metric, mask)                                                   \
    name "\t" to "\t" by "\t" flags "\t0\t0\t" metric "\t" mask "\t0\t0\t0\n"
#define USUAL                                                                                      \
    "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n" ROUTE(                       \
        "eth0", "00000000", "0100000A", "0003", "0", "00000000")                                   \
        ROUTE("eth0", "0000000A", "00000000", "0001", "0", "00FFFFFF")                             \
            ROUTE("rail0", "0001A8C0", "0101A8C0", "0003", "1024", "00FFFFFF")                     \
                ROUTE("rail0", "0101A8C0", "00000000", "0005", "1024", "FFFFFFFF")                 \
                    ROUTE("rail1", "0000050A", "00000000", "0001", "0", "00FFFFFF")
#define ZERO "00000000000000000000000000000000"
#define USUAL6                                                                                     \
    "fd000005000000000000000000000000 40 " ZERO " 00 " ZERO                                        \
    " 00000100 00000001 00000000 00000001 rail1\n"                                                 \
    "fe800000000000000000000000000000 40 " ZERO " 00 " ZERO                                        \
    " 00000100 00000001 00000000 00000001 rail0\n"                                                 \
    "fd000005000000000000000000000002 80 " ZERO " 00 " ZERO                                        \
    " 00000000 00000001 00000000 80200001 rail1\n"                                                 \
    "ff000000000000000000000000000000 08 " ZERO " 00 " ZERO                                        \
    " 00000100 00000001 00000000 00000001 rail1\n" ZERO " 00 " ZERO                                \
    " 00 fe800000000000000000000000000001 00000400 00000001 00000000 00450003 rail0\n"
#define SOCKET(local, remote, state)                                                               \
    "   0: " local " " remote " " state " 00000000:00000000 00:00000000 00000000 0 0 1 1\n"
#define HEAD "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n"

/* says: of the one interface that is used, "rail1: REASON"; "": none is. */
static void check(const char *file, const char *text, const char *says)
{
    struct tree tree = tree_new();
    struct host_use use;
    struct strlist interfaces = STRLIST_INIT;
    char found[400] = "";
    strlist_add(&interfaces, "rail0");
    strlist_add(&interfaces, "rail1");
    tree_file(&tree, "proc/net/route", USUAL);
    tree_file(&tree, "proc/net/ipv6_route", USUAL6);
    tree_file(&tree, "proc/1/mounts", "proc /proc proc rw,nosuid 0 0\n");
    tree_file(&tree, "proc/net/tcp", HEAD);
    if (file)
        tree_file(&tree, file, text);
    assert_int_equal(live_use_read(tree.root, addresses(), &interfaces, &use, NULL), 0);
    for (size_t i = 0; i < use.names.count; i++) {
        size_t len = strlen(found);
        snprintf(found + len, sizeof found - len, "%s%s: %s", i ? "; " : "", use.names.items[i],
                 use.reasons.items[i]);
    }
    assert_string_equal(found, says);
    host_use_done(&use);
    strlist_done(&interfaces);
    tree_drop(&tree);
}

static void an_address_is_no_use(void **state)
{
    (void)state;
    check(NULL, NULL, "");
}

static void routes_beyond_the_connected_one(void **state)
{
    (void)state;
    static const char *const file = "proc/net/route";
    check(file, USUAL ROUTE("rail1", "0000060A", "0100050A", "0003", "0", "0000FFFF"),
          "rail1: it has a route to 10.6.0.0/16 via 10.5.0.1");
    check(file, USUAL ROUTE("rail1", "0000000A", "0100050A", "0003", "0", "000000FF"),
          "rail1: it has a route to 10.0.0.0/8 via 10.5.0.1");
    check(file, USUAL ROUTE("rail1", "0900070A", "00000000", "0005", "0", "FFFFFFFF"),
          "rail1: it has a route to 10.7.0.9/32");
    check(file, USUAL ROUTE("rail0", "0000060A", "0101A8C0", "0003", "0", "0000FFFF"),
          "rail0: it has a route to 10.6.0.0/16 via 192.168.1.1");
    /* one of the network that it is connected to */
    check(file, USUAL ROUTE("rail1", "8000050A", "0100050A", "0003", "0", "80FFFFFF"), "");
    check(file, USUAL ROUTE("eth0", "0000060A", "0100000A", "0003", "0", "0000FFFF"), "");
    check("proc/net/ipv6_route",
          USUAL6 "fd000006000000000000000000000000 40 " ZERO
                 " 00 fd000005000000000000000000000001 00000400 00000001 00000000 00000003 rail1\n",
          "rail1: it has a route to fd00:6::/64 via fd00:5::1");
    check("proc/net/ipv6_route", /* a router advertised it */
          USUAL6 "fd000006000000000000000000000000 40 " ZERO
                 " 00 fe800000000000000000000000000001 00000400 00000001 00000000 00c50003 rail1\n",
          "");
}

/* The host falls back to them when its uplink fails. */
static void default_routes_that_others_beat(void **state)
{
    (void)state;
    static const char *const file = "proc/net/route", *const six = "proc/net/ipv6_route";
    check(file, USUAL ROUTE("rail0", "00000000", "0101A8C0", "0003", "1024", "00000000"),
          "rail0: it has a default route via 192.168.1.1 (metric 1024)");
    check(file, USUAL ROUTE("rail1", "00000000", "0100050A", "0003", "101", "00000000"),
          "rail1: it has a default route via 10.5.0.1 (metric 101)");
    check(file, USUAL ROUTE("rail1", "00000000", "00000000", "0001", "101", "00000000"),
          "rail1: it has a default route (metric 101)");
    check(six,
          USUAL6 ZERO " 00 " ZERO " 00 fd000005000000000000000000000001 00000800 00000001 "
                      "00000000 00000003 rail1\n",
          "rail1: it has a default route via fd00:5::1 (metric 2048)");
}

static void mounts_of_other_machines(void **state)
{
    (void)state;
    static const char *const file = "proc/1/mounts";
    check(file, "10.5.0.9:/export /data nfs4 rw,vers=4.2,proto=rdma,addr=10.5.0.9 0 0\n",
          "rail1: the nfs4 mount /data is reached through it (10.5.0.9)");
    check(file, "store:/export /data nfs rw,clientaddr=10.5.0.2,addr=172.16.0.9 0 0\n",
          "rail1: the nfs mount /data is reached through it (10.5.0.2)");
    check(file, "10.0.0.8:6789,192.168.1.9:6789:/ /ceph ceph rw 0 0\n",
          "rail0: the ceph mount /ceph is reached through it (192.168.1.9)");
    check(file, "10.5.0.9@o2ib:/fs /l\033[31m lustre rw 0 0\n",
          "rail1: the lustre mount /l?[31m is reached through it (10.5.0.9)");
    check(file, "[fd00:5::9]:/export /data nfs4 rw 0 0\n",
          "rail1: the nfs4 mount /data is reached through it (fd00:5::9)");
    check(file, "10.0.0.9:/export /data nfs4 rw,addr=10.0.0.9 0 0\n", "");
    check(file, "10.5.0.9:/export /data ext4 rw 0 0\n10.5.0.9\n\n x\n", "");
}

static void disks_of_other_machines(void **state)
{
    (void)state;
    check("sys/class/nvme/nvme3/address", "traddr=10.5.0.9,trsvcid=4420,src_addr=10.5.0.2\n",
          "rail1: nvme3 is reached through it (10.5.0.9)");
    check("sys/class/nvme/nvme3/address", "0000:01:00.0\n", "");
    check("sys/class/iscsi_connection/connection1:0/persistent_address", "fd00:5::9\n",
          "rail1: connection1:0 is reached through it (fd00:5::9)");
}

static void sockets_with_its_address(void **state)
{
    (void)state;
    check("proc/net/tcp", HEAD SOCKET("0200050A:0016", "00000000:0000", "0A"),
          "rail1: a process of the host listens on 10.5.0.2 port 22 (TCP)");
    check("proc/net/tcp", HEAD SOCKET("0501A8C0:C350", "0901A8C0:0801", "01"),
          "rail0: a process of the host is connected from 192.168.1.5 to 192.168.1.9 port 2049 "
          "(TCP)");
    check("proc/net/tcp6",
          HEAD SOCKET("0000000000000000FFFF00000200050A:C350",
                      "0000000000000000FFFF00000900050A:0801", "01"),
          "rail1: a process of the host is connected from 10.5.0.2 to 10.5.0.9 port 2049 (TCP)");
    check("proc/net/tcp6",
          HEAD SOCKET("050000FD000000000000000002000000:0016",
                      "00000000000000000000000000000000:0000", "0A"),
          "rail1: a process of the host listens on fd00:5::2 port 22 (TCP)");
    check("proc/net/udp", HEAD SOCKET("0200050A:0111", "00000000:0000", "07"),
          "rail1: a process of the host listens on 10.5.0.2 port 273 (UDP)");
    /* the past; other addresses, all of them; a client of DHCP, of NTP; what is no socket */
    check("proc/net/tcp", HEAD SOCKET("0200050A:C350", "0900050A:0801", "06"), "");
    check("proc/net/tcp",
          HEAD SOCKET("00000000:0016", "00000000:0000", "0A")
              SOCKET("0200000A:C350", "0900050A:0801", "01")
                  SOCKET("0100007F:0016", "00000000:0000", "0A"),
          "");
    check("proc/net/udp",
          HEAD SOCKET("0501A8C0:0044", "00000000:0000", "07")
              SOCKET("0501A8C0:007B", "00000000:0000", "07"),
          "");
    check("proc/net/tcp", HEAD "   0: 0200050A 0900050A:0801 01\n   1: x\n 2: 02:3 02:3 0A\n", "");
}

/* Of a captured machine no addresses are known. */
static void without_addresses(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    struct host_use use;
    struct strlist interfaces = STRLIST_INIT;
    strlist_add(&interfaces, "rail0");
    strlist_add(&interfaces, "rail1");
    tree_file(&tree, "proc/net/route",
              USUAL ROUTE("rail1", "0000060A", "0100050A", "0003", "0", "0000FFFF"));
    tree_file(&tree, "proc/net/tcp", HEAD SOCKET("0501A8C0:C350", "0901A8C0:0801", "01"));
    assert_int_equal(live_use_read(tree.root, NULL, &interfaces, &use, NULL), 0);
    assert_int_equal(use.names.count, 1);
    assert_string_equal(use.names.items[0], "rail1");
    host_use_done(&use);
    strlist_done(&interfaces);
    tree_drop(&tree);
}

/* A machine that does not say its addresses would seem to use none of its interfaces. */
static void addresses_that_cannot_be_read(void **state)
{
    struct strlist interfaces = STRLIST_INIT;
    struct drarun_error err = {0};
    struct host_use use = {0};
    struct discover_config config;
    struct node_devices devices;
    (void)state;
    strlist_add(&interfaces, "rail0");
    discover_config_default(&config);
    const struct discover_source source = {.root = -1, .config = &config};
    no_addresses = true;
    assert_int_equal(live_use_now(&interfaces, &use, &err), -ENOBUFS);
    assert_non_null(strstr(err.text, "the addresses of this machine"));
    assert_int_equal(discover(&source, &devices, NULL), -ENOBUFS);
    no_addresses = false;
    assert_int_equal(live_use_now(&interfaces, &use, NULL), 0);
    host_use_done(&use);
    discover_config_done(&config);
    strlist_done(&interfaces);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_no_use),
        cmocka_unit_test(routes_beyond_the_connected_one),
        cmocka_unit_test(default_routes_that_others_beat),
        cmocka_unit_test(mounts_of_other_machines),
        cmocka_unit_test(disks_of_other_machines),
        cmocka_unit_test(sockets_with_its_address),
        cmocka_unit_test(without_addresses),
        cmocka_unit_test(addresses_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
