/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/loop_fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"

#define INFO_MAX ((size_t)1 << 20)
#define EPOLL_LINK "anon_inode:[eventpoll]"
#define SOON_US 1000    /* what is due; no less, should the wall clock have been set */
#define LATE_US 1000000 /* and no more, for the same reason */
#define AT_ONCE_NS 1

struct loop_fd {
    struct event_base *base;
    int both;  /* epoll of the base's epoll and of timer */
    int timer; /* timerfd: the base's next timeout */
};

/* ---- the base's descriptor ---- */

/* Whether an epoll's fdinfo (proc(5)) lists that file under that number. */
static bool lists(const char *info, int fd, uint64_t inode)
{
    for (const char *line = strstr(info, "tfd:"); line; line = strstr(line + 1, "tfd:")) {
        const char *end = strchr(line, '\n'), *ino = strstr(line, " ino:");
        if (strtol(line + 4, NULL, 10) == fd && ino && (!end || ino < end) &&
            strtoull(ino + 5, NULL, 16) == inode)
            return true;
    }
    return false;
}

static bool is_epoll(int fds, const char *name)
{
    char link[sizeof EPOLL_LINK] = "";
    return readlinkat(fds, name, link, sizeof link) == (ssize_t)(sizeof EPOLL_LINK - 1) &&
           memcmp(link, EPOLL_LINK, sizeof EPOLL_LINK - 1) == 0;
}

/* The epoll of this process that waits for this file; -1: none. */
static int find_epoll(int watched, uint64_t inode)
{
    cleanup_close int fds = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
    cleanup_dir DIR *infos = opendir("/proc/self/fdinfo");
    struct dirent *entry;
    int found = -1;
    while (fds >= 0 && infos && found < 0 && (entry = readdir(infos))) {
        struct buf info = BUF_INIT;
        if (is_epoll(fds, entry->d_name) &&
            file_read(dirfd(infos), entry->d_name, INFO_MAX, &info, NULL) == 0 && info.data &&
            lists(info.data, watched, inode))
            found = (int)strtol(entry->d_name, NULL, 10);
        buf_done(&info);
    }
    return found;
}

static void on_nothing(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
}

/* A pipe, whose inode nobody else has, tells which epoll is the base's. */
static int epoll_of(struct event_base *base, struct drarun_error *err)
{
    int ends[2], found = -1;
    struct stat is;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_set(err, errno, "pipe: %s", strerror(errno));
    cleanup_close int ours = ends[0];
    cleanup_close int other __attribute__((unused)) = ends[1];
    struct event *event = event_new(base, ours, EV_READ | EV_PERSIST, on_nothing, NULL);
    if (!event)
        return error_set(err, ENOMEM, "out of memory");
    if (event_add(event, NULL) == 0 && fstat(ours, &is) == 0)
        found = find_epoll(ours, is.st_ino);
    event_free(event);
    if (found < 0)
        return error_set(
            err, ENOTSUP,
            "the event loop has no descriptor to wait for: libevent uses %s, and /proc "
            "tells of no epoll of its",
            event_base_get_method(base));
    return found;
}

static int add(int epoll, int fd)
{
    struct epoll_event wanted = {.events = EPOLLIN};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &wanted);
}

int loop_fd_new(struct event_base *base, struct loop_fd **ret_loop, struct drarun_error *err)
{
    int epoll = epoll_of(base, err);
    if (epoll < 0)
        return epoll;
    struct loop_fd *loop = calloc(1, sizeof *loop);
    if (!loop)
        return error_set(err, ENOMEM, "out of memory");
    *loop = (struct loop_fd){.base = base,
                             .both = epoll_create1(EPOLL_CLOEXEC),
                             .timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
    if (loop->both < 0 || loop->timer < 0 || add(loop->both, epoll) < 0 ||
        add(loop->both, loop->timer) < 0) {
        int code = errno;
        loop_fd_free(loop);
        return error_set(err, code, "cannot make a descriptor of the event loop: %s",
                         strerror(code));
    }
    *ret_loop = loop;
    return 0;
}

void loop_fd_free(struct loop_fd *loop)
{
    if (!loop)
        return;
    close_fd(&loop->both);
    close_fd(&loop->timer);
    free(loop);
}

int loop_fd_number(const struct loop_fd *loop)
{
    return loop->both;
}

/* ---- its timeouts ---- */

/* Keeps the earliest. */
static int on_event(const struct event_base *base, const struct event *event, void *arg)
{
    struct timeval *first = arg, at;
    (void)base;
    if (event_pending(event, EV_TIMEOUT, &at) && (!timerisset(first) || timercmp(&at, first, <)))
        *first = at;
    return 0;
}

static struct timespec until(const struct timeval *at)
{
    struct timeval now;
    gettimeofday(&now, NULL);
    int64_t us = ((int64_t)at->tv_sec - now.tv_sec) * 1000000 + at->tv_usec - now.tv_usec;
    us = us < SOON_US ? SOON_US : us > LATE_US ? LATE_US : us;
    return (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
}

void loop_fd_arm(struct loop_fd *loop)
{
    struct itimerspec timer = {0};
    struct timeval first = {0};
    if (event_base_get_num_events(loop->base, EVENT_BASE_COUNT_ACTIVE) > 0)
        timer.it_value.tv_nsec = AT_ONCE_NS;
    else if (event_base_foreach_event(loop->base, on_event, &first) == 0 && timerisset(&first))
        timer.it_value = until(&first);
    timerfd_settime(loop->timer, 0, &timer, NULL);
}

int loop_fd_run(struct loop_fd *loop)
{
    uint64_t count;
    (void)!read(loop->timer, &count, sizeof count);
    int rc = event_base_loop(loop->base, EVLOOP_NONBLOCK);
    loop_fd_arm(loop);
    return rc < 0 ? rc : 0; /* 1: nothing is left to wait for */
}
