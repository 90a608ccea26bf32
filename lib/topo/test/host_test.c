/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/topo/host_private.h"
#include "lib/topo/test/tree.h"

#define UP "sys/devices/pci0000:8c/0000:8c:01.0/0000:8d:00.0"
#define GPU UP "/0000:8e:00.0/0000:8f:00.0"
#define NIC UP "/0000:8e:01.0/0000:91:00.0"
#define FAR "sys/devices/pci0000:c8/0000:c8:01.0/0000:cd:00.0"
#define IB "/infiniband/mlx5_0"
#define SF_NAME "mlx5_core.sf.4"
#define SF "/" SF_NAME

static void function(const struct tree *tree, const char *path, const char *class_code,
                     const char *vendor, const char *numa)
{
    char name[512];
    const struct {
        const char *name, *text;
    } files[] = {{"class", class_code},
                 {"vendor", vendor},
                 {"device", "0x2901\n"},
                 {"numa_node", numa},
                 {"max_link_speed", "32.0 GT/s PCIe\n"},
                 {"max_link_width", "16\n"},
                 {"current_link_width", "8\n"}};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(name, sizeof name, "%s/%s", path, files[i].name);
        tree_file(tree, name, files[i].text);
    }
    char target[512];
    snprintf(name, sizeof name, "sys/bus/pci/devices/%s", strrchr(path, '/') + 1);
    snprintf(target, sizeof target, "../../../../%s", path);
    tree_link(tree, name, target);
}

static void make_gpu(const struct tree *tree)
{
    function(tree, GPU, "0x030200\n", "0x10de\n", "0\n");
    tree_file(tree, "proc/driver/nvidia/gpus/0000:8f:00.0/information",
              "Model: \t\t NVIDIA B200\nIRQ:   \t\t 5\nGPU UUID: \t GPU-11111111-2222\n"
              "Device Minor: \t 3\n");
    tree_file(tree, "dev/nvidia3", "");
    tree_file(tree, "dev/nvidiactl", "");
    tree_file(tree, "dev/nvidia-caps-imex-channels/channel7", "");
}

static void make_nic(const struct tree *tree)
{
    function(tree, NIC, "0x020000\n", "0x15b3\n", "0\n");
    tree_link(tree, "sys/class/infiniband/mlx5_0", "../../../" NIC IB);
    tree_link(tree, NIC IB "/device", "../../../0000:91:00.0");
    tree_dir(tree, NIC "/infiniband_verbs/uverbs4");
    tree_file(tree, "dev/infiniband/uverbs4", "");
    tree_file(tree, NIC IB "/fw_ver", "28.41.1000\n");
    tree_file(tree, NIC IB "/ports/1/state", "4: ACTIVE\n");
    tree_file(tree, NIC IB "/ports/1/phys_state", "5: LinkUp\n");
    tree_file(tree, NIC IB "/ports/1/lid", "0x1f\n");
    tree_file(tree, NIC IB "/ports/1/link_layer", "Ethernet\n");
    tree_file(tree, NIC IB "/ports/1/rate", "400 Gb/sec (4X NDR)\n");
    tree_file(tree, NIC IB "/ports/1/gids/0", "0000:0000:0000:0000:0000:0000:0000:0000\n");
    tree_file(tree, NIC IB "/ports/1/gids/1", "hostile\n");
    tree_file(tree, NIC IB "/ports/1/gids/2", "fe80:0000:0000:0000:0202:c9ff:fe00:0001\n");
    tree_file(tree, NIC IB "/ports/1/gids/3", "0000:0000:0000:0000:0000:ffff:c0a8:0105\n");
    tree_file(tree, NIC IB "/ports/1/gid_attrs/types/2", "IB/RoCE v1\n");
    tree_file(tree, NIC IB "/ports/1/gid_attrs/types/3", "RoCE v2\n");
    tree_file(tree, NIC IB "/ports/1/gid_attrs/ndevs/3", "gpu0rdma0\n");
    tree_file(tree, NIC "/net/gpu0rdma0/address", "02:00:00:00:00:01\n");
    tree_file(tree, NIC "/net/gpu0rdma0/mtu", "8896\n");
    tree_file(tree, NIC "/net/gpu0rdma0/speed", "400000\n");
    tree_file(tree, NIC "/net/gpu0rdma0/operstate", "up\n");
    tree_link(tree, "sys/class/net/gpu0rdma0", "../../../" NIC "/net/gpu0rdma0");
}

