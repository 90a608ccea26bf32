/* SPDX-License-Identifier: Apache-2.0 */
/* Devices as a slice has them, whole: docs/design/021-node-devices.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "plugin/discover/device_json.h"
#include "plugin/discover/faults.h"

static void versions_are_normalized(void **state)
{
    static const struct {
        const char *text, *version; /* NULL: none */
    } rows[] = {{"580.126.09", "580.126.9"},
                {"12.8", "12.8.0"},
                {"0.0.0", "0.0.0"},
                {"1.2.3", "1.2.3"},
                {"12", NULL},
                {"", NULL},
                {"1.", NULL},
                {"1.2.", NULL},
                {"1.2.3.4", NULL},
                {"1.2.3-rc1", NULL},
                {"v1.2.3", NULL},
                {"1.2.x", NULL},
                {"1-2", NULL},
                {"1.-2", NULL}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char version[32] = "untouched";
        if (version_normalize(rows[i].text, version, sizeof version) != (rows[i].version != NULL))
            fail_msg("%s", rows[i].text);
        assert_string_equal(version, rows[i].version ? rows[i].version : "untouched");
    }
}

static void bytes_have_the_largest_suffix(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {{0, "0"},
                {1, "1"},
                {1023, "1023"},
                {1024, "1Ki"},
                {1025, "1025"},
                {1536 << 10, "1536Ki"},
                {183359ull << 20, "183359Mi"},
                {80ull << 30, "80Gi"},
                {3ull << 40, "3Ti"},
                {1ull << 50, "1024Ti"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[32];
        bytes_format(rows[i].bytes, text, sizeof text);
        assert_string_equal(text, rows[i].text);
    }
}

static void check(const struct node_device *device, const char *expected)
{
    CLEANUP(json_decrefp) json_t *json = device_json(device);
    cleanup_free char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, expected);
}

#define PLAIN                                                                                      \
    {                                                                                              \
        .kind = NODE_DEVICE_NIC, .name = "nic", .pci.numa = -1, .rail = -1                         \
    }

/* The smallest: what is not known is left out. */
static void device_of_which_little_is_known(void **state)
{
    const struct node_device nic = PLAIN;
    struct node_device gpu = {.kind = NODE_DEVICE_GPU, .name = "gpu", .gpu.minor = -1};
    (void)state;
    check(&nic, "{\"attributes\":{\"dra.net/rdma\":{\"bool\":false},\"dra.net/virtual\":{\"bool\":"
                "true}},\"name\":\"nic\"}");
    check(&gpu, "{\"attributes\":{\"gpu.nvidia.com/brand\":{\"string\":\"Nvidia\"},"
                "\"gpu.nvidia.com/type\":{\"string\":\"gpu\"}},\"name\":\"gpu\"}");
}

