/* SPDX-License-Identifier: Apache-2.0 */
/* Each check of a machine, on trees that have what it reads and on hosts made by hand. The texts
 * are the interface: users search for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/doctor/node_checks.h"
#include "lib/base/cleanup.h"
#include "lib/topo/test/tree.h"

#define FILES_MAX 6

struct row {
    const char *state, *seen;
    bool change; /* it says what to do */
    const char *const files[FILES_MAX][2];
};

/* The only finding, as "state: seen", and "!" behind it where there is something to change. */
static void judge(node_check_fn check, int root, const struct topo_host *host, const char *name,
                  char *text, size_t size)
{
    struct findings findings;
    findings_init(&findings);
    check(root, host, &findings);
    assert_int_equal(json_array_size(findings.list), 1);
    const json_t *found = json_array_get(findings.list, 0);
    assert_string_equal(json_string_value(json_object_get(found, "check")), name);
    snprintf(text, size, "%s: %s%s", json_string_value(json_object_get(found, "state")),
             json_string_value(json_object_get(found, "seen")),
             json_object_get(found, "change") ? "!" : "");
    assert_false(findings.failed);
    findings_done(&findings);
}

static void judge_trees(node_check_fn check, const char *name, const struct topo_host *host,
                        const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct tree tree = tree_new();
        char expected[512], got[512];
        for (size_t k = 0; k < FILES_MAX && rows[i].files[k][0]; k++)
            tree_file(&tree, rows[i].files[k][0], rows[i].files[k][1]);
        judge(check, tree.root, host, name, got, sizeof got);
        snprintf(expected, sizeof expected, "%s: %s%s", rows[i].state, rows[i].seen,
                 rows[i].change ? "!" : "");
        assert_string_equal(got, expected);
        tree_drop(&tree);
    }
}

static const struct topo_host nothing;

#define REGISTRY "var/lib/kubelet/plugins_registry/"

static void drivers_that_have_registered(void **state)
{
    static const struct row rows[] = {
        {"failed", "there is no /var/lib/kubelet/plugins_registry", true, {{0}}},
        {"warning",
         "no driver has registered in /var/lib/kubelet/plugins_registry",
         true,
         {{REGISTRY "-reg.sock", ""}, {REGISTRY "a-reg.sock.old", ""}, {REGISTRY "reg.sock", ""}}},
        {"ok",
         "drivers have registered: a, gpu.nvidia.com-0123",
         false,
         {{REGISTRY "a-reg.sock", ""},
          {REGISTRY "gpu.nvidia.com-0123-reg.sock", ""},
          {REGISTRY "other", ""}}},
    };
    (void)state;
    judge_trees(check_kubelet, "kubelet", &nothing, rows, ARRAY_LEN(rows));
}

#define CONTAINERD "etc/containerd/config.toml"