static void make_rest(const struct tree *tree)
{
    function(tree, UP "/0000:8e:00.0", "0x060400\n", "0x1000\n", "0\n");
    function(tree, UP, "0x060400\n", "0x1000\n", "0\n");
    function(tree, FAR, "0x020000\n", "0x15b3\n", "1\n");
    tree_file(tree, "sys/devices/system/node/online", "0-1\n");
    tree_file(tree, "sys/devices/system/node/node0/cpulist", "0-3,8-11\n");
    tree_file(tree, "sys/devices/system/cpu/online", "0-15\n");
    tree_dir(tree, "sys/module/nvidia_peermem/version");
    tree_file(tree, "proc/cpuinfo",
              "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 207\n"
              "model name\t: x\n");
    tree_file(tree, "proc/sys/kernel/osrelease", "6.1.0\n");
    tree_file(tree, "proc/driver/nvidia/version",
              "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release\n");
    tree_file(tree, "proc/self/limits",
              "Limit                     Soft Limit           Hard Limit           Units     \n"
              "Max locked memory         unlimited            unlimited            bytes     \n");
    tree_file(tree, "proc/self/cgroup", "0::/pod\n");
    tree_file(tree, "sys/fs/cgroup/pod/cpuset.cpus.effective", "0-3\n");
    tree_file(tree, "sys/fs/cgroup/memory.max", "1073741824\n");
}

static struct topo_host read_host(const struct tree *tree)
{
    struct topo_host host;
    struct drarun_error err = {0};
    if (host_read(tree->root, &host, &err) < 0)
        fail_msg("%s", err.text);
    return host;
}

static void no_warnings(const struct topo_host *host)
{
    for (size_t i = 0; i < host->warnings.count; i++)
        fail_msg("warning: %s", host->warnings.items[i]);
}

#define SOFT "sys/devices/virtual/infiniband/"
#define SOFT_VERBS "sys/devices/virtual/infiniband_verbs/"

static void make_soft(const struct tree *tree, const char *name, const char *uverbs)
{
    char path[128], target[128];
    snprintf(path, sizeof path, SOFT "%s/ports/1/state", name);
    tree_file(tree, path, "4: ACTIVE\n");
    snprintf(path, sizeof path, "sys/class/infiniband/%s", name);
    snprintf(target, sizeof target, "../../devices/virtual/infiniband/%s", name);
    tree_link(tree, path, target);
    snprintf(path, sizeof path, SOFT_VERBS "%s/ibdev", uverbs);
    snprintf(target, sizeof target, "%s\n", name);
    tree_file(tree, path, target);
    snprintf(path, sizeof path, "sys/class/infiniband_verbs/%s", uverbs);
    snprintf(target, sizeof target, "../../devices/virtual/infiniband_verbs/%s", uverbs);
    tree_link(tree, path, target);
}

/* Software RDMA has no PCI function in whose folder its character device could be. */
static void finds_nodes_of_software_rdma(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    make_soft(&tree, "rxe_0", "uverbs1");
    make_soft(&tree, "rxe_1", "uverbs0");
    tree_file(&tree, "sys/class/infiniband_verbs/abi_version", "6\n");
    tree_file(&tree, "dev/infiniband/uverbs1", "");
    struct topo_host host = read_host(&tree);
    no_warnings(&host);
    assert_int_equal(host.rdma_count, 2);
    assert_string_equal(host.rdmas[0].uverbs, "uverbs1");
    assert_int_equal(host.rdmas[0].usable, TOPO_YES);
    assert_string_equal(host.rdmas[1].uverbs, "uverbs0");
    assert_int_equal(host.rdmas[1].usable, TOPO_NO);
    host_done(&host);
    tree_drop(&tree);
}

