/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/topo/test/tree.h"
#include "plugin/discover/discover.h"
#include "plugin/discover/faults.h"
#include "plugin/discover/select.h"
#include "plugin/discover/switch_managers.h"

#define ROOT "sys/devices/pci0000:8c/0000:8c:01.0"
#define SWITCH ROOT "/0000:8d:00.0"
#define GPU SWITCH "/0000:8e:00.0/0000:8f:00.0"
#define NIC SWITCH "/0000:8e:01.0/0000:91:00.0"
#define VF SWITCH "/0000:8e:01.0/0000:91:00.2"
#define IB "sys/devices/pci0000:c8/0000:c8:01.0/0000:cd:00.0"
#define TWO "sys/devices/pci0000:c8/0000:c8:02.0/0000:ce:00.0"
#define UPLINK "sys/devices/pci0000:00/0000:00:03.0"

/* ---- making machines ---- */

static void put(const struct tree *tree, const char *folder, const char *name, const char *text)
{
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    tree_file(tree, path, text);
}

static void function(const struct tree *tree, const char *path, const char *class_code,
                     const char *driver)
{
    char link[600], target[700];
    put(tree, path, "class", class_code);
    put(tree, path, "vendor", "0x15b3\n");
    put(tree, path, "device", "0x1021\n");
    put(tree, path, "numa_node", "1\n");
    snprintf(link, sizeof link, "sys/bus/pci/devices/%s", strrchr(path, '/') + 1);
    snprintf(target, sizeof target, "../../../../%s", path);
    tree_link(tree, link, target);
    if (!driver)
        return;
    snprintf(link, sizeof link, "sys/bus/pci/drivers/%s", driver);
    tree_dir(tree, link);
    snprintf(target, sizeof target, "/%s", link);
    snprintf(link, sizeof link, "%s/driver", path);
    tree_link(tree, link, target);
}

static void netdev(const struct tree *tree, const char *function_path, const char *name,
                   const char *ifindex)
{
    char folder[512], link[600], target[600];
    if (function_path)
        snprintf(folder, sizeof folder, "%s/net/%s", function_path, name);
    else
        snprintf(folder, sizeof folder, "sys/devices/virtual/net/%s", name);
    put(tree, folder, "ifindex", ifindex);
    put(tree, folder, "type", "1\n");
    put(tree, folder, "flags", "0x1003\n");
    put(tree, folder, "carrier", "1\n");
    put(tree, folder, "address", "02:00:00:00:00:01\n");
    put(tree, folder, "mtu", "8896\n");
    put(tree, folder, "speed", "400000\n");
    put(tree, folder, "operstate", "up\n");
    snprintf(link, sizeof link, "sys/class/net/%s", name);
    snprintf(target, sizeof target, "../../../%s", folder);
    tree_link(tree, link, target);
    if (!function_path)
        return;
    snprintf(link, sizeof link, "%s/device", folder);
    snprintf(target, sizeof target, "/%s", function_path);
    tree_link(tree, link, target);
}

static void rdma(const struct tree *tree, const char *function_path, const char *name,
                 const char *link_layer, unsigned ports)
{
    char folder[512], link[600], target[600], port[600];
    snprintf(folder, sizeof folder, "%s/infiniband/%s", function_path, name);
    put(tree, folder, "fw_ver", "28.41.1000\n");
    put(tree, folder, "node_guid", "0002:c903:0000:0001\n");
    for (unsigned i = 1; i <= ports; i++) {
        snprintf(port, sizeof port, "%s/ports/%u", folder, i);
        put(tree, port, "state", i == 2 ? "1: DOWN\n" : "4: ACTIVE\n");
        put(tree, port, "link_layer", link_layer);
        put(tree, port, "rate", "400 Gb/sec (4X NDR)\n");
        put(tree, port, "gids/0", "fe80:0000:0000:0000:0202:c9ff:fe00:0001\n");
    }
    snprintf(link, sizeof link, "sys/class/infiniband/%s", name);
    snprintf(target, sizeof target, "../../../%s", folder);
    tree_link(tree, link, target);
    snprintf(link, sizeof link, "%s/device", folder);
    snprintf(target, sizeof target, "/%s", function_path);
    tree_link(tree, link, target);
    snprintf(folder, sizeof folder, "%s/infiniband_verbs/uverbs4", function_path);
    put(tree, folder, "ibdev", name);
    put(tree, folder, "dev", "231:196\n");
    snprintf(folder, sizeof folder, "%s/infiniband_mad/umad5", function_path);
    put(tree, folder, "ibdev", name);
    put(tree, folder, "port", "2\n");
    put(tree, folder, "dev", "231:5\n");
}