static void runtimes_that_have_cdi(void **state)
{
    static const char on[] = "containerd has CDI switched on",
                      lacks[] = "cdi_spec_dirs lacks /var/run/cdi";
    static const struct row rows[] = {
        {"unknown",
         "no configuration of containerd or CRI-O: containerd 2 has CDI on, 1.7 off",
         true,
         {{0}}},
        {"ok", on, false, {{CONTAINERD, "version = 3\n"}}},
        {"ok", on, false, {{CONTAINERD, "version=3\n"}}},
        {"warning",
         "/etc/containerd/config.toml does not say enable_cdi: containerd 2 has it on, 1.7 off",
         true,
         {{CONTAINERD, "version = 2\n"}}},
        {"warning",
         "/etc/containerd/config.toml does not say enable_cdi: containerd 2 has it on, 1.7 off",
         true,
         {{CONTAINERD, "version = 2\n  enable_cdi_x = true\nenable_cdi\n"}}},
        {"ok", on, false, {{CONTAINERD, "version = 2\n \tenable_cdi \t=\t true\n"}}},
        {"failed",
         "/etc/containerd/config.toml has enable_cdi = false",
         true,
         {{CONTAINERD, "version = 3\nenable_cdi = false\n"}}},
        {"failed",
         "/etc/containerd/conf.d has enable_cdi = false",
         true,
         {{"etc/containerd/conf.d/99-nvidia.toml", "enable_cdi = false\n"}}},
        {"ok", on, false, {{"etc/containerd/conf.d/99-nvidia.toml", "enable_cdi = true\n"}}},
        {"ok",
         on,
         false,
         {{CONTAINERD, "enable_cdi = false\n"},
          {"etc/containerd/conf.d/99-nvidia.toml", "enable_cdi = true\n"}}},
        /* the first file that is there */
        {"failed",
         "/var/lib/rancher/k3s/agent/etc/containerd/config.toml has enable_cdi = false",
         true,
         {{"etc/k0s/containerd.toml", "version = 3\n"},
          {"var/lib/rancher/k3s/agent/etc/containerd/config.toml", "enable_cdi = false\n"}}},
        {"failed",
         "/var/lib/rancher/rke2/agent/etc/containerd/config.toml has enable_cdi = false",
         true,
         {{"var/lib/rancher/rke2/agent/etc/containerd/config.toml", "enable_cdi = false\n"}}},
        {"failed",
         "/etc/k0s/containerd.toml has enable_cdi = false",
         true,
         {{"etc/k0s/containerd.toml", "enable_cdi = false\n"}}},
        {"failed",
         lacks,
         true,
         {{CONTAINERD, "version = 3\ncdi_spec_dirs = [\"/etc/cdi\"]\nx = \"/run/cdi\"\n"}}},
        {"ok",
         on,
         false,
         {{CONTAINERD, "version = 3\ncdi_spec_dirs = [\"/etc/cdi\", \"/var/run/cdi\"]\n"}}},
        {"ok",
         on,
         false,
         {{CONTAINERD, "version = 3\ncdi_spec_dirs = [\n\"/var/run/cdi\",\n\"/etc/cdi\"]\n"}}},
        {"failed",
         lacks,
         true,
         {{CONTAINERD, "version = 3\ncdi_spec_dirs = [\n\"/etc/cdi\"\n]\n\"/var/run/cdi\"\n"}}},
        {"failed",
         "/etc/containerd/config.toml has enable_cdi = false",
         true,
         {{CONTAINERD, "cdi_spec_dirs = [\n\"/var/run/cdi\"\n]\nenable_cdi = false\n"}}},
        {"ok", "CRI-O, which has CDI switched on", false, {{"etc/crio/crio.conf", ""}}},
        {"ok", "CRI-O, which has CDI switched on", false, {{"etc/crio/crio.conf.d/10.conf", ""}}},
        {"ok", on, false, {{CONTAINERD, "version = 3\n"}, {"etc/crio/crio.conf", ""}}},
    };
    (void)state;
    judge_trees(check_cdi, "cdi", &nothing, rows, ARRAY_LEN(rows));
}

#define LOCKED(soft) "Max locked memory         " soft "   unlimited   bytes\n"
#define LIMIT_NAMES "Limit                     Soft Limit           Hard Limit           Units\n"

static void limits_of_the_container_runtime(void **state)
{
    static const char unknown[] = "the limits of no process can be read";
    static const struct row memlock[] = {
        {"unknown", unknown, false, {{0}}},
        {"unknown", unknown, false, {{"proc/self/limits", LIMIT_NAMES}}},
        {"ok", "this process: unlimited", false, {{"proc/self/limits", LOCKED("unlimited")}}},
        {"warning",
         "this process: 65536 bytes, which RDMA soon has locked",
         true,
         {{"proc/self/limits", LIMIT_NAMES LOCKED("65536")}}},
        {"warning",
         "containerd: 8388608 bytes, which RDMA soon has locked",
         true,
         {{"proc/self/limits", LOCKED("unlimited")},
          {"proc/7/comm", "containerd\n"},
          {"proc/7/limits", LOCKED("8388608")}}},
        /* one that systemd does not start comes later */
        {"ok",
         "k3s-agent: unlimited",
         false,
         {{"proc/7/comm", "containerd\n"},
          {"proc/7/limits", LOCKED("8388608")},
          {"proc/12/comm", "k3s-agent\n"},
          {"proc/12/limits", LOCKED("unlimited")}}},
        {"ok",
         "crio: unlimited",
         false,
         {{"proc/12/comm", "crio\n"},
          {"proc/12/limits", LOCKED("unlimited")},
          {"proc/70/comm", "containerd\n"},
          {"proc/70/limits", LOCKED("8388608")}}},
        {"ok",
         "this process: unlimited",
         false,
         {{"proc/self/limits", LOCKED("unlimited")},
          {"proc/7/comm", "containerd-shim\n"},
          {"proc/7/limits", LOCKED("1")},
          {"proc/fs/comm", "containerd\n"},
          {"proc/fs/limits", LOCKED("2")}}},
    };
    static const struct row nofile[] = {
        {"warning",
         "this process: 65535 files",
         true,
         {{"proc/self/limits", "Max open files            65535                1048576\n"}}},
        {"ok",
         "this process: 65536 files",
         false,
         {{"proc/self/limits", "Max open files            65536                1048576\n"}}},
        {"ok",
         "this process: unlimited",
         false,
         {{"proc/self/limits", "Max open files            unlimited            unlimited\n"}}},
    };
    (void)state;
    judge_trees(check_memlock, "memlock", &nothing, memlock, ARRAY_LEN(memlock));
    judge_trees(check_nofile, "nofile", &nothing, nofile, ARRAY_LEN(nofile));
}

