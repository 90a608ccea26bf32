/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/peer.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdatomic.h>
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

/* A connection as sock_diag names it. */
struct ends {
    sa_family_t family; /* AF_INET of IPv4 on a socket of IPv6, too */
    in_port_t our_port, peer_port;
    struct in6_addr ours, peer; /* of IPv4 the first 4 bytes */
};

union answer {
    struct nlmsghdr header;
    char bytes[1024];
};

static int ask_kernel(const struct inet_diag_req_v2 *body, int flags, union answer *ret)
{
    static const struct timeval patience = {.tv_sec = 1};
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 body;
    } request = {
        .header = {.nlmsg_len = sizeof request,
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags)},
        .body = *body,
    };
    cleanup_close int nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (nl < 0 || setsockopt(nl, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        sendto(nl, &request, sizeof request, 0, NULL, 0) < 0)
        return -errno;
    ssize_t n = recv(nl, ret, sizeof *ret, 0);
    if (n < 0)
        return -errno;
    return NLMSG_OK(&ret->header, (size_t)n) ? 0 : -EPROTO;
}

/* 0: the kernel has tcp_diag, which is asked for a list of the sockets in no state at all. Without
 * it the list ends with -ENOENT, and each socket that is asked for is said not to exist. */
static int check_tcp_diag(sa_family_t family)
{
    const struct inet_diag_req_v2 body = {.sdiag_family = (uint8_t)family,
                                          .sdiag_protocol = IPPROTO_TCP};
    union answer answer = {0};
    int code = 0, rc = ask_kernel(&body, NLM_F_DUMP, &answer);
    if (rc < 0)
        return rc;
    if (answer.header.nlmsg_type != NLMSG_DONE && answer.header.nlmsg_type != NLMSG_ERROR)
        return 0;
    if (answer.header.nlmsg_len >= NLMSG_LENGTH(sizeof code))
        memcpy(&code, NLMSG_DATA(&answer.header), sizeof code); /* what both begin with */
    return code < 0 ? code : 0;
}

/* -ENOENT: there is no such connection, or no tcp_diag. */
static int find_connection(const struct ends *ends, struct end *ret)
{
    struct inet_diag_req_v2 body = {
        .sdiag_family = (uint8_t)ends->family,
        .sdiag_protocol = IPPROTO_TCP,
        .idiag_states = ~0u,
        .id = {.idiag_sport = ends->peer_port,
               .idiag_dport = ends->our_port,
               .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}},
    };
    union answer answer = {0};
    memcpy(body.id.idiag_src, &ends->peer, sizeof ends->peer);
    memcpy(body.id.idiag_dst, &ends->ours, sizeof ends->ours);
    int rc = ask_kernel(&body, 0, &answer);
    if (rc < 0)
        return rc;
    if (answer.header.nlmsg_type == NLMSG_ERROR) {
        const struct nlmsgerr *error = NLMSG_DATA(&answer.header);
        return error->error < 0 ? error->error : -EPROTO;
    }
    if (answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        answer.header.nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
        return -EPROTO;
    const struct inet_diag_msg *message = NLMSG_DATA(&answer.header);
    *ret = (struct end){
        .state = message->idiag_state, .uid = message->idiag_uid, .inode = message->idiag_inode};
    return 0;
}

/* -ESRCH: there is no such connection. -EPROTONOSUPPORT: the kernel has no tcp_diag. */
static int ask_sock_diag(const struct ends *ends, struct end *ret)
{
    /* remembered, since the kernel runs modprobe for each question: a crowd must not cost that */
    static atomic_bool missing;
    if (missing)
        return -EPROTONOSUPPORT;
    int rc = find_connection(ends, ret);
    if (rc != -ENOENT)
        return rc;
    rc = check_tcp_diag(ends->family);
    if (rc != -ENOENT)
        return rc < 0 ? rc : -ESRCH;
    missing = true;
    return -EPROTONOSUPPORT;
}

/* Sandboxes without that kind of socket, and kernels without tcp_diag, have the table (proc(5)):
 * addresses as the memory holds them, ports as numbers. */
static int read_table(const struct ends *ends, struct end *ret)
{
    char wanted[64], line[512], found[64];
    uint32_t ours, peer;
    cleanup_file FILE *table = fopen("/proc/thread-self/net/tcp", "re");
    if (!table)
        return -errno;
    memcpy(&ours, &ends->ours, sizeof ours);
    memcpy(&peer, &ends->peer, sizeof peer);
    snprintf(wanted, sizeof wanted, "%08" PRIX32 ":%04X %08" PRIX32 ":%04X", peer,
             (unsigned)ntohs(ends->peer_port), ours, (unsigned)ntohs(ends->our_port));
    while (fgets(line, sizeof line, table)) {
        struct end end;
        if (sscanf(line, " %*[0-9]: %27c %x %*s %*s %*s %u %*s %" SCNu64, found, &end.state,
                   &end.uid, &end.inode) != 4)
            continue;
        found[27] = '\0';
        if (strcmp(found, wanted) != 0)
            continue;
        *ret = end;
        return 0;
    }
    return ferror(table) ? -EIO : -ESRCH;
}

/* Their family; -1: not IP. */
static int read_address(const struct sockaddr_storage *from, struct in6_addr *ret_address,
                        in_port_t *ret_port)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
    if (from->ss_family == AF_INET) {
        memcpy(ret_address, &v4->sin_addr, sizeof v4->sin_addr);
        *ret_port = v4->sin_port;
        return AF_INET;
    }
    if (from->ss_family != AF_INET6)
        return -1;
    *ret_port = v6->sin6_port;
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        memcpy(ret_address, &v6->sin6_addr.s6_addr[12], sizeof(struct in_addr));
        return AF_INET;
    }
    *ret_address = v6->sin6_addr;
    return AF_INET6;
}

static int find_ends(int fd, struct ends *ret)
{
    struct sockaddr_storage ours = {0}, peer = {0};
    socklen_t ours_size = sizeof ours, peer_size = sizeof peer;
    if (getsockname(fd, (struct sockaddr *)&ours, &ours_size) < 0)
        return -errno;
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_size) < 0)
        return errno == ENOTCONN ? -ESRCH : -errno;
    int family = read_address(&ours, &ret->ours, &ret->our_port);
    if (family < 0 || read_address(&peer, &ret->peer, &ret->peer_port) != family)
        return -EAFNOSUPPORT;
    ret->family = (sa_family_t)family;
    return 0;
}

int peer_find(int fd, struct peer *ret)
{
    struct ends ends = {0};
    struct end end = {0};
    int rc = find_ends(fd, &ends);
    if (rc < 0)
        return rc;
    rc = ask_sock_diag(&ends, &end);
    if (rc < 0 && rc != -ESRCH && ends.family == AF_INET)
        rc = read_table(&ends, &end);
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

int peer_uid_quickly(int fd, uid_t *ret_uid)
{
    struct ends ends = {0};
    struct end end = {0};
    struct peer peer;
    int rc = find_ends(fd, &ends);
    if (rc == 0)
        rc = ask_sock_diag(&ends, &end);
    if (rc == 0)
        rc = end_owner(&end, &peer);
    if (rc == 0)
        *ret_uid = peer.uid;
    return rc;
}
