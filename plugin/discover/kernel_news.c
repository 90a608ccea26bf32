/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/kernel_news.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define LINES 2u
#define UEVENT_KERNEL 1u /* the group of the kernel's own messages; udev's is 2 */
#define READS_MAX 1000u  /* of one turn */

struct kernel_news {
    void (*fn)(void *arg);
    void *arg;
    int fds[LINES];
    struct event *events[LINES];
};

/* A full queue (ENOBUFS) is news too. */
static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct kernel_news *news = arg;
    char dropped[8192];
    (void)what;
    for (unsigned i = 0; i < READS_MAX; i++) {
        ssize_t n = recv(fd, dropped, sizeof dropped, MSG_DONTWAIT | MSG_TRUNC);
        if (n < 0 && errno != ENOBUFS && errno != EINTR)
            break;
    }
    news->fn(news->arg);
}

static int open_line(struct kernel_news *news, struct event_base *base, size_t i, int protocol,
                     unsigned groups, struct drarun_error *err)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
    news->fds[i] = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
    if (news->fds[i] < 0 || bind(news->fds[i], (struct sockaddr *)&address, sizeof address) < 0)
        return error_set(err, errno, "netlink %d: %s", protocol, strerror(errno));
    news->events[i] = event_new(base, news->fds[i], EV_READ | EV_PERSIST, on_readable, news);
    if (!news->events[i] || event_add(news->events[i], NULL) < 0)
        return error_set(err, ENOMEM, "netlink %d: out of memory", protocol);
    return 0;
}

int kernel_news_new(struct event_base *base, void (*fn)(void *arg), void *arg,
                    struct kernel_news **ret_news, struct drarun_error *err)
{
    struct kernel_news *news = calloc(1, sizeof *news);
    if (!news)
        return error_set(err, ENOMEM, "netlink: out of memory");
    *news = (struct kernel_news){.fn = fn, .arg = arg, .fds = {-1, -1}};
    int rc = open_line(news, base, 0, NETLINK_ROUTE,
                       RTMGRP_LINK | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE, err);
    if (rc == 0)
        rc = open_line(news, base, 1, NETLINK_KOBJECT_UEVENT, UEVENT_KERNEL, err);
    if (rc < 0)
        kernel_news_free(news);
    else
        *ret_news = news;
    return rc;
}

void kernel_news_free(struct kernel_news *news)
{
    if (!news)
        return;
    for (size_t i = 0; i < LINES; i++) {
        if (news->events[i])
            event_free(news->events[i]);
        close_fd(&news->fds[i]);
    }
    free(news);
}
