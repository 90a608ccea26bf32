/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/tree/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/wire/acceptor.h"
#include "lib/wire/hello.h"
#include "lib/wire/peer.h"
#include "worker/tree/pmix_version.h"

#define HELLO_DEADLINE_MS 10000
#define REFUSALS_PER_S 10u

/* A connection that has not said hello yet. */
struct guest {
    TAILQ_ENTRY(guest) entry;
    struct listen_door *door;
    struct origin *origin;
    struct channel *channel;
    struct bufferevent *bev; /* the channel's */
    struct event *deadline;
    int64_t since_ms;
};

/* Where guests come from. All users of this machine have its addresses, so there the user counts.
 */
struct source {
    enum { SOURCE_ADDRESS = 1, SOURCE_USER, SOURCE_UNTOLD } kind;
    struct in6_addr address; /* of IPv4 mapped; of IPv6 the /64, which one machine may have */
    uid_t user;
};

struct origin {
    TAILQ_ENTRY(origin) entry;
    struct source source;
    size_t count;
    TAILQ_HEAD(, guest) guests; /* the oldest first */
};

struct listen_door {
    struct event_base *base;
    struct acceptor *acceptor;
    struct tls_context *tls;
    listen_hello_fn on_hello;
    void *arg;
    size_t count, max; /* guests */
    TAILQ_HEAD(, origin) origins;
    int64_t second;          /* of the clock, in which so many refusals were logged */
    size_t refusals, unsaid; /* unsaid: since the last line */
};

/* Strangers may come by the thousand. */
static void log_refusal(struct listen_door *door, const char *peer, const char *why)
{
    int64_t second = clock_ms() / 1000;
    door->refusals = second == door->second ? door->refusals + 1 : 1;
    door->second = second;
    if (door->refusals > REFUSALS_PER_S) {
        door->unsaid++;
        return;
    }
    if (door->unsaid > 0)
        log_error("%zu more connections were refused", door->unsaid);
    door->unsaid = 0;
    log_error("%s refused: %s", peer, why);
}

/* ---- origins ---- */

static struct in6_addr read_address(const struct sockaddr_storage *from)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
    struct in6_addr mapped = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    if (from->ss_family == AF_INET6)
        return v6->sin6_addr;
    memcpy(&mapped.s6_addr[12], &v4->sin_addr, sizeof v4->sin_addr);
    return mapped;
}

static bool is_of_this_machine(const struct in6_addr *peer, const struct in6_addr *ours)
{
    return IN6_ARE_ADDR_EQUAL(peer, ours) || IN6_IS_ADDR_LOOPBACK(peer) ||
           (IN6_IS_ADDR_V4MAPPED(peer) && peer->s6_addr[12] == IN_LOOPBACKNET);
}

/* -ENOTCONN when the peer has left already. */
static int find_source(int fd, struct source *ret)
{
    struct sockaddr_storage peer = {0}, ours = {0};
    socklen_t peer_size = sizeof peer, ours_size = sizeof ours;
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_size) < 0 ||
        getsockname(fd, (struct sockaddr *)&ours, &ours_size) < 0)
        return -errno;
    struct source source = {.kind = SOURCE_ADDRESS, .address = read_address(&peer)};
    struct in6_addr own = read_address(&ours);
    if (is_of_this_machine(&source.address, &own)) {
        uid_t user = 0;
        bool told = peer_uid_quickly(fd, &user) == 0;
        source = (struct source){.kind = told ? SOURCE_USER : SOURCE_UNTOLD, .user = user};
    } else if (!IN6_IS_ADDR_V4MAPPED(&source.address)) {
        memset(&source.address.s6_addr[8], 0, 8);
    }
    *ret = source;
    return 0;
}

static bool source_equal(const struct source *a, const struct source *b)
{
    return a->kind == b->kind && a->user == b->user && IN6_ARE_ADDR_EQUAL(&a->address, &b->address);
}

static bool is_of_our_user(const struct source *source)
{
    return source->kind == SOURCE_USER && source->user == geteuid();
}

static struct origin *find_origin(const struct listen_door *door, const struct source *source)
{
    struct origin *origin;
    TAILQ_FOREACH (origin, &door->origins, entry)
        if (source_equal(&origin->source, source))
            return origin;
    return NULL;
}