static void nic_is_told_whole(void **state)
{
    struct topo_gid gid = {.index = 3,
                           .type = TOPO_GID_ROCE2,
                           .bytes = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2}};
    struct node_device nic = {
        .kind = NODE_DEVICE_NIC,
        .name = "nic-1",
        .pci = {.known = true,
                .addr = {.domain = 0xffff},
                .bus_id = "ffff:8f:00.0",
                .root = "pci0000:8c",
                .pcie_switch = "0000:8d:00.0",
                .numa = 0,
                .vendor = 0x15b3,
                .vfs = 2,
                .vfs_max = 1},
        .netdev = {.name = "eth1",
                   .arp_type = 1,
                   .mac = "02:00:00:00:00:01",
                   .mtu = 9000,
                   .ipv4 = "10.0.0.1/24",
                   .ipv6 = "fd00::1/64",
                   .speed_mbps = 100000,
                   .up = TOPO_YES,
                   .carrier = TOPO_YES},
        .rdma = {.name = "mlx5_0",
                 .port = 2,
                 .ports = 2,
                 .link = TOPO_LINK_ETHERNET,
                 .active = TOPO_YES,
                 .rate_mbps = 400000,
                 .firmware = "28.41.1000",
                 .gids = &gid,
                 .gid_count = 1},
        .rail = 0,
    };
    (void)state;
    fault_add(&nic, FAULT_NO_SCHEDULE, FAULT_LINK_DOWN, "", "x");
    fault_add(&nic, FAULT_NO_EXECUTE, FAULT_LOST, "79", "y");
    check(&nic, "{\"attributes\":{"
                "\"dra.net/encapsulation\":{\"string\":\"ether\"},"
                "\"dra.net/ifName\":{\"string\":\"eth1\"},"
                "\"dra.net/ipv4\":{\"string\":\"10.0.0.1/24\"},"
                "\"dra.net/ipv6\":{\"string\":\"fd00::1/64\"},"
                "\"dra.net/mac\":{\"string\":\"02:00:00:00:00:01\"},"
                "\"dra.net/mtu\":{\"int\":9000},"
                "\"dra.net/numaNode\":{\"int\":0},"
                "\"dra.net/pciAddress\":{\"string\":\"ffff:8f:00.0\"},"
                "\"dra.net/pciVendor\":{\"string\":\"Mellanox Technologies\"},"
                "\"dra.net/rdma\":{\"bool\":true},"
                "\"dra.net/rdmaDevice\":{\"string\":\"mlx5_0\"},"
                "\"dra.net/sriov\":{\"bool\":true},"
                "\"dra.net/sriovVfs\":{\"int\":2},"
                "\"dra.net/state\":{\"string\":\"up\"},"
                "\"dra.net/type\":{\"string\":\"device\"},"
                "\"dra.net/virtual\":{\"bool\":false},"
                "\"drarun.dev/firmware\":{\"string\":\"28.41.1000\"},"
                "\"drarun.dev/gid\":{\"string\":\"0000:0000:0000:0000:0000:ffff:0a00:0002\"},"
                "\"drarun.dev/gidIndex\":{\"int\":3},"
                "\"drarun.dev/linkLayer\":{\"string\":\"Ethernet\"},"
                "\"drarun.dev/linkState\":{\"string\":\"active\"},"
                "\"drarun.dev/pcieSwitch\":{\"string\":\"0000:8d:00.0\"},"
                "\"drarun.dev/port\":{\"int\":2},"
                "\"drarun.dev/rail\":{\"int\":0},"
                "\"drarun.dev/rdmaDevice\":{\"string\":\"mlx5_0\"},"
                "\"drarun.dev/speed\":{\"int\":400000},"
                "\"resource.kubernetes.io/numaNode\":{\"int\":0},"
                "\"resource.kubernetes.io/pciBusID\":{\"string\":\"ffff:8f:00.0\"},"
                "\"resource.kubernetes.io/pcieRoot\":{\"string\":\"pci0000:8c\"}},"
                "\"capacity\":{\"drarun.dev/bandwidth\":{\"value\":\"400G\"}},"
                "\"name\":\"nic-1\","
                "\"taints\":[{\"effect\":\"NoSchedule\",\"key\":\"drarun.dev/link-down\"},"
                "{\"effect\":\"NoExecute\",\"key\":\"drarun.dev/lost\",\"value\":\"79\"}]}");
}

static void gpu_is_told_whole(void **state)
{
    struct node_device gpu = {.kind = NODE_DEVICE_MIG,
                              .name = "gpu-1",
                              .gpu = {.uuid = "MIG-a",
                                      .parent_uuid = "GPU-a",
                                      .mig_profile = "1g.5gb",
                                      .minor = 0,
                                      .product = "NVIDIA A100",
                                      .architecture = "Ampere",
                                      .compute = "8.0",
                                      .driver_version = "580.126.09",
                                      .cuda_version = "12.8.0",
                                      .memory = 5ull << 30,
                                      .nvlinks = 1}};
    (void)state;
    check(&gpu, "{\"attributes\":{"
                "\"drarun.dev/minor\":{\"int\":0},"
                "\"drarun.dev/nvlinks\":{\"int\":1},"
                "\"gpu.nvidia.com/architecture\":{\"string\":\"Ampere\"},"
                "\"gpu.nvidia.com/brand\":{\"string\":\"Nvidia\"},"
                "\"gpu.nvidia.com/cudaComputeCapability\":{\"version\":\"8.0.0\"},"
                "\"gpu.nvidia.com/cudaDriverVersion\":{\"version\":\"12.8.0\"},"
                "\"gpu.nvidia.com/driverVersion\":{\"version\":\"580.126.9\"},"
                "\"gpu.nvidia.com/parentUUID\":{\"string\":\"GPU-a\"},"
                "\"gpu.nvidia.com/productName\":{\"string\":\"NVIDIA A100\"},"
                "\"gpu.nvidia.com/profile\":{\"string\":\"1g.5gb\"},"
                "\"gpu.nvidia.com/type\":{\"string\":\"mig\"},"
                "\"gpu.nvidia.com/uuid\":{\"string\":\"MIG-a\"}},"
                "\"capacity\":{\"gpu.nvidia.com/memory\":{\"value\":\"5Gi\"}},"
                "\"name\":\"gpu-1\"}");
}