static void reads_a_pod(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    make_gpu(&tree);
    make_nic(&tree);
    make_rest(&tree);
    struct topo_host host = read_host(&tree);
    no_warnings(&host);

    assert_int_equal(host.gpu_count, 1);
    const struct topo_gpu *gpu = &host.gpus[0];
    const struct topo_pci *pci = &host.pci[gpu->pci];
    assert_string_equal(gpu->vendor, "NVIDIA");
    assert_string_equal(gpu->product, "NVIDIA B200");
    assert_string_equal(gpu->uuid, "GPU-11111111-2222");
    assert_int_equal(gpu->minor, 3);
    assert_int_equal(gpu->usable, TOPO_YES);
    assert_int_equal(pci->max_speed_mts, 32000);
    assert_int_equal(pci->max_width, 16);
    assert_int_equal(pci->width, 8);
    assert_int_equal(pci->place.numa, 0);

    assert_int_equal(host.rdma_count, 1);
    const struct topo_rdma *nic = &host.rdmas[0];
    assert_string_equal(nic->name, "mlx5_0");
    assert_string_equal(nic->firmware, "28.41.1000");
    assert_null(nic->node_guid);
    assert_string_equal(nic->uverbs, "uverbs4");
    assert_int_equal(nic->usable, TOPO_YES);
    assert_int_equal(nic->port_count, 1);
    assert_int_equal(nic->ports[0].rate_mbps, 400000);
    assert_int_equal(nic->ports[0].lanes, 4);
    assert_string_equal(nic->ports[0].lane_speed, "NDR");
    assert_string_equal(nic->ports[0].phys_state, "LinkUp");
    assert_int_equal(nic->ports[0].lid, 0x1f);
    assert_int_equal(nic->ports[0].mtu, 0);
    assert_int_equal(nic->ports[0].active, TOPO_YES);
    assert_int_equal(nic->ports[0].gid_count, 2);
    assert_int_equal(nic->ports[0].gids[0].index, 2);
    assert_int_equal(nic->ports[0].gids[0].type, TOPO_GID_ROCE1);
    assert_int_equal(nic->ports[0].gids[1].type, TOPO_GID_ROCE2);
    assert_string_equal(nic->ports[0].gids[1].netdev, "gpu0rdma0");
    assert_string_equal(host_netdev_of(&host, nic)->name, "gpu0rdma0");
    assert_int_equal(host_netdev_of(&host, nic)->mtu, 8896);
    assert_int_equal(host_netdev_of(&host, nic)->speed_mbps, 400000);

    size_t far = host_find_pci(&host, (struct pci_addr){0, 0xcd, 0, 0});
    assert_int_equal(host_path(&host, gpu->pci, nic->pci, false), TOPO_PATH_PIX);
    assert_int_equal(host_path(&host, gpu->pci, far, false), TOPO_PATH_SYS);
    assert_int_equal(host_path(&host, gpu->pci, TOPO_NONE, false), TOPO_PATH_UNKNOWN);

    assert_int_equal(host.numa_count, 2);
    assert_string_equal(host.numas[0].cpulist, "0-3,8-11");
    assert_string_equal(host.numas[1].cpulist, "");
    assert_string_equal(host.arch, "x86_64");
    assert_int_equal(host.cpu_model, 207);
    assert_string_equal(host.driver, "570.124.06");
    assert_int_equal(host.driver_open, TOPO_YES);
    assert_int_equal(host.peermem, TOPO_YES);
    assert_int_equal(host.dmabuf, TOPO_YES);
    assert_int_equal(host.c2c, TOPO_NO);
    assert_int_equal(host.rdma_cm, TOPO_NO);
    assert_int_equal(host.nvidia_nodes, 1);
    assert_int_equal(host.imex_count, 1);
    assert_int_equal(host.imex_channels[0], 7);
    assert_true(host.limits.memlock == UINT64_MAX && host.limits.memlock_known == TOPO_YES);
    assert_int_equal(host.limits.shm_mounted, TOPO_UNKNOWN);
    assert_string_equal(host.limits.cpuset, "0-3");
    assert_int_equal(host.limits.memory_limited, TOPO_YES);
    assert_int_equal(host.limits.memory_max, 1073741824);
    host_done(&host);
    tree_drop(&tree);
}

