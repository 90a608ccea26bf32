/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h> /* libc's struct tcp_info has no bytes that were not sent */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <event2/buffer.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/wire/frame.h"

#define PROBE_IDLE_S 5 /* without traffic, before the peer's kernel is asked */
#define PROBE_EVERY_S 3
/* While something is on its way: in the time after which the kernel ends the connection. */
#define LOOKS 4
/* Bytes moved in one turn of the loop. */
#define MOVE_MAX (256 * 1024)

struct channel {
    struct bufferevent *bev;
    struct evbuffer *in; /* received and not delivered: at most one frame and what one turn reads */
    bool plain;          /* the descriptor carries our bytes, not those of a layer between */
    channel_message_fn on_message;
    channel_closed_fn on_closed;
    void *arg;
    void (*on_drained)(void *arg);
    void *drained_arg;
    bool (*explain)(struct bufferevent *bev, char *text, size_t size);
    bool *freed; /* set while callbacks run: tells them that the channel is gone */
    bool ended;
    bool incomplete;         /* a message could not be sent */
    unsigned int silence_ms; /* after which the kernel ends the connection */
    struct event *look;      /* over TCP, while something is on its way; NULL: never */
    bool stuffed;            /* the peer has no room: the kernel does not end the connection */
    uint64_t bytes;
    char peer[64];
};

static void end(struct channel *c, const struct drarun_error *err)
{
    if (c->ended)
        return;
    c->ended = true;
    if (c->look)
        event_del(c->look);
    bufferevent_disable(c->bev, EV_READ | EV_WRITE);
    c->on_closed(c, err, c->arg);
}

/* Takes one whole frame out of the input and delivers it: 1, 0 when none is whole, or -errno. */
static int deliver_one(struct channel *c, struct drarun_error *err)
{
    struct evbuffer *in = c->in;
    uint8_t header[FRAME_HEADER];
    uint32_t length = 0;
    if (evbuffer_copyout(in, header, sizeof header) < (ssize_t)sizeof header)
        return 0;
    int rc = frame_body_length(header, &length, err);
    if (rc < 0)
        return rc;
    if (evbuffer_get_length(in) < FRAME_HEADER + (size_t)length)
        return 0;
    evbuffer_drain(in, FRAME_HEADER);
    const uint8_t *body = evbuffer_pullup(in, length);
    if (!body)
        return error_set(err, ENOMEM, "out of memory for a frame of %u bytes", length);
    Drarun__Wire__Envelope *message = NULL;
    rc = frame_decode(body, length, &message, err);
    if (rc < 0)
        return rc;
    evbuffer_drain(in, length);
    c->bytes += FRAME_HEADER + length;
    c->on_message(c, message, c->arg);
    drarun__wire__envelope__free_unpacked(message, NULL);
    return 1;
}

/* libevent 2.1 reads 4 KiB at a time, which costs three system calls. So what is there is read
 * here. The end of the connection and errors stay for libevent to find. */
static void read_more(struct channel *c)
{
    struct evbuffer_iovec space;
    int fd = (int)bufferevent_getfd(c->bev);
    int there = 0;
    if (!c->plain || ioctl(fd, FIONREAD, &there) < 0 || there <= 0)
        return;
    size_t size = there < MOVE_MAX ? (size_t)there : MOVE_MAX;
    if (evbuffer_reserve_space(c->in, (ev_ssize_t)size, &space, 1) < 1)
        return;
    ssize_t n = read(fd, space.iov_base, size);
    space.iov_len = n > 0 ? (size_t)n : 0;
    evbuffer_commit_space(c->in, &space, 1);
}

static void on_read(struct bufferevent *bev, void *arg)
{
    struct channel *c = arg;
    struct drarun_error err = {0};
    bool freed = false;
    bool *outer = c->freed;
    c->freed = &freed;
    int rc = bufferevent_read_buffer(bev, c->in);
    if (rc < 0)
        error_set(&err, ENOMEM, "out of memory for what %s sends", c->peer);
    else
        read_more(c);
    for (rc = rc < 0 ? -ENOMEM : 1; rc > 0 && !freed && !c->ended;)
        rc = deliver_one(c, &err);
    if (freed) {
        if (outer)
            *outer = true;
        return;
    }
    c->freed = outer;
    if (rc < 0)
        end(c, &err);
}

