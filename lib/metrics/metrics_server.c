/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/metrics/metrics_server.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"

#define LOOK_MS 100 /* while all places are taken: has evhttp let go of a connection? */
#define BACKLOG 128 /* connections that wait in the kernel */

/* A connection. evhttp does not tell when it lets go of one; our own reference keeps the descriptor
 * from being closed, and so from being another's, before we have seen that. */
struct guest {
    struct bufferevent *bev; /* NULL: the place is free */
    struct event *end;
};

struct metrics_server {
    struct event_base *base;
    struct evhttp *http;
    struct evconnlistener *listener; /* disabled while all places are taken */
    struct event *look;
    metrics_server_fn fn;
    void *arg;
    struct guest guests[METRICS_GUESTS];
};

/* ---- connections ---- */

static void part(struct guest *guest)
{
    event_del(guest->end);
    bufferevent_decref(guest->bev);
    guest->bev = NULL;
}

static bool evhttp_has_it(struct bufferevent *bev)
{
    bufferevent_data_cb read = NULL, write = NULL;
    bufferevent_event_cb event = NULL;
    bufferevent_getcb(bev, &read, &write, &event, NULL);
    return read || write || event;
}

/* A free place; NULL: there is none. */
static struct guest *find_place(struct metrics_server *server)
{
    struct guest *place = NULL;
    for (size_t i = 0; i < METRICS_GUESTS; i++) {
        struct guest *guest = &server->guests[i];
        if (guest->bev && !evhttp_has_it(guest->bev))
            part(guest);
        if (!guest->bev)
            place = guest;
    }
    return place;
}

static void look(struct metrics_server *server)
{
    struct timeval soon = timeval_from_ms(LOOK_MS);
    if (find_place(server)) {
        evconnlistener_enable(server->listener);
    } else {
        evconnlistener_disable(server->listener);
        evtimer_add(server->look, &soon);
    }
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    look(arg);
}

static void on_end(evutil_socket_t fd, short what, void *arg)
{
    struct guest *guest = arg;
    struct timeval soon = timeval_from_ms(LOOK_MS);
    (void)fd, (void)what;
    if (!evhttp_has_it(guest->bev)) {
        part(guest);
        return;
    }
    shutdown(bufferevent_getfd(guest->bev), SHUT_RDWR); /* evhttp sees the end of it */
    evtimer_add(guest->end, &soon);
}

/* evhttp sets its callbacks after it has asked: no time for find_place. */
static bool has_room(const struct metrics_server *server)
{
    for (size_t i = 0; i < METRICS_GUESTS; i++)
        if (!server->guests[i].bev)
            return true;
    return false;
}

/* evhttp asks for a bufferevent for each connection that it has accepted. */
static struct bufferevent *on_guest(struct event_base *base, void *arg)
{
    static const struct timeval stay = {.tv_sec = METRICS_STAY_S};
    struct metrics_server *server = arg;
    struct guest *guest = find_place(server);
    struct bufferevent *bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (!bev || !guest)
        return bev;
    bufferevent_incref(bev);
    guest->bev = bev;
    evtimer_add(guest->end, &stay);
    if (!has_room(server)) { /* no other one is accepted by this turn of the loop */
        evconnlistener_disable(server->listener);
        event_active(server->look, 0, 0);
    }
    return bev;
}

/* ---- requests ---- */

static void on_metrics(struct evhttp_request *request, void *arg)
{
    struct metrics_server *server = arg;
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    struct buf text = BUF_INIT;
    server->fn(server->arg, &text);
    evhttp_add_header(headers, "Connection", "close");
    if (text.failed || text.len == 0) {
        evhttp_send_error(request, HTTP_SERVUNAVAIL, NULL);
        buf_done(&text);
        return;
    }
    evhttp_add_header(headers, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    evbuffer_add(evhttp_request_get_output_buffer(request), text.data, text.len);
    evhttp_send_reply(request, HTTP_OK, NULL, NULL);
    buf_done(&text);
}

static void on_other(struct evhttp_request *request, void *arg)
{
    (void)arg;
    evhttp_add_header(evhttp_request_get_output_headers(request), "Connection", "close");
    evhttp_send_error(request, HTTP_NOTFOUND, NULL);
}

/* ---- life ---- */

/* IPv6's [::] takes IPv4 too, whatever net.ipv6.bindv6only says. -errno. */
static int open_everywhere(int family, uint16_t port, int *ret_fd)
{
    struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_addr = in6addr_any, .sin6_port = htons(port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    const void *where = family == AF_INET6 ? (const void *)&v6 : &v4;
    socklen_t size = family == AF_INET6 ? sizeof v6 : sizeof v4;
    int on = 1, off = 0;
    cleanup_close int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, where, size) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    *ret_fd = take_fd(&fd);
    return 0;
}

static int listen_at(struct metrics_server *server, uint16_t port, struct drarun_error *err)
{
    cleanup_close int fd = -1;
    int rc = open_everywhere(AF_INET6, port, &fd);
    if (rc < 0 && rc != -EADDRINUSE) /* a kernel may have no IPv6 */
        rc = open_everywhere(AF_INET, port, &fd);
    if (rc < 0)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, -rc, "port %u: %s", port, strerror(-rc));
    struct evconnlistener *listener = evconnlistener_new(
        server->base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    if (!listener)
        return error_set(err, ENOMEM, "out of memory");
    take_fd(&fd);
    if (!evhttp_bind_listener(server->http, listener)) {
        evconnlistener_free(listener);
        return error_set(err, ENOMEM, "out of memory");
    }
    server->listener = listener;
    return 0;
}

static bool make_places(struct metrics_server *server)
{
    bool made = true;
    for (size_t i = 0; i < METRICS_GUESTS; i++) {
        struct guest *guest = &server->guests[i];
        guest->end = evtimer_new(server->base, on_end, guest);
        made &= guest->end != NULL;
    }
    return made;
}

int metrics_server_new(struct event_base *base, uint16_t port, metrics_server_fn fn, void *arg,
                       struct metrics_server **ret_server, struct drarun_error *err)
{
    CLEANUP(metrics_server_freep) struct metrics_server *server = calloc(1, sizeof *server);
    if (!server)
        return error_set(err, ENOMEM, "out of memory");
    *server = (struct metrics_server){.base = base, .fn = fn, .arg = arg};
    server->http = evhttp_new(base);
    server->look = evtimer_new(base, on_look, server);
    if (!server->http || !server->look || !make_places(server) ||
        evhttp_set_cb(server->http, "/metrics", on_metrics, server) != 0)
        return error_set(err, ENOMEM, "out of memory");
    evhttp_set_bevcb(server->http, on_guest, server);
    evhttp_set_gencb(server->http, on_other, NULL);
    evhttp_set_allowed_methods(server->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
    evhttp_set_max_headers_size(server->http, METRICS_HEAD_MAX);
    evhttp_set_max_body_size(server->http, 0);
    evhttp_set_timeout(server->http, METRICS_STAY_S);
    int rc = listen_at(server, port, err);
    if (rc == 0)
        *ret_server = TAKE_PTR(server);
    return rc;
}

void metrics_server_free(struct metrics_server *server)
{
    if (!server)
        return;
    if (server->http)
        evhttp_free(server->http);
    for (size_t i = 0; i < METRICS_GUESTS; i++) {
        if (server->guests[i].bev)
            part(&server->guests[i]);
        if (server->guests[i].end)
            event_free(server->guests[i].end);
    }
    if (server->look)
        event_free(server->look);
    free(server);
}
