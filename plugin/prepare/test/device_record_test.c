/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "plugin/discover/remember.h"
#include "plugin/prepare/device_record.h"

/* A record tells which of a node's devices it is of, and its name. */
static void test_found_again(void **state)
{
    static const struct {
        enum node_device_kind kind;
        int32_t gi, ci;
        uint32_t port;
    } rows[] = {{NODE_DEVICE_GPU, -1, -1, 0},
                {NODE_DEVICE_MIG, 1, 0, 0},
                {NODE_DEVICE_MIG, 1, 1, 0},
                {NODE_DEVICE_NIC, 0, 0, 0},
                {NODE_DEVICE_NIC, 0, 0, 1}};
    struct node_devices devices = NODE_DEVICES_INIT;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct node_device *device = node_devices_add(&devices);
        device->kind = rows[i].kind;
        device->pci.known = true;
        device->gpu.mig_gi = rows[i].gi;
        device->gpu.mig_ci = rows[i].ci;
        device->port = rows[i].port;
        snprintf(device->name, sizeof device->name, "device-%zu", i);
        snprintf(device->pci.bus_id, sizeof device->pci.bus_id, "0000:8f:00.0");
        assert_int_equal(pci_addr_parse(device->pci.bus_id, &device->pci.addr, NULL), 0);
    }
    for (size_t i = 0; i < devices.count; i++) {
        struct node_device read;
        json_t *record = device_record(&devices.list[i]);
        assert_true(device_record_read(record, &read));
        assert_ptr_equal(devices_same(&devices, &read), &devices.list[i]);
        assert_string_equal(read.name, devices.list[i].name);
        json_decref(record);
    }
    node_devices_done(&devices);
}

/* A plugin that starts while the RDMA device is in a pod can promise it to the next one. */
static void test_nodes(void **state)
{
    struct node_device read, device = {.kind = NODE_DEVICE_NIC,
                                       .name = "pci-0000-8f-00-0",
                                       .rdma = {.name = "mlx5_0",
                                                .chardevs = {{"/dev/infiniband/uverbs3", 231, 195},
                                                             {"/dev/infiniband/rdma_cm", 10, 58}},
                                                .chardev_count = 2}};
    (void)state;
    json_t *record = device_record(&device);
    assert_true(device_record_read(record, &read));
    assert_int_equal(read.rdma.chardev_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(read.rdma.chardevs[i].path, device.rdma.chardevs[i].path);
        assert_int_equal(read.rdma.chardevs[i].major, device.rdma.chardevs[i].major);
        assert_int_equal(read.rdma.chardevs[i].minor, device.rdma.chardevs[i].minor);
    }
    json_t *nodes = json_object_get(record, "nodes");
    while (json_array_size(nodes) <= NODE_CHARDEVS_MAX) /* of another writer */
        json_array_append(nodes, json_array_get(nodes, 0));
    assert_true(device_record_read(record, &read));
    assert_int_equal(read.rdma.chardev_count, NODE_CHARDEVS_MAX);
    json_decref(record);
}

/* Each part under its key, and back: what a checkpoint of another release holds. */
static void test_whole(void **state)
{
    static const char whole[] =
        "{\"arpType\":1,\"board\":\"MT_1\",\"firmware\":\"28.41\",\"guid\":\"a:b\","
        "\"ifName\":\"eth1\",\"kernelDriver\":\"mlx5_core\",\"kind\":\"veth\",\"link\":1,"
        "\"mac\":\"02:01\",\"mtu\":9000,\"name\":\"nic-1\",\"nodes\":[{\"major\":231,"
        "\"minor\":192,\"path\":\"/dev/infiniband/uverbs0\"}],\"numa\":-1,"
        "\"pci\":\"0001:8f:00.1\",\"pciDevice\":4129,\"pciRoot\":\"pci0001:8c\","
        "\"pcieSwitch\":\"0001:8d:00.0\",\"pf\":\"0001:8f:00.0\",\"pfDevice\":4128,\"port\":1,"
        "\"rail\":3,\"rateMbps\":400000,\"rdma\":\"mlx5_0\",\"rdmaPort\":2,\"rdmaPorts\":4,"
        "\"speedMbps\":100000,\"sriov\":2,\"vendor\":5555}";
    struct node_device read;
    CLEANUP(json_decrefp) json_t *record = json_loads(whole, 0, NULL);
    (void)state;
    assert_true(device_record_read(record, &read));
    assert_int_equal(read.kind, NODE_DEVICE_NIC);
    assert_true(read.pci.known);
    assert_int_equal(read.pci.addr.domain, 1);
    assert_string_equal(read.pci.bus_id, "0001:8f:00.1");
    assert_string_equal(read.netdev.name, "eth1");
    assert_int_equal(read.rdma.port, 2);
    assert_int_equal(read.pci.sriov, NODE_SRIOV_VF);
    CLEANUP(json_decrefp) json_t *again = device_record(&read);
    cleanup_free char *text = json_dumps(again, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, whole);
}

