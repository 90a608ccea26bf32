/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: what a sandbox does whose kernel has no netlink. */
#ifndef DRARUN_WIRE_TEST_NO_NETLINK_H
#define DRARUN_WIRE_TEST_NO_NETLINK_H

#include <errno.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "lib/base/cleanup.h"

/* socket(AF_NETLINK) fails in this process from now on. Returns 0 or -1 with errno. */
static inline int forbid_netlink(void)
{
    struct sock_filter list[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = ARRAY_LEN(list), .filter = list};
    int rc = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return rc < 0 ? rc : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#endif
