/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/programs/signals.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

static const int watched[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                              SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT, SIGCHLD};

struct signals {
    signals_fn fn;
    void *arg;
    int fd;
    struct event *event;
    bool changed;
    sigset_t old_mask;
    struct sigaction old_pipe, old_ttin, old_xfsz;
};

void signals_take(struct signals *s)
{
    struct signalfd_siginfo info;
    while (read(s->fd, &info, sizeof info) == (ssize_t)sizeof info)
        s->fn(s->arg, (int)info.ssi_signo);
}

void signals_pause(struct signals *s)
{
    event_del(s->event);
}

int signals_resume(struct signals *s, struct drarun_error *err)
{
    return event_add(s->event, NULL) == 0 ? 0 : error_set(err, ENOMEM, "out of memory");
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    signals_take(arg);
}

/* Blocked signals reach a signalfd even when they are ignored, so those are left out. */
static void choose(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < ARRAY_LEN(watched); i++) {
        struct sigaction now;
        bool ignored = sigaction(watched[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN;
        if (!ignored || watched[i] == SIGCHLD)
            sigaddset(set, watched[i]);
    }
}

struct signals *signals_new(struct event_base *base, signals_fn fn, void *arg,
                            struct drarun_error *err)
{
    struct signals *s = calloc(1, sizeof *s);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t set;
    if (!s) {
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    *s = (struct signals){.fn = fn, .arg = arg, .changed = true};
    choose(&set);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would reap our agents */
    sigprocmask(SIG_BLOCK, &set, &s->old_mask);
    sigaction(SIGPIPE, &ignore, &s->old_pipe);
    sigaction(SIGTTIN, &ignore, &s->old_ttin);
    sigaction(SIGXFSZ, &ignore, &s->old_xfsz); /* a write then fails, and says so */
    s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->fd < 0) {
        error_set(err, errno, "signalfd: %s", strerror(errno));
        signals_free(s);
        return NULL;
    }
    s->event = event_new(base, s->fd, EV_READ | EV_PERSIST, on_readable, s);
    if (!s->event || event_add(s->event, NULL) < 0) {
        error_set(err, ENOMEM, "out of memory");
        signals_free(s);
        return NULL;
    }
    return s;
}

void signals_redirect(struct signals *s, signals_fn fn, void *arg)
{
    s->fn = fn;
    s->arg = arg;
}

void signals_restore(const struct signals *s)
{
    sigaction(SIGPIPE, &s->old_pipe, NULL);
    sigaction(SIGTTIN, &s->old_ttin, NULL);
    sigaction(SIGXFSZ, &s->old_xfsz, NULL);
    sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
}

void signals_free(struct signals *s)
{
    if (!s)
        return;
    struct signalfd_siginfo info;
    if (s->event)
        event_free(s->event);
    /* what came after the job's end must not end us in place of our exit status */
    while (s->fd >= 0 && read(s->fd, &info, sizeof info) > 0)
        ;
    close_fd(&s->fd);
    if (s->changed)
        signals_restore(s);
    free(s);
}
