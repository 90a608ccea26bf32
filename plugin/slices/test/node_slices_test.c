/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "plugin/discover/device_json.h"
#include "plugin/discover/faults.h"
#include "plugin/slices/node_slices.h"

static struct node_devices many(size_t count)
{
    struct node_devices devices = NODE_DEVICES_INIT;
    for (size_t i = 0; i < count; i++) {
        struct node_device *device = node_devices_add(&devices);
        device->kind = NODE_DEVICE_NIC;
        device->rail = -1;
        snprintf(device->name, sizeof device->name, "nic-%zu", i);
    }
    return devices;
}

static void test_split(void **state)
{
    (void)state;
    static const struct {
        size_t devices, tainted, slices, last;
    } rows[] = {{0, 0, 1, 0},   {1, 0, 1, 1},   {128, 0, 1, 128},
                {129, 0, 2, 1}, {64, 1, 1, 64}, {65, 1, 2, 1}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct node_devices devices = many(rows[i].devices);
        if (rows[i].tainted)
            fault_add(&devices.list[3], FAULT_NO_SCHEDULE, FAULT_LINK_DOWN, "", "x");
        json_t *parts = slices_split(&devices, NODE_DRIVER_NIC);
        assert_int_equal(json_array_size(parts), rows[i].slices);
        assert_int_equal(json_array_size(json_array_get(parts, rows[i].slices - 1)), rows[i].last);
        json_decref(parts);
        parts = slices_split(&devices, NODE_DRIVER_GPU); /* it has none */
        assert_int_equal(json_array_size(parts), 1);
        assert_int_equal(json_array_size(json_array_get(parts, 0)), 0);
        json_decref(parts);
        node_devices_done(&devices);
    }
}

static bool is_second(const char *name, void *arg)
{
    (void)arg;
    return strcmp(name, "nic-1") == 0;
}

/* Those with a taint are left out, unless they are held. */
static void test_without_tainted(void **state)
{
    (void)state;
    struct node_devices devices = many(66);
    for (size_t i = 0; i < 3; i++)
        fault_add(&devices.list[i], FAULT_NO_EXECUTE, FAULT_LOST, "", "x");
    json_t *parts = slices_split(&devices, NODE_DRIVER_NIC);
    json_t *fewer = slices_without_tainted(parts, is_second, NULL);
    assert_int_equal(json_array_size(parts), 2);
    assert_int_equal(json_array_size(json_array_get(parts, 0)), 64);
    assert_int_equal(json_array_size(fewer), 2);
    assert_int_equal(json_array_size(json_array_get(fewer, 0)), 62);
    assert_int_equal(json_array_size(json_array_get(fewer, 1)), 2);
    const json_t *first = json_array_get(json_array_get(fewer, 0), 0);
    assert_string_equal(json_string_value(json_object_get(first, "name")), "nic-1");
    assert_int_equal(json_array_size(json_object_get(first, "taints")), 1);
    json_decref(fewer);
    json_decref(parts);
    node_devices_done(&devices);
}

static void test_shapes(void **state)
{
    (void)state;
    static const char *const versions[] = {"v1", "v1beta2", "v1beta1"};
    const struct slices_owner owner = {"node-1", "uid-1", NODE_DRIVER_NIC};
    struct node_devices devices = many(1);
    json_t *parts = slices_split(&devices, NODE_DRIVER_NIC);
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        const char *name = NULL, *api = NULL, *pool = NULL, *owned = NULL;
        json_int_t generation = 0, count = 0;
        json_t *devices_json = NULL;
        json_t *slice = slice_object(&owner, versions[i], json_array_get(parts, 0), 2, 5, 41);
        assert_int_equal(json_unpack(slice, "{s:s, s:{s:s, s:[{s:s}]}, s:{s:{s:s, s:I, s:I}, s:o}}",
                                     "apiVersion", &api, "metadata", "name", &name,
                                     "ownerReferences", "uid", &owned, "spec", "pool", "name",
                                     &pool, "generation", &generation, "resourceSliceCount", &count,
                                     "devices", &devices_json),
                         0);
        assert_string_equal(name, "node-1-nic.drarun.dev-2");
        assert_string_equal(strrchr(api, '/') + 1, versions[i]);
        assert_string_equal(pool, "node-1");
        assert_string_equal(owned, "uid-1");
        assert_int_equal(generation, 41);
        assert_int_equal(count, 5);
        const json_t *device = json_array_get(devices_json, 0);
        assert_string_equal(json_string_value(json_object_get(device, "name")), "nic-0");
        const json_t *body = i == 2 ? json_object_get(device, "basic") : device;
        assert_true(json_is_object(json_object_get(body, "attributes")));
        json_decref(slice);
    }
    json_decref(parts);
    node_devices_done(&devices);
}