static struct tree machine(void)
{
    struct tree tree = tree_new();
    function(&tree, GPU, "0x030200\n", "nvidia");
    put(&tree, GPU, "vendor", "0x10de\n");
    tree_file(&tree, "proc/driver/nvidia/gpus/0000:8f:00.0/information",
              "Model: \t\t NVIDIA B200\nGPU UUID: \t GPU-11111111-2222\nDevice Minor: \t 3\n");
    tree_file(&tree, "dev/nvidia3", "");
    tree_file(&tree, "dev/nvidiactl", "");
    function(&tree, NIC, "0x020000\n", "mlx5_core");
    netdev(&tree, NIC, "gpu0rdma0", "7\n");
    rdma(&tree, NIC, "mlx5_0", "Ethernet\n", 1);
    tree_file(&tree, "sys/class/misc/rdma_cm/dev", "10:122\n");
    return tree;
}

static void uplink(const struct tree *tree)
{
    function(tree, UPLINK, "0x020000\n", "gve");
    netdev(tree, UPLINK, "eth0", "2\n");
    tree_file(tree, "proc/net/route",
              "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n"
              "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n");
}

static struct node_devices read_with(const struct tree *tree, const struct discover_config *config)
{
    struct drarun_error err = {0};
    struct node_devices devices;
    const struct discover_source source = {.root = tree->root, .config = config};
    if (discover(&source, &devices, &err) < 0 || select_devices(config, &devices, &err) < 0)
        fail_msg("%s", err.text);
    return devices;
}

static struct discover_config config_of(const char *text)
{
    struct discover_config config;
    struct drarun_error err = {0};
    CLEANUP(doc_freep) struct doc *doc = NULL;
    if (doc_parse("config.yaml", text, strlen(text), DOC_FORMAT_YAML, NULL, &doc, &err) < 0 ||
        discover_config_read(doc, &config, &err) < 0)
        fail_msg("%s", err.text);
    return config;
}

/* Reads with a configuration and drops the tree. */
static struct node_devices read_all(struct tree *tree, const char *text)
{
    struct discover_config config;
    if (text)
        config = config_of(text);
    else
        discover_config_default(&config);
    struct node_devices devices = read_with(tree, &config);
    discover_config_done(&config);
    tree_drop(tree);
    return devices;
}

static void assert_names(const struct node_devices *devices, const char *wanted)
{
    char names[1024] = "";
    for (size_t i = 0; i < devices->count; i++) {
        size_t len = strlen(names);
        snprintf(names + len, sizeof names - len, "%s%s", i ? " " : "", devices->list[i].name);
    }
    assert_string_equal(names, wanted);
}

static void assert_warned(const struct node_devices *devices, const char *part)
{
    char text[SPARED_TEXT];
    for (size_t i = 0; i < devices->warnings.count; i++)
        if (strstr(devices->warnings.items[i], part))
            return;
    for (size_t i = 0; i < devices->spared.count; i++) {
        node_devices_spared_text(devices, i, text);
        if (strstr(text, part))
            return;
    }
    fail_msg("no warning with \"%s\" among %zu", part, devices->warnings.count);
}

/* ---- tests ---- */

static void test_gpu_and_nic(void **state)
{
    (void)state;
    struct tree tree = machine();
    struct node_devices devices = read_all(&tree, NULL);
    assert_names(&devices, "gpu-0000-8f-00-0 pci-0000-91-00-0");
    const struct node_device *gpu = &devices.list[0], *nic = &devices.list[1];
    assert_string_equal(gpu->pci.root, "pci0000:8c");
    assert_string_equal(gpu->pci.pcie_switch, "0000:8d:00.0");
    assert_string_equal(gpu->gpu.uuid, "GPU-11111111-2222");
    assert_int_equal(gpu->gpu.minor, 3);
    assert_int_equal(gpu->chardev_count, 2);
    assert_string_equal(gpu->chardevs[0].path, "/dev/nvidia3");
    assert_string_equal(gpu->chardevs[1].path, "/dev/nvidiactl");
    assert_string_equal(nic->pci.pcie_switch, "0000:8d:00.0");
    assert_string_equal(nic->pci.driver, "mlx5_core");
    assert_int_equal(nic->pci.numa, 1);
    assert_string_equal(nic->netdev.name, "gpu0rdma0");
    assert_int_equal(nic->netdev.ifindex, 7);
    assert_int_equal(nic->netdev.carrier, TOPO_YES);
    assert_string_equal(nic->rdma.name, "mlx5_0");
    assert_int_equal(nic->rdma.gid_count, 1);
    assert_int_equal(nic->rail, 0);
    assert_int_equal(nic->fault_count, 0);
    assert_int_equal(nic->rdma.chardev_count, 2); /* umad5 is of port 2 */
    assert_string_equal(nic->rdma.chardevs[0].path, "/dev/infiniband/uverbs4");
    assert_int_equal(nic->rdma.chardevs[0].major, 231);
    assert_int_equal(nic->rdma.chardevs[0].minor, 196);
    assert_string_equal(nic->rdma.chardevs[1].path, "/dev/infiniband/rdma_cm");
    node_devices_done(&devices);
}

