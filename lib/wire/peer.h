/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a TCP connection within this machine. */
#ifndef DRARUN_WIRE_PEER_H
#define DRARUN_WIRE_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The user whose process has made the other end of this TCP connection, as the kernel knows it
 * (sock_diag(7); of IPv4 else /proc/net/tcp): nothing that the peer says is asked. It must be in
 * this network namespace. -ESRCH: no process has that end any more, which kernels before 6.4 would
 * show as root's; -EAFNOSUPPORT: not IP; otherwise the reason why the kernel cannot be asked. Any
 * thread. */
int peer_uid(int fd, uid_t *ret_uid);

/* The same by sock_diag alone, which takes some 15 us however many connections there are: for who
 * has to ask of each one in a crowd. -EPROTONOSUPPORT: the kernel was built without tcp_diag. */
int peer_uid_quickly(int fd, uid_t *ret_uid);

/* That end as the kernel knows it. */
struct peer {
    uid_t uid;
    uint64_t inode; /* of its socket: /proc/PID/fd of those that have it say "socket:[INODE]" */
};
/* The same, with more of it. */
int peer_find(int fd, struct peer *ret);

#endif
