/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that containers get from their runtime, and the host's memory. Sources:
 * proc_pid_limits(5); Linux Documentation/admin-guide/mm/hugetlbpage.rst, transhuge.rst; tmpfs(5).
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/doctor/node_checks.h"
#include "lib/base/cleanup.h"
#include "lib/topo/root.h"

#define TEXT_MAX ((size_t)1 << 20)
#define PROCESSES_MAX 65536u
#define NOFILE_MIN 65536u
#define SHM_MIN ((uint64_t)1 << 30)

/* ---- of the runtime's process ---- */

/* Those that systemd starts come first: k3s and rke2 have a containerd of their own. */
static const struct runtime {
    const char *process, *unit;
} runtimes[] = {
    {"k3s-server", "k3s"}, {"k3s-agent", "k3s-agent"},   {"rke2", "rke2-agent"},
    {"crio", "crio"},      {"containerd", "containerd"}, {"this process", "containerd"},
};
#define THIS_PROCESS (ARRAY_LEN(runtimes) - 1)

static size_t find_runtime(const char *process)
{
    size_t i = 0;
    while (i < THIS_PROCESS && strcmp(process, runtimes[i].process) != 0)
        i++;
    return i;
}

/* Whose limits containers get. */
struct limits {
    const char *process;
    char unit[64]; /* of systemd */
    struct buf text;
};

static bool read_of(int root, const char *process, const char *file, struct buf *text)
{
    char path[64];
    snprintf(path, sizeof path, "proc/%.20s/%s", process, file);
    return node_text(root, path, TEXT_MAX, text);
}

/* Of a path such as "0::/system.slice/rke2-server.service": rke2 has the same name on each node. */
static void take_unit(const char *cgroup, struct limits *limits)
{
    static const char end[] = ".service";
    const char *at = strstr(cgroup, end), *begin = at;
    while (begin && begin > cgroup && begin[-1] != '/')
        begin--;
    if (begin && at > begin && (size_t)(at - begin) < sizeof limits->unit)
        snprintf(limits->unit, sizeof limits->unit, "%.*s", (int)(at - begin), begin);
}

static bool read_limits_of(int root, const char *process, size_t runtime, struct limits *limits)
{
    struct buf cgroup = BUF_INIT;
    limits->process = runtimes[runtime].process;
    snprintf(limits->unit, sizeof limits->unit, "%s", runtimes[runtime].unit);
    if (runtime < THIS_PROCESS && read_of(root, process, "cgroup", &cgroup))
        take_unit(cgroup.data ? cgroup.data : "", limits);
    buf_done(&cgroup);
    return read_of(root, process, "limits", &limits->text);
}

/* Of the container runtime, else of this process. False: none can be read. */
static bool read_limits(int root, struct limits *limits)
{
    struct strlist processes = {0};
    char path[64], name[32];
    size_t found = THIS_PROCESS, of = 0;
    root_list(root, "proc", PROCESSES_MAX, &processes, NULL);
    for (size_t i = 0; i < processes.count; i++) {
        if (!isdigit((unsigned char)processes.items[i][0]))
            continue;
        snprintf(path, sizeof path, "proc/%.20s/comm", processes.items[i]);
        size_t runtime = root_read(root, path, name, sizeof name) < 0 ? found : find_runtime(name);
        if (runtime >= found)
            continue;
        found = runtime;
        of = i;
    }
    bool read = found < THIS_PROCESS && read_limits_of(root, processes.items[of], found, limits);
    strlist_done(&processes);
    return read || read_limits_of(root, "self", THIS_PROCESS, limits);
}

/* The soft limit of a line "Max locked memory  65536  65536  bytes"; UINT64_MAX: unlimited. */
static bool limit_of(const struct buf *limits, const char *line, uint64_t *ret_limit)
{
    const char *at = strstr(limits->data, line);
    if (!at)
        return false;
    at += strlen(line);
    at += strspn(at, " ");
    *ret_limit = strncmp(at, "unlimited", 9) == 0 ? UINT64_MAX : strtoull(at, NULL, 10);
    return true;
}

/* setting: of a unit of systemd. */
static void check_limit(int root, const char *check, const char *line, uint64_t least,
                        const char *unit, const char *setting, struct findings *findings)
{
    struct limits limits = {.text = BUF_INIT};
    char change[320];
    uint64_t limit = 0;
    bool known = read_limits(root, &limits) && limit_of(&limits.text, line, &limit);
    snprintf(change, sizeof change,
             "[Service] %s in /etc/systemd/system/%s.service.d/limits.conf; systemctl "
             "daemon-reload; systemctl restart %s",
             setting, limits.unit, limits.unit);
    if (!known)
        findings_add(findings, check, FINDING_UNKNOWN, NULL,
                     "the limits of no process can be read");
    else if (limit == UINT64_MAX)
        findings_add(findings, check, FINDING_OK, NULL, "%s: unlimited", limits.process);
    else
        findings_add(findings, check, limit >= least ? FINDING_OK : FINDING_WARNING,
                     limit >= least ? NULL : change, "%s: %" PRIu64 " %s", limits.process, limit,
                     unit);
    buf_done(&limits.text);
}

