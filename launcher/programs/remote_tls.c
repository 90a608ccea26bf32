/* SPDX-License-Identifier: Apache-2.0 */
/* The half of remote.h that drarun-remote has. */
#include "launcher/programs/remote.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/wire/dial.h"
#include "lib/program/static_setup.h"

#define AGAIN_MS 50 /* first pause after a refused connection; doubles up to AGAIN_MAX_MS */
#define AGAIN_MAX_MS 1000

struct dial {
    struct remote *remote;
    uint32_t agent;
    const char *address;
    int fd;
    struct event *event; /* the socket connects, or the pause ends */
    int64_t pause_ms;
    int code; /* errno of the last attempt */
    char why[128];
};

struct remote {
    struct event_base *base;
    struct tls_context *tls;
    struct remote_owner owner;
    struct dial *dials;
    uint32_t count;
};

static void dial_reset(struct dial *dial)
{
    if (dial->event)
        event_free(dial->event);
    dial->event = NULL;
    close_fd(&dial->fd);
}

static void remote_tls_close(struct remote *remote)
{
    if (!remote)
        return;
    for (uint32_t i = 0; i < remote->count; i++)
        dial_reset(&remote->dials[i]);
    tls_context_free(remote->tls);
    free(remote->dials);
    free(remote);
}

static struct remote *remote_tls_open(struct event_base *base, const struct tls_key *key,
                                      uint32_t agents, const struct remote_owner *owner,
                                      struct drarun_error *err)
{
    struct remote *remote = calloc(1, sizeof *remote);
    struct dial *dials = calloc(agents, sizeof *dials);
    if (!remote || !dials) {
        free(remote);
        free(dials);
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    *remote = (struct remote){.base = base, .owner = *owner, .dials = dials, .count = agents};
    for (uint32_t i = 0; i < agents; i++)
        dials[i] = (struct dial){.remote = remote, .agent = i, .fd = -1, .pause_ms = AGAIN_MS};
    remote->tls = tls_context_new(key, TLS_CLIENT, err);
    if (!remote->tls) {
        remote_tls_close(remote);
        return NULL;
    }
    return remote;
}

static int remote_tls_resolve(const char *address, char numeric[REMOTE_ADDRESS_SIZE],
                              struct drarun_error *err)
{
    char host[256], text[NI_MAXHOST];
    uint16_t port = 0;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int rc = address_split(address, host, sizeof host, &port, err);
    if (rc < 0)
        return rc;
    if (!host[0] || port == 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "address \"%s\": expected HOST:PORT, or [IPV6]:PORT", address);
    rc = getaddrinfo(host, NULL, &hints, &found);
    if (rc != 0)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, EHOSTUNREACH, "cannot look up %s: %s",
                          host, gai_strerror(rc));
    rc = getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST);
    bool v6 = found->ai_family == AF_INET6;
    freeaddrinfo(found);
    if (rc != 0 || strlen(text) + 10 > REMOTE_ADDRESS_SIZE)
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, EHOSTUNREACH, "cannot look up %s", host);
    snprintf(numeric, REMOTE_ADDRESS_SIZE, v6 ? "[%.48s]:%u" : "%.48s:%u", text, port);
    return 0;
}

/* The kubelet writes "ADDRESS HOST.SERVICE.NAMESPACE.svc.DOMAIN HOST" into /etc/hosts of a pod that
 * has a subdomain. */
static char *remote_tls_own_name(const char *hostname)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_CANONNAME}, *found = NULL;
    if (getaddrinfo(hostname, NULL, &hints, &found) != 0)
        return NULL;
    char *name = found->ai_canonname ? strdup(found->ai_canonname) : NULL;
    freeaddrinfo(found);
    return name;
}

static void attempt(struct dial *dial);

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    attempt(arg);
}

static void try_again(struct dial *dial, int code, const char *why)
{
    struct timeval after = timeval_from_ms(dial->pause_ms);
    dial->code = code;
    snprintf(dial->why, sizeof dial->why, "%s", why);
    dial->pause_ms = dial->pause_ms * 2 < AGAIN_MAX_MS ? dial->pause_ms * 2 : AGAIN_MAX_MS;
    dial_reset(dial);
    dial->event = evtimer_new(dial->remote->base, on_pause_over, dial);
    if (dial->event)
        evtimer_add(dial->event, &after);
}

/* Replaced by the owner before the loop turns again. */
static void ignore_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    (void)channel, (void)message, (void)arg;
}

static void ignore_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    (void)channel, (void)err, (void)arg;
}

static void on_connected(evutil_socket_t fd, short what, void *arg)
{
    struct dial *dial = arg;
    struct remote *remote = dial->remote;
    struct drarun_error err = {0};
    int code = 0;
    socklen_t size = sizeof code;
    (void)what;
    if (getsockopt((int)fd, SOL_SOCKET, SO_ERROR, &code, &size) < 0)
        code = errno;
    if (code != 0) {
        try_again(dial, code, strerror(code));
        return;
    }
    struct bufferevent *bev = tls_open_take(remote->tls, remote->base, take_fd(&dial->fd), &err);
    struct channel *channel =
        bev ? channel_from_bufferevent_take(bev, ignore_message, ignore_closed, NULL) : NULL;
    if (!channel) {
        try_again(dial, ENOMEM, "out of memory");
        return;
    }
    channel_set_explain(channel, tls_failure);
    dial_reset(dial);
    dial->why[0] = '\0';
    dial->code = 0;
    remote->owner.connected(remote->owner.arg, dial->agent, channel);
}

static void attempt(struct dial *dial)
{
    struct drarun_error err = {0};
    dial_reset(dial);
    if (dial_start(dial->address, &dial->fd, &err) < 0) {
        try_again(dial, err.code, err.text);
        return;
    }
    dial->event = event_new(dial->remote->base, dial->fd, EV_WRITE, on_connected, dial);
    if (!dial->event || event_add(dial->event, NULL) < 0)
        try_again(dial, ENOMEM, "out of memory");
}

static int remote_tls_dial(struct remote *remote, uint32_t agent, const char *address,
                           struct drarun_error *err)
{
    struct dial *dial = &remote->dials[agent];
    dial->address = address;
    attempt(dial);
    return dial->event ? 0 : error_set(err, ENOMEM, "out of memory");
}

static void remote_tls_give_up(struct remote *remote, uint32_t agent)
{
    dial_reset(&remote->dials[agent]);
}

static const char *remote_tls_why(const struct remote *remote, uint32_t agent)
{
    return remote->dials[agent].why;
}

static int remote_tls_code(const struct remote *remote, uint32_t agent)
{
    return remote->dials[agent].code;
}

const struct remote_api *remote_api(void)
{
    static const struct remote_api api = {
        .open = remote_tls_open,
        .close = remote_tls_close,
        .resolve = remote_tls_resolve,
        .own_name = remote_tls_own_name,
        .dial = remote_tls_dial,
        .give_up = remote_tls_give_up,
        .why = remote_tls_why,
        .code = remote_tls_code,
    };
    return &api;
}

void remote_setup(void)
{
    static_setup();
}

int remote_become(char *const argv[], struct drarun_error *err)
{
    (void)argv;
    return error_set(err, EINVAL, "drarun-remote cannot start itself");
}
