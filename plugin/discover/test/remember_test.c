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
#include "lib/base/unconst.h"
#include "plugin/discover/faults.h"
#include "plugin/discover/remember.h"

static struct node_device *nic(struct node_devices *devices, uint8_t bus, const char *netdev,
                               const char *rdma)
{
    struct node_device *device = node_devices_add(devices);
    device->kind = NODE_DEVICE_NIC;
    device->pci.known = true;
    device->pci.addr.bus = bus;
    snprintf(device->name, sizeof device->name, "pci-%02x", bus);
    snprintf(device->netdev.name, sizeof device->netdev.name, "%s", netdev);
    snprintf(device->rdma.name, sizeof device->rdma.name, "%s", rdma);
    return device;
}

static struct node_device *veth(struct node_devices *devices, const char *name)
{
    struct node_device *device = node_devices_add(devices);
    device->kind = NODE_DEVICE_NIC;
    snprintf(device->name, sizeof device->name, "%s", name);
    snprintf(device->netdev.name, sizeof device->netdev.name, "%s", name);
    return device;
}

static bool is_held(const char *driver, const char *name, void *arg)
{
    assert_true(strcmp(driver, NODE_DRIVER_NIC) == 0 || strcmp(driver, NODE_DRIVER_GPU) == 0);
    return strcmp(name, arg) == 0;
}

static enum function_state now_is = FUNCTION_GONE; /* of all functions */

static enum function_state state_of(struct pci_addr addr, void *arg)
{
    (void)addr, (void)arg;
    return now_is;
}

static void remember(const char *held, const struct node_devices *before, struct node_devices *now)
{
    struct discover_config config;
    discover_config_default(&config);
    const struct remember_rules rules = {&config, held ? is_held : NULL, unconst(held), state_of,
                                         NULL};
    assert_int_equal(devices_remember(&rules, before, now, NULL), 0);
    discover_config_done(&config);
}

/* What a claim has is on its way into a pod: a use that is seen meanwhile takes it out of no slice.
 */
static void test_used_while_it_is_held(void **state)
{
    (void)state;
    struct node_devices before = NODE_DEVICES_INIT, now = NODE_DEVICES_INIT;
    const char *const names[] = {"rail0", "rail1"};
    for (size_t i = 0; i < 2; i++) {
        veth(&before, names[i]);
        struct node_device *device = veth(&now, names[i]);
        snprintf(device->used, sizeof device->used, "it has a route");
    }
    remember("rail0", &before, &now);
    assert_string_equal(now.list[0].used, "");
    assert_string_equal(now.list[1].used, "it has a route");
    node_devices_done(&before);
    node_devices_done(&now);
}

/* A GPU has no place but the host. The claim knows it by the name that it had then, whatever the
 * rules for names say now. */
static void test_held_gpu_keeps_its_name(void **state)
{
    static const struct {
        enum node_device_kind kind;
        int32_t gi, ci;
    } parts[] = {{NODE_DEVICE_GPU, -1, -1}, {NODE_DEVICE_MIG, 1, 0}, {NODE_DEVICE_MIG, 2, 0}};
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(parts); k++) {
        struct node_devices before = NODE_DEVICES_INIT, now = NODE_DEVICES_INIT;
        for (size_t i = 0; i < 2 * ARRAY_LEN(parts); i++) {
            size_t part = i % ARRAY_LEN(parts);
            struct node_device *device = node_devices_add(i < ARRAY_LEN(parts) ? &before : &now);
            device->kind = parts[part].kind;
            device->pci.known = true;
            device->pci.addr.bus = (uint8_t)(0x8f + (part > 0));
            device->gpu.mig_gi = parts[part].gi;
            device->gpu.mig_ci = parts[part].ci;
            snprintf(device->name, sizeof device->name, "%s-%zu",
                     i < ARRAY_LEN(parts) ? "old" : "new", part);
        }
        remember(before.list[k].name, &before, &now);
        for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
            assert_int_equal(now.list[i].held, i == k);
            assert_memory_equal(now.list[i].name, i == k ? "old" : "new", 3);
        }
        node_devices_done(&before);
        node_devices_done(&now);
    }
}

static struct node_device *gpu(struct node_devices *devices, uint8_t bus, int32_t gi)
{
    struct node_device *device = node_devices_add(devices);
    device->kind = gi < 0 ? NODE_DEVICE_GPU : NODE_DEVICE_MIG;
    device->pci.known = true;
    device->pci.addr.bus = bus;
    device->gpu.mig_gi = gi;
    device->gpu.mig_ci = gi < 0 ? -1 : 0;
    snprintf(device->name, sizeof device->name, "gpu-%02x%s%d", bus, gi < 0 ? "" : "-mig-", gi);
    return device;
}