static void test_long_node_name(void **state)
{
    (void)state;
    char node[254], other[254], name[300], second[300];
    memset(node, 'n', sizeof node - 1);
    node[sizeof node - 1] = '\0';
    memcpy(other, node, sizeof node);
    other[252] = 'm';
    slice_name(&(struct slices_owner){node, NULL, NODE_DRIVER_GPU}, 7, name, sizeof name);
    slice_name(&(struct slices_owner){other, NULL, NODE_DRIVER_GPU}, 7, second, sizeof second);
    assert_int_equal(strlen(name), 253);
    assert_string_equal(name + 253 - strlen("-gpu.drarun.dev-7"), "-gpu.drarun.dev-7");
    assert_string_not_equal(name, second);
}

static void test_same(void **state)
{
    (void)state;
    static const struct {
        const char *wanted, *held;
        bool same;
    } rows[] = {
        {"{'pool':{'name':'n','generation':1}}", "{'pool':{'name':'n','generation':9}}", true},
        {"{'devices':[{'name':'a','taints':[{'key':'k'}]}]}",
         "{'devices':[{'name':'a','taints':[{'key':'k','timeAdded':'2026-01-01T00:00:00Z'}]}]}",
         true},
        {"{'devices':[]}", "{}", true},
        {"{'devices':[]}", "{'devices':[{'name':'a'}]}", false},
        {"{'devices':[{'name':'a'}]}", "{}", false},
        {"{'devices':[{'name':'a'}]}", "{'devices':[{'name':'a'},{'name':'b'}]}", false},
        {"{'a':1}", "{'a':1,'b':2}", false},
        {"{'a':1,'b':2}", "{'a':1}", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[2][256];
        snprintf(text[0], sizeof text[0], "%s", rows[i].wanted);
        snprintf(text[1], sizeof text[1], "%s", rows[i].held);
        for (size_t t = 0; t < 2; t++)
            for (char *p = text[t]; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        json_t *wanted = json_loads(text[0], 0, NULL), *held = json_loads(text[1], 0, NULL);
        if (slice_spec_same(wanted, held) != rows[i].same)
            fail_msg("row %zu", i);
        json_decref(wanted);
        json_decref(held);
    }
}

/* All that can be known of a NIC at once stays within the API's limit. */
static void test_fullest_device(void **state)
{
    (void)state;
    static struct topo_gid gid = {
        3, {[10] = 0xff, [11] = 0xff, [12] = 192, 168, 1, 5}, TOPO_GID_ROCE2, "gpu0rdma0"};
    struct node_device nic = {
        .kind = NODE_DEVICE_NIC,
        .name = "pci-0000-91-00-0",
        .pci = {.known = true,
                .addr = {0, 0x91, 0, 0},
                .bus_id = "0000:91:00.0",
                .root = "pci0000:8c",
                .pcie_switch = "0000:8d:00.0",
                .numa = 1,
                .vendor = 0x15b3,
                .device = 0x1021,
                .sriov = NODE_SRIOV_VF,
                .vfs = 1,
                .vfs_max = 8},
        .netdev = {.name = "gpu0rdma0",
                   .ifindex = 7,
                   .arp_type = 1,
                   .mac = "02:00:00:00:00:01",
                   .mtu = 8896,
                   .ipv4 = "192.168.1.5/32",
                   .ipv6 = "2001:db8::1/64",
                   .speed_mbps = 400000,
                   .up = TOPO_YES,
                   .carrier = TOPO_YES},
        .rdma = {.name = "mlx5_0",
                 .port = 2,
                 .ports = 2,
                 .link = TOPO_LINK_ETHERNET,
                 .active = TOPO_YES,
                 .state = "ACTIVE",
                 .rate_mbps = 400000,
                 .firmware = "28.41.1000",
                 .gids = &gid,
                 .gid_count = 1},
        .rail = 3,
    };
    json_t *json = device_json(&nic);
    const json_t *attributes = json_object_get(json, "attributes");
    const json_t *capacity = json_object_get(json, "capacity");
    assert_true(json_object_size(attributes) + json_object_size(capacity) <= DEVICE_ATTRIBUTES_MAX);
    static const struct {
        const char *key, *type, *text;
    } texts[] = {
        {"resource.kubernetes.io/pciBusID", "string", "0000:91:00.0"},
        {"resource.kubernetes.io/pcieRoot", "string", "pci0000:8c"},
        {"drarun.dev/pcieSwitch", "string", "0000:8d:00.0"},
        {"drarun.dev/rdmaDevice", "string", "mlx5_0"},
        {"drarun.dev/linkState", "string", "active"},
        {"drarun.dev/linkLayer", "string", "Ethernet"},
        {"drarun.dev/gid", "string", "0000:0000:0000:0000:0000:ffff:c0a8:0105"},
        {"dra.net/ifName", "string", "gpu0rdma0"},
        {"dra.net/pciVendor", "string", "Mellanox Technologies"},
        {"dra.net/state", "string", "up"},
        {"dra.net/type", "string", "device"},
        {"dra.net/encapsulation", "string", "ether"},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_string_equal(json_string_value(json_object_get(
                                json_object_get(attributes, texts[i].key), texts[i].type)),
                            texts[i].text);
    assert_string_equal(json_string_value(json_object_get(
                            json_object_get(capacity, "drarun.dev/bandwidth"), "value")),
                        "400G");
    json_decref(json);
}

/* A port's table has link-local entries first; a fabric of IPv6 has no others of IPv4. */
static void test_gid(void **state)
{
    static const struct {
        size_t count;
        int64_t index;
    } rows[] = {{1, 0}, {2, 1}, {4, 3}, {5, 4}};
    (void)state;
    struct topo_gid gids[] = {
        {0, {0xfe, 0x80, [15] = 1}, TOPO_GID_ROCE1, "a"},
        {1, {0xfe, 0x80, [15] = 1}, TOPO_GID_ROCE2, "a"},
        {2, {0xfd, 0x02, [15] = 1}, TOPO_GID_ROCE1, "a"},
        {3, {0xfd, 0x02, [15] = 1}, TOPO_GID_ROCE2, "a"},
        {4, {[10] = 0xff, [11] = 0xff, [12] = 10, 0, 0, 1}, TOPO_GID_ROCE2, "a"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct node_device nic = {.kind = NODE_DEVICE_NIC,
                                  .name = "nic",
                                  .rail = -1,
                                  .rdma = {.name = "mlx5_0", .gids = gids}};
        nic.rdma.gid_count = rows[i].count;
        json_t *json = device_json(&nic);
        const json_t *attributes = json_object_get(json, "attributes");
        assert_int_equal(json_integer_value(json_object_get(
                             json_object_get(attributes, "drarun.dev/gidIndex"), "int")),
                         rows[i].index);
        json_decref(json);
    }
}

static void test_versions(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"580.126.09", "580.126.9"}, {"12.8", "12.8.0"}, {"10.0.0", "10.0.0"}, {"550", NULL},
        {"1.2.3-rc1", NULL},         {"", NULL},         {"1..2", NULL}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char version[64] = "";
        assert_int_equal(version_normalize(rows[i][0], version, sizeof version),
                         rows[i][1] != NULL);
        if (rows[i][1])
            assert_string_equal(version, rows[i][1]);
    }
}

static void test_quantities(void **state)
{
    (void)state;
    char text[32];
    bytes_format(183359ull << 20, text, sizeof text);
    assert_string_equal(text, "183359Mi");
    bytes_format(40ull << 30, text, sizeof text);
    assert_string_equal(text, "40Gi");
    bytes_format(1001, text, sizeof text);
    assert_string_equal(text, "1001");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),      cmocka_unit_test(test_without_tainted),
        cmocka_unit_test(test_shapes),     cmocka_unit_test(test_long_node_name),
        cmocka_unit_test(test_same),       cmocka_unit_test(test_fullest_device),
        cmocka_unit_test(test_gid),        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_quantities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
