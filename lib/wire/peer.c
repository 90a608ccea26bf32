/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/peer.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>

#include "lib/base/cleanup.h"

#define ESTABLISHED 1 /* TCP_ESTABLISHED of the kernel's, which no header for programs has */

/* One end of a connection as the kernel lists it. */
struct end {
    unsigned state, uid;
    uint64_t inode; /* of the socket's file; 0: no process has it any more */
};

static int end_owner(const struct end *end, struct peer *ret)
{
    if (end->state != ESTABLISHED || end->inode == 0)
        return -ESRCH;
    *ret = (struct peer){.uid = end->uid, .inode = end->inode};
    return 0;
}

/* ours and peer: of the connection, so that peer is the local address of the end that is meant. */
static int ask_sock_diag(const struct sockaddr_in *ours, const struct sockaddr_in *peer,
                         struct end *ret)
{
    static const struct timeval patience = {.tv_sec = 1};
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 body;
    } request = {
        .header = {.nlmsg_len = sizeof request,
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST},
        .body = {.sdiag_family = AF_INET,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = ~0u,
                 .id = {.idiag_sport = peer->sin_port,
                        .idiag_dport = ours->sin_port,
                        .idiag_src = {peer->sin_addr.s_addr},
                        .idiag_dst = {ours->sin_addr.s_addr},
                        .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
    };
    union {
        struct nlmsghdr header;
        char bytes[1024];
    } answer;
    cleanup_close int nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (nl < 0 || setsockopt(nl, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        sendto(nl, &request, sizeof request, 0, NULL, 0) < 0)
        return -errno;
    ssize_t n = recv(nl, &answer, sizeof answer, 0);
    if (n < 0)
        return -errno;
    if (!NLMSG_OK(&answer.header, (size_t)n))
        return -EPROTO;
    if (answer.header.nlmsg_type == NLMSG_ERROR) {
        const struct nlmsgerr *error = NLMSG_DATA(&answer.header);
        return error->error == -ENOENT ? -ESRCH : error->error < 0 ? error->error : -EPROTO;
    }
    if (answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        answer.header.nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
        return -EPROTO;
    const struct inet_diag_msg *message = NLMSG_DATA(&answer.header);
    *ret = (struct end){
        .state = message->idiag_state, .uid = message->idiag_uid, .inode = message->idiag_inode};
    return 0;
}

/* Sandboxes without that kind of socket have the table (proc(5)): addresses as the memory holds
 * them, ports as numbers. */
static int read_table(const struct sockaddr_in *ours, const struct sockaddr_in *peer,
                      struct end *ret)
{
    char wanted[64], line[512], ends[64];
    cleanup_file FILE *table = fopen("/proc/thread-self/net/tcp", "re");
    if (!table)
        return -errno;
    snprintf(wanted, sizeof wanted, "%08" PRIX32 ":%04X %08" PRIX32 ":%04X", peer->sin_addr.s_addr,
             (unsigned)ntohs(peer->sin_port), ours->sin_addr.s_addr,
             (unsigned)ntohs(ours->sin_port));
    while (fgets(line, sizeof line, table)) {
        struct end end;
        if (sscanf(line, " %*[0-9]: %27c %x %*s %*s %*s %u %*s %" SCNu64, ends, &end.state,
                   &end.uid, &end.inode) != 4)
            continue;
        ends[27] = '\0';
        if (strcmp(ends, wanted) != 0)
            continue;
        *ret = end;
        return 0;
    }
    return ferror(table) ? -EIO : -ESRCH;
}

int peer_find(int fd, struct peer *ret)
{
    struct sockaddr_in ours = {0}, peer = {0};
    socklen_t ours_size = sizeof ours, peer_size = sizeof peer;
    struct end end;
    if (getsockname(fd, (struct sockaddr *)&ours, &ours_size) < 0)
        return -errno;
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_size) < 0)
        return errno == ENOTCONN ? -ESRCH : -errno;
    if (ours.sin_family != AF_INET || peer.sin_family != AF_INET)
        return -EAFNOSUPPORT;
    int rc = ask_sock_diag(&ours, &peer, &end);
    if (rc < 0 && rc != -ESRCH)
        rc = read_table(&ours, &peer, &end);
    return rc < 0 ? rc : end_owner(&end, ret);
}

int peer_uid(int fd, uid_t *ret_uid)
{
    struct peer peer;
    int rc = peer_find(fd, &peer);
    if (rc == 0)
        *ret_uid = peer.uid;
    return rc;
}