/* MIG was turned off while an idle pod had a part: its node gives the pod all of the GPU now. */
static void test_whole_gpu_after_its_parts(void **state)
{
    (void)state;
    struct node_devices before = NODE_DEVICES_INIT, now = NODE_DEVICES_INIT,
                        last = NODE_DEVICES_INIT;
    gpu(&before, 0x8f, 1);
    gpu(&before, 0x8f, 2);
    gpu(&before, 0x90, 1);
    now_is = FUNCTION_BOUND;
    for (size_t i = 0; i < 2; i++) {
        gpu(i ? &last : &now, 0x8f, -1);
        gpu(i ? &last : &now, 0x90, -1);
    }
    remember("gpu-8f-mig-2", &before, &now);
    assert_int_equal(now.count, 2);
    assert_string_equal(now.list[0].name, "gpu-90-1");
    assert_string_equal(now.list[1].name, "gpu-8f-mig-2");
    assert_true(now.list[1].away);
    assert_int_equal(now.warnings.count, 1);
    remember(NULL, &now, &last); /* the pod has ended */
    assert_int_equal(last.count, 2);
    assert_int_equal(last.warnings.count, 0);
    now_is = FUNCTION_GONE;
    node_devices_done(&before);
    node_devices_done(&now);
    node_devices_done(&last);
}

static void test_in_a_pod(void **state)
{
    (void)state;
    struct node_devices before = NODE_DEVICES_INIT, now = NODE_DEVICES_INIT;
    struct node_device *was = nic(&before, 0x10, "gpu0rdma0", "mlx5_0");
    snprintf(was->name, sizeof was->name, "rail-0");
    was->netdev.carrier = TOPO_YES;
    was->rdma.gids = calloc(2, sizeof *was->rdma.gids);
    was->rdma.gid_count = 2;
    nic(&before, 0x11, "gpu1rdma0", "mlx5_1");
    nic(&now, 0x10, "", "");
    nic(&now, 0x11, "gpu1rdma0", "mlx5_1");
    remember("rail-0", &before, &now);
    assert_true(now.list[0].away);
    assert_false(now.list[0].lost || now.list[0].fault_count > 0);
    assert_string_equal(now.list[0].name, "rail-0");
    assert_string_equal(now.list[0].netdev.name, "gpu0rdma0");
    assert_int_equal(now.list[0].netdev.carrier, TOPO_UNKNOWN);
    assert_int_equal(now.list[0].rdma.gid_count, 2);
    assert_ptr_not_equal(now.list[0].rdma.gids, before.list[0].rdma.gids);
    assert_int_equal(now.list[1].rail, 1); /* not 0: the other one is only away */
    assert_false(now.list[1].away);
    struct node_devices back = NODE_DEVICES_INIT;
    nic(&back, 0x10, "gpu0rdma0", "mlx5_0");
    nic(&back, 0x11, "gpu1rdma0", "mlx5_1");
    remember(NULL, &now, &back);
    assert_false(back.list[0].away);
    node_devices_done(&before);
    node_devices_done(&now);
    node_devices_done(&back);
}

/* Where namespaces share RDMA devices the host sees that the port has failed under a pod, also of a
 * NIC whose interface is in the pod. What a pod does with RoCE's interface is no fault. */
static void test_port_fails_in_a_pod(void **state)
{
    static const struct {
        enum topo_link link;
        enum topo_tri active;
        size_t faults;
    } rows[] = {
        {TOPO_LINK_IB, TOPO_NO, 1}, {TOPO_LINK_IB, TOPO_YES, 0}, {TOPO_LINK_ETHERNET, TOPO_NO, 0}};
    struct discover_config config;
    (void)state;
    discover_config_default(&config);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct node_devices before = NODE_DEVICES_INIT, now = NODE_DEVICES_INIT;
        nic(&before, 0x10, "ib0", "mlx5_0");
        struct node_device *device = nic(&now, 0x10, "", "mlx5_0");
        device->rdma.link = rows[i].link;
        device->rdma.active = rows[i].active;
        remember("pci-10", &before, &now);
        assert_true(device->away);
        faults_of_link(&config, device);
        assert_int_equal(device->fault_count, rows[i].faults);
        node_devices_done(&before);
        node_devices_done(&now);
    }
    discover_config_done(&config);
}

/* Two NICs of one model, of which the first has three VFs and the second one, beside a NIC of
 * another model with a VF of the same kind, and a third NIC as a whole: rails are the NICs'. */