/* The unit that is to be changed: of the process's cgroup, else the usual one of its name. */
static void unit_of_systemd(void **state)
{
    static const struct {
        const char *process, *cgroup, *unit;
    } rows[] = {
        {"containerd", "0::/system.slice/containerd.service\n", "containerd"},
        {"containerd", "0::/system.slice/snap.microk8s.service\n", "snap.microk8s"},
        {"rke2", "0::/system.slice/rke2-server.service\n", "rke2-server"},
        {"rke2", "0::/system.slice\n", "rke2-agent"},
        {"rke2", "0::/system.slice/.service\n", "rke2-agent"},
        {"rke2", "rke2-x.service", "rke2-x"},
        {"k3s-server", "", "k3s"},
        {"k3s-server", "0::/a23456789b123456789c123456789d123456789e123456789f123456789g12.service",
         "a23456789b123456789c123456789d123456789e123456789f123456789g12"},
        {"k3s-server",
         "0::/a23456789b123456789c123456789d123456789e123456789f123456789g123.service",
         "a23456789b123456789c123456789d123456789e123456789f123456789g123"},
        {"k3s-server",
         "0::/a23456789b123456789c123456789d123456789e123456789f123456789g1234.service", "k3s"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tree tree = tree_new();
        struct findings findings;
        char expected[320];
        tree_file(&tree, "proc/7/comm", rows[i].process);
        tree_file(&tree, "proc/7/limits", LOCKED("65536"));
        tree_file(&tree, "proc/7/cgroup", rows[i].cgroup);
        findings_init(&findings);
        check_memlock(tree.root, &nothing, &findings);
        snprintf(expected, sizeof expected,
                 "[Service] LimitMEMLOCK=infinity in /etc/systemd/system/%s.service.d/limits.conf; "
                 "systemctl daemon-reload; systemctl restart %s",
                 rows[i].unit, rows[i].unit);
        const json_t *found = json_array_get(findings.list, 0);
        assert_string_equal(json_string_value(json_object_get(found, "change")), expected);
        findings_done(&findings);
        tree_drop(&tree);
    }
}

#define PAGES "sys/kernel/mm/hugepages/hugepages-2048kB/"
#define THP "sys/kernel/mm/transparent_hugepage/enabled"

static void huge_pages(void **state)
{
    static const char off[] = "transparent huge pages are off: large buffers cost more page faults";
    static const struct row rows[] = {
        {"unknown", "/sys/kernel/mm cannot be read", false, {{0}}},
        {"ok",
         "no pages of 2 MiB reserved, transparent: [always] madvise never",
         false,
         {{THP, "[always] madvise never\n"}}},
        {"ok", "0 pages of 2 MiB reserved, transparent: ", false, {{PAGES "nr_hugepages", "0\n"}}},
        {"warning", off, true, {{THP, "always madvise [never]\n"}}},
        {"warning",
         "all 1 reserved pages of 2 MiB are in use",
         true,
         {{PAGES "nr_hugepages", "1\n"}, {PAGES "free_hugepages", "0\n"}}},
        {"ok",
         "512 pages of 2 MiB reserved, transparent: always [madvise] never",
         false,
         {{PAGES "nr_hugepages", "512\n"},
          {PAGES "free_hugepages", "1\n"},
          {THP, "always [madvise] never\n"}}},
    };
    (void)state;
    judge_trees(check_hugepages, "hugepages", &nothing, rows, ARRAY_LEN(rows));
}

#define MOUNTS "proc/self/mounts"
#define MOUNT(options) "proc /proc proc rw 0 0\ntmpfs /dev/shm tmpfs " options " 0 0\n"

static void shared_memory(void **state)
{
    static const struct row rows[] = {
        {"unknown", "the mounts cannot be read", false, {{0}}},
        {"failed", "/dev/shm is no tmpfs", true, {{MOUNTS, "proc /proc proc rw 0 0\n"}}},
        {"warning",
         "/dev/shm has 64 MiB, for processes beside Kubernetes",
         true,
         {{MOUNTS, MOUNT("rw,nosuid,size=65536k,nodev")}}},
        {"warning",
         "/dev/shm has 1023 MiB, for processes beside Kubernetes",
         true,
         {{MOUNTS, MOUNT("rw,size=1048575k")}}},
        {"ok", "/dev/shm has 1024 MiB", false, {{MOUNTS, MOUNT("rw,size=1048576k")}}},
        {"ok", "/dev/shm has 1025 MiB", false, {{MOUNTS, MOUNT("rw,size=1025m")}}},
        {"ok", "/dev/shm has 3072 MiB", false, {{MOUNTS, MOUNT("rw,size=3g")}}},
        {"ok", "/dev/shm has 2048 MiB", false, {{MOUNTS, MOUNT("rw,size=2147483648")}}},
        /* half of the memory, which is told in KiB */
        {"ok",
         "/dev/shm has 2048 MiB",
         false,
         {{MOUNTS, MOUNT("rw,nosuid")}, {"proc/meminfo", "MemTotal:        4194304 kB\n"}}},
        {"warning",
         "/dev/shm has 1023 MiB, for processes beside Kubernetes",
         true,
         {{MOUNTS, MOUNT("rw,nosuid")}, {"proc/meminfo", "MemTotal:        2097150 kB\n"}}},
        {"warning",
         "/dev/shm has 0 MiB, for processes beside Kubernetes",
         true,
         {{MOUNTS, MOUNT("rw,nosuid")}}},
    };
    (void)state;
    judge_trees(check_shm, "shm", &nothing, rows, ARRAY_LEN(rows));
}

static const struct topo_host one_rdma = {.rdmas = (struct topo_rdma[]){{.name = "mlx5_0"}},
                                          .rdma_count = 1};

#define NETNS_MODE "sys/module/ib_core/parameters/netns_mode"

static void network_namespaces_of_rdma_devices(void **state)
{
    static const char own[] = "exclusive: a pod sees its own RDMA devices alone",
                      shared[] = "shared: each pod sees the names and counters of all RDMA "
                                 "devices, and opens those that it claimed";
    static const struct row rows[] = {
        {"unknown", "ib_core does not tell its netns_mode", false, {{0}}},
        {"ok", own, false, {{NETNS_MODE, "N\n"}}},
        {"ok", own, false, {{NETNS_MODE, "0\n"}}},
        {"warning", shared, true, {{NETNS_MODE, "Y\n"}}},
        {"warning", shared, true, {{NETNS_MODE, "1\n"}}},
    };
    static const struct row none[] = {{"ok", "there is no RDMA device", false, {{0}}}};
    (void)state;
    judge_trees(check_netns_mode, "rdma-netns", &one_rdma, rows, ARRAY_LEN(rows));
    judge_trees(check_netns_mode, "rdma-netns", &nothing, none, 1);
}

#define COUNTERS "sys/class/infiniband/mlx5_0/ports/1/counters/"

static void errors_that_ports_have_counted(void **state)
{
    static const struct row rows[] = {
        {"ok", "no RDMA port has counted an error", false, {{0}}},
        {"ok",
         "no RDMA port has counted an error",
         false,
         {{COUNTERS "symbol_error", "0\n"}, {COUNTERS "link_downed", "0\n"}}},
        {"warning",
         "since the driver was loaded: mlx5_0 port 1 link_downed 1",
         true,
         {{COUNTERS "symbol_error", "0\n"}, {COUNTERS "link_downed", "1\n"}}},
        {"warning",
         "since the driver was loaded: mlx5_0 port 1 symbol_error 12, mlx5_0 port 1 "
         "port_rcv_errors 3",
         true,
         {{COUNTERS "symbol_error", "12\n"}, {COUNTERS "port_rcv_errors", "3\n"}}},
    };
    static const struct row none[] = {{"ok", "there is no RDMA device", false, {{0}}}};
    (void)state;
    judge_trees(check_port_errors, "port-errors", &one_rdma, rows, ARRAY_LEN(rows));
    judge_trees(check_port_errors, "port-errors", &nothing, none, 1);
}

/* ---- what a host alone decides ---- */

static void judge_host(node_check_fn check, const char *name, const struct topo_host *host,
                       const char *expected)
{
    char got[512];
    judge(check, -1, host, name, got, sizeof got);
    assert_string_equal(got, expected);
}

static void links_that_are_down(void **state)
{
    struct topo_port first[] = {{.number = 1, .active = TOPO_YES, .state = "ACTIVE"},
                                {.number = 2, .active = TOPO_UNKNOWN}};
    struct topo_port second[] = {{.number = 1, .active = TOPO_YES, .state = "ACTIVE"}};
    struct topo_rdma rdmas[] = {{.name = "mlx5_0", .ports = first, .port_count = 2},
                                {.name = "mlx5_1", .ports = second, .port_count = 1}};
    const struct topo_host host = {.rdmas = rdmas, .rdma_count = 2};
    (void)state;
    judge_host(check_links, "links", &nothing, "ok: there is no RDMA device");
    judge_host(check_links, "links", &host, "ok: no RDMA port of 3 is down");
    second[0] = (struct topo_port){.number = 1, .active = TOPO_NO, .state = "DOWN"};
    judge_host(check_links, "links", &host,
               "warning: down: mlx5_1 port 1 (DOWN), of 3 RDMA ports!");
    first[1] = (struct topo_port){.number = 2, .active = TOPO_NO, .state = "INIT"};
    judge_host(check_links, "links", &host,
               "warning: down: mlx5_0 port 2 (INIT), mlx5_1 port 1 (DOWN), of 3 RDMA ports!");
}

static void interfaces_of_roce(void **state)
{
    struct topo_port ports[] = {{.number = 1, .link = TOPO_LINK_ETHERNET}};
    struct topo_rdma rdmas[] = {
        {.name = "mlx5_0", .pci = 0, .ports = ports, .port_count = 1},
        {.name = "mlx5_1", .pci = 1, .ports = ports, .port_count = 1},
    };
    struct topo_pci pci[] = {{.place.addr = {.bus = 1}}, {.place.addr = {.bus = 2}}};
    struct topo_netdev netdevs[] = {{.name = "eth0", .pci = 0, .mtu = 4200},
                                    {.name = "eth1", .pci = 1, .mtu = 9000}};
    const struct topo_host host = {.pci = pci,
                                   .pci_count = 2,
                                   .rdmas = rdmas,
                                   .rdma_count = 2,
                                   .netdevs = netdevs,
                                   .netdev_count = 2};
    (void)state;
    judge_host(check_mtu, "mtu", &nothing, "ok: there is no RoCE interface");
    judge_host(check_mtu, "mtu", &host, "ok: 2 RoCE interfaces have 4200 or more");
    netdevs[0].mtu = 4199;
    judge_host(check_mtu, "mtu", &host,
               "warning: RoCE sends small packets below an MTU of 4200: eth0 4199!");
    netdevs[1].mtu = 1500;
    judge_host(check_mtu, "mtu", &host,
               "warning: RoCE sends small packets below an MTU of 4200: eth0 4199, eth1 1500!");
    netdevs[0].mtu = 0; /* not known */
    judge_host(check_mtu, "mtu", &host,
               "warning: RoCE sends small packets below an MTU of 4200: eth1 1500!");
    ports[0].link = TOPO_LINK_IB;
    judge_host(check_mtu, "mtu", &host, "ok: there is no RoCE interface");
    ports[0].link = TOPO_LINK_ETHERNET;
    rdmas[1].port_count = 0;
    judge_host(check_mtu, "mtu", &host, "ok: there is no RoCE interface");
}

static void modules_for_gpudirect(void **state)
{
    struct topo_rdma rdma = {.name = "mlx5_0"};
    struct topo_gpu gpus[] = {{.vendor = "AMD"}, {.vendor = "NVIDIA"}};
    static const struct {
        enum topo_tri dmabuf, peermem;
        const char *found;
    } rows[] = {
        {TOPO_YES, TOPO_YES, "ok: DMA-BUF: NVIDIA's open kernel modules"},
        {TOPO_YES, TOPO_NO, "ok: DMA-BUF: NVIDIA's open kernel modules"},
        {TOPO_NO, TOPO_YES, "ok: nvidia_peermem is loaded"},
        {TOPO_UNKNOWN, TOPO_YES, "ok: nvidia_peermem is loaded"},
        {TOPO_NO, TOPO_NO,
         "failed: neither nvidia_peermem nor NVIDIA's open kernel modules: data of GPUs goes "
         "through the host's memory!"},
        {TOPO_NO, TOPO_UNKNOWN,
         "failed: neither nvidia_peermem nor NVIDIA's open kernel modules: data of GPUs goes "
         "through the host's memory!"},
        {TOPO_UNKNOWN, TOPO_NO,
         "failed: neither nvidia_peermem nor NVIDIA's open kernel modules: data of GPUs goes "
         "through the host's memory!"},
        {TOPO_UNKNOWN, TOPO_UNKNOWN, "unknown: the loaded kernel modules cannot be read"},
    };
    static const char none[] = "ok: there are not both NVIDIA GPUs and RDMA devices";
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct topo_host host = {.gpus = gpus,
                                 .gpu_count = 2,
                                 .rdmas = &rdma,
                                 .rdma_count = 1,
                                 .dmabuf = rows[i].dmabuf,
                                 .peermem = rows[i].peermem};
        judge_host(check_gpudirect, "gpudirect", &host, rows[i].found);
        host.gpu_count = 1;
        judge_host(check_gpudirect, "gpudirect", &host, none);
        host.gpu_count = 2;
        host.rdma_count = 0;
        judge_host(check_gpudirect, "gpudirect", &host, none);
    }
}