/* The ports of the NIC's switch to virtual functions lie on its function, too. */
static void tells_the_functions_own_interface(void **state)
{
    static const struct {
        const char *name, *text;
        bool representor;
    } rows[] = {{"aaa0", "pf0vf0\n", true},
                {"aaa1", "c1pf0sf2\n", true},
                {"aaa2", "pf0\n", true},
                {"zzz0", "p0\n", false}};
    (void)state;
    struct tree tree = tree_new();
    make_nic(&tree);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char path[160], target[160];
        snprintf(path, sizeof path, NIC "/net/%s/phys_port_name", rows[i].name);
        tree_file(&tree, path, rows[i].text);
        snprintf(path, sizeof path, "sys/class/net/%s", rows[i].name);
        snprintf(target, sizeof target, "../../../" NIC "/net/%s", rows[i].name);
        tree_link(&tree, path, target);
    }
    struct topo_host host = read_host(&tree);
    no_warnings(&host);
    assert_string_equal(host_netdev_of(&host, &host.rdmas[0])->name, "gpu0rdma0");
    assert_int_equal(host.netdev_count, ARRAY_LEN(rows) + 1);
    for (size_t i = 0; i < host.netdev_count; i++)
        for (size_t k = 0; k < ARRAY_LEN(rows); k++)
            if (strcmp(host.netdevs[i].name, rows[k].name) == 0)
                assert_int_equal(host.netdevs[i].representor, rows[k].representor);
    host_done(&host);
    tree_drop(&tree);
}

static void make_ipoib(const struct tree *tree, const char *folder, const char *ifindex,
                       const char *iflink)
{
    char path[160], target[160];
    const struct {
        const char *name, *text;
    } files[] = {{"ifindex", ifindex},
                 {"iflink", iflink},
                 {"address", "00:00:10:87:fe:80:00:00:00:00:00:00:02:02:c9:ff:fe:00:00:01\n"}};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        tree_file(tree, path, files[i].text);
    }
    snprintf(path, sizeof path, "sys/class/net/%s", strrchr(folder, '/') + 1);
    snprintf(target, sizeof target, "../../../%s", folder);
    tree_link(tree, path, target);
}

static const struct topo_netdev *netdev_named(const struct topo_host *host, const char *name)
{
    for (size_t i = 0; i < host->netdev_count; i++)
        if (strcmp(host->netdevs[i].name, name) == 0)
            return &host->netdevs[i];
    fail_msg("no interface %s", name);
    return NULL;
}

/* The host's default route is by a partition's interface, which is on the one of the HCA; another
 * one is on an interface that a pod has. */
static void tells_partitions(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    function(&tree, FAR, "0x020700\n", "0x15b3\n", "1\n");
    tree_file(&tree, FAR "/infiniband/mlx5_1/ports/1/state", "4: ACTIVE\n");
    tree_link(&tree, "sys/class/infiniband/mlx5_1", "../../../" FAR "/infiniband/mlx5_1");
    tree_link(&tree, FAR "/infiniband/mlx5_1/device", "../../../0000:cd:00.0");
    make_ipoib(&tree, FAR "/net/ibp205s0", "4\n", "4\n");
    make_ipoib(&tree, "sys/devices/virtual/net/ib0.8001", "9\n", "4\n");
    make_ipoib(&tree, "sys/devices/virtual/net/ib1.8001", "10\n", "3\n");
    tree_file(&tree, "sys/devices/virtual/net/vlan3/ifindex", "3\n");
    tree_link(&tree, "sys/class/net/vlan3", "../../devices/virtual/net/vlan3");
    tree_file(&tree, "proc/net/route",
              "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
              "ib0.8001\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n");
    struct topo_host host = read_host(&tree);
    assert_int_equal(host.netdev_count, 4);
    assert_string_equal(netdev_named(&host, "ib0.8001")->partition_of, "ibp205s0");
    assert_string_equal(netdev_named(&host, "ib1.8001")->partition_of, "");
    assert_string_equal(netdev_named(&host, "ibp205s0")->partition_of, "");
    assert_string_equal(netdev_named(&host, "vlan3")->partition_of, "");
    assert_string_equal(host_netdev_of(&host, &host.rdmas[0])->name, "ibp205s0");
    assert_string_equal(host_uplink_of(&host, &host.rdmas[0]), "ib0.8001");
    host_done(&host);
    tree_drop(&tree);
}