static void test_uplink_is_never_offered(void **state)
{
    (void)state;
    struct tree tree = machine();
    uplink(&tree);
    struct node_devices devices = read_all(&tree, NULL);
    assert_names(&devices, "gpu-0000-8f-00-0 pci-0000-91-00-0");
    assert_warned(&devices, "0000:00:03.0 is not published: the host uses it: it has the default");
    node_devices_done(&devices);
}

/* The interface of the default route may then be included, as others that the host uses. */
static void test_named_uplinks_win(void **state)
{
    (void)state;
    struct tree tree = machine();
    uplink(&tree);
    struct node_devices devices = read_all(&tree, "uplinks: [gpu0rdma0, other]\n");
    assert_names(&devices, "gpu-0000-8f-00-0");
    assert_warned(&devices, "it has a default route via 10.0.0.1 (metric 100); end that, or name");
    node_devices_done(&devices);
    tree = machine();
    uplink(&tree);
    devices = read_all(&tree, "uplinks: [gpu0rdma0, other]\nnics: {include: "
                              "'device.attributes[\"dra.net\"].ifName == \"eth0\"'}\n");
    assert_names(&devices, "gpu-0000-8f-00-0 pci-0000-00-03-0");
    node_devices_done(&devices);
    tree = machine(); /* none of the names is here: the real uplink stays out */
    uplink(&tree);
    devices = read_all(&tree, "uplinks: [typo0]\n");
    assert_names(&devices, "gpu-0000-8f-00-0 pci-0000-91-00-0");
    node_devices_done(&devices);
}

/* Router advertisements give every rail a default route: none is offered, but the way out is told.
 */
static void test_too_many_uplinks(void **state)
{
    (void)state;
    struct tree tree = machine();
    static const char zero[] = "00000000000000000000000000000000";
    char text[1024] = "";
    for (size_t i = 0; i < 3; i++) {
        size_t len = strlen(text);
        snprintf(text + len, sizeof text - len,
                 "%s 00 %s 00 %s 00000400 00000001 00000000 00450003 gpu%zurdma0\n", zero, zero,
                 zero, i);
    }
    tree_file(&tree, "proc/net/ipv6_route", text);
    struct node_devices devices = read_all(&tree, NULL);
    assert_names(&devices, "gpu-0000-8f-00-0");
    assert_warned(&devices, "as 3 interfaces have: if routers advertise them to RDMA NICs, name");
    node_devices_done(&devices);
}

/* The default route is on a bridge on a bond of two NICs. */
static void test_below_an_uplink(void **state)
{
    (void)state;
    struct tree tree = machine();
    netdev(&tree, NULL, "br0", "20\n");
    netdev(&tree, NULL, "bond0", "21\n");
    tree_dir(&tree, "sys/devices/virtual/net/br0/lower_bond0");
    tree_dir(&tree, "sys/devices/virtual/net/bond0/lower_gpu0rdma0");
    tree_file(&tree, "proc/net/route",
              "br0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n");
    struct node_devices devices = read_all(&tree, "nics: {virtualPrefixes: [b]}\n");
    assert_names(&devices, "gpu-0000-8f-00-0");
    assert_warned(&devices, "it is below bond0");
    node_devices_done(&devices);
}

static void test_part_of_something(void **state)
{
    (void)state;
    struct tree tree = machine();
    tree_dir(&tree, NIC "/net/gpu0rdma0/upper_vlan7");
    struct node_devices devices = read_all(&tree, NULL);
    assert_names(&devices, "gpu-0000-8f-00-0");
    assert_warned(&devices, "it is part of vlan7");
    node_devices_done(&devices);
}

