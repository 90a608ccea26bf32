/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmix/listener.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/wire/acceptor.h"
#include "lib/wire/dial.h"
#include "lib/wire/peer.h"
#include "worker/pmix/handshake.h"

#define SILENCE_MAX_MS 10000

/* A connection of our user whose handshake is not there yet. */
struct silent {
    TAILQ_ENTRY(silent) entry;
    struct pmix_listener *listener;
    struct event *readable;
    int fd;
    uint64_t inode;
    size_t wanted; /* bytes until it is looked at again */
};

struct pmix_listener {
    struct event_base *base;
    struct acceptor *acceptor;
    struct pmix_listener_owner owner;
    TAILQ_HEAD(, silent) silent; /* the oldest first */
    bool unknown_logged;
};

static void silent_free(struct silent *silent)
{
    TAILQ_REMOVE(&silent->listener->silent, silent, entry);
    if (silent->readable)
        event_free(silent->readable);
    close_fd(&silent->fd);
    free(silent);
}

/* The loop is told once so many bytes are there, or the peer has gone. */
static bool wait_for(struct silent *silent, size_t wanted)
{
    int low = (int)wanted;
    silent->wanted = wanted;
    return setsockopt(silent->fd, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low) == 0;
}

static void hand_on(struct silent *silent, const void *message, size_t length)
{
    struct pmix_listener *listener = silent->listener;
    wait_for(silent, 1);
    const struct pmix_visitor visitor = {
        .fd = take_fd(&silent->fd), .inode = silent->inode, .message = message, .length = length};
    silent_free(silent);
    listener->owner.connected(listener->owner.arg, &visitor);
}

static bool has_gone(int fd)
{
    struct pollfd peer = {.fd = fd, .events = POLLRDHUP};
    return poll(&peer, 1, 0) > 0 && (peer.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct silent *silent = arg;
    uint8_t message[HANDSHAKE_MAX];
    ssize_t n = (what & EV_READ) ? recv(fd, message, silent->wanted, MSG_PEEK | MSG_DONTWAIT) : -1;
    size_t length = n >= (ssize_t)HANDSHAKE_HEADER ? handshake_length(message) : 0;
    if (n <= 0 || ((size_t)n < silent->wanted && has_gone(fd)))
        silent_free(silent);
    else if ((size_t)n < silent->wanted || length == 0) /* no kernel that waits; or no handshake */
        hand_on(silent, NULL, 0);
    else if (length == silent->wanted)
        hand_on(silent, message, length);
    else if (!wait_for(silent, length))
        hand_on(silent, NULL, 0);
}

static void log_unknown_once(struct pmix_listener *listener, int rc)
{
    if (rc == -ESRCH || listener->unknown_logged)
        return;
    listener->unknown_logged = true;
    log_error("PMIx: the kernel does not report the user of a connection (%s): refused; "
              "connections of ranks may be refused, too",
              strerror(-rc));
}

/* libpmix believes what a client says of itself. */
static bool is_of_our_user(struct pmix_listener *listener, int fd, struct peer *peer)
{
    int rc = peer_find(fd, peer);
    if (rc == 0 && peer->uid == geteuid())
        return true;
    if (rc == 0)
        listener->owner.refused(listener->owner.arg, peer->uid);
    else
        log_unknown_once(listener, rc);
    return false;
}

static void on_accepted(int accepted, void *arg)
{
    static const struct timeval patience = {.tv_sec = SILENCE_MAX_MS / 1000};
    struct pmix_listener *listener = arg;
    cleanup_close int fd = accepted;
    struct peer peer = {0};
    if (!is_of_our_user(listener, fd, &peer))
        return;
    struct silent *silent = calloc(1, sizeof *silent);
    if (!silent) {
        log_error("PMIx: out of memory for the connection of a rank");
        return;
    }
    *silent = (struct silent){.listener = listener, .fd = take_fd(&fd), .inode = peer.inode};
    TAILQ_INSERT_TAIL(&listener->silent, silent, entry);
    silent->readable =
        event_new(listener->base, silent->fd, EV_READ | EV_PERSIST, on_readable, silent);
    if (!silent->readable || event_add(silent->readable, &patience) < 0 ||
        !wait_for(silent, HANDSHAKE_HEADER))
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

struct pmix_listener *pmix_listener_new(struct event_base *base,
                                        const struct pmix_listener_owner *owner, uint16_t *ret_port,
                                        struct drarun_error *err)
{
    int fd = -1;
    struct pmix_listener *listener = calloc(1, sizeof *listener);
    if (!listener) {
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    *listener = (struct pmix_listener){.base = base, .owner = *owner};
    TAILQ_INIT(&listener->silent);
    struct acceptor_owner accepting = {
        .accepted = on_accepted, .make_room = close_oldest, .arg = listener};
    if (listen_on("127.0.0.1:0", &fd, ret_port, err) < 0 ||
        !(listener->acceptor = acceptor_new_take(base, fd, &accepting, err))) {
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