static void on_write(struct bufferevent *bev, void *arg)
{
    struct channel *c = arg;
    (void)bev;
    if (!c->on_drained || channel_backlog(c) > 0)
        return;
    void (*fn)(void *) = c->on_drained;
    c->on_drained = NULL;
    fn(c->drained_arg);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    struct channel *c = arg;
    struct drarun_error err = {0};
    if (what & BEV_EVENT_CONNECTED)
        return;
    int code = EVUTIL_SOCKET_ERROR();
    char words[256] = "broken";
    bool explained = c->explain && c->explain(bev, words, sizeof words);
    bool broke = what & BEV_EVENT_ERROR || (explained && !words[0] && code && code != EAGAIN);
    size_t rest = evbuffer_get_length(bufferevent_get_input(bev)) + evbuffer_get_length(c->in);
    if (c->incomplete)
        error_set(&err, ENOMEM, "out of memory for a message to %s", c->peer);
    else if (what & BEV_EVENT_TIMEOUT)
        error_set(&err, ETIMEDOUT, "nothing heard from %s in time", c->peer);
    else if (explained && words[0])
        error_set(&err, EACCES, "connection to %s: %s", c->peer, words);
    else if (broke && code == ETIMEDOUT)
        error_set(&err, code, "connection to %s is lost: no packet for %u s", c->peer,
                  c->silence_ms / 1000);
    else if (broke)
        error_set(&err, code ? code : EPROTO, "connection to %s: %s", c->peer,
                  code ? strerror(code) : "broken");
    else if (rest > 0)
        error_set(&err, EPROTO, "%s closed the connection in the middle of a message", c->peer);
    end(c, &err);
}

/* On a socketpair these fail, and nothing is lost. True: it is TCP. */
static bool tune_tcp(int fd)
{
    int on = 1, idle_s = PROBE_IDLE_S, every_s = PROBE_EVERY_S;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
    return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0;
}

/* Of bytes and of probes, tcp(7). Of a peer that answers all probes and has no room for more, too
 * (tcp_probe_timer, Linux 5.11): there it must not count. */
