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

static bool is_runtime(const char *name)
{
    static const char *const known[] = {"containerd", "crio", "k3s-server", "k3s-agent", "rke2"};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(name, known[i]) == 0)
            return true;
    return false;
}

/* The limits of the container runtime, else of this process. Returns whose. */
static const char *read_limits(int root, char *name, size_t size, struct buf *limits)
{
    struct strlist processes = {0};
    char path[64];
    bool found = false;
    root_list(root, "proc", PROCESSES_MAX, &processes, NULL);
    for (size_t i = 0; !found && i < processes.count; i++) {
        if (!isdigit((unsigned char)processes.items[i][0]))
            continue;
        snprintf(path, sizeof path, "proc/%.20s/comm", processes.items[i]);
        if (root_read(root, path, name, size) < 0 || !is_runtime(name))
            continue;
        snprintf(path, sizeof path, "proc/%.20s/limits", processes.items[i]);
        found = node_text(root, path, TEXT_MAX, limits);
    }
    strlist_done(&processes);
    if (!found)
        snprintf(name, size, "this process");
    return found || node_text(root, "proc/self/limits", TEXT_MAX, limits) ? name : NULL;
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

static void check_limit(int root, const char *check, const char *line, uint64_t least,
                        const char *unit, const char *change, struct findings *findings)
{
    struct buf limits = BUF_INIT;
    char name[32];
    uint64_t limit = 0;
    const char *whose = read_limits(root, name, sizeof name, &limits);
    if (!whose || !limit_of(&limits, line, &limit))
        findings_add(findings, check, FINDING_UNKNOWN, NULL,
                     "the limits of no process can be read");
    else if (limit == UINT64_MAX)
        findings_add(findings, check, FINDING_OK, NULL, "%s: unlimited", whose);
    else
        findings_add(findings, check, limit >= least ? FINDING_OK : FINDING_WARNING,
                     limit >= least ? NULL : change, "%s: %" PRIu64 " %s", whose, limit, unit);
    buf_done(&limits);
}

void check_memlock(int root, const struct topo_host *host, struct findings *findings)
{
    (void)host;
    check_limit(root, "memlock", "Max locked memory", UINT64_MAX,
                "bytes, which RDMA soon has locked",
                "[Service] LimitMEMLOCK=infinity in "
                "/etc/systemd/system/containerd.service.d/limits.conf; systemctl daemon-reload; "
                "systemctl restart containerd",
                findings);
}

void check_nofile(int root, const struct topo_host *host, struct findings *findings)
{
    (void)host;
    check_limit(root, "nofile", "Max open files", NOFILE_MIN, "files",
                "[Service] LimitNOFILE=1048576 in "
                "/etc/systemd/system/containerd.service.d/limits.conf; systemctl daemon-reload; "
                "systemctl restart containerd",
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