/* A GPU and a NIC below a bridge. */
struct machine {
    struct topo_pci pci[3];
    struct topo_gpu gpu;
    struct topo_rdma rdma;
    struct topo_host host;
};

static void machine_init(struct machine *m)
{
    *m = (struct machine){
        .pci = {{.place.addr = {.bus = 1}, .class_code = 0x060400},
                {.place.addr = {.bus = 2},
                 .class_code = 0x030200,
                 .width = 16,
                 .max_width = 16,
                 .speed_mts = 2500,
                 .max_speed_mts = 32000},
                {.place.addr = {.bus = 3},
                 .class_code = 0x020700,
                 .width = 16,
                 .max_width = 16,
                 .speed_mts = 32000,
                 .max_speed_mts = 32000}},
        .gpu = {.vendor = "NVIDIA", .pci = 1},
        .rdma = {.name = "mlx5_0", .pci = 2},
    };
    m->host = (struct topo_host){.pci = m->pci,
                                 .pci_count = 3,
                                 .gpus = &m->gpu,
                                 .gpu_count = 1,
                                 .rdmas = &m->rdma,
                                 .rdma_count = 1};
}

static void links_that_are_narrow(void **state)
{
    struct machine m;
    (void)state;
    machine_init(&m);
    judge_host(check_pcie, "pcie", &nothing, "ok: no GPU or RDMA NIC tells of its link");
    judge_host(check_pcie, "pcie", &m.host, "ok: all of 2 GPUs and NICs have all their lanes");
    m.pci[2].speed_mts = 16000;
    judge_host(check_pcie, "pcie", &m.host,
               "warning: links are narrower than they could be: NIC 0000:03:00.0: 16 of 16 lanes "
               "at 16 of 32 GT/s!");
    m.pci[1].width = 8;
    judge_host(check_pcie, "pcie", &m.host,
               "warning: links are narrower than they could be: GPU 0000:02:00.0: 8 of 16 lanes at "
               "2.5 of 32 GT/s, NIC 0000:03:00.0: 16 of 16 lanes at 16 of 32 GT/s!");
    machine_init(&m);
    m.pci[1].width = 0;
    judge_host(check_pcie, "pcie", &m.host, "ok: all of 1 GPUs and NICs have all their lanes");
    m.pci[2].max_width = 0;
    judge_host(check_pcie, "pcie", &m.host, "ok: no GPU or RDMA NIC tells of its link");
    machine_init(&m);
    m.rdma.pci = TOPO_NONE;
    judge_host(check_pcie, "pcie", &m.host, "ok: all of 1 GPUs and NICs have all their lanes");
    m.gpu.pci = 3; /* none of the list */
    judge_host(check_pcie, "pcie", &m.host, "ok: no GPU or RDMA NIC tells of its link");
}