/* Of a table that all pods of a node share: by the local addresses, of which one is there. */
static void tells_addresses_of_others(void **state)
{
    (void)state;
    static const struct {
        uint32_t index;
        const char *text;
        bool elsewhere;
    } gids[] = {{2, NULL, false}, /* make_nic's: fe80::/10 tells nothing */
                {3, NULL, false},
                {4, "0000:0000:0000:0000:0000:ffff:c0a8:0106\n", true},
                {5, "fd00:0000:0000:0000:0000:0000:0000:0007\n", false},
                {6, "fd00:0000:0000:0000:0000:0000:0000:0008\n", true}};
    struct tree tree = tree_new();
    make_nic(&tree);
    for (size_t i = 0; i < ARRAY_LEN(gids); i++) {
        char path[256];
        if (!gids[i].text)
            continue;
        snprintf(path, sizeof path, NIC IB "/ports/1/gids/%u", gids[i].index);
        tree_file(&tree, path, gids[i].text);
        snprintf(path, sizeof path, NIC IB "/ports/1/gid_attrs/types/%u", gids[i].index);
        tree_file(&tree, path, "RoCE v2\n");
    }
    for (int known = 0; known < 2; known++) {
        if (known) {
            tree_file(&tree, "proc/net/fib_trie",
                      "Local:\n  +-- 192.168.1.0/24 2 0 2\n     |-- 192.168.1.5\n        /32 host "
                      "LOCAL\n     |-- 192.168.1.6\n        /32 link BROADCAST\n");
            tree_file(&tree, "proc/net/if_inet6",
                      "fd000000000000000000000000000007 02 40 00 80 eth1\nfd00\n");
        }
        struct topo_host host = read_host(&tree);
        const struct topo_port *port = &host.rdmas[0].ports[0];
        assert_int_equal(port->gid_count, ARRAY_LEN(gids));
        for (size_t i = 0; i < ARRAY_LEN(gids); i++) {
            assert_int_equal(port->gids[i].index, gids[i].index);
            assert_int_equal(port->gids[i].elsewhere, known && gids[i].elsewhere);
        }
        host_done(&host);
    }
    tree_drop(&tree);
}

/* A sub-function has an interface and an RDMA device of its own, below the function. */
static void tells_subfunctions(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    make_nic(&tree);
    tree_file(&tree, NIC SF "/net/aaa0/mtu", "1500\n");
    tree_link(&tree, "sys/class/net/aaa0", "../../../" NIC SF "/net/aaa0");
    tree_link(&tree, NIC SF "/net/aaa0/device", "../../../" SF_NAME);
    tree_file(&tree, NIC SF "/infiniband/aaa5_0/ports/1/state", "4: ACTIVE\n");
    tree_link(&tree, "sys/class/infiniband/aaa5_0", "../../../" NIC SF "/infiniband/aaa5_0");
    tree_link(&tree, NIC SF "/infiniband/aaa5_0/device", "../../../" SF_NAME);
    struct topo_host host = read_host(&tree);
    assert_int_equal(host.rdma_count, 2);
    assert_string_equal(host.rdmas[0].name, "mlx5_0"); /* the function's own first */
    assert_string_equal(host.rdmas[0].subfunction, "");
    assert_string_equal(host_netdev_of(&host, &host.rdmas[0])->name, "gpu0rdma0");
    assert_string_equal(host.rdmas[1].subfunction, SF_NAME);
    assert_int_equal(host.rdmas[1].pci, host.rdmas[0].pci);
    assert_string_equal(host_netdev_of(&host, &host.rdmas[1])->name, "aaa0");
    host_done(&host);
    tree_drop(&tree);
}

static const char container_table[] =
    "9:cpuset:/kubepods/pod1/c1\n8:cpu,cpuacct:/kubepods/pod1/c1\n7:memory:/kubepods/pod1/c1\n"
    "1:name=systemd:/kubepods/pod1/c1\n0::/system.slice/kubelet.service\n";