static void bear_silence(const struct channel *c)
{
    unsigned int ms = c->stuffed ? 0 : c->silence_ms;
    setsockopt((int)bufferevent_getfd(c->bev), IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

void channel_set_silence(struct channel *channel, unsigned int ms)
{
    channel->silence_ms = ms;
    bear_silence(channel);
}

/* All waits for room at the peer, whose process is stopped or does not read, and the peer answers:
 * the kernel asks it in growing intervals, up to two minutes. */
static bool is_stuffed(const struct channel *c, const struct tcp_info *info)
{
    bool room = info->tcpi_unacked > 0 && info->tcpi_snd_wnd > 0;
    bool answers = info->tcpi_last_ack_recv < c->silence_ms ||
                   (info->tcpi_probes < 2 && info->tcpi_retransmits < 2);
    return !room && answers;
}

static void start_looking(struct channel *c)
{
    struct timeval after = timeval_from_ms(c->silence_ms / LOOKS);
    if (c->look && !c->ended && !event_pending(c->look, EV_TIMEOUT, NULL))
        event_add(c->look, &after);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
    struct channel *c = arg;
    struct tcp_info info = {.tcpi_snd_wnd = UINT32_MAX}; /* Linux before 5.4 does not tell it */
    socklen_t size = sizeof info;
    (void)fd, (void)what;
    if (getsockopt((int)bufferevent_getfd(c->bev), IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
        return;
    bool under_way = info.tcpi_unacked > 0 || info.tcpi_notsent_bytes > 0;
    c->stuffed = under_way && is_stuffed(c, &info);
    bear_silence(c);
    if (under_way || channel_backlog(c) > 0)
        start_looking(c);
}

static void describe_peer(struct channel *c)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    int fd = (int)bufferevent_getfd(c->bev);
    char host[48], port[8];
    snprintf(c->peer, sizeof c->peer, "socketpair");
    if (fd < 0 || getpeername(fd, (struct sockaddr *)&address, &size) < 0)
        return;
    if (address.ss_family != AF_INET && address.ss_family != AF_INET6)
        return;
    const struct in6_addr *v6 = &((struct sockaddr_in6 *)&address)->sin6_addr;
    const void *raw = &((struct sockaddr_in *)&address)->sin_addr;
    uint16_t number = ((struct sockaddr_in *)&address)->sin_port; /* the same place in both */
    bool is_v6 = address.ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(v6);
    if (address.ss_family == AF_INET6)
        raw = is_v6 ? v6->s6_addr : &v6->s6_addr[12];
    inet_ntop(is_v6 ? AF_INET6 : AF_INET, raw, host, sizeof host);
    snprintf(port, sizeof port, "%u", ntohs(number));
    snprintf(c->peer, sizeof c->peer, is_v6 ? "[%s]:%s" : "%s:%s", host, port);
}

struct channel *channel_from_bufferevent_take(struct bufferevent *bev,
                                              channel_message_fn on_message,
                                              channel_closed_fn on_closed, void *arg)
{
    struct channel *c = calloc(1, sizeof *c);
    struct evbuffer *in = evbuffer_new();
    if (!c || !in) {
        bufferevent_free(bev);
        if (in)
            evbuffer_free(in);
        free(c);
        return NULL;
    }
    c->bev = bev;
    c->in = in;
    channel_set_callbacks(c, on_message, on_closed, arg);
    describe_peer(c);
    if (tune_tcp((int)bufferevent_getfd(bev)))
        c->look = evtimer_new(bufferevent_get_base(bev), on_look, c);
    channel_set_silence(c, CHANNEL_SILENCE_MS);
    bufferevent_setcb(bev, on_read, on_write, on_event, c);
    /* one frame and the start of the next: a peer cannot make us hold more than that */
    bufferevent_setwatermark(bev, EV_READ, 0, FRAME_MAX + FRAME_HEADER);
    if (bufferevent_enable(bev, EV_READ | EV_WRITE) < 0) {
        channel_free(c);
        return NULL;
    }
    return c;
}

struct channel *channel_new_take(struct event_base *base, int fd, channel_message_fn on_message,
                                 channel_closed_fn on_closed, void *arg)
{
    struct bufferevent *bev = NULL;
    if (evutil_make_socket_nonblocking(fd) == 0)
        bev = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (!bev) {
        close(fd);
        return NULL;
    }
    bufferevent_set_max_single_read(bev, MOVE_MAX);
    bufferevent_set_max_single_write(bev, MOVE_MAX);
    struct channel *c = channel_from_bufferevent_take(bev, on_message, on_closed, arg);
    if (c)
        c->plain = true;
    return c;
}

void channel_free(struct channel *c)
{
    if (!c)
        return;
    if (c->freed)
        *c->freed = true;
    if (c->look)
        event_free(c->look);
    /* libevent closes the descriptor in the loop's next turn, which may never come */
    shutdown((int)bufferevent_getfd(c->bev), SHUT_RDWR);
    bufferevent_free(c->bev);
    evbuffer_free(c->in);
    free(c);
}

void channel_set_callbacks(struct channel *c, channel_message_fn on_message,
                           channel_closed_fn on_closed, void *arg)
{
    c->on_message = on_message;
    c->on_closed = on_closed;
    c->arg = arg;
}

/* The peer may wait for what was not sent: both sides see that the connection ends. */
static int break_off(struct channel *c)
{
    c->incomplete = true;
    shutdown((int)bufferevent_getfd(c->bev), SHUT_RDWR);
    return -ENOMEM;
}

int channel_send(struct channel *c, const Drarun__Wire__Envelope *message)
{
    if (c->ended || c->incomplete)
        return -EPIPE;
    size_t length = drarun__wire__envelope__get_packed_size(message);
    if (length == 0 || length > FRAME_MAX)
        return -EMSGSIZE;
    struct evbuffer *out = bufferevent_get_output(c->bev);
    struct evbuffer_iovec space;
    if (evbuffer_reserve_space(out, (ev_ssize_t)(FRAME_HEADER + length), &space, 1) < 1)
        return break_off(c);
    uint8_t *p = space.iov_base;
    p[0] = (uint8_t)(length >> 24);
    p[1] = (uint8_t)(length >> 16);
    p[2] = (uint8_t)(length >> 8);
    p[3] = (uint8_t)length;
    drarun__wire__envelope__pack(message, p + FRAME_HEADER);
    space.iov_len = FRAME_HEADER + length;
    if (evbuffer_commit_space(out, &space, 1) < 0)
        return break_off(c);
    c->bytes += FRAME_HEADER + length;
    start_looking(c);
    return 0;
}

size_t channel_backlog(const struct channel *c)
{
    return evbuffer_get_length(bufferevent_get_output(c->bev));
}

void channel_on_drained(struct channel *c, void (*fn)(void *arg), void *arg)
{
    c->on_drained = fn;
    c->drained_arg = arg;
    if (channel_backlog(c) == 0)
        bufferevent_trigger(c->bev, EV_WRITE, BEV_OPT_DEFER_CALLBACKS);
}

void channel_set_explain(struct channel *c,
                         bool (*explain)(struct bufferevent *bev, char *text, size_t size))
{
    c->explain = explain;
}

uint64_t channel_bytes(const struct channel *c)
{
    return c->bytes;
}

const char *channel_peer(const struct channel *c)
{
    return c->peer;
}