/* What the host does over a NIC that is none of its uplinks: not offered, unless it is named. */
static void test_used_by_the_host(void **state)
{
    (void)state;
    struct tree tree = machine();
    uplink(&tree);
    tree_file(&tree, "proc/net/route",
              "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
              "gpu0rdma0\t0000050A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n");
    tree_file(&tree, "proc/1/mounts", "10.5.0.9:/export /data nfs4 rw,addr=10.5.0.9 0 0\n");
    struct discover_config config =
        config_of("names: [{match: 'device.driver == \"nic.drarun.dev\"', name: nic}]\n");
    struct node_devices devices = read_with(&tree, &config);
    assert_names(&devices, "gpu-0000-8f-00-0");
    assert_warned(&devices,
                  "nic is not published: the host uses it: the nfs4 mount /data is reached "
                  "through it (10.5.0.9); end that, or name it in nics.include");
    assert_non_null(node_devices_spared(&devices, "nic"));
    assert_null(node_devices_spared(&devices, "pci-0000-91-00-0"));
    node_devices_done(&devices);
    discover_config_done(&config);
    devices = read_all(&tree, "nics: {include: 'device.attributes[\"dra.net\"].rdma'}\n");
    assert_names(&devices, "gpu-0000-8f-00-0 pci-0000-91-00-0");
    assert_true(devices.list[1].included);
    node_devices_done(&devices);
}

/* As Google's DHCP sets a NIC of an A4 up: an address, the way to its gateway, its network by it.
 */
static void test_an_address_is_no_use(void **state)
{
    (void)state;
    struct tree tree = machine();
    uplink(&tree);
    tree_file(&tree, "proc/net/route",
              "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
              "gpu0rdma0\t0001A8C0\t0101A8C0\t0003\t0\t0\t1024\t00FFFFFF\t0\t0\t0\n"
              "gpu0rdma0\t0101A8C0\t00000000\t0005\t0\t0\t1024\tFFFFFFFF\t0\t0\t0\n");
    struct node_devices devices = read_all(&tree, NULL);
    assert_names(&devices, "gpu-0000-8f-00-0 pci-0000-91-00-0");
    assert_false(devices.list[1].included);
    node_devices_done(&devices);
}

/* To which the host falls back when eth0 fails. */
static void test_default_route_of_a_larger_metric(void **state)
{
    (void)state;
    struct tree tree = machine();
    uplink(&tree);
    tree_file(&tree, "proc/net/route",
              "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
              "gpu0rdma0\t00000000\t0101A8C0\t0003\t0\t0\t200\t00000000\t0\t0\t0\n");
    struct discover_config config = config_of("{}\n");
    struct node_devices devices = read_with(&tree, &config);
    assert_names(&devices, "gpu-0000-8f-00-0");
    assert_warned(&devices, "it has a default route via 192.168.1.1 (metric 200); end that, or");
    node_devices_done(&devices);
    discover_config_done(&config);
    devices = read_all(&tree, "nics: {include: 'device.attributes[\"dra.net\"].rdma'}\n");
    assert_names(&devices, "gpu-0000-8f-00-0 pci-0000-91-00-0");
    assert_true(devices.list[1].included);
    node_devices_done(&devices);
}

static void test_infiniband_alone(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    function(&tree, IB, "0x020700\n", "mlx5_core");
    rdma(&tree, IB, "mlx5_4", "InfiniBand\n", 1);
    struct node_devices devices = read_all(&tree, NULL);
    assert_names(&devices, "pci-0000-cd-00-0");
    assert_string_equal(devices.list[0].netdev.name, "");
    assert_int_equal(devices.list[0].rdma.link, TOPO_LINK_IB);
    node_devices_done(&devices);
}

/* ConnectX-3: one function, two interfaces, one RDMA device with two ports, of which one is down.
 */
static void test_two_ports(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    function(&tree, TWO, "0x020700\n", "mlx4_core");
    netdev(&tree, TWO, "ib0", "4\n");
    netdev(&tree, TWO, "ib1", "5\n");
    tree_file(&tree, TWO "/net/ib1/dev_port", "1\n");
    rdma(&tree, TWO, "mlx4_0", "InfiniBand\n", 2);
    struct discover_config managing = config_of("nics: {managementNodes: true}\n");
    struct node_devices devices = read_with(&tree, &managing);
    assert_names(&devices, "pci-0000-ce-00-0 pci-0000-ce-00-0-p1");
    assert_string_equal(devices.list[1].netdev.name, "ib1");
    assert_int_equal(devices.list[0].rdma.port, 1);
    assert_int_equal(devices.list[1].rdma.port, 2);
    assert_int_equal(devices.list[1].rdma.ports, 2);
    assert_int_equal(devices.list[0].fault_count, 0);
    assert_int_equal(devices.list[1].fault_count, 1);
    assert_string_equal(devices.list[1].faults[0].key, FAULT_LINK_DOWN);
    assert_string_equal(devices.list[1].faults[0].text, "port 2 of mlx4_0 is DOWN");
    assert_string_equal(devices.list[1].rdma.chardevs[1].path, "/dev/infiniband/umad5");
    node_devices_done(&devices);
    discover_config_done(&managing);
    devices =
        read_all(&tree, NULL); /* a pod does not manage the fabric unless the operator says so */
    for (size_t i = 0; i < devices.list[1].rdma.chardev_count; i++)
        assert_null(strstr(devices.list[1].rdma.chardevs[i].path, "umad"));
    node_devices_done(&devices);
}

