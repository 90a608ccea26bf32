/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/rdma_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

static int lock_open(const char *path, int *ret_fd, struct drarun_error *err)
{
    struct stat st;
    cleanup_close int fd =
        open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_set(err, errno, "%s: %s", path,
                         errno == ELOOP ? "is a link; the lock is a file" : strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
        return error_set(err, EPERM,
                         "%s: expected a regular file of user %u that nobody else may write", path,
                         geteuid());
    *ret_fd = take_fd(&fd);
    return 0;
}

static void on_time(int signal)
{
    (void)signal; /* it ends flock's wait */
}

/* Again and again: the first may come just before the wait that it is to end. */
static int timer_start(int64_t wait_ms, timer_t *ret_timer, struct drarun_error *err)
{
    const struct sigaction action = {.sa_handler = on_time};
    const struct itimerspec when = {
        {.tv_nsec = 100000000L}, {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000L}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    timer_t timer;
    if (sigaction(SIGUSR1, &action, NULL) < 0 || timer_create(CLOCK_MONOTONIC, &event, &timer) < 0)
        return error_set(err, errno, "timer: %s", strerror(errno));
    if (timer_settime(timer, 0, &when, NULL) < 0) {
        int code = errno;
        timer_delete(timer);
        return error_set(err, code, "timer: %s", strerror(code));
    }
    *ret_timer = timer;
    return 0;
}

static int wait_for(int fd, const char *path, int64_t wait_ms, struct drarun_error *err)
{
    int64_t until = clock_ms() + wait_ms;
    timer_t timer = NULL;
    int rc = timer_start(wait_ms, &timer, err), got = -1;
    if (rc < 0)
        return rc;
    do {
        got = flock(fd, LOCK_EX);
    } while (got < 0 && errno == EINTR && clock_ms() < until);
    int code = errno;
    timer_delete(timer);
    if (got < 0 && code == EINTR)
        return error_set(
            err, ETIMEDOUT,
            "other RDMA devices have been moving between network namespaces for %.1f s "
            "(lock %s)",
            (double)wait_ms / 1e3, path);
    return got < 0 ? error_set(err, code, "%s: lock: %s", path, strerror(code)) : 0;
}

int rdma_lock(const char *order_path, int64_t wait_ms, int *ret_fd, struct drarun_error *err)
{
    char path[PATH_MAX];
    const char *end = strrchr(order_path, '/');
    cleanup_close int fd = -1;
    int n = snprintf(path, sizeof path, "%.*s" RDMA_LOCK_NAME,
                     end ? (int)(end + 1 - order_path) : 0, order_path);
    if (n >= (int)sizeof path)
        return error_set(err, ENAMETOOLONG, "%.64s...: too long a path", order_path);
    int rc = lock_open(path, &fd, err);
    if (rc == 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
        rc = errno == EWOULDBLOCK ? wait_for(fd, path, wait_ms, err)
                                  : error_set(err, errno, "%s: lock: %s", path, strerror(errno));
    if (rc == 0)
        *ret_fd = take_fd(&fd);
    return rc;
}
