/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/tree/peers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/wire/dial.h"
#include "lib/wire/hello.h"
#include "lib/wire/tls.h"
#include "worker/tree/pmix_version.h"

/* A child listens before its launcher speaks to it, so a refusal is final; this is for lost
 * packets. What it takes a child that was reached to prepare the job is limited by the launcher. */
#define DIAL_DEADLINE_MS 10000

struct link {
    struct peers *peers;
    uint32_t worker;
    struct channel *channel;
    struct bufferevent *bev; /* the channel's; NULL: of the parent, which has dialled */
    bool greeted;            /* its hello has come */
};

struct peers {
    struct event_base *base;
    const struct agent_job *job;
    const struct tree *tree;
    struct tls_context *tls;
    struct peers_owner owner;
    struct link parent;
    struct link *children; /* by child index */
    struct event *deadline;
    uint32_t missing; /* neighbours not connected */
    bool dialled;     /* the children, if any, are being connected */
    bool lost;
};

struct peers *peers_new(struct event_base *base, const struct agent_job *job,
                        const struct tree *tree, struct tls_context *tls,
                        const struct peers_owner *owner)
{
    struct peers *peers = calloc(1, sizeof *peers);
    uint32_t children = tree_child_count(tree);
    if (!peers || !(peers->children = calloc(children + 1, sizeof *peers->children))) {
        free(peers);
        return NULL;
    }
    peers->base = base;
    peers->job = job;
    peers->tree = tree;
    peers->tls = tls;
    peers->owner = *owner;
    peers->parent = (struct link){.peers = peers, .worker = tree_parent(tree)};
    for (uint32_t i = 0; i < children; i++)
        peers->children[i] = (struct link){.peers = peers, .worker = tree_child(tree, i)};
    peers->missing = children + (tree->self != 0);
    return peers;
}

void peers_free(struct peers *peers)
{
    if (!peers)
        return;
    for (uint32_t i = 0; i < tree_child_count(peers->tree); i++)
        channel_free(peers->children[i].channel);
    channel_free(peers->parent.channel);
    if (peers->deadline)
        event_free(peers->deadline);
    free(peers->children);
    free(peers);
}

static void lose(struct peers *peers, const struct link *link, struct drarun_error *err)
{
    if (peers->lost)
        return;
    peers->lost = true;
    if (err->code == 0)
        error_set(err, ECONNRESET, "it closed the connection");
    err->kind = DRARUN_ERR_INFRASTRUCTURE;
    error_prefix(err, "worker %u (%s)", link->worker,
                 peers->job->wire->workers[link->worker]->host);
    peers->owner.lost(peers->owner.arg, err);
}

/* Ready once every neighbour is there and this agent has dialled: the parent may come before. */
static void tell_ready(struct peers *peers)
{
    if (peers->missing > 0 || !peers->dialled)
        return;
    if (peers->deadline)
        event_del(peers->deadline);
    peers->owner.ready(peers->owner.arg);
}

static void greeted(struct link *link)
{
    link->greeted = true;
    link->peers->missing--;
    tell_ready(link->peers);
}

/* It has the key, and may still be another agent than the one that was to be at this address. */
static int check_neighbour(const struct link *link, const Drarun__Wire__Hello *hello,
                           struct drarun_error *err)
{
    const Drarun__Wire__Launch *wire = link->peers->job->wire;
    int rc = hello_check(hello, pmix_version(), err);
    if (rc < 0)
        return rc;
    if (hello->worker == link->worker && hello->attempt == wire->attempt &&
        strcmp(hello->job, wire->uid) == 0)
        return 0;
    return error_set(err, EPROTO,
                     "worker %u of job %.64s, attempt %u, answers at its address: do two agents "
                     "share it?",
                     hello->worker, hello->job, hello->attempt);
}

static void pass_on(struct peers *peers, const Drarun__Wire__Envelope *message)
{
    uint32_t destination = message->routed->destination;
    if (destination < peers->tree->size)
        peers_send(peers, tree_next_hop(peers->tree, destination), message);
}

static void on_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    struct link *link = arg;
    struct peers *peers = link->peers;
    struct drarun_error err = {0};
    (void)channel;
    if (message->body_case == DRARUN__WIRE__ENVELOPE__BODY_FAILURE) {
        error_set(&err, EPROTO, "it refused: %s", message->failure->text);
        lose(peers, link, &err);
    } else if (message->body_case == DRARUN__WIRE__ENVELOPE__BODY_HELLO && !link->greeted) {
        if (check_neighbour(link, message->hello, &err) < 0)
            lose(peers, link, &err);
        else
            greeted(link);
    } else if (message->body_case == DRARUN__WIRE__ENVELOPE__BODY_ROUTED &&
               message->routed->destination != peers->tree->self) {
        pass_on(peers, message);
    } else {
        peers->owner.message(peers->owner.arg, link->worker, message);
    }
}