/* In a pod, or without the driver for them: the RDMA device knows the ports. */
static void test_ports_without_interfaces(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    function(&tree, TWO, "0x020700\n", "mlx4_core");
    rdma(&tree, TWO, "mlx4_0", "InfiniBand\n", 2);
    struct node_devices devices = read_all(&tree, NULL);
    assert_names(&devices, "pci-0000-ce-00-0 pci-0000-ce-00-0-p1");
    for (size_t i = 0; i < devices.count; i++) {
        assert_string_equal(devices.list[i].netdev.name, "");
        assert_int_equal(devices.list[i].rdma.port, i + 1);
    }
    node_devices_done(&devices);
}

static void test_sriov(void **state)
{
    (void)state;
    struct tree tree = machine();
    put(&tree, NIC, "sriov_totalvfs", "8\n");
    put(&tree, NIC, "sriov_numvfs", "0\n");
    struct node_devices devices = read_all(&tree, NULL);
    assert_int_equal(devices.list[1].pci.sriov, NODE_SRIOV_PF);
    assert_int_equal(devices.list[1].pci.vfs_max, 8);
    node_devices_done(&devices);
    tree = machine();
    put(&tree, NIC, "sriov_totalvfs", "8\n");
    put(&tree, NIC, "sriov_numvfs", "1\n");
    function(&tree, VF, "0x020000\n", "mlx5_core");
    netdev(&tree, VF, "vf0", "9\n");
    tree_link(&tree, VF "/physfn", "../0000:91:00.0");
    netdev(&tree, NIC, "gpu0rdma0_0", "10\n"); /* the VF's port in the switch of the PF */
    tree_file(&tree, NIC "/net/gpu0rdma0_0/phys_port_name", "pf0vf0\n");
    devices = read_all(&tree, NULL);
    assert_names(&devices, "gpu-0000-8f-00-0 pci-0000-91-00-2");
    assert_int_equal(devices.list[1].pci.sriov, NODE_SRIOV_VF);
    assert_string_equal(devices.list[1].pci.pf, "0000:91:00.0");
    assert_int_equal(devices.list[1].pci.pf_device, 0x1021);
    assert_warned(&devices, "0000:91:00.0 is not published: it has virtual functions");
    node_devices_done(&devices);
}

/* Ports of an HGX board of B200, which are as NICs but for their vital product data. */
static void test_switch_managers(void **state)
{
    (void)state;
    struct discover_config config;
    struct switch_managers known = SWITCH_MANAGERS_INIT;
    struct tree tree = machine();
    function(&tree, IB, "0x020700\n", "mlx5_core");
    rdma(&tree, IB, "mlx5_4", "InfiniBand\n", 1);
    put(&tree, IB, "vpd", "\x82\x12Nvidia ConnectX-7\x90VA:MODL=CX7:SMDL=SW_MNG:\x78");
    function(&tree, TWO, "0x020700\n", "mlx5_core");
    rdma(&tree, TWO, "mlx5_5", "InfiniBand\n", 1);
    put(&tree, TWO, "vpd", "\x82\x12Nvidia ConnectX-7\x90VA:MODL=CX7:\x78");
    discover_config_default(&config);
    const struct discover_source source = {
        .root = tree.root, .config = &config, .managers = &known};
    for (int i = 0; i < 2; i++) { /* the second reading takes what the first one found */
        struct node_devices devices;
        assert_int_equal(discover(&source, &devices, NULL), 0);
        assert_names(&devices, "gpu-0000-8f-00-0 pci-0000-91-00-0 pci-0000-ce-00-0");
        assert_int_equal(devices.list[2].rail, 1);
        assert_warned(&devices, "0000:cd:00.0 is not published: it manages NVLink switches");
        node_devices_done(&devices);
        unlinkat(tree.root, IB "/vpd", 0);
        put(&tree, TWO, "vpd", "SW_MNG");
    }
    switch_managers_done(&known);
    discover_config_done(&config);
    tree_drop(&tree);
}