static void test_rails_of_virtual_functions(void **state)
{
    static const struct {
        uint8_t bus;
        const char *pf;
        uint32_t device, pf_device;
        int32_t rail;
    } rows[] = {
        {0x0f, "0000:08:00.0", 0x101e, 0x101d, 0}, {0x1d, "0000:10:00.0", 0x101e, 0x1021, 0},
        {0x1e, "0000:10:00.0", 0x101e, 0x1021, 0}, {0x1f, "0000:10:00.0", 0x101e, 0x1021, 0},
        {0x2e, "0000:20:00.0", 0x101e, 0x1021, 1}, {0x30, "", 0x1021, 0, 2}};
    (void)state;
    struct node_devices before = NODE_DEVICES_INIT, now = NODE_DEVICES_INIT;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct node_device *device = nic(&now, rows[i].bus, "a", "mlx5_0");
        device->pci.vendor = 0x15b3;
        device->pci.device = rows[i].device;
        device->pci.pf_device = rows[i].pf_device;
        device->pci.sriov = *rows[i].pf ? NODE_SRIOV_VF : NODE_SRIOV_NONE;
        snprintf(device->pci.pf, sizeof device->pci.pf, "%s", rows[i].pf);
    }
    remember(NULL, &before, &now);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(now.list[i].rail, rows[i].rail);
    node_devices_done(&before);
    node_devices_done(&now);
}

/* RDMA in shared mode: the RDMA device stays on the host. */
static void test_interface_alone(void **state)
{
    (void)state;
    struct node_devices before = NODE_DEVICES_INIT, now = NODE_DEVICES_INIT;
    nic(&before, 0x10, "gpu0rdma0", "mlx5_0");
    nic(&now, 0x10, "", "mlx5_0")->rdma.rate_mbps = 200000;
    remember("pci-10", &before, &now);
    assert_true(now.list[0].away);
    assert_int_equal(now.list[0].rdma.rate_mbps, 200000);
    node_devices_done(&before);
    node_devices_done(&now);
}

/* Another instance has given it back after it was read here, and ended the claim before that was
 * asked. */
static void test_claim_ends_between(void **state)
{
    (void)state;
    struct node_devices lists[3] = {NODE_DEVICES_INIT, NODE_DEVICES_INIT, NODE_DEVICES_INIT};
    nic(&lists[0], 0x10, "a", "")->held = true;
    nic(&lists[1], 0x10, "", "");
    nic(&lists[2], 0x10, "", "");
    remember(NULL, &lists[0], &lists[1]);
    assert_false(lists[1].list[0].lost || lists[1].list[0].fault_count > 0);
    remember(NULL, &lists[1], &lists[2]); /* and it is not back */
    assert_true(lists[2].list[0].lost);
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        node_devices_done(&lists[i]);
}

/* The function is there and what it is for is not, nor is it in a pod: its driver has taken it off
 * after an error. The others keep their numbers. */