static struct origin *make_origin(struct listen_door *door, const struct source *source)
{
    struct origin *origin = find_origin(door, source);
    if (origin || !(origin = calloc(1, sizeof *origin)))
        return origin;
    origin->source = *source;
    TAILQ_INIT(&origin->guests);
    TAILQ_INSERT_TAIL(&door->origins, origin, entry);
    return origin;
}

static void origin_remove(struct listen_door *door, struct guest *guest)
{
    struct origin *origin = guest->origin;
    TAILQ_REMOVE(&origin->guests, guest, entry);
    door->count--;
    if (--origin->count > 0)
        return;
    TAILQ_REMOVE(&door->origins, origin, entry);
    free(origin);
}

/* ---- guests ---- */

/* The channel stays open when it was taken out before. */
static void guest_free(struct guest *guest)
{
    origin_remove(guest->door, guest);
    channel_free(guest->channel);
    if (guest->deadline)
        event_free(guest->deadline);
    free(guest);
}

static void free_channel(void *arg)
{
    channel_free(arg);
}

static void ignore_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    (void)channel, (void)message, (void)arg;
}

static void ignore_close(struct channel *channel, const struct drarun_error *err, void *arg)
{
    (void)err, (void)arg;
    channel_free(channel);
}

void listen_refuse_take(struct channel *channel, const char *why, int code)
{
    Drarun__Wire__Failure failure = DRARUN__WIRE__FAILURE__INIT;
    failure.kind = DRARUN_ERR_INFRASTRUCTURE;
    failure.code = code;
    failure.rank = -1;
    failure.text = unconst(why);
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(FAILURE, failure, &failure);
    channel_send(channel, &envelope);
    channel_set_callbacks(channel, ignore_message, ignore_close, NULL);
    channel_on_drained(channel, free_channel, channel);
}

static void on_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    struct guest *guest = arg;
    struct listen_door *door = guest->door;
    struct drarun_error err = {0};
    guest->channel = NULL; /* from here on it is ours or the callee's */
    guest_free(guest);
    int rc = 0;
    if (message->body_case != DRARUN__WIRE__ENVELOPE__BODY_HELLO)
        rc = error_set(&err, EPROTO, "the first message is not a hello");
    else
        rc = hello_check(message->hello, pmix_version(), &err);
    if (rc < 0) {
        log_error("%s refused: %s", channel_peer(channel), err.text);
        listen_refuse_take(channel, err.text, err.code);
        return;
    }
    door->on_hello(channel, message->hello, door->arg);
}

static void on_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    struct guest *guest = arg;
    char why[sizeof err->text + 40];
    snprintf(why, sizeof why, "%s%s", err->text,
             err->code == EACCES ? " (does it hold this job's key?)" : "");
    if (err->code != 0)
        log_refusal(guest->door, channel_peer(channel), why);
    guest_free(guest);
}

static void drop(struct guest *guest, const char *why)
{
    log_refusal(guest->door, channel_peer(guest->channel), why);
    guest_free(guest);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    drop(arg, "no hello within 10 s");
}

/* ---- a crowd ---- */

/* NULL: all of them have proved the key, and only their hello is on its way. */
static struct guest *find_oldest_stranger(const struct origin *origin)
{
    struct guest *guest;
    TAILQ_FOREACH (guest, &origin->guests, entry)
        if (!tls_has_proved(guest->bev))
            return guest;
    return NULL;
}

/* Of the origin with the most. */
static struct guest *find_dispensable_of(const struct listen_door *door, bool our_user)
{
    struct guest *found = NULL;
    const struct origin *origin;
    size_t most = 0;
    TAILQ_FOREACH (origin, &door->origins, entry) {
        if (is_of_our_user(&origin->source) != our_user || origin->count <= most)
            continue;
        struct guest *guest = find_oldest_stranger(origin);
        most = guest ? origin->count : most;
        found = guest ? guest : found;
    }
    return found;
}

/* Our own user's last: another may have as many user ids as there are places. */
static struct guest *find_dispensable(const struct listen_door *door)
{
    struct guest *guest = find_dispensable_of(door, false);
    return guest ? guest : find_dispensable_of(door, true);
}

/* At the descriptor limit, where even a moment's patience is too much. */
static bool drop_dispensable(void *arg)
{
    struct guest *guest = find_dispensable(arg);
    if (guest)
        drop(guest, "too many connections wait without a hello");
    return guest != NULL;
}