/* A container sees its own groups as roots, and others by their paths on the host. */
static void reads_groups_of_version_1(void **state)
{
    static const struct {
        const char *files[5][2];
        const char *cpuset;
        enum topo_tri memory_limited, cpu_limited;
        uint64_t memory_max, cpu_millis;
    } rows[] = {
        {{{"cpuset/cpuset.cpus", "0-3\n"},
          {"cpuset/cpuset.effective_cpus", "1-3\n"},
          {"memory/memory.limit_in_bytes", "1073741824\n"},
          {"cpu/cpu.cfs_quota_us", "150000\n"},
          {"cpu/cpu.cfs_period_us", "100000\n"}},
         "1-3",
         TOPO_YES,
         TOPO_YES,
         1073741824,
         1500},
        {{{"cpuset/cpuset.cpus", "0-7\n"},
          {"cpuset/kubepods/pod1/c1/cpuset.cpus", "2,4\n"},
          {"memory/kubepods/pod1/c1/memory.limit_in_bytes", "9223372036854771712\n"},
          {"cpu/kubepods/pod1/c1/cpu.cfs_quota_us", "-1\n"},
          {"cpu/kubepods/pod1/c1/cpu.cfs_period_us", "100000\n"}},
         "2,4",
         TOPO_NO,
         TOPO_NO,
         0,
         0},
        {{{"cpuset/kubepods/pod2/cpuset.cpus", "2\n"}, {"cpu/cpu.cfs_quota_us", "5\n"}},
         NULL,
         TOPO_UNKNOWN,
         TOPO_UNKNOWN,
         0,
         0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tree tree = tree_new();
        char path[256];
        tree_file(&tree, "proc/self/cgroup", container_table);
        for (size_t k = 0; k < ARRAY_LEN(rows[i].files) && rows[i].files[k][0]; k++) {
            snprintf(path, sizeof path, "sys/fs/cgroup/%s", rows[i].files[k][0]);
            tree_file(&tree, path, rows[i].files[k][1]);
        }
        struct topo_host host = read_host(&tree);
        const struct topo_limits *limits = &host.limits;
        assert_string_equal(limits->cpuset ? limits->cpuset : "not known",
                            rows[i].cpuset ? rows[i].cpuset : "not known");
        assert_int_equal(limits->memory_limited, rows[i].memory_limited);
        assert_int_equal(limits->memory_max, rows[i].memory_max);
        assert_int_equal(limits->cpu_limited, rows[i].cpu_limited);
        assert_int_equal(limits->cpu_millis, rows[i].cpu_millis);
        host_done(&host);
        tree_drop(&tree);
    }
}

static bool warned(const struct topo_host *host, const char *part)
{
    for (size_t i = 0; i < host->warnings.count; i++)
        if (strstr(host->warnings.items[i], part))
            return true;
    return false;
}

/* Of a machine that numbers the CPUs of two sockets in turn, a pod that has one socket. */
static void reads_a_long_list_of_cpus(void **state)
{
    (void)state;
    char list[1024] = "", text[sizeof list + 1];
    size_t length = 0;
    struct tree tree = tree_new();
    for (unsigned cpu = 0; cpu < 224; cpu += 2)
        length +=
            (size_t)snprintf(list + length, sizeof list - length, "%s%u", cpu ? "," : "", cpu);
    snprintf(text, sizeof text, "%s\n", list);
    tree_file(&tree, "proc/self/cgroup", "0::/pod\n");
    tree_file(&tree, "sys/fs/cgroup/pod/cpuset.cpus.effective", text);
    struct topo_host host = read_host(&tree);
    no_warnings(&host);
    assert_string_equal(host.limits.cpuset, list);
    host_done(&host);
    tree_file(&tree, "sys/fs/cgroup/pod/cpuset.cpus.effective", "0-3,x\n");
    host = read_host(&tree);
    assert_null(host.limits.cpuset);
    assert_true(warned(&host, "pod/cpuset.cpus.effective: \"x\""));
    host_done(&host);
    tree_drop(&tree);
}

static void survives_hostile_trees(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    make_gpu(&tree);
    make_nic(&tree);
    make_rest(&tree);
    tree_link(&tree, "sys/class/infiniband/mlx5_9", "/nowhere");
    tree_link(&tree, "sys/class/infiniband/loop", "loop");
    tree_dir(&tree, "sys/class/infiniband/new\nline");
    tree_dir(&tree, "sys/class/infiniband/$(reboot)");
    tree_dir(&tree, "sys/class/infiniband/bare/ports/1");
    tree_dir(&tree, "sys/class/net/-x y");
    tree_file(&tree, "sys/class/net/bonding_masters", "");
    tree_link(&tree, "sys/class/net/gone", "../../nothing");
    tree_dir(&tree, "sys/bus/pci/devices/0000:00:00.9");
    tree_dir(&tree, "sys/bus/pci/devices/0000:01:00.0");
    tree_link(&tree, "sys/bus/pci/devices/0000:02:00.0", "0000:02:00.0");
    char long_text[5000];
    memset(long_text, 'm', sizeof long_text);
    memcpy(long_text, "Model: \033[31m", 12);
    long_text[sizeof long_text - 1] = '\0';
    tree_file(&tree, "proc/driver/nvidia/gpus/0000:8f:00.0/information", long_text);
    tree_file(&tree, GPU "/numa_node", "-1\n");
    tree_file(&tree, GPU "/max_link_width", "255\n");
    tree_file(&tree, NIC IB "/ports/1/rate", "9999999999999 Gb/sec\n");
    tree_file(&tree, "sys/devices/system/node/node0/cpulist", "3-1\n");
    struct topo_host host = read_host(&tree);
    assert_true(warned(&host, "mlx5_9"));
    assert_true(warned(&host, "infiniband/loop"));
    assert_true(warned(&host, "\"new?line\" is left out"));
    assert_true(warned(&host, "$(reboot)"));
    assert_true(warned(&host, "sys/class/net: \"-x y\""));
    assert_true(warned(&host, "sys/class/net/gone"));
    assert_true(warned(&host, "0000:00:00.9"));
    assert_true(warned(&host, "0000:02:00.0"));
    assert_true(warned(&host, "node0/cpulist"));
    assert_false(warned(&host, "bonding_masters"));
    assert_int_equal(host.rdma_count, 2); /* mlx5_0 and bare */
    assert_int_equal(host.rdmas[1].pci, TOPO_NONE);
    assert_int_equal(host.rdmas[0].ports[0].rate_mbps, 0);
    assert_int_equal(host.gpu_count, 1);
    assert_int_equal(host.pci[host.gpus[0].pci].place.numa, -1);
    assert_int_equal(host.pci[host.gpus[0].pci].max_width, 0);
    assert_int_equal(strlen(host.gpus[0].product), 127);
    assert_null(strchr(host.gpus[0].product, '\033'));
    assert_null(host.gpus[0].uuid);
    assert_int_equal(host.gpus[0].usable, TOPO_UNKNOWN);
    host_done(&host);
    tree_drop(&tree);
}

/* The driver reads a GPU's UUID when a program first opens it; until then all GPUs have one text.
 */
static void leaves_out_what_is_no_uuid(void **state)
{
    static const struct {
        const char *uuid;
        bool warns;
    } cases[] = {{"GPU-????????", false}, {"7", true}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[128];
        struct tree tree = tree_new();
        make_gpu(&tree);
        snprintf(text, sizeof text, "Model: \t NVIDIA B200\nGPU UUID: \t %s\n", cases[i].uuid);
        tree_file(&tree, "proc/driver/nvidia/gpus/0000:8f:00.0/information", text);
        struct topo_host host = read_host(&tree);
        assert_string_equal(host.gpus[0].product, "NVIDIA B200");
        assert_null(host.gpus[0].uuid);
        assert_int_equal(warned(&host, "is no GPU UUID"), cases[i].warns);
        host_done(&host);
        tree_drop(&tree);
    }
}

static void bounds_its_warnings(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    for (int i = 0; i < 200; i++) {
        char name[64];
        snprintf(name, sizeof name, "sys/class/net/bad name %d", i);
        tree_dir(&tree, name);
    }
    struct topo_host host = read_host(&tree);
    assert_int_equal(host.warnings.count, TOPO_WARNINGS_MAX);
    assert_string_equal(host.warnings.items[TOPO_WARNINGS_MAX - 1], "and more like these");
    host_done(&host);
    tree_drop(&tree);
}

static void an_empty_tree_is_an_empty_host(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    struct topo_host host = read_host(&tree);
    no_warnings(&host);
    assert_int_equal(host.pci_count + host.gpu_count + host.rdma_count + host.numa_count, 0);
    assert_null(host.cpus);
    assert_int_equal(host.peermem, TOPO_UNKNOWN);
    assert_int_equal(host.rdma_cm, TOPO_UNKNOWN);
    host_done(&host);
    host_done(&host); /* twice is once */
    tree_drop(&tree);
}

/* A link to / in a tree leads to the tree. */
static void never_leaves_the_tree(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    tree_link(&tree, "sys", "/sys");
    tree_link(&tree, "proc", "../../../../../../../../proc");
    struct topo_host host = read_host(&tree);
    assert_null(host.kernel);
    assert_null(host.cpus);
    assert_int_equal(host.netdev_count, 0);
    host_done(&host);
    tree_drop(&tree);
}

static void reads_this_machine(void **state)
{
    (void)state;
    struct topo_host host;
    struct drarun_error err = {0};
    assert_int_equal(host_read(-1, &host, &err), 0);
    assert_non_null(host.kernel);
    assert_non_null(host.cpus);
    assert_true(host.netdev_count > 0); /* lo at least */
    assert_int_equal(host.limits.memlock_known, TOPO_YES);
    host_done(&host);
}

static const char *uplink_of(const struct topo_host *host, const char *name)
{
    return netdev_named(host, name)->uplink;
}

static void make_netdev(const struct tree *tree, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "sys/class/net/%s/mtu", name);
    tree_file(tree, path, "1500\n");
}