static void test_lost_part(void **state)
{
    static const struct {
        const char *netdev, *rdma, *text;
    } rows[] = {
        {"a", "", "its RDMA device mlx5_0 has left the host, and no claim has it"},
        {"", "mlx5_0", "its interface a has left the host, and no claim has it"},
        {"", "", "its interface a has left the host, and no claim has it"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct node_devices before = NODE_DEVICES_INIT, now = NODE_DEVICES_INIT,
                            back = NODE_DEVICES_INIT;
        nic(&before, 0x10, "a", "mlx5_0");
        nic(&before, 0x11, "b", "mlx5_1");
        nic(&now, 0x10, rows[i].netdev, rows[i].rdma);
        nic(&now, 0x11, "b", "mlx5_1");
        remember("pci-11", &before, &now);
        assert_true(now.list[0].lost);
        assert_false(now.list[0].away);
        assert_int_equal(now.list[0].fault_count, 1);
        assert_string_equal(now.list[0].faults[0].key, FAULT_LOST);
        assert_string_equal(now.list[0].faults[0].text, rows[i].text);
        assert_string_equal(now.list[0].netdev.name, "a");
        assert_string_equal(now.list[0].rdma.name, "mlx5_0");
        assert_int_equal(now.list[1].fault_count, 0);
        assert_int_equal(now.list[1].rail, 1);
        nic(&back, 0x10, "a", "mlx5_0");
        remember(NULL, &now, &back);
        assert_false(back.list[0].lost || back.list[0].fault_count > 0);
        node_devices_done(&before);
        node_devices_done(&now);
        node_devices_done(&back);
    }
}

/* A plugin that starts beside such a NIC has not seen what it was. */
static void test_lost_before_the_start(void **state)
{
    (void)state;
    struct node_devices none = NODE_DEVICES_INIT, now = NODE_DEVICES_INIT;
    nic(&now, 0x10, "", "");
    nic(&now, 0x11, "b", "mlx5_1");
    nic(&now, 0x12, "c", "");
    remember(NULL, &none, &now);
    assert_int_equal(now.list[1].rail, 1);
    assert_int_equal(now.list[2].rail, -1);
    node_devices_done(&none);
    node_devices_done(&now);
}

static void test_vanished(void **state)
{
    (void)state;
    struct node_devices before = NODE_DEVICES_INIT, now = NODE_DEVICES_INIT;
    nic(&before, 0x10, "a", "");
    nic(&before, 0x11, "b", "")->pci.sriov = NODE_SRIOV_VF;
    nic(&before, 0x12, "c", "")->pci.sriov = NODE_SRIOV_VF;
    veth(&before, "rail0");
    veth(&before, "rail1");
    remember("pci-12", &before, &now);
    assert_int_equal(now.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_true(now.list[i].lost);
        assert_string_equal(now.list[i].faults[0].key, FAULT_LOST);
    }
    assert_string_equal(now.list[0].name, "pci-10");
    assert_string_equal(now.list[1].name, "pci-12"); /* a VF that a pod holds */
    node_devices_done(&now);
    remember("rail1", &before, &now);
    assert_int_equal(now.count, 2);
    assert_string_equal(now.list[1].name, "rail1");
    assert_true(now.list[1].away);
    assert_int_equal(now.list[1].fault_count, 0);
    node_devices_done(&before);
    node_devices_done(&now);
}

/* A PF that has got virtual functions, a NIC that the host uses now. */
static void test_there_and_not_offered(void **state)
{
    (void)state;
    struct node_devices before = NODE_DEVICES_INIT, now = NODE_DEVICES_INIT;
    nic(&before, 0x10, "a", "");
    now_is = FUNCTION_BOUND;
    remember(NULL, &before, &now);
    assert_int_equal(now.count, 0);
    remember("pci-10", &before, &now);
    assert_int_equal(now.count, 1);
    assert_true(now.list[0].away);
    assert_false(now.list[0].lost);
    assert_int_equal(now.list[0].fault_count, 0);
    now_is = FUNCTION_GONE;
    node_devices_done(&before);
    node_devices_done(&now);
}

/* Read while it was on its way out: its driver had left already. */
static void test_unbound_and_then_gone(void **state)
{
    (void)state;
    struct node_devices before = NODE_DEVICES_INIT, now = NODE_DEVICES_INIT;
    struct node_devices last = NODE_DEVICES_INIT;
    nic(&before, 0x10, "a", "");
    now_is = FUNCTION_UNBOUND;
    remember(NULL, &before, &now);
    assert_int_equal(now.count, 1);
    assert_true(now.list[0].unbound);
    assert_false(now.list[0].lost || now.list[0].away);
    now_is = FUNCTION_GONE;
    remember(NULL, &now, &last);
    assert_int_equal(last.count, 1);
    assert_true(last.list[0].lost);
    assert_false(last.list[0].unbound);
    node_devices_done(&before);
    node_devices_done(&now);
    node_devices_done(&last);
}

/* The kernel removes a VF's link to its PF before the VF: a reading in between sees a plain NIC. */
static void test_vf_on_its_way_out(void **state)
{
    (void)state;
    struct node_devices before = NODE_DEVICES_INIT, now = NODE_DEVICES_INIT,
                        next = NODE_DEVICES_INIT;
    struct node_device *vf = nic(&before, 0x11, "b", "");
    vf->pci.sriov = NODE_SRIOV_VF;
    vf->pci.device = 0x154c;
    snprintf(vf->pci.pf, sizeof vf->pci.pf, "0000:10:00.0");
    nic(&now, 0x11, "b", "")->pci.device = 0x154c;
    remember(NULL, &before, &now);
    assert_int_equal(now.list[0].pci.sriov, NODE_SRIOV_VF);
    assert_string_equal(now.list[0].pci.pf, "0000:10:00.0");
    remember(NULL, &now, &next);
    assert_int_equal(next.count, 0);                /* not a lost NIC */
    nic(&next, 0x11, "b", "")->pci.device = 0x1592; /* another card in its place */
    remember(NULL, &now, &next);
    assert_int_equal(next.list[0].pci.sriov, NODE_SRIOV_NONE);
    node_devices_done(&before);
    node_devices_done(&now);
    node_devices_done(&next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_used_while_it_is_held),
        cmocka_unit_test(test_held_gpu_keeps_its_name),
        cmocka_unit_test(test_whole_gpu_after_its_parts),
        cmocka_unit_test(test_in_a_pod),
        cmocka_unit_test(test_port_fails_in_a_pod),
        cmocka_unit_test(test_rails_of_virtual_functions),
        cmocka_unit_test(test_interface_alone),
        cmocka_unit_test(test_claim_ends_between),
        cmocka_unit_test(test_lost_part),
        cmocka_unit_test(test_lost_before_the_start),
        cmocka_unit_test(test_vanished),
        cmocka_unit_test(test_vf_on_its_way_out),
        cmocka_unit_test(test_there_and_not_offered),
        cmocka_unit_test(test_unbound_and_then_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