static void drop_for_its_share(struct guest *guest)
{
    const struct source *source = &guest->origin->source;
    char why[100];
    if (source->kind == SOURCE_USER)
        snprintf(why, sizeof why, "too many connections of user %u wait without a hello",
                 (unsigned)source->user);
    else
        snprintf(why, sizeof why, "too many connections of %s wait without a hello",
                 source->kind == SOURCE_ADDRESS ? "its address"
                                                : "users that the kernel does not name");
    drop(guest, why);
}

/* For one more of that source; false: there is none to be dropped for it. Where whom it would be
 * has only just come, the newcomer is one too many until that has had its time. */
static bool make_place(struct listen_door *door, const struct source *source)
{
    const struct origin *origin = find_origin(door, source);
    bool of_origin = origin && origin->count >= door->max / 2;
    if (!of_origin && door->count < door->max)
        return true;
    struct guest *guest = of_origin ? find_oldest_stranger(origin) : find_dispensable(door);
    if (!guest)
        return false;
    int64_t age_ms = clock_ms() - guest->since_ms;
    if (age_ms < LISTEN_GRACE_MS) {
        acceptor_pause(door->acceptor, LISTEN_GRACE_MS - age_ms);
        return true;
    }
    if (of_origin)
        drop_for_its_share(guest);
    else
        drop(guest, "too many connections wait without a hello");
    return make_place(door, source);
}

/* ---- arrivals ---- */

static struct guest *guest_new(struct listen_door *door, const struct source *source)
{
    struct guest *guest = calloc(1, sizeof *guest);
    struct origin *origin = guest ? make_origin(door, source) : NULL;
    if (!origin) {
        free(guest);
        return NULL;
    }
    guest->door = door;
    guest->origin = origin;
    guest->since_ms = clock_ms();
    TAILQ_INSERT_TAIL(&origin->guests, guest, entry);
    origin->count++;
    door->count++;
    return guest;
}

static void on_accepted(int accepted, void *arg)
{
    struct listen_door *door = arg;
    struct drarun_error err = {0};
    struct timeval limit = timeval_from_ms(HELLO_DEADLINE_MS);
    struct source source = {0};
    cleanup_close int fd = accepted;
    if (find_source(fd, &source) < 0 || !make_place(door, &source))
        return;
    struct guest *guest = guest_new(door, &source);
    if (!guest) {
        log_error("a connection could not be opened: out of memory");
        return;
    }
    guest->bev = tls_open_take(door->tls, door->base, take_fd(&fd), &err);
    if (guest->bev)
        guest->channel = channel_from_bufferevent_take(guest->bev, on_message, on_closed, guest);
    guest->deadline = evtimer_new(door->base, on_deadline, guest);
    if (!guest->channel || !guest->deadline || evtimer_add(guest->deadline, &limit) < 0) {
        log_error("a connection could not be opened: %s", err.code ? err.text : "out of memory");
        guest_free(guest);
        return;
    }
    channel_set_explain(guest->channel, tls_failure);
}

/* ---- the door ---- */

static size_t guests_max(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur / 4 >= LISTEN_GUESTS_MAX)
        return LISTEN_GUESTS_MAX;
    return files.rlim_cur < 8 ? 2 : files.rlim_cur / 4;
}

struct listen_door *listen_open_take(struct event_base *base, int fd, const struct tls_key *key,
                                     listen_hello_fn on_hello, void *arg, struct drarun_error *err)
{
    cleanup_close int listener = fd;
    struct listen_door *door = calloc(1, sizeof *door);
    if (!door) {
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    struct acceptor_owner owner = {
        .accepted = on_accepted, .make_room = drop_dispensable, .arg = door};
    *door =
        (struct listen_door){.base = base, .on_hello = on_hello, .arg = arg, .max = guests_max()};
    TAILQ_INIT(&door->origins);
    door->tls = tls_context_new(key, TLS_SERVER, err);
    if (door->tls)
        door->acceptor = acceptor_new_take(base, take_fd(&listener), &owner, err);
    if (!door->acceptor) {
        listen_close(door);
        return NULL;
    }
    return door;
}

void listen_close(struct listen_door *door)
{
    if (!door)
        return;
    while (!TAILQ_EMPTY(&door->origins))
        guest_free(TAILQ_FIRST(&TAILQ_FIRST(&door->origins)->guests));
    acceptor_free(door->acceptor);
    tls_context_free(door->tls);
    free(door);
}
