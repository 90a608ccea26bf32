/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/master_port.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "lib/base/chance.h"
#include "lib/base/cleanup.h"

/* Most services have ports below these; the node ports of Kubernetes are above them. */
#define FIRST 10000
#define LAST 29999
#define TRIES 100

struct range {
    unsigned low, high; /* both included */
};

/* Linux's default where it is not told. */
static struct range given_by_the_kernel(void)
{
    struct range range = {32768, 60999};
    cleanup_file FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    if (file && fscanf(file, "%u %u", &range.low, &range.high) != 2)
        range = (struct range){32768, 60999};
    return range;
}

/* On any address, as TCPStore binds it. port: 0 for any; the port, or 0. */
static uint16_t try_bind(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t size = sizeof at;
    cleanup_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) < 0)
        return 0;
    return ntohs(at.sin_port);
}

/* 0: it does not fit. */
static uint16_t draw(const struct range *given, const char *outer)
{
    unsigned long not_this = outer ? strtoul(outer, NULL, 10) : 0;
    unsigned port = FIRST + (unsigned)(chance_draw() * (LAST - FIRST + 1));
    bool fits = port != not_this && port != MASTER_PORT_DEFAULT &&
                (port < given->low || port > given->high);
    return fits ? (uint16_t)port : 0;
}

uint16_t master_port_pick(const char *outer)
{
    const struct range given = given_by_the_kernel();
    for (int i = 0; i < TRIES; i++) {
        uint16_t port = draw(&given, outer);
        if (port && try_bind(port))
            return port;
    }
    uint16_t any = try_bind(0);
    return any ? any : MASTER_PORT_DEFAULT;
}

uint16_t master_port_draw(const char *outer)
{
    const struct range none = {LAST + 1, LAST + 1};
    uint16_t port = 0;
    while (port == 0)
        port = draw(&none, outer);
    return port;
}
