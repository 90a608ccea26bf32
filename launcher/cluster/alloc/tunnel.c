/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/alloc/tunnel.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/kube/socket.h"
#include "lib/wire/acceptor.h"
#include "lib/wire/dial.h"
#include "lib/wire/peer.h"

#define PIECE 32768u
#define PORT_BYTES 2 /* what each channel begins with */
/* Bytes that one side has not taken: both ends of the protocol wait for each other long before. */
#define HELD_MAX ((size_t)16 << 20)

struct passage { /* one connection */
    LIST_ENTRY(passage) entry;
    struct tunnel *tunnel;
    struct bufferevent *near;   /* who has dialled us */
    struct kube_socket *socket; /* the agent's side */
    bool open;
    unsigned port_left[2]; /* of the first message of data and error, by channel */
};

struct tunnel {
    struct cluster *cluster;
    const char *namespace, *pod;
    uint16_t port;
    struct acceptor *acceptor;
    size_t count;
    LIST_HEAD(, passage) passages;
};

static void passage_free(struct passage *p)
{
    LIST_REMOVE(p, entry);
    p->tunnel->count--;
    bufferevent_free(p->near);
    kube_socket_free(p->socket);
    free(p);
}

/* ---- to the agent ---- */

static void pass_on(struct passage *p)
{
    struct evbuffer *input = bufferevent_get_input(p->near);
    char piece[PIECE];
    int n;
    while (p->open && (n = evbuffer_remove(input, piece, sizeof piece)) > 0)
        if (kube_socket_send(p->socket, KUBE_FORWARD_DATA, piece, (size_t)n) < 0) {
            passage_free(p);
            return;
        }
}

static void on_near_data(struct bufferevent *near, void *arg)
{
    struct passage *p = arg;
    /* no watermark: libevent would call this again and again while nothing is taken */
    if (!p->open && evbuffer_get_length(bufferevent_get_input(near)) >= TUNNEL_EARLY_MAX)
        bufferevent_disable(near, EV_READ);
    pass_on(p);
}

static void on_near_event(struct bufferevent *near, short what, void *arg)
{
    (void)near;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        passage_free(arg);
}

/* ---- from it ---- */

static void on_opened(void *arg)
{
    struct passage *p = arg;
    p->open = true;
    bufferevent_enable(p->near, EV_READ);
    pass_on(p);
}

/* The words of the API server or the kubelet; the connection ends after them. */
static void on_error(const struct passage *p, const char *text, size_t length)
{
    log_verbose("port %u of pod %s: %.*s", p->tunnel->port, p->tunnel->pod,
                length > 300 ? 300 : (int)length, text);
}

static void on_data(unsigned channel, const char *bytes, size_t length, void *arg)
{
    struct passage *p = arg;
    if (channel > KUBE_FORWARD_ERROR)
        return;
    size_t skip = length < p->port_left[channel] ? length : p->port_left[channel];
    p->port_left[channel] -= (unsigned)skip;
    if (length == skip)
        return;
    if (channel == KUBE_FORWARD_ERROR) {
        on_error(p, bytes + skip, length - skip);
        passage_free(p);
        return;
    }
    bool sent = bufferevent_write(p->near, bytes + skip, length - skip) == 0;
    if (!sent || evbuffer_get_length(bufferevent_get_output(p->near)) > HELD_MAX)
        passage_free(p);
}

static void on_drained_near(struct bufferevent *near, void *arg)
{
    (void)near;
    passage_free(arg);
}

/* What has come before the end is still passed on. */
static void on_ended(const struct drarun_error *err, void *arg)
{
    struct passage *p = arg;
    p->socket = NULL;
    p->open = false;
    if (err)
        log_verbose("%s", err->text);
    bufferevent_disable(p->near, EV_READ);
    if (evbuffer_get_length(bufferevent_get_output(p->near)) == 0)
        passage_free(p);
    else
        bufferevent_setcb(p->near, NULL, on_drained_near, on_near_event, p);
}

/* ---- the door ---- */

static int begin(struct passage *p, struct drarun_error *err)
{
    static const struct kube_socket_events events = {
        .opened = on_opened, .data = on_data, .ended = on_ended};
    const struct tunnel *t = p->tunnel;
    const struct kube_forward forward = {
        .namespace_ = t->namespace, .pod = t->pod, .port = t->port};
    bufferevent_setcb(p->near, on_near_data, NULL, on_near_event, p);
    if (bufferevent_enable(p->near, EV_READ | EV_WRITE) < 0)
        return error_set(err, ENOMEM, "out of memory");
    return kube_forward_open(t->cluster->client, &forward, &events, p, &p->socket, err);
}

static bool is_welcome(const struct tunnel *t, int fd)
{
    uid_t uid = 0;
    int rc = peer_uid(fd, &uid);
    if (rc < 0 && rc != -ESRCH)
        log_verbose("port %u of pod %s: the kernel does not report the user of a connection: %s",
                    t->port, t->pod, strerror(-rc));
    else if (rc == 0 && uid != geteuid())
        log_verbose("port %u of pod %s: refused a connection of user %u", t->port, t->pod,
                    (unsigned)uid);
    return rc == 0 && uid == geteuid() && t->count < TUNNEL_PASSAGES_MAX;
}

static void on_accepted(int accepted, void *arg)
{
    struct tunnel *t = arg;
    struct drarun_error err = {0};
    cleanup_close int fd = accepted;
    if (!is_welcome(t, fd))
        return;
    struct passage *p = calloc(1, sizeof *p);
    struct bufferevent *near =
        p ? bufferevent_socket_new(t->cluster->base, fd, BEV_OPT_CLOSE_ON_FREE) : NULL;
    if (!near) {
        free(p);
        return;
    }
    take_fd(&fd);
    *p = (struct passage){.tunnel = t, .near = near, .port_left = {PORT_BYTES, PORT_BYTES}};
    LIST_INSERT_HEAD(&t->passages, p, entry);
    t->count++;
    if (begin(p, &err) < 0) {
        log_verbose("%s", err.text);
        passage_free(p);
    }
}

int tunnel_new(struct cluster *cluster, const char *namespace, const char *pod, uint16_t port,
               struct tunnel **ret_tunnel, uint16_t *ret_port, struct drarun_error *err)
{
    cleanup_close int fd = -1;
    int rc = listen_on("127.0.0.1:0", &fd, ret_port, err);
    if (rc < 0)
        return rc;
    struct tunnel *t = calloc(1, sizeof *t);
    if (!t)
        return error_set(err, ENOMEM, "out of memory");
    *t = (struct tunnel){.cluster = cluster, .namespace = namespace, .pod = pod, .port = port};
    LIST_INIT(&t->passages);
    const struct acceptor_owner owner = {.accepted = on_accepted, .arg = t};
    t->acceptor = acceptor_new_take(cluster->base, take_fd(&fd), &owner, err);
    if (!t->acceptor) {
        free(t);
        return -ENOMEM;
    }
    *ret_tunnel = t;
    return 0;
}

void tunnel_free(struct tunnel *t)
{
    if (!t)
        return;
    while (!LIST_EMPTY(&t->passages))
        passage_free(LIST_FIRST(&t->passages));
    acceptor_free(t->acceptor);
    free(t);
}