#define GROUP(bus) "sys/bus/pci/devices/0000:0" #bus ":00.0/iommu_group/type"

static void iommus_that_translate(void **state)
{
    static const struct row with_gpu[] = {
        {"ok", "it is off, or has no group for a GPU or NIC", false, {{0}}},
        {"ok", "it is off, or has no group for a GPU or NIC", false, {{GROUP(1), "DMA\n"}}},
        {"ok", "it passes through", false, {{GROUP(2), "identity\n"}, {GROUP(3), "identity\n"}}},
        {"warning",
         "it translates for 0000:03:00.0: what GPUs and NICs send each other goes through the root "
         "complex",
         true,
         {{GROUP(2), "identity\n"}, {GROUP(3), "DMA\n"}}},
        {"warning",
         "it translates for 0000:02:00.0, 0000:03:00.0: what GPUs and NICs send each other goes "
         "through the root complex",
         true,
         {{GROUP(1), "DMA\n"}, {GROUP(2), "DMA-FQ\n"}, {GROUP(3), "DMA\n"}}},
    };
    static const struct row without[] = {
        {"ok",
         "it translates, and there is no GPU that it would slow",
         false,
         {{GROUP(3), "DMA\n"}}},
    };
    struct machine m;
    (void)state;
    machine_init(&m);
    judge_trees(check_iommu, "iommu", &m.host, with_gpu, ARRAY_LEN(with_gpu));
    m.host.gpu_count = 0;
    judge_trees(check_iommu, "iommu", &m.host, without, ARRAY_LEN(without));
}