/* The default route is on a VLAN of a bond; a bridge, a bond of data NICs and what Linux links the
 * other way round beside it. */
static void tells_what_the_uplink_is_made_of(void **state)
{
    (void)state;
    static const char *const names[] = {"eno1", "eno2", "bond0", "bond0.7", "bond1", "br0"};
    struct tree tree = tree_new();
    make_nic(&tree);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        make_netdev(&tree, names[i]);
    tree_file(&tree, "proc/net/route",
              "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
              "bond0.7\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n");
    tree_link(&tree, "sys/class/net/bond0/upper_bond0.7", "../bond0.7");
    tree_link(&tree, "sys/class/net/eno1/master", "../bond0");
    tree_link(&tree, "sys/class/net/bond0/lower_eno2", "../eno2");
    tree_link(&tree, NIC "/net/gpu0rdma0/master", "../../../../../class/net/bond1");
    tree_link(&tree, "sys/class/net/br0/lower_no-such", "../no-such");
    struct topo_host host = read_host(&tree);
    assert_string_equal(uplink_of(&host, "bond0.7"), "bond0.7");
    assert_string_equal(uplink_of(&host, "bond0"), "bond0.7");
    assert_string_equal(uplink_of(&host, "eno1"), "bond0.7");
    assert_string_equal(uplink_of(&host, "eno2"), "bond0.7");
    assert_string_equal(uplink_of(&host, "bond1"), "");
    assert_string_equal(uplink_of(&host, "gpu0rdma0"), "");
    assert_null(host_uplink_of(&host, &host.rdmas[0]));
    host_done(&host);
    tree_link(&tree, "sys/class/net/bond1/master", "../bond0");
    host = read_host(&tree);
    assert_string_equal(host_uplink_of(&host, &host.rdmas[0]), "bond0.7");
    host_done(&host);
    tree_drop(&tree);
}