static void test_gpu(void **state)
{
    static const char *const texts[] = {
        "{\"gpu\":{\"ci\":0,\"gi\":7,\"mig\":true},\"link\":0,\"name\":\"m\",\"numa\":0,"
        "\"pci\":\"0000:8f:00.0\",\"rail\":0,\"sriov\":0,\"vendor\":0}",
        "{\"gpu\":{\"ci\":-1,\"gi\":-1,\"mig\":false},\"link\":0,\"name\":\"g\",\"numa\":0,"
        "\"rail\":0,\"sriov\":0,\"vendor\":0}"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct node_device read;
        CLEANUP(json_decrefp) json_t *record = json_loads(texts[i], 0, NULL);
        assert_true(device_record_read(record, &read));
        assert_int_equal(read.kind, i ? NODE_DEVICE_GPU : NODE_DEVICE_MIG);
        assert_int_equal(read.gpu.minor, -1);
        assert_int_equal(read.pci.known, i == 0);
        CLEANUP(json_decrefp) json_t *again = device_record(&read);
        cleanup_free char *text = json_dumps(again, JSON_COMPACT | JSON_SORT_KEYS);
        assert_string_equal(text, texts[i]);
    }
}

/* Of another writer: what does not fit is left out. */
static void test_nodes_that_do_not_fit(void **state)
{
    struct node_device read;
    char path[80];
    CLEANUP(json_decrefp) json_t *nodes = json_array();
    CLEANUP(json_decrefp) json_t *record = json_pack("{s:s, s:O}", "name", "n", "nodes", nodes);
    (void)state;
    for (size_t length = sizeof read.rdma.chardevs[0].path - 1;
         length <= sizeof read.rdma.chardevs[0].path; length++) {
        memset(path, 'x', length);
        path[length] = '\0';
        json_array_append_new(nodes, json_pack("{s:s}", "path", path));
    }
    json_array_append_new(nodes, json_pack("{s:i}", "major", 1));
    assert_true(device_record_read(record, &read));
    assert_int_equal(read.rdma.chardev_count, 1);
    assert_int_equal(strlen(read.rdma.chardevs[0].path), sizeof read.rdma.chardevs[0].path - 1);
    json_object_set_new(record, "name", json_integer(1));
    read.port = 9;
    assert_false(device_record_read(record, &read));
    json_object_set_new(record, "name", json_string("n"));
    json_object_set_new(record, "pci", json_string("8f:00"));
    assert_false(device_record_read(record, &read));
    assert_int_equal(read.port, 9);
}

static void test_none(void **state)
{
    struct node_device read;
    json_t *record = json_pack("{s:s}", "pci", "0000:8f:00.0");
    (void)state;
    assert_false(device_record_read(record, &read));
    json_decref(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_found_again),
                                       cmocka_unit_test(test_nodes),
                                       cmocka_unit_test(test_whole),
                                       cmocka_unit_test(test_gpu),
                                       cmocka_unit_test(test_nodes_that_do_not_fit),
                                       cmocka_unit_test(test_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
