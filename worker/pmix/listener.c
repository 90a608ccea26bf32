/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmix/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/wire/acceptor.h"
#include "lib/wire/dial.h"
#include "lib/wire/peer.h"

#define SILENCE_MAX_MS 10000

/* A connection of our user that has sent nothing yet. */
struct silent {
    TAILQ_ENTRY(silent) entry;
    struct pmix_listener *listener;
    struct event *readable;
    int fd;
};

struct pmix_listener {
    struct event_base *base;
    struct acceptor *acceptor;
    pmix_listener_fn connected;
    void *arg;
    TAILQ_HEAD(, silent) silent; /* the oldest first */
    bool refusal_logged;
};

static void silent_free(struct silent *silent)
{
    TAILQ_REMOVE(&silent->listener->silent, silent, entry);
    if (silent->readable)
        event_free(silent->readable);
    close_fd(&silent->fd);
    free(silent);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct silent *silent = arg;
    struct pmix_listener *listener = silent->listener;
    int ready = (what & EV_READ) ? take_fd(&silent->fd) : -1;
    (void)fd;
    silent_free(silent);
    if (ready >= 0)
        listener->connected(ready, listener->arg);
}

static void log_refusal_once(struct pmix_listener *listener, int rc, uid_t uid)
{
    if (rc == -ESRCH || listener->refusal_logged)
        return;
    listener->refusal_logged = true;
    if (rc < 0)
        log_error("PMIx: the kernel does not say whose a connection is (%s): refused, and so may "
                  "the ranks' be",
                  strerror(-rc));
    else
        log_note("PMIx: refused a connection of user %u: only processes of user %u may connect",
                 (unsigned)uid, (unsigned)geteuid());
}

/* libpmix believes what a client says of itself. */
static bool is_of_our_user(struct pmix_listener *listener, int fd)
{
    uid_t uid = 0;
    int rc = peer_uid(fd, &uid);
    if (rc == 0 && uid == geteuid())
        return true;
    log_refusal_once(listener, rc, uid);
    return false;
}

static void on_accepted(int accepted, void *arg)
{
    static const struct timeval patience = {.tv_sec = SILENCE_MAX_MS / 1000};
    struct pmix_listener *listener = arg;
    cleanup_close int fd = accepted;
    if (!is_of_our_user(listener, fd))
        return;
    struct silent *silent = calloc(1, sizeof *silent);
    if (!silent)
        return;
    *silent = (struct silent){.listener = listener, .fd = take_fd(&fd)};
    TAILQ_INSERT_TAIL(&listener->silent, silent, entry);
    silent->readable = event_new(listener->base, silent->fd, EV_READ, on_readable, silent);
    if (!silent->readable || event_add(silent->readable, &patience) < 0)
        silent_free(silent);
}

static bool close_oldest(void *arg)
{
    struct pmix_listener *listener = arg;
    struct silent *oldest = TAILQ_FIRST(&listener->silent);
    if (oldest)
        silent_free(oldest);
    return oldest;
}

struct pmix_listener *pmix_listener_new(struct event_base *base, pmix_listener_fn connected,
                                        void *arg, uint16_t *ret_port, struct drarun_error *err)
{
    int fd = -1;
    struct pmix_listener *listener = calloc(1, sizeof *listener);
    if (!listener) {
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    *listener = (struct pmix_listener){.base = base, .connected = connected, .arg = arg};
    TAILQ_INIT(&listener->silent);
    struct acceptor_owner owner = {
        .accepted = on_accepted, .make_room = close_oldest, .arg = listener};
    if (listen_on("127.0.0.1:0", &fd, ret_port, err) < 0 ||
        !(listener->acceptor = acceptor_new_take(base, fd, &owner, err))) {
        pmix_listener_free(listener);
        return NULL;
    }
    return listener;
}

void pmix_listener_free(struct pmix_listener *listener)
{
    if (!listener)
        return;
    while (!TAILQ_EMPTY(&listener->silent))
        silent_free(TAILQ_FIRST(&listener->silent));
    acceptor_free(listener->acceptor);
    free(listener);
}