/* As many as 8 NICs have virtual functions, and the pods of a node, with the uplink after them. */
static void reads_many_interfaces(void **state)
{
    (void)state;
    char path[64];
    const unsigned some = 1200;
    struct tree tree = tree_new();
    for (unsigned i = 0; i < some; i++) {
        snprintf(path, sizeof path, "sys/class/net/eth%u", i);
        tree_dir(&tree, path);
    }
    make_netdev(&tree, "uplink0");
    tree_file(&tree, "proc/net/route",
              "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
              "uplink0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n");
    struct topo_host host = read_host(&tree);
    no_warnings(&host);
    assert_int_equal(host.netdev_count, some + 1);
    assert_string_equal(uplink_of(&host, "uplink0"), "uplink0");
    host_done(&host);
    for (unsigned i = some; i <= TOPO_DEVICES_MAX; i++) {
        snprintf(path, sizeof path, "sys/class/net/eth%u", i);
        tree_dir(&tree, path);
    }
    host = read_host(&tree);
    assert_true(warned(&host, "sys/class/net: of 4098 entries the first 4096 are read"));
    assert_int_equal(host.netdev_count, TOPO_DEVICES_MAX);
    host_done(&host);
    tree_drop(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_pod),
        cmocka_unit_test(tells_the_functions_own_interface),
        cmocka_unit_test(tells_partitions),
        cmocka_unit_test(tells_addresses_of_others),
        cmocka_unit_test(tells_subfunctions),
        cmocka_unit_test(reads_groups_of_version_1),
        cmocka_unit_test(reads_a_long_list_of_cpus),
        cmocka_unit_test(finds_nodes_of_software_rdma),
        cmocka_unit_test(tells_what_the_uplink_is_made_of),
        cmocka_unit_test(reads_many_interfaces),
        cmocka_unit_test(survives_hostile_trees),
        cmocka_unit_test(leaves_out_what_is_no_uuid),
        cmocka_unit_test(bounds_its_warnings),
        cmocka_unit_test(an_empty_tree_is_an_empty_host),
        cmocka_unit_test(never_leaves_the_tree),
        cmocka_unit_test(reads_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
