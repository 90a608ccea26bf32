/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a socket belongs to a rank: to its process or to what that has started. Asks the kernel,
 * by /proc, and nobody else. Loop thread only. */
#ifndef DRARUN_WORKER_PMIX_MEMBER_H
#define DRARUN_WORKER_PMIX_MEMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum membership {
    MEMBER_NO = 0,
    MEMBER_YES,
    MEMBER_UNKNOWN, /* a process of the rank's does not show us its descriptors */
};

/* rank: its process, or -1 when there is none any more. This process is the agent, which adopts
 * orphans. Yes for a process of the rank's tree, setsid(2) and namespaces below it included, and
 * for an orphan of the job, since nobody knows whose it was; no for one of another rank's tree
 * (is_rank; NULL: any rank's will do), and for all that the agent has not started, be it of the
 * same user or control group. */
enum membership member_of(pid_t rank, uint64_t inode, bool (*is_rank)(pid_t pid, void *arg),
                          void *arg);

/* The process that has the socket, if it might signal this one and the ranks anyway: of our user by
 * all its numbers, in our user and PID namespaces. -1: it is none, or that cannot be told. */
pid_t member_neighbour(uint64_t inode);

#endif