/* A function whose data cannot be read holds the plugin up each time: it is tried again, in case
 * it was being reset, but not with every scan. */
static void test_product_data_that_cannot_be_read(void **state)
{
    (void)state;
    for (int failures = 0; failures <= 3; failures++) {
        struct discover_config config;
        struct switch_managers known = SWITCH_MANAGERS_INIT;
        struct tree tree = machine();
        function(&tree, IB, "0x020700\n", "mlx5_core");
        rdma(&tree, IB, "mlx5_4", "InfiniBand\n", 1);
        tree_dir(&tree, IB "/vpd"); /* in the place of one that fails */
        discover_config_default(&config);
        const struct discover_source source = {
            .root = tree.root, .config = &config, .managers = &known};
        for (int i = 0; i <= failures; i++) {
            struct node_devices devices;
            bool manager = i == failures && failures < 3;
            if (i == failures) {
                unlinkat(tree.root, IB "/vpd", AT_REMOVEDIR);
                put(&tree, IB, "vpd", "SW_MNG");
            }
            assert_int_equal(discover(&source, &devices, NULL), 0);
            assert_names(&devices, manager ? "gpu-0000-8f-00-0 pci-0000-91-00-0"
                                           : "gpu-0000-8f-00-0 pci-0000-91-00-0 pci-0000-cd-00-0");
            node_devices_done(&devices);
        }
        switch_managers_done(&known);
        discover_config_done(&config);
        tree_drop(&tree);
    }
}

/* Nor is what a sub-function of the NIC has, which is somebody else's. */
static void test_subfunction(void **state)
{
    (void)state;
    struct tree tree = machine();
    netdev(&tree, NIC "/mlx5_core.sf.4", "aaa0", "11\n");
    rdma(&tree, NIC "/mlx5_core.sf.4", "aaa5_0", "Ethernet\n", 1);
    struct node_devices devices = read_all(&tree, NULL);
    assert_names(&devices, "gpu-0000-8f-00-0 pci-0000-91-00-0");
    assert_string_equal(devices.list[1].netdev.name, "gpu0rdma0");
    assert_string_equal(devices.list[1].rdma.name, "mlx5_0");
    node_devices_done(&devices);
    tree = machine(); /* the NIC's own are in a pod */
    unlinkat(tree.root, "sys/class/net/gpu0rdma0", 0);
    unlinkat(tree.root, "sys/class/infiniband/mlx5_0", 0);
    netdev(&tree, NIC "/mlx5_core.sf.4", "aaa0", "11\n");
    rdma(&tree, NIC "/mlx5_core.sf.4", "aaa5_0", "Ethernet\n", 1);
    devices = read_all(&tree, NULL);
    assert_names(&devices, "gpu-0000-8f-00-0 pci-0000-91-00-0");
    assert_string_equal(devices.list[1].netdev.name, "");
    assert_string_equal(devices.list[1].rdma.name, "");
    node_devices_done(&devices);
}

static void ipoib(const struct tree *tree, const char *folder, const char *iflink)
{
    put(tree, folder, "address", "00:00:10:87:fe:80:00:00:00:00:00:00:02:02:c9:ff:fe:00:00:01\n");
    put(tree, folder, "type", "32\n");
    put(tree, folder, "iflink", iflink);
}

/* A move of the HCA's own interface takes IPoIB's interfaces of partitions down, which sysfs shows
 * in no other way than by their iflink. */