/* A bridge's configuration: at each place one capability of an identity and, where its control is,
 * a word. */
static void write_config(const struct tree *tree, size_t size, uint32_t at, uint32_t identity,
                         uint32_t next, uint32_t control, uint32_t acs_at)
{
    uint8_t bytes[4096] = {0};
    const uint32_t header = identity | 1u << 16 | next << 20;
    for (unsigned i = 0; i < 4; i++)
        bytes[at + i] = (uint8_t)(header >> 8 * i);
    if (acs_at) {
        bytes[acs_at] = 0x0d;
        bytes[acs_at + 2] = 1;
        bytes[acs_at + 6] = (uint8_t)control;
        bytes[acs_at + 7] = (uint8_t)(control >> 8);
    }
    tree_file(tree, "sys/bus/pci/devices/0000:01:00.0/config", "");
    int fd = openat(tree->root, "sys/bus/pci/devices/0000:01:00.0/config", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, bytes, size), 0);
    close(fd);
}

static void bridges_that_redirect(void **state)
{
    static const char fine[] = "ok: 1 bridges above GPUs and NICs redirect nothing",
                      hidden[] = "unknown: the configuration of 1 bridges cannot be read!",
                      redirects[] = "warning: it sends what GPUs and NICs say to each other up to "
                                    "the root: 0000:01:00.0!";
    static const struct {
        size_t size;
        uint32_t identity, next, control, acs_at;
        const char *found;
    } rows[] = {
        {4096, 0x0d, 0, 0, 0x100, fine},
        {4096, 0x0d, 0, 0x0004, 0x100, redirects}, /* request redirect */
        {4096, 0x0d, 0, 0x0008, 0x100, redirects}, /* completion redirect */
        {4096, 0x0d, 0, 0x0013, 0x100, fine},
        {4096, 0x0d, 0, 0xff00, 0x100, fine},
        {4096, 0x01, 0x140, 0x001d, 0x140, redirects}, /* the second of the chain */
        {4096, 0x01, 0x140, 0x0013, 0x140, fine},
        {4096, 0x01, 0x142, 0x001d, 0x140, redirects}, /* two bits are reserved */
        {4096, 0x01, 0xff8, 0x001d, 0xff8, redirects}, /* the last place */
        {4096, 0x01, 0xffc, 0, 0, fine},               /* leads out of it */
        {4096, 0x01, 0x100, 0, 0, fine},               /* leads to itself */
        {4096, 0x01, 0x0fc, 0x001d, 0x140, fine},      /* leads back */
        {4096, 0x01, 0x000, 0x001d, 0x140, fine},
        {0x100, 0x0d, 0, 0x0c, 0x100, hidden}, /* all that a user may read */
        {64, 0x0d, 0, 0x0c, 0x100, hidden},
        {0x107, 0x0d, 0, 0x0c, 0x100, fine}, /* cut in the capability */
        {0x108, 0x0d, 0, 0x0c, 0x100, redirects},
    };
    struct machine m;
    struct tree tree = tree_new();
    char got[512];
    (void)state;
    machine_init(&m);
    judge(check_acs, tree.root, &m.host, "acs", got, sizeof got);
    assert_string_equal(got, hidden);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        write_config(&tree, rows[i].size, 0x100, rows[i].identity, rows[i].next, rows[i].control,
                     rows[i].acs_at);
        judge(check_acs, tree.root, &m.host, "acs", got, sizeof got);
        if (strcmp(got, rows[i].found) != 0)
            fail_msg("row %zu: %s", i, got);
    }
    m.pci[2].class_code = 0x060401; /* a second one, which has no file */
    judge(check_acs, tree.root, &m.host, "acs", got, sizeof got);
    assert_string_equal(got, redirects);
    m.pci[0].class_code = 0x060300;
    judge(check_acs, tree.root, &m.host, "acs", got, sizeof got);
    assert_string_equal(got, hidden);
    m.host.gpu_count = 0; /* nothing that it would slow */
    judge(check_acs, tree.root, &m.host, "acs", got, sizeof got);
    assert_string_equal(got, "ok: 0 bridges above GPUs and NICs redirect nothing");
    tree_drop(&tree);
}

