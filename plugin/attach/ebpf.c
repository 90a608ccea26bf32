/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/ebpf.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "plugin/attach/netns.h"

/* Linux 6.6's, which the headers of Debian 12 lack */
#define TCX_INGRESS 46
#define TCX_EGRESS 47
#define PROGRAMS_MAX 64 /* the kernel's limit for one hook */

struct tcx_query { /* union bpf_attr, query */
    uint32_t ifindex, hook, query_flags, attach_flags;
    uint64_t programs; /* uint32_t *, as the next three */
    uint32_t count, pad;
    uint64_t program_flags, links, link_flags, revision;
};

struct tcx_detach { /* union bpf_attr, BPF_PROG_DETACH */
    uint32_t ifindex, program, hook, flags, replaced, relative;
    uint64_t revision;
};

static int bpf(int command, void *attr, size_t size)
{
    long rc = syscall(SYS_bpf, command, attr, size);
    return rc < 0 ? -errno : (int)rc;
}

/* A descriptor of a program or a link, by its number. */
static int open_number(int command, uint32_t number)
{
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.prog_id = number; /* link_id is in the same place */
    return bpf(command, &attr, sizeof attr);
}

static int detach_link(uint32_t number)
{
    union bpf_attr attr;
    cleanup_close int fd = open_number(BPF_LINK_GET_FD_BY_ID, number);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    memset(&attr, 0, sizeof attr);
    attr.link_detach.link_fd = (uint32_t)fd;
    return bpf(BPF_LINK_DETACH, &attr, sizeof attr);
}

static int detach_program(uint32_t number, uint32_t hook, int index)
{
    cleanup_close int fd = open_number(BPF_PROG_GET_FD_BY_ID, number);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    struct tcx_detach attr = {.ifindex = (uint32_t)index, .program = (uint32_t)fd, .hook = hook};
    return bpf(BPF_PROG_DETACH, &attr, sizeof attr);
}

static int clear_tcx(uint32_t hook, int index)
{
    uint32_t programs[PROGRAMS_MAX] = {0}, links[PROGRAMS_MAX] = {0};
    struct tcx_query query = {.ifindex = (uint32_t)index,
                              .hook = hook,
                              .programs = (uintptr_t)programs,
                              .links = (uintptr_t)links,
                              .count = PROGRAMS_MAX};
    int rc = bpf(BPF_PROG_QUERY, &query, sizeof query);
    if (rc == -EINVAL || rc == -E2BIG || rc == -ENOSYS) /* a kernel without TCX has none of it */
        return 0;
    for (uint32_t i = 0; rc == 0 && i < query.count && i < PROGRAMS_MAX; i++)
        rc = links[i] ? detach_link(links[i]) : detach_program(programs[i], hook, index);
    return rc;
}

int ebpf_remove(struct netlink *n, int ns, const struct link *link, struct drarun_error *err)
{
    struct link_change change = LINK_CHANGE_NONE;
    int back = -1, rc = 0;
    change.no_xdp = true;
    if (link->xdp)
        rc = link_change(n, link->index, &change, err);
    if (rc < 0)
        return error_prefix(err, "take the XDP program off");
    rc = netns_enter(ns, &back, err); /* devices are counted per namespace */
    if (rc < 0)
        return rc;
    rc = clear_tcx(TCX_INGRESS, link->index);
    rc = rc < 0 ? rc : clear_tcx(TCX_EGRESS, link->index);
    netns_leave(back);
    return rc < 0 ? error_set(err, -rc, "take the TCX programs off: %s", strerror(-rc)) : 0;
}

static bool is_any(uint32_t hook, int index)
{
    struct tcx_query query = {.ifindex = (uint32_t)index, .hook = hook};
    int rc = bpf(BPF_PROG_QUERY, &query, sizeof query);
    return rc == -EPERM || (rc == 0 && query.count > 0);
}

bool ebpf_is_there(const struct link *link)
{
    return link->xdp || is_any(TCX_INGRESS, link->index) || is_any(TCX_EGRESS, link->index);
}
