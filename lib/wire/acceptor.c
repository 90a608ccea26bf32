/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/acceptor.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

/* Few, so that who came in the turn before is read before many more come. */
#define TURN_MAX 16
#define PAUSE_MS 100
#define TELL_AGAIN_MS 10000

struct acceptor {
    int fd;
    struct event *acceptable, *pause_over;
    struct acceptor_owner owner;
    int64_t told_ms; /* when it was logged that no descriptor is left; 0: never */
};

static bool is_out_of_room(int code)
{
    return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
    struct acceptor *acceptor = arg;
    (void)fd, (void)what;
    event_add(acceptor->acceptable, NULL);
}

void acceptor_pause(struct acceptor *acceptor, int64_t ms)
{
    struct timeval pause = timeval_from_ms(ms);
    if (evtimer_add(acceptor->pause_over, &pause) == 0)
        event_del(acceptor->acceptable);
}

static void tell(struct acceptor *acceptor, int code)
{
    int64_t now_ms = clock_ms();
    if (acceptor->told_ms && now_ms - acceptor->told_ms < TELL_AGAIN_MS)
        return;
    acceptor->told_ms = now_ms;
    log_error("cannot accept a connection: %s: trying again", strerror(code));
}

static void wait_for_room(struct acceptor *acceptor, int code)
{
    struct pollfd waiting = {.fd = acceptor->fd, .events = POLLIN};
    /* the kernel looks for a descriptor before it looks for a connection */
    if (poll(&waiting, 1, 0) == 0)
        return;
    tell(acceptor, code);
    /* what is closed now is closed by the loop's next turn, and then this is tried again */
    if (!acceptor->owner.make_room || !acceptor->owner.make_room(acceptor->owner.arg))
        acceptor_pause(acceptor, PAUSE_MS);
}

static void on_acceptable(evutil_socket_t listener, short what, void *arg)
{
    struct acceptor *acceptor = arg;
    (void)what;
    for (int i = 0; i < TURN_MAX && !event_pending(acceptor->pause_over, EV_TIMEOUT, NULL); i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        int code = errno;
        if (fd >= 0) {
            acceptor->owner.accepted(fd, acceptor->owner.arg);
        } else if (is_out_of_room(code)) {
            wait_for_room(acceptor, code);
            return;
        } else if (code == EAGAIN) {
            return;
        } /* else what was wrong with that connection alone, accept(2) */
    }
}

struct acceptor *acceptor_new_take(struct event_base *base, int fd,
                                   const struct acceptor_owner *owner, struct drarun_error *err)
{
    struct acceptor *acceptor = calloc(1, sizeof *acceptor);
    if (!acceptor) {
        close(fd);
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    *acceptor = (struct acceptor){.fd = fd, .owner = *owner};
    acceptor->acceptable = event_new(base, fd, EV_READ | EV_PERSIST, on_acceptable, acceptor);
    acceptor->pause_over = evtimer_new(base, on_pause_over, acceptor);
    if (!acceptor->acceptable || !acceptor->pause_over || evutil_make_socket_nonblocking(fd) < 0 ||
        event_add(acceptor->acceptable, NULL) < 0) {
        acceptor_free(acceptor);
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    return acceptor;
}

void acceptor_free(struct acceptor *acceptor)
{
    if (!acceptor)
        return;
    if (acceptor->acceptable)
        event_free(acceptor->acceptable);
    if (acceptor->pause_over)
        event_free(acceptor->pause_over);
    close_fd(&acceptor->fd);
    free(acceptor);
}