static void test_partition(void **state)
{
    static const struct {
        const char *iflink, *route, *names, *warning;
    } rows[] = {
        {"4\n", NULL, "gpu-0000-8f-00-0 pci-0000-91-00-0", "it is part of ib0.8001"},
        {"4\n", "ib0.8001\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n",
         "gpu-0000-8f-00-0 pci-0000-91-00-0", "it is below ib0.8001"},
        {"5\n", NULL, "gpu-0000-8f-00-0 pci-0000-91-00-0 pci-0000-cd-00-0", NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tree tree = machine();
        function(&tree, IB, "0x020700\n", "mlx5_core");
        rdma(&tree, IB, "mlx5_4", "InfiniBand\n", 1);
        netdev(&tree, IB, "ibp205s0", "4\n");
        ipoib(&tree, IB "/net/ibp205s0", "4\n");
        netdev(&tree, NULL, "ib0.8001", "9\n");
        ipoib(&tree, "sys/devices/virtual/net/ib0.8001", rows[i].iflink);
        if (rows[i].route)
            tree_file(&tree, "proc/net/route", rows[i].route);
        struct node_devices devices = read_all(&tree, NULL);
        assert_names(&devices, rows[i].names);
        if (rows[i].warning)
            assert_warned(&devices, rows[i].warning);
        else
            assert_string_equal(devices.list[2].netdev.name, "ibp205s0");
        node_devices_done(&devices);
    }
}

static void test_given_to_user_space(void **state)
{
    (void)state;
    struct tree tree = machine();
    function(&tree, IB, "0x020000\n", "vfio-pci");
    function(&tree, TWO, "0x020000\n", NULL);
    struct node_devices devices = read_all(&tree, NULL);
    assert_names(&devices, "gpu-0000-8f-00-0 pci-0000-91-00-0");
    node_devices_done(&devices);
}

/* A NIC in a pod shows its function alone. */
static void test_in_a_pod(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    function(&tree, NIC, "0x020000\n", "mlx5_core");
    struct node_devices devices = read_all(&tree, NULL);
    assert_names(&devices, "pci-0000-91-00-0");
    assert_string_equal(devices.list[0].netdev.name, "");
    assert_string_equal(devices.list[0].pci.root, "pci0000:8c");
    node_devices_done(&devices);
}

static void test_virtual(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    netdev(&tree, NULL, "rail0", "3\n");
    netdev(&tree, NULL, "rail_X", "4\n");
    netdev(&tree, NULL, "veth1234", "5\n");
    struct node_devices devices = read_all(&tree, "nics: {virtualPrefixes: [rail]}\n");
    assert_names(&devices, "rail0 net-ojqws3c7la"); /* base32 of rail_X */
    assert_string_equal(devices.list[0].netdev.kind, "virtual");
    assert_false(devices.list[0].pci.known);
    node_devices_done(&devices);
}

/* rdma_rxe on a NIC and on a veth: no function of their own, but the name of the interface below.
 */
static void test_software_rdma(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    function(&tree, NIC, "0x020000\n", "e1000e");
    netdev(&tree, NIC, "eth1", "7\n");
    netdev(&tree, NULL, "rail0", "3\n");
    tree_file(&tree, "sys/class/infiniband/rxe0/parent", "eth1\n");
    tree_file(&tree, "sys/class/infiniband/rxe0/ports/1/link_layer", "Ethernet\n");
    tree_file(&tree, "sys/class/infiniband/rxe1/parent", "rail0\n");
    tree_file(&tree, "sys/class/infiniband/rxe1/ports/1/state", "4: ACTIVE\n");
    tree_file(&tree, "sys/class/infiniband_verbs/uverbs0/ibdev", "rxe0\n");
    tree_file(&tree, "sys/class/infiniband_verbs/uverbs0/dev", "231:192\n");
    tree_file(&tree, "sys/class/infiniband_verbs/uverbs1/ibdev", "rxe1\n");
    tree_file(&tree, "sys/class/infiniband_verbs/uverbs1/dev", "231:193\n");
    struct node_devices devices = read_all(&tree, "nics: {virtualPrefixes: [rail]}\n");
    assert_names(&devices, "pci-0000-91-00-0 rail0");
    for (size_t i = 0; i < 2; i++) {
        const struct node_rdma *rdma = &devices.list[i].rdma;
        assert_string_equal(rdma->name, i ? "rxe1" : "rxe0");
        assert_int_equal(rdma->chardev_count, 1);
        assert_int_equal(rdma->chardevs[0].minor, 192 + i);
    }
    node_devices_done(&devices);
}

static void test_no_carrier(void **state)
{
    (void)state;
    struct tree tree = machine();
    tree_file(&tree, NIC "/net/gpu0rdma0/carrier", "0\n");
    tree_file(&tree, NIC "/net/gpu0rdma0/operstate", "down\n");
    struct node_devices devices = read_all(&tree, "taints: {linkDown: NoExecute}\n");
    assert_int_equal(devices.list[1].fault_count, 1);
    assert_true(devices.list[1].faults[0].execute);
    assert_string_equal(devices.list[1].faults[0].text, "gpu0rdma0 has no carrier");
    node_devices_done(&devices);
    tree = machine(); /* set down by nobody's fault: a pod sets it up */
    tree_file(&tree, NIC "/net/gpu0rdma0/flags", "0x1002\n");
    tree_file(&tree, NIC "/net/gpu0rdma0/operstate", "down\n");
    tree_file(&tree, NIC "/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
    devices = read_all(&tree, NULL);
    assert_int_equal(devices.list[1].fault_count, 0);
    node_devices_done(&devices);
}

/* Upstream takes the first component behind devices/, and only where it begins with pci. */
static void test_roots_as_upstream(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    function(&tree, "sys/devices/LNXSYSTM:00/VMBUS:00/abcd/pci0101:00/0101:00:00.0", "0x020700\n",
             "mlx5_core");
    function(&tree, "sys/devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0", "0x020000\n",
             "igc");
    struct node_devices devices = read_all(&tree, NULL);
    assert_names(&devices, "pci-0101-00-00-0 pci-10000-e0-06-0");
    assert_string_equal(devices.list[0].pci.root, "");
    assert_string_equal(devices.list[1].pci.root, ""); /* its address is none for upstream */
    node_devices_done(&devices);
}

static void test_selection_and_names(void **state)
{
    (void)state;
    struct tree tree = machine();
    function(&tree, IB, "0x020700\n", "mlx5_core");
    rdma(&tree, IB, "mlx5_4", "InfiniBand\n", 1);
    struct node_devices devices =
        read_all(&tree, "nics: {include: 'device.attributes[\"dra.net\"].rdma == true'}\n"
                        "gpus: {exclude: 'device.attributes[\"drarun.dev\"].minor == 3'}\n"
                        "names:\n"
                        "- {match: 'device.attributes[\"dra.net\"].rdma', name: 'rail-{rail}'}\n");
    assert_names(&devices, "rail-0 rail-1");
    node_devices_done(&devices);
}

/* A claim has it by its name. */
static void test_held_is_not_renamed(void **state)
{
    (void)state;
    struct tree tree = machine();
    struct node_devices devices = read_all(&tree, NULL);
    struct discover_config config = config_of("names: [{name: new}]\n");
    devices.list[0].held = true;
    assert_int_equal(select_devices(&config, &devices, NULL), 0);
    assert_names(&devices, "gpu-0000-8f-00-0 new");
    discover_config_done(&config);
    node_devices_done(&devices);
}

static void test_what_cannot_be_judged(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    function(&tree, IB, "0x020700\n", "mlx5_core");
    rdma(&tree, IB, "mlx5_4", "InfiniBand\n", 1);
    struct node_devices devices =
        read_all(&tree, "nics: {exclude: 'device.attributes[\"dra.net\"].ifName == \"eth9\"'}\n");
    assert_names(&devices, "");
    assert_warned(&devices, "pci-0000-cd-00-0 is not published: ");
    node_devices_done(&devices);
}

static void test_taken_name(void **state)
{
    (void)state;
    struct tree tree = machine();
    function(&tree, IB, "0x020700\n", "mlx5_core");
    rdma(&tree, IB, "mlx5_4", "InfiniBand\n", 1);
    struct node_devices devices = read_all(&tree, "names: [{name: nic}]\n");
    assert_names(&devices, "nic nic pci-0000-cd-00-0"); /* of two drivers, then taken */
    assert_warned(&devices, "pci-0000-cd-00-0 keeps its name: \"nic\" is another device's");
    node_devices_done(&devices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpu_and_nic),
        cmocka_unit_test(test_uplink_is_never_offered),
        cmocka_unit_test(test_named_uplinks_win),
        cmocka_unit_test(test_too_many_uplinks),
        cmocka_unit_test(test_below_an_uplink),
        cmocka_unit_test(test_part_of_something),
        cmocka_unit_test(test_used_by_the_host),
        cmocka_unit_test(test_an_address_is_no_use),
        cmocka_unit_test(test_default_route_of_a_larger_metric),
        cmocka_unit_test(test_infiniband_alone),
        cmocka_unit_test(test_two_ports),
        cmocka_unit_test(test_ports_without_interfaces),
        cmocka_unit_test(test_sriov),
        cmocka_unit_test(test_partition),
        cmocka_unit_test(test_subfunction),
        cmocka_unit_test(test_switch_managers),
        cmocka_unit_test(test_product_data_that_cannot_be_read),
        cmocka_unit_test(test_given_to_user_space),
        cmocka_unit_test(test_in_a_pod),
        cmocka_unit_test(test_virtual),
        cmocka_unit_test(test_software_rdma),
        cmocka_unit_test(test_no_carrier),
        cmocka_unit_test(test_roots_as_upstream),
        cmocka_unit_test(test_selection_and_names),
        cmocka_unit_test(test_held_is_not_renamed),
        cmocka_unit_test(test_what_cannot_be_judged),
        cmocka_unit_test(test_taken_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