/* ---- how they are shown ---- */

static void findings_are_counted_and_shown(void **state)
{
    struct findings findings;
    CLEANUP(buf_done) struct buf out = BUF_INIT;
    (void)state;
    findings_init(&findings);
    findings_add(&findings, "a", FINDING_OK, NULL, "%d of %s", 3, "x");
    findings_add(&findings, "b", FINDING_WARNING, "do it", "seen");
    findings_add(&findings, "b", FINDING_WARNING, NULL, "too");
    findings_add(&findings, "longer-than-twenty-characters", FINDING_FAILED, "now", "bad");
    findings_add(&findings, "c", FINDING_UNKNOWN, NULL, "hidden");
    findings_add(&findings, "d", FINDING_UNKNOWN, NULL, "hidden");
    findings_add(&findings, "e", FINDING_UNKNOWN, NULL, "hidden");
    findings_text(&findings, &out);
    assert_false(out.failed);
    assert_string_equal(out.data, "ok       a                    3 of x\n"
                                  "warning  b                    seen\n"
                                  "                              change: do it\n"
                                  "warning  b                    too\n"
                                  "failed   longer-than-twenty-characters bad\n"
                                  "                              change: now\n"
                                  "unknown  c                    hidden\n"
                                  "unknown  d                    hidden\n"
                                  "unknown  e                    hidden\n"
                                  "1 ok, 2 warnings, 1 failed, 3 unknown\n");
    json_t *json = findings_json(&findings);
    static const struct {
        const char *key;
        int count;
    } counts[] = {{"ok", 1}, {"warnings", 2}, {"failed", 1}, {"unknown", 3}};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        assert_int_equal(json_integer_value(json_object_get(json, counts[i].key)), counts[i].count);
    assert_int_equal(json_array_size(json_object_get(json, "checks")), 7);
    json_decref(json);
    findings.failed = true; /* a part is missing */
    assert_null(findings_json(&findings));
    buf_reset(&out);
    findings_text(&findings, &out);
    assert_true(out.failed);
    findings_done(&findings);
}