static void on_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    struct link *link = arg;
    struct drarun_error copy = *err;
    (void)channel;
    lose(link->peers, link, &copy);
}

static void send_hello(struct peers *peers, struct channel *channel)
{
    Drarun__Wire__Hello hello = DRARUN__WIRE__HELLO__INIT;
    hello_fill(&hello, DRARUN__WIRE__ROLE__ROLE_PEER, pmix_version());
    hello.job = peers->job->wire->uid;
    hello.attempt = peers->job->wire->attempt;
    hello.worker = peers->tree->self;
    hello.host = unconst(peers->job->host);
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(HELLO, hello, &hello);
    channel_send(channel, &envelope);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    struct peers *peers = arg;
    (void)fd;
    (void)what;
    const struct link *missing = NULL;
    if (peers->tree->self != 0 && !peers->parent.greeted)
        missing = &peers->parent;
    for (uint32_t i = 0; i < tree_child_count(peers->tree); i++)
        if (!tls_has_proved(peers->children[i].bev))
            missing = &peers->children[i];
    struct drarun_error err = {0};
    error_set(&err, ETIMEDOUT, "not connected to its neighbour worker %u within %d s",
              peers->tree->self, DIAL_DEADLINE_MS / 1000);
    if (missing)
        lose(peers, missing, &err);
}

static int dial_child(struct peers *peers, struct link *link, struct drarun_error *err)
{
    const char *address = peers->job->wire->workers[link->worker]->address;
    int fd = -1;
    int rc = dial_start(address, &fd, err);
    if (rc < 0)
        return rc;
    struct bufferevent *bev = tls_open_take(peers->tls, peers->base, fd, err);
    if (!bev)
        return -err->code;
    link->bev = bev;
    link->channel = channel_from_bufferevent_take(bev, on_message, on_closed, link);
    if (!link->channel)
        return error_set(err, ENOMEM, "out of memory");
    channel_set_explain(link->channel, tls_failure);
    channel_set_silence(link->channel, peers->owner.silence_ms);
    send_hello(peers, link->channel);
    /* the child replaces what is ours in it by what the launcher assigned */
    Drarun__Wire__Envelope launch = WIRE_ENVELOPE(LAUNCH, launch, peers->job->wire);
    rc = channel_send(link->channel, &launch);
    return rc < 0 ? error_set(err, -rc, "launch message: %s", strerror(-rc)) : 0;
}

int peers_connect(struct peers *peers, struct drarun_error *err)
{
    for (uint32_t i = 0; i < tree_child_count(peers->tree); i++) {
        struct link *link = &peers->children[i];
        int rc = dial_child(peers, link, err);
        if (rc < 0)
            return error_prefix(err, "worker %u", link->worker);
    }
    struct timeval limit = timeval_from_ms(DIAL_DEADLINE_MS);
    peers->deadline = evtimer_new(peers->base, on_deadline, peers);
    if (!peers->deadline || evtimer_add(peers->deadline, &limit) < 0)
        return error_set(err, ENOMEM, "out of memory");
    peers->dialled = true;
    tell_ready(peers);
    return 0;
}

int peers_parent_take(struct peers *peers, struct channel *channel, uint32_t worker,
                      struct drarun_error *err)
{
    if (worker != peers->parent.worker || peers->parent.channel) {
        channel_free(channel);
        return error_set(err, EPROTO, "worker %u dialled, which is not the parent", worker);
    }
    peers->parent.channel = channel;
    channel_set_callbacks(channel, on_message, on_closed, &peers->parent);
    channel_set_silence(channel, peers->owner.silence_ms);
    send_hello(peers, channel);
    greeted(&peers->parent);
    return 0;
}

static struct channel *channel_to(struct peers *peers, uint32_t worker)
{
    if (worker == peers->parent.worker)
        return peers->parent.channel;
    uint32_t index = tree_child_index(peers->tree, worker);
    return index == TREE_NONE ? NULL : peers->children[index].channel;
}

void peers_send(struct peers *peers, uint32_t worker, const Drarun__Wire__Envelope *message)
{
    struct channel *channel = channel_to(peers, worker);
    int rc = channel ? channel_send(channel, message) : -ENOTCONN;
    if (rc < 0 && !peers->lost)
        log_error("message to worker %u not sent: %s", worker, strerror(-rc));
}

void peers_route(struct peers *peers, Drarun__Wire__Routed *message)
{
    message->source = peers->tree->self;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(ROUTED, routed, message);
    peers_send(peers, tree_next_hop(peers->tree, message->destination), &envelope);
}

void peers_broadcast(struct peers *peers, Drarun__Wire__Routed *message)
{
    for (uint32_t worker = 0; worker < peers->tree->size; worker++) {
        if (worker == peers->tree->self)
            continue;
        message->destination = worker;
        peers_route(peers, message);
    }
}