void check_memlock(int root, const struct topo_host *host, struct findings *findings)
{
    (void)host;
    check_limit(root, "memlock", "Max locked memory", UINT64_MAX,
                "bytes, which RDMA soon has locked", "LimitMEMLOCK=infinity", findings);
}

void check_nofile(int root, const struct topo_host *host, struct findings *findings)
{
    (void)host;
    check_limit(root, "nofile", "Max open files", NOFILE_MIN, "files", "LimitNOFILE=1048576",
                findings);
}

/* ---- memory ---- */

void check_hugepages(int root, const struct topo_host *host, struct findings *findings)
{
    static const char dir[] = "sys/kernel/mm/hugepages/hugepages-2048kB/";
    char path[80], total[24] = "", free_[24] = "", thp[64] = "";
    (void)host;
    snprintf(path, sizeof path, "%snr_hugepages", dir);
    bool known = root_read(root, path, total, sizeof total) >= 0;
    snprintf(path, sizeof path, "%sfree_hugepages", dir);
    root_read(root, path, free_, sizeof free_);
    known |= root_read(root, "sys/kernel/mm/transparent_hugepage/enabled", thp, sizeof thp) >= 0;
    if (!known)
        findings_add(findings, "hugepages", FINDING_UNKNOWN, NULL, "/sys/kernel/mm cannot be read");
    else if (strstr(thp, "[never]"))
        findings_add(findings, "hugepages", FINDING_WARNING,
                     "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled, and "
                     "transparent_hugepage=madvise on the kernel's command line",
                     "transparent huge pages are off: large buffers cost more page faults");
    else if (atol(total) > 0 && atol(free_) == 0)
        findings_add(
            findings, "hugepages", FINDING_WARNING,
            "vm.nr_hugepages = N in /etc/sysctl.d/hugepages.conf; sysctl --system; restart "
            "the kubelet",
            "all %s reserved pages of 2 MiB are in use", total);
    else
        findings_add(findings, "hugepages", FINDING_OK, NULL,
                     "%s pages of 2 MiB reserved, transparent: %s", *total ? total : "no", thp);
}

/* The size of a tmpfs from its options; without "size=" it is half of the memory. */
static uint64_t tmpfs_size(const char *options, const char *meminfo)
{
    const char *size = strstr(options, "size=");
    const char *memory = strstr(meminfo, "MemTotal:");
    char *end = NULL;
    if (!size)
        return memory ? strtoull(memory + 9, NULL, 10) * 1024 / 2 : 0;
    uint64_t bytes = strtoull(size + 5, &end, 10);
    return bytes * (*end == 'k' ? 1024 : *end == 'm' ? 1 << 20 : *end == 'g' ? 1 << 30 : 1);
}

void check_shm(int root, const struct topo_host *host, struct findings *findings)
{
    struct buf mounts = BUF_INIT, meminfo = BUF_INIT;
    char options[256] = "";
    (void)host;
    bool known = node_text(root, "proc/self/mounts", TEXT_MAX, &mounts);
    const char *at = known ? strstr(mounts.data, " /dev/shm tmpfs ") : NULL;
    if (at)
        sscanf(at, " /dev/shm tmpfs %255s", options);
    node_text(root, "proc/meminfo", TEXT_MAX, &meminfo);
    uint64_t size = at ? tmpfs_size(options, meminfo.data ? meminfo.data : "") : 0;
    if (!known)
        findings_add(findings, "shm", FINDING_UNKNOWN, NULL, "the mounts cannot be read");
    else if (!at)
        findings_add(findings, "shm", FINDING_FAILED,
                     "mount -t tmpfs -o nosuid,nodev tmpfs /dev/shm", "/dev/shm is no tmpfs");
    else if (size < SHM_MIN)
        findings_add(findings, "shm", FINDING_WARNING,
                     "mount -o remount,size=50% /dev/shm, and in /etc/fstab: tmpfs /dev/shm tmpfs "
                     "nosuid,nodev,size=50% 0 0",
                     "/dev/shm has %" PRIu64 " MiB, for processes beside Kubernetes", size >> 20);
    else
        findings_add(findings, "shm", FINDING_OK, NULL, "/dev/shm has %" PRIu64 " MiB", size >> 20);
    buf_done(&mounts);
    buf_done(&meminfo);
}
