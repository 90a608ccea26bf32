/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/number.h"

int address_split(const char *address, char *host, size_t host_size, uint16_t *ret_port,
                  struct drarun_error *err)
{
    const char *colon = strrchr(address, ':');
    int64_t port = 0;
    size_t length = colon ? (size_t)(colon - address) : 0;
    if (!colon || number_parse("port", colon + 1, 0, 65535, &port, NULL) < 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "address \"%s\": expected HOST:PORT, or [IPV6]:PORT", address);
    if (length >= 2 && address[0] == '[' && address[length - 1] == ']') {
        address++;
        length -= 2;
    } else if (memchr(address, ':', length)) {
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "address \"%s\": an IPv6 address goes in brackets, [ADDRESS]:PORT",
                          address);
    }
    if (length >= host_size)
        return error_kind(err, DRARUN_ERR_USAGE, ENAMETOOLONG, "address \"%s\": too long", address);
    memcpy(host, address, length);
    host[length] = '\0';
    *ret_port = (uint16_t)port;
    return 0;
}

static int to_sockaddr(const char *address, struct sockaddr_storage *out, socklen_t *ret_size,
                       struct drarun_error *err)
{
    char host[64];
    uint16_t port = 0;
    int rc = address_split(address, host, sizeof host, &port, err);
    if (rc < 0)
        return rc;
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
    memset(out, 0, sizeof *out);
    if (!host[0] || inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        *ret_size = sizeof *v4;
    } else if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        *ret_size = sizeof *v6;
    } else {
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "address \"%s\": expected a numeric address, not a name", address);
    }
    return 0;
}

static bool is_loopback(const struct sockaddr_storage *at)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)at;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)at;
    if (at->ss_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
}

bool address_is_loopback(const char *address)
{
    struct sockaddr_storage at;
    socklen_t size = 0;
    return to_sockaddr(address, &at, &size, NULL) == 0 && is_loopback(&at);
}

/* A datagram socket that is connected has been given its own address, and has sent nothing. */
int address_towards(const char *address, uint16_t port, char *text, size_t size)
{
    struct sockaddr_storage to, own;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&own;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&own;
    socklen_t to_size = 0, own_size = sizeof own;
    char host[INET6_ADDRSTRLEN];
    int rc = to_sockaddr(address, &to, &to_size, NULL);
    if (rc < 0)
        return rc;
    cleanup_close int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, to_size) < 0 ||
        getsockname(fd, (struct sockaddr *)&own, &own_size) < 0)
        return -errno;
    bool is_v6 = own.ss_family == AF_INET6;
    const void *bytes = is_v6 ? (const void *)&v6->sin6_addr : &v4->sin_addr;
    if (!inet_ntop(own.ss_family, bytes, host, sizeof host))
        return -errno;
    int n = snprintf(text, size, is_v6 ? "[%s]:%u" : "%s:%u", host, port);
    return n >= 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

int dial_start(const char *address, int *ret_fd, struct drarun_error *err)
{
    struct sockaddr_storage to;
    socklen_t size = 0;
    int rc = to_sockaddr(address, &to, &size, err);
    if (rc < 0)
        return rc;
    cleanup_close int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set(err, errno, "socket: %s", strerror(errno));
    if (connect(fd, (struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS)
        return error_set(err, errno, "connect to %s: %s", address, strerror(errno));
    *ret_fd = take_fd(&fd);
    return 0;
}

/* -errno. IPv6's [::] takes IPv4 too, whatever net.ipv6.bindv6only says. */
static int open_door(const void *where, socklen_t size, int *ret_fd, uint16_t *ret_port)
{
    struct sockaddr_storage at = {0};
    int on = 1, off = 0;
    memcpy(&at, where, size);
    cleanup_close int fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    /* a restarted agent must not wait for the old connections' TIME_WAIT */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (at.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, (struct sockaddr *)&at, size) < 0 || listen(fd, SOMAXCONN) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) < 0)
        return -errno;
    *ret_port = ntohs(((struct sockaddr_in *)&at)->sin_port); /* same place in sockaddr_in6 */
    *ret_fd = take_fd(&fd);
    return 0;
}

static int open_everywhere(const struct sockaddr_in *v4, int *ret_fd, uint16_t *ret_port)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = v4->sin_port};
    int rc = open_door(&v6, sizeof v6, ret_fd, ret_port);
    if (rc < 0 && rc != -EADDRINUSE) /* a kernel without IPv6 */
        rc = open_door(v4, sizeof *v4, ret_fd, ret_port);
    return rc;
}

int listen_on(const char *address, int *ret_fd, uint16_t *ret_port, struct drarun_error *err)
{
    struct sockaddr_storage at;
    socklen_t size = 0;
    int rc = to_sockaddr(address, &at, &size, err);
    if (rc < 0)
        return rc;
    rc = address[0] == ':' ? open_everywhere((struct sockaddr_in *)&at, ret_fd, ret_port)
                           : open_door(&at, size, ret_fd, ret_port);
    if (rc == -EADDRNOTAVAIL && at.ss_family == AF_INET && is_loopback(&at))
        return error_set(err, -rc,
                         "listen on %s: the loopback interface has no IPv4 address; ip addr add "
                         "127.0.0.1/8 dev lo",
                         address);
    return rc < 0 ? error_set(err, -rc, "listen on %s: %s", address, strerror(-rc)) : 0;
}
