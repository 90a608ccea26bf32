/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/follow/tee.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/cluster/follow/line_hide.h"
#include "lib/base/error.h"
#include "lib/base/file.h"

struct tee {
    pthread_t thread;
    int from, out, copy; /* out: what standard output was */
    bool open;           /* somebody reads it */
    struct line_hide hide;
};

static void show(void *arg, const char *data, size_t length)
{
    struct tee *tee = arg;
    /* the reader of our output may go: what writes to the pipe is not to end by that */
    tee->open = tee->open && fd_write_all(tee->out, data, length) == 0;
}

static void *carry(void *arg)
{
    struct tee *tee = arg;
    char data[16384];
    for (;;) {
        ssize_t n = read(tee->from, data, sizeof data);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            line_hide_end(&tee->hide);
            return NULL;
        }
        (void)fd_write_all(tee->copy, data, (size_t)n);
        line_hide_add(&tee->hide, data, (size_t)n);
    }
}

static void restore(struct tee *tee)
{
    fflush(stdout);
    if (tee->out >= 0) {
        dup2(tee->out, STDOUT_FILENO); /* the last writer of the pipe is gone */
        close(tee->out);
    }
    if (tee->from >= 0)
        close(tee->from);
    free(tee);
}

static int start(struct tee *tee)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&tee->thread, NULL, carry, tee);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}

int tee_begin(int copy_fd, const char *hide, struct tee **ret_tee, struct drarun_error *err)
{
    struct tee *tee = calloc(1, sizeof *tee);
    int ends[2];
    if (!tee)
        return error_set(err, ENOMEM, "out of memory");
    tee->copy = copy_fd;
    tee->open = true;
    tee->hide = (struct line_hide){.begins = hide, .show = show, .arg = tee};
    tee->from = tee->out = -1;
    fflush(stdout);
    int rc = pipe2(ends, O_CLOEXEC) < 0 ? -errno : 0;
    if (rc == 0) {
        tee->from = ends[0];
        tee->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        rc = tee->out < 0 || dup2(ends[1], STDOUT_FILENO) < 0 ? -errno : start(tee);
        close(ends[1]);
    }
    if (rc < 0) {
        restore(tee);
        return error_set(err, -rc, "a copy of standard output: %s", strerror(-rc));
    }
    *ret_tee = tee;
    return 0;
}

void tee_end(struct tee *tee)
{
    if (!tee)
        return;
    fflush(stdout);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null >= 0 ? null : tee->out, STDOUT_FILENO); /* its end lets the thread come to its own */
    if (null >= 0)
        close(null);
    pthread_join(tee->thread, NULL);
    restore(tee);
}
