/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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
                                       cmocka_unit_test(test_nodes), cmocka_unit_test(test_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
