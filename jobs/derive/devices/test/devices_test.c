/* SPDX-License-Identifier: Apache-2.0 */
/* Rules D1, A3 and R1 of docs/design/017-derivation-rules.md: which NICs a profile uses, their
 * speeds and rails, and the NUMA nodes of GPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/derive/devices/devices.h"
#include "lib/base/cleanup.h"

#define PCI(bus) ((uint64_t)(bus) << 8)

static const struct profile rdma = {.name = "r", .data = PROFILE_RDMA, .nic_gbs = 25};
static const struct profile netdev = {.name = "n", .data = PROFILE_NETDEV};
static const struct profile none = {.name = "socket", .data = PROFILE_NO_DATA};

static struct inventory_nic nic(uint8_t bus, const char *ifname, bool does_rdma)
{
    return (struct inventory_nic){
        .device = {.kind = DEVICE_NIC,
                   .name = ifname,
                   .pci = PCI(bus),
                   .numa = -1,
                   .ifname = ifname,
                   .rdma = does_rdma},
        .label = ifname,
        .ibdev = does_rdma ? "mlx5_0" : NULL,
        .link_layer = "Ethernet",
        .gid = -1,
    };
}

static int settle(const struct inventory *inventory, const struct profile *profile,
                  enum spec_network network, struct plan_notes *notes, struct devices *devices)
{
    const struct plan_input input = {.network = network};
    struct drarun_error err = {0};
    *notes = (struct plan_notes){0};
    *devices = (struct devices){0};
    return devices_settle(&input, 0, inventory, profile, notes, devices, &err);
}

static void nics_that_the_profile_uses(void **state)
{
    struct inventory_nic nics[] = {nic(1, "eth1", true), nic(2, "eth2", false)};
    const struct inventory inventory = {.nics = nics, .nic_count = 2};
    struct plan_notes notes;
    struct devices devices;
    (void)state;
    assert_int_equal(settle(&inventory, &rdma, SPEC_NETWORK_RDMA, &notes, &devices), 0);
    assert_int_equal(devices.nic_count, 1);
    assert_string_equal(devices.nics[0].found.label, "eth1");
    assert_true(warnings_have(&notes.warnings, WARN_NIC_NOT_RDMA, 0));
    devices_done(&devices);
    plan_notes_done(&notes);
    assert_int_equal(settle(&inventory, &netdev, SPEC_NETWORK_RDMA, &notes, &devices), 0);
    assert_int_equal(devices.nic_count, 2);
    devices_done(&devices);
    plan_notes_done(&notes);
}

static void speeds(void **state)
{
    struct inventory_nic nics[] = {nic(1, "eth1", true), nic(2, "eth2", true)};
    const struct inventory inventory = {.nics = nics, .nic_count = 2};
    struct plan_notes notes;
    struct devices devices;
    (void)state;
    nics[0].mbps = 400000;
    assert_int_equal(settle(&inventory, &rdma, SPEC_NETWORK_RDMA, &notes, &devices), 0);
    assert_true(devices.nics[0].found.mbps > 0 && devices.nics[0].gbs == 50);
    assert_true(devices.nics[1].found.mbps == 0 && devices.nics[1].gbs == 25); /* the profile's */
    devices_done(&devices);
    plan_notes_done(&notes);
}

/* The number in the vendor's name, what the driver publishes, the number in another name, the place
 * among the node's RDMA NICs. */
static void rails(void **state)
{
    struct inventory_nic nics[] = {nic(3, "gpu5rdma0", true), nic(4, NULL, true)};
    struct device node[] = {{.kind = DEVICE_NIC, .pci = PCI(1), .rdma = true},
                            {.kind = DEVICE_GPU, .pci = PCI(2)},
                            {.kind = DEVICE_NIC, .pci = PCI(2)},
                            {.kind = DEVICE_NIC, .pci = PCI(3), .rdma = true},
                            {.kind = DEVICE_NIC, .pci = PCI(4), .rdma = true}};
    const struct inventory inventory = {
        .nics = nics, .nic_count = 2, .node_devices = node, .node_device_count = ARRAY_LEN(node)};
    struct plan_notes notes;
    struct devices devices;
    (void)state;
    nics[1].label = nics[1].device.name = "nic";
    assert_int_equal(settle(&inventory, &rdma, SPEC_NETWORK_RDMA, &notes, &devices), 0);
    assert_int_equal(devices.nics[0].rail, 5);
    assert_int_equal(devices.nics[0].named_rail, 5);
    assert_int_equal(devices.nics[1].rail, 2);
    assert_int_equal(devices.nics[1].named_rail, -1);
    devices_done(&devices);
    plan_notes_done(&notes);
    static const struct {
        const char *ifname;
        int32_t rail, named;
    } names[] = {
        {"gpu5rdma0", 5, 5}, {"rdma6", 6, 6},       {"enp26s0np0", 0, 26}, {"enp26s0rdma", 0, 26},
        {"eth1", 0, 1},      {"rdmafabric", 0, -1}, {NULL, 0, -1},
    };
    nics[0].device.has_rail = true; /* 0 */
    nics[0].label = "nic";
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        nics[0].device.ifname = names[i].ifname;
        assert_int_equal(settle(&inventory, &rdma, SPEC_NETWORK_RDMA, &notes, &devices), 0);
        assert_int_equal(devices.nics[0].rail, names[i].rail);
        assert_int_equal(devices.nics[0].named_rail, names[i].named);
        devices_done(&devices);
        plan_notes_done(&notes);
    }
}