/* An empty tree: each check says so, in this order. */
static void all_checks_of_a_tree(void **state)
{
    static const char *const names[] = {
        "kubelet", "cdi",   "links", "port-errors", "mtu",    "rdma-netns", "gpudirect",
        "pcie",    "iommu", "acs",   "memlock",     "nofile", "hugepages",  "shm",
    };
    struct tree tree = tree_new();
    struct findings findings;
    struct drarun_error err = {0};
    (void)state;
    findings_init(&findings);
    assert_int_equal(node_check(tree.root, &findings, &err), 0);
    assert_int_equal(json_array_size(findings.list), ARRAY_LEN(names));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const json_t *found = json_array_get(findings.list, i);
        assert_string_equal(json_string_value(json_object_get(found, "check")), names[i]);
    }
    findings_done(&findings);
    tree_drop(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drivers_that_have_registered),
        cmocka_unit_test(runtimes_that_have_cdi),
        cmocka_unit_test(limits_of_the_container_runtime),
        cmocka_unit_test(unit_of_systemd),
        cmocka_unit_test(huge_pages),
        cmocka_unit_test(shared_memory),
        cmocka_unit_test(network_namespaces_of_rdma_devices),
        cmocka_unit_test(errors_that_ports_have_counted),
        cmocka_unit_test(links_that_are_down),
        cmocka_unit_test(interfaces_of_roce),
        cmocka_unit_test(modules_for_gpudirect),
        cmocka_unit_test(links_that_are_narrow),
        cmocka_unit_test(iommus_that_translate),
        cmocka_unit_test(bridges_that_redirect),
        cmocka_unit_test(findings_are_counted_and_shown),
        cmocka_unit_test(all_checks_of_a_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