/* The value of one attribute or capacity as JSON; "": it is not there. */
static const char *value_of(const struct node_device *device, const char *key)
{
    static char text[128];
    CLEANUP(json_decrefp) json_t *json = device_json(device);
    json_t *value = json_object_get(json_object_get(json, "attributes"), key);
    if (!value)
        value = json_object_get(json_object_get(json, "capacity"), key);
    cleanup_free char *dumped =
        value ? json_dumps(json_object_iter_value(json_object_iter(value)), JSON_ENCODE_ANY) : NULL;
    snprintf(text, sizeof text, "%s", dumped ? dumped : "");
    return text;
}

static void links_have_a_layer_and_a_state(void **state)
{
    static const struct {
        struct node_netdev netdev;
        struct node_rdma rdma;
        const char *layer, *state;
    } rows[] = {
        {{.name = ""}, {.name = ""}, "", ""},
        {{.name = "e", .arp_type = 1}, {.name = ""}, "\"Ethernet\"", ""},
        {{.name = "", .arp_type = 32}, {.name = ""}, "\"InfiniBand\"", ""},
        {{.name = ""}, {.name = "m", .link = TOPO_LINK_IB}, "\"InfiniBand\"", ""},
        {{.name = ""}, {.name = "m", .link = TOPO_LINK_OTHER}, "\"EFA\"", ""},
        {{.name = ""}, {.name = "", .link = TOPO_LINK_OTHER}, "", ""},
        {{.name = ""}, {.name = "m", .link = TOPO_LINK_ETHERNET}, "\"Ethernet\"", ""},
        {{.carrier = TOPO_YES}, {.active = TOPO_NO}, "", "\"active\""},
        {{.carrier = TOPO_NO}, {.active = TOPO_YES}, "", "\"active\""},
        {{.carrier = TOPO_NO}, {.name = ""}, "", "\"down\""},
        {{.name = ""}, {.active = TOPO_NO}, "", "\"down\""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct node_device nic = PLAIN;
        nic.netdev = rows[i].netdev;
        nic.rdma = rows[i].rdma;
        assert_string_equal(value_of(&nic, "drarun.dev/linkLayer"), rows[i].layer);
        assert_string_equal(value_of(&nic, "drarun.dev/linkState"), rows[i].state);
    }
}

static void speeds_are_capacities(void **state)
{
    static const struct {
        uint32_t rate, speed;
        const char *attribute, *capacity;
    } rows[] = {{0, 0, "", ""},
                {0, 1000, "1000", "\"1G\""},
                {0, 2500, "2500", "\"2500M\""},
                {1, 1000, "1", "\"1M\""}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct node_device nic = PLAIN;
        nic.rdma.rate_mbps = rows[i].rate;
        nic.netdev.speed_mbps = rows[i].speed;
        assert_string_equal(value_of(&nic, "drarun.dev/speed"), rows[i].attribute);
        assert_string_equal(value_of(&nic, "drarun.dev/bandwidth"), rows[i].capacity);
    }
}

/* RoCE v2 of IPv4, else of an IPv6 that others reach, else link-local, else v1; the first of them.
 */
static void best_gid_is_chosen(void **state)
{
    struct topo_gid gids[] = {
        {.index = 0, .bytes = {[10] = 0xff, [11] = 0xff}},
        {.index = 1, .bytes = {0xfd}},
        {.index = 2, .type = TOPO_GID_ROCE2, .bytes = {0xfe, 0xbf}}, /* fe80::/10's last */
        {.index = 3, .type = TOPO_GID_ROCE2, .bytes = {0xfe, 0x80}},
        {.index = 4, .type = TOPO_GID_ROCE2, .bytes = {0xfe, 0xc0}},
        {.index = 5, .type = TOPO_GID_ROCE2, .bytes = {0xfd, 0x80}},
        {.index = 6, .type = TOPO_GID_ROCE2, .bytes = {[10] = 0xff, [11] = 0xff, [12] = 10}},
        {.index = 7, .type = TOPO_GID_ROCE2, .bytes = {[10] = 0xff, [11] = 0xff, [12] = 11}},
    };
    static const char *const expected[] = {"", "0", "0", "2", "2", "4", "4", "6", "6"};
    (void)state;
    for (size_t count = 0; count <= ARRAY_LEN(gids); count++) {
        struct node_device nic = PLAIN;
        nic.rdma.gids = gids;
        nic.rdma.gid_count = count;
        assert_string_equal(value_of(&nic, "drarun.dev/gidIndex"), expected[count]);
    }
}

static void odd_devices(void **state)
{
    struct node_device nic = PLAIN;
    (void)state;
    nic.pci.known = true;
    nic.pci.addr.domain = 0x10000; /* which upstream's attribute cannot have */
    snprintf(nic.pci.bus_id, sizeof nic.pci.bus_id, "10000:01:00.0");
    nic.pci.sriov = NODE_SRIOV_VF;
    nic.rdma.ports = 1;
    nic.netdev = (struct node_netdev){.name = "ib0", .arp_type = 32, .up = TOPO_UNKNOWN};
    memset(nic.rdma.firmware, 'x', sizeof nic.rdma.firmware - 1);
    static const struct {
        const char *key, *value;
    } rows[] = {
        {"resource.kubernetes.io/pciBusID", ""},
        {"resource.kubernetes.io/numaNode", ""},
        {"dra.net/numaNode", ""},
        {"dra.net/pciAddress", "\"10000:01:00.0\""},
        {"dra.net/pciVendor", ""},
        {"dra.net/sriov", "false"},
        {"dra.net/sriovVfs", ""},
        {"dra.net/isSriovVf", "true"},
        {"dra.net/encapsulation", "\"infiniband\""},
        {"dra.net/type", "\"ipoib\""},
        {"dra.net/state", "\"down\""},
        {"dra.net/mtu", ""},
        {"drarun.dev/port", ""},
        {"drarun.dev/rail", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(value_of(&nic, rows[i].key), rows[i].value);
    snprintf(nic.netdev.kind, sizeof nic.netdev.kind, "veth");
    assert_string_equal(value_of(&nic, "dra.net/type"), "\"veth\"");
    memset(nic.netdev.ipv4, 'x', sizeof nic.netdev.ipv4 - 1);
    assert_int_equal(strlen(value_of(&nic, "dra.net/ipv4")), sizeof nic.netdev.ipv4 - 1 + 2);
    struct node_device gpu = {.kind = NODE_DEVICE_GPU, .gpu.minor = -1};
    memset(gpu.gpu.product, 'x', sizeof gpu.gpu.product - 1); /* longer than a value may be */
    assert_int_equal(strlen(value_of(&gpu, "gpu.nvidia.com/productName")), 64 + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_normalized),
        cmocka_unit_test(bytes_have_the_largest_suffix),
        cmocka_unit_test(device_of_which_little_is_known),
        cmocka_unit_test(nic_is_told_whole),
        cmocka_unit_test(gpu_is_told_whole),
        cmocka_unit_test(links_have_a_layer_and_a_state),
        cmocka_unit_test(speeds_are_capacities),
        cmocka_unit_test(best_gid_is_chosen),
        cmocka_unit_test(odd_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