static void numa_nodes(void **state)
{
    struct inventory_nic nics[] = {nic(1, "eth1", true)};
    struct device node[] = {{.kind = DEVICE_NIC, .pci = PCI(7), .numa = 1, .root = "pci0000:07"}};
    struct device gpus[] = {{.kind = DEVICE_GPU, .name = "own", .pci = PCI(5), .numa = 0},
                            {.kind = DEVICE_GPU,
                             .name = "by its root",
                             .pci = PCI(6),
                             .numa = -1,
                             .root = "pci0000:07"},
                            {.kind = DEVICE_GPU, .name = "unknown", .pci = PCI(8), .numa = -1}};
    const struct inventory inventory = {.gpus = gpus,
                                        .gpu_count = ARRAY_LEN(gpus),
                                        .nics = nics,
                                        .nic_count = 1,
                                        .node_devices = node,
                                        .node_device_count = 1};
    struct plan_notes notes;
    struct devices devices;
    (void)state;
    assert_int_equal(settle(&inventory, &rdma, SPEC_NETWORK_RDMA, &notes, &devices), 0);
    assert_int_equal(devices.gpus[0].numa, 0);
    assert_int_equal(devices.gpus[1].numa, 1);
    assert_int_equal(devices.gpus[2].numa, -1);
    assert_int_equal(gpus[1].numa, -1); /* the inventory stays as it is */
    assert_true(warnings_have(&notes.warnings, WARN_NUMA_UNKNOWN, 0));
    devices_done(&devices);
    plan_notes_done(&notes);
}

static void without_nics(void **state)
{
    struct inventory_nic tcp[] = {nic(1, "eth1", false)};
    const struct inventory inventory = {.nics = tcp, .nic_count = 1}, nothing = {0};
    struct plan_notes notes;
    struct devices devices;
    (void)state;
    struct plan_left_nic left[] = {{.reason = "eth9 (no cable)"}};
    const struct inventory others = {.left = left, .left_count = 1};
    assert_int_equal(settle(&others, &rdma, SPEC_NETWORK_RDMA, &notes, &devices), 1);
    assert_string_equal(notes.refusal.detail,
                        "network: rdma, but no RDMA NIC can carry data: eth9 (no cable)");
    plan_notes_done(&notes);
    assert_int_equal(settle(&nothing, &rdma, SPEC_NETWORK_RDMA, &notes, &devices), 1);
    assert_int_equal(notes.refusal.code, WARN_NO_RDMA_NIC);
    assert_string_equal(notes.refusal.detail,
                        "network: rdma, but no RDMA NIC was given; network: any does without");
    plan_notes_done(&notes);
    assert_int_equal(settle(&inventory, &none, SPEC_NETWORK_RDMA, &notes, &devices), 1);
    assert_int_equal(notes.refusal.code, WARN_NO_RDMA_NIC);
    assert_null(devices.nics); /* untouched */
    plan_notes_done(&notes);
    tcp[0].device.pod_name = "net1";
    tcp[0].device.addressed = true;
    assert_int_equal(settle(&inventory, &none, SPEC_NETWORK_ANY, &notes, &devices), 0);
    assert_int_equal(devices.nic_count, 0);
    assert_string_equal(devices.tcp_interfaces, "net1");
    assert_true(warnings_have(&notes.warnings, WARN_NO_RDMA_NIC, 0));
    devices_done(&devices);
    plan_notes_done(&notes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nics_that_the_profile_uses),
        cmocka_unit_test(speeds),
        cmocka_unit_test(rails),
        cmocka_unit_test(numa_nodes),
        cmocka_unit_test(without_nics),
    };
    return cmocka_run_group_tests_name("devices", tests, NULL, NULL);
}
