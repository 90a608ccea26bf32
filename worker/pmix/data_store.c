/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks publish, look up and unpublish data: what worker 0 answers, when, and what it asks or tells
 * the launcher, which knows what other jobs have published. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "worker/pmix/exchange.h"
#include "worker/pmix/host_private.h"
#include "worker/pmix/published.h"

#define RANK_WAITERS_MAX 256u /* lookups that wait */
#define FAR_PORTS_MAX 4096u

/* A look-up of a rank. */
struct asking {
    uint32_t source;
    uint64_t id;
    uint32_t rank;
    bool calls; /* it awaits the answer to what it has published (exchange.h): its only key */
    uint32_t may_lack; /* one that waits: so many of the keys, less than all */
    struct strlist keys;
};

/* A key that another job may publish for a lookup that waits. */
struct data_await {
    struct data_await *next;
    struct data_waiter *waiter;
    struct shared_round *round;
};

/* A lookup that waits until enough of its keys are published. */
struct data_waiter {
    struct data_waiter *next;
    struct pmix_host *host;
    struct asking asking;
    struct buf others; /* of the reply: what other jobs have */
    struct data_await *awaits;
    struct strlist moved; /* keys of the rank in exchange for which it waits, at the launcher */
    uint32_t timeout_s;
    struct event *timeout;
};

struct data_store {
    struct published *published;
    bool stirred; /* ranks that wait may read what they could not before */
    struct data_waiter *waiters;
    struct strlist far_ports, far_jobs; /* texts that other jobs have published, and who; side by
                                           side */
};

static struct data_store *store_new(void)
{
    struct data_store *store = calloc(1, sizeof *store);
    if (store && !(store->published = published_new())) {
        free(store);
        return NULL;
    }
    return store;
}

static void waiter_free(struct data_waiter *waiter)
{
    while (waiter->awaits) {
        struct data_await *next = waiter->awaits->next;
        shared_round_drop(waiter->awaits->round);
        free(waiter->awaits);
        waiter->awaits = next;
    }
    if (waiter->timeout)
        event_free(waiter->timeout);
    strlist_done(&waiter->asking.keys);
    strlist_done(&waiter->moved);
    buf_done(&waiter->others);
    free(waiter);
}

void data_store_free(struct data_store *store)
{
    if (!store)
        return;
    published_free(store->published);
    while (store->waiters) {
        struct data_waiter *next = store->waiters->next;
        waiter_free(store->waiters);
        store->waiters = next;
    }
    strlist_done(&store->far_ports);
    strlist_done(&store->far_jobs);
    free(store);
}

static struct data_entry *find_for(const struct data_store *store, const char *key,
                                   const struct asking *asking)
{
    return published_find_for(store->published, key, asking->rank, asking->calls);
}

/* The next one of the rank that is fit for something with this key; NULL: none. */
static struct data_entry *find_fit(const struct data_store *store, uint32_t rank,
                                   bool (*is_fit)(const struct data_entry *entry, const char *key),
                                   const char *key)
{
    struct data_entry *entry = published_next(store->published, rank, NULL);
    while (entry && !is_fit(entry, key))
        entry = published_next(store->published, rank, entry);
    return entry;
}

static void reply(struct pmix_host *host, uint32_t to, uint64_t id, pmix_status_t status,
                  const struct buf *packed)
{
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    Drarun__Wire__DataReply body = DRARUN__WIRE__DATA_REPLY__INIT;
    body.status = status;
    if (packed && packed->len > PMIX_ROUTED_MAX) {
        body.status = PMIX_ERR_OUT_OF_RESOURCE;
    } else if (packed) {
        body.data.data = (uint8_t *)packed->data;
        body.data.len = packed->len;
    }
    message.destination = to;
    message.id = id;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_DATA_REPLY;
    message.data_reply = &body;
    pmix_route(host, &message);
}

/* Appends the publisher and the datum, as replies and other jobs get them. info: lent for packing.
 */
static void pack_datum(struct buf *out, const pmix_proc_t *publisher, const pmix_info_t *info)
{
    pmix_data_buffer_t buffer;
    pmix_proc_t proc = *publisher;
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    if (PMIx_Data_pack(NULL, &buffer, &proc, 1, PMIX_PROC) == PMIX_SUCCESS &&
        PMIx_Data_pack(NULL, &buffer, unconst(info), 1, PMIX_INFO) == PMIX_SUCCESS)
        buf_add(out, buffer.base_ptr, buffer.bytes_used);
    else
        out->failed = true;
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
}

/* False: out of memory, and it stays. */
static bool withdraw(struct pmix_host *host, struct data_entry *entry)
{
    if (entry->moving) {
        published_remove(host->store->published, entry);
        return true;
    }
    struct shared_round *round = entry->shared ? shared_round_new(host, 1, NULL, NULL) : NULL;
    bool good = !entry->shared || (round && shared_round_unpublish(round, entry->key));
    if (round)
        shared_round_end(round);
    if (good)
        published_remove(host->store->published, entry);
    return good;
}

static void pack_entry(struct buf *out, const struct data_entry *entry)
{
    pmix_info_t info;
    PMIX_INFO_CONSTRUCT(&info);
    PMIX_LOAD_KEY(info.key, entry->key);
    info.value = entry->value; /* lent for packing */
    pack_datum(out, &entry->publisher, &info);
}

static bool is_answer(const struct data_entry *entry, const char *key)
{
    return entry->first_read && !entry->shared && entry->reader == ANY_RANK &&
           exchange_answers(entry->key, key);
}

/* The rank has read this key of another one, which alone may read what it answers. */
static void answer_rank(struct data_store *store, uint32_t rank, const char *key, uint32_t caller)
{
    struct data_entry *entry;
    while ((entry = find_fit(store, rank, is_answer, key))) {
        entry->reader = caller;
        store->stirred = true;
    }
}

/* Answers when enough keys are there, or (at_once) with those that are; false when it must wait.
 * others: what other jobs have, beside the keys. */
static bool try_lookup(struct pmix_host *host, const struct asking *asking,
                       const struct buf *others, bool at_once)
{
    struct data_store *store = host->store;
    const struct strlist *keys = &asking->keys;
    size_t found = 0;
    for (size_t i = 0; i < keys->count; i++)
        found += find_for(store, keys->items[i], asking) != NULL;
    if (found + asking->may_lack < keys->count && !at_once)
        return false;
    struct buf packed = BUF_INIT;
    buf_add(&packed, others->data, others->len);
    for (size_t i = 0; i < keys->count; i++) {
        struct data_entry *entry = find_for(store, keys->items[i], asking);
        if (!entry)
            continue;
        pack_entry(&packed, entry);
        if (!entry->first_read || packed.failed)
            continue;
        answer_rank(store, asking->rank, entry->key, entry->rank);
        if (!withdraw(host, entry))
            packed.failed = true;
    }
    pmix_status_t status = packed.failed    ? PMIX_ERR_NOMEM
                           : packed.len > 0 ? PMIX_SUCCESS
                                            : PMIX_ERR_NOT_FOUND;
    reply(host, asking->source, asking->id, status, &packed);
    buf_done(&packed);
    return true;
}

static void remove_waiter(struct data_store *store, struct data_waiter *gone)
{
    struct data_waiter **at = &store->waiters;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    waiter_free(gone);
}

static bool is_in_exchange(const struct data_entry *entry, const char *key)
{
    return entry->first_read && entry->reader == ANY_RANK && exchange_is_pair(entry->key, key);
}

/* The rank waits no longer: nobody is to meet it by what it has published in exchange. False: that
 * is nothing. */
static bool take_back(struct pmix_host *host, const struct data_waiter *waiter)
{
    const struct asking *asking = &waiter->asking;
    struct data_entry *entry;
    bool any = waiter->moved.count > 0;
    struct shared_round *round =
        any ? shared_round_new(host, waiter->moved.count, NULL, NULL) : NULL;
    for (size_t i = 0; round && i < waiter->moved.count; i++)
        shared_round_unpublish(round, waiter->moved.items[i]);
    if (round)
        shared_round_end(round);
    while (asking->keys.count == 1 &&
           (entry = find_fit(host->store, asking->rank, is_in_exchange, asking->keys.items[0])) &&
           withdraw(host, entry))
        any = true;
    return any;
}

static void on_lookup_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct data_waiter *waiter = arg;
    struct pmix_host *host = waiter->host;
    const struct asking *asking = &waiter->asking;
    const struct log_about about = {.of_rank = true, .rank = asking->rank};
    (void)fd, (void)what;
    if (take_back(host, waiter))
        log_about(&about, LOG_NORMAL,
                  "rank %u: no process has come to the port of its MPI_Comm_connect or "
                  "MPI_Comm_accept within %u s: it gets an error; Open MPI leaves the other ranks "
                  "of its communicator waiting until it calls again",
                  asking->rank, waiter->timeout_s);
    reply(host, asking->source, asking->id, PMIX_ERR_TIMEOUT, NULL);
    remove_waiter(host->store, waiter);
}

/* Who reads may let others read. */
static void retry_waiters(struct pmix_host *host)
{
    struct data_waiter *next;
    do {
        host->store->stirred = false;
        for (struct data_waiter *waiter = host->store->waiters; waiter; waiter = next) {
            next = waiter->next;
            if (try_lookup(host, &waiter->asking, &waiter->others, false))
                remove_waiter(host->store, waiter);
        }
    } while (host->store->stirred);
}

/* One rank's publish while the launcher is asked whether another job has a name of it. */
struct publishing {
    uint32_t source;
    uint64_t id;
    uint32_t rank;
    pmix_status_t status;
};

static void publishing_done(struct shared_round *round)
{
    struct pmix_host *host = round->host;
    struct publishing *publishing = round->arg;
    for (size_t i = 0; i < round->count; i++) {
        const struct shared_name *name = &round->names[i];
        struct data_entry *entry =
            name->key ? published_find(host->store->published, name->key, publishing->rank) : NULL;
        if (!entry)
            continue;
        if (name->answer == SHARED_ALONE)
            entry->shared = false;
        if (name->answer != SHARED_NO)
            continue;
        /* not withdrawn: the launcher's is another job's */
        published_remove(host->store->published, entry);
        publishing->status = PMIX_ERR_DUPLICATE_KEY;
    }
    reply(host, publishing->source, publishing->id, publishing->status, NULL);
    retry_waiters(host);
    free(publishing);
}

/* False: out of memory. */
static bool share(struct shared_round *round, uint32_t rank, const char *key)
{
    struct buf packed = BUF_INIT;
    struct data_entry *entry = published_find(round->host->store->published, key, rank);
    pack_entry(&packed, entry);
    entry->shared = !packed.failed && shared_round_publish(round, key, &packed, false);
    buf_done(&packed);
    return entry->shared;
}

/* Its rank may wait for an answer to it, and take it back. */
static void note_moved(struct data_store *store, const struct data_entry *entry)
{
    for (struct data_waiter *waiter = store->waiters; waiter; waiter = waiter->next)
        if (waiter->asking.calls && waiter->asking.rank == entry->rank &&
            exchange_calls(entry->key, waiter->asking.keys.items[0]))
            strlist_add(&waiter->moved, entry->key);
}

/* What is for one look-up is where other jobs look now, if they can. */
static void moved(struct shared_round *round)
{
    struct data_entry *entry = round->arg;
    struct pmix_host *host = round->host;
    entry->moving = NULL;
    if (round->count > 0 && round->names[round->count - 1].answer == SHARED_YES) {
        note_moved(host->store, entry);
        published_remove(host->store->published, entry);
        return;
    }
    entry->shared = false;
    entry->unshared = true;
    retry_waiters(host);
}

/* caller: of another job: the only process that may read it; NULL: any. May free the entry. */
static void move(struct pmix_host *host, struct data_entry *entry, const pmix_proc_t *caller)
{
    struct buf packed = BUF_INIT, name = BUF_INIT;
    struct shared_round *round = shared_round_new(host, 2, moved, entry);
    entry->unshared = !round; /* it stays within its job */
    if (!round)
        return;
    entry->shared = true;
    entry->moving = round;
    pack_entry(&packed, entry);
    if (caller)
        exchange_name_answer(&name, entry->key, caller);
    if (!packed.failed && !name.failed && caller) {
        shared_round_unpublish(round, name.data); /* of a former call that was given up */
        shared_round_publish(round, name.data, &packed, true);
    } else if (!packed.failed && !name.failed) {
        shared_round_queue(round, entry->key, &packed);
    }
    buf_done(&name);
    buf_done(&packed);
    shared_round_end(round);
}

static bool may_move(const struct data_entry *entry)
{
    return entry->first_read && entry->far && entry->reader == ANY_RANK && !entry->shared &&
           !entry->unshared;
}

static bool is_call_to_move(const struct data_entry *entry, const char *key)
{
    return may_move(entry) && exchange_calls(entry->key, key);
}

static bool is_answer_to_move(const struct data_entry *entry, const char *key)
{
    return may_move(entry) && exchange_answers(entry->key, key);
}

/* Only that the rank waits for this key shows that the process that it calls may be in another job.
 */
static void move_calls(struct pmix_host *host, uint32_t rank, const char *key)
{
    struct data_entry *entry;
    while (host->job->wire->meets && (entry = find_fit(host->store, rank, is_call_to_move, key)))
        move(host, entry, NULL);
}

/* The rank has read this key of a process of another job. */
static void move_answers(struct pmix_host *host, uint32_t rank, const char *key,
                         const pmix_proc_t *caller)
{
    struct data_entry *entry;
    while (host->job->wire->meets && (entry = find_fit(host->store, rank, is_answer_to_move, key)))
        move(host, entry, caller);
}

/* Adds what the message has; fresh: the keys that are there now. */
static pmix_status_t add_all(struct data_store *store, const Drarun__Wire__Publish *message,
                             struct strlist *fresh)
{
    pmix_data_buffer_t buffer;
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    pmix_byte_object_t packed = {(char *)message->data.data, message->data.len};
    pmix_proc_t publisher;
    bool first_read = false;
    int32_t one = 1;
    pmix_status_t status = PMIx_Data_embed(&buffer, &packed);
    if (status == PMIX_SUCCESS)
        status = PMIx_Data_unpack(NULL, &buffer, &publisher, &one, PMIX_PROC);
    if (status == PMIX_SUCCESS)
        status = PMIx_Data_unpack(NULL, &buffer, &first_read, &one, PMIX_BOOL);
    while (status == PMIX_SUCCESS) {
        pmix_info_t info;
        const char *before = buffer.unpack_ptr;
        PMIX_INFO_CONSTRUCT(&info);
        if (PMIx_Data_unpack(NULL, &buffer, &info, &one, PMIX_INFO) != PMIX_SUCCESS)
            break; /* the end */
        size_t bytes = sizeof(struct data_entry) + (size_t)(buffer.unpack_ptr - before);
        status = published_add(store->published, &publisher, message->rank, first_read,
                               message->far, &info, bytes);
        if (status == PMIX_SUCCESS)
            strlist_add(fresh, info.key);
        PMIX_INFO_DESTRUCT(&info);
    }
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return status;
}

static void publish(struct pmix_host *host, const Drarun__Wire__Routed *message)
{
    struct strlist fresh = STRLIST_INIT;
    struct shared_round *round = NULL;
    pmix_status_t status = add_all(host->store, message->publish, &fresh);
    struct publishing *publishing = NULL;
    bool is_shared = message->publish->shared && (fresh.count > 0 || fresh.failed);
    if (is_shared && !fresh.failed)
        publishing = malloc(sizeof *publishing);
    if (publishing) {
        *publishing =
            (struct publishing){message->source, message->id, message->publish->rank, status};
        round = shared_round_new(host, fresh.count, publishing_done, publishing);
    }
    for (size_t i = 0; round && i < fresh.count; i++)
        if (!share(round, publishing->rank, fresh.items[i]))
            publishing->status = PMIX_ERR_NOMEM;
    strlist_done(&fresh);
    if (round) {
        shared_round_end(round);
        return;
    }
    free(publishing);
    reply(host, message->source, message->id, is_shared ? PMIX_ERR_NOMEM : status, NULL);
    retry_waiters(host);
}

static pmix_status_t may_wait(const struct data_store *store, uint32_t rank)
{
    uint32_t waiting = 0;
    char what[80];
    if (rank >= published_ranks(store->published))
        return PMIX_ERR_BAD_PARAM;
    for (const struct data_waiter *waiter = store->waiters; waiter; waiter = waiter->next)
        waiting += waiter->asking.rank == rank;
    if (waiting < RANK_WAITERS_MAX)
        return PMIX_SUCCESS;
    snprintf(what, sizeof what, "more than %u of its lookups wait", RANK_WAITERS_MAX);
    published_tell_full(store->published, rank, what);
    return PMIX_ERR_OUT_OF_RESOURCE;
}

/* One rank's look-up while the launcher is asked for what other jobs have. */
struct looking {
    struct asking asking;
    uint32_t timeout_s;
    bool wait;
};

static bool is_call(const struct data_entry *entry, const char *key)
{
    return entry->first_read && exchange_calls(entry->key, key);
}

/* Open MPI's processes meet by waiting for keys that begin with the port. Which job is to publish
 * such a key; "": not known. */
static const char *job_of_key(const struct data_store *store, const char *key)
{
    for (size_t i = 0; i < store->far_ports.count; i++) {
        size_t length = strlen(store->far_ports.items[i]);
        if (strncmp(key, store->far_ports.items[i], length) == 0 && key[length] == ':')
            return store->far_jobs.items[i];
    }
    return "";
}

static bool unpack_datum(const struct shared_name *name, pmix_proc_t *ret_publisher,
                         pmix_info_t *ret_info)
{
    pmix_data_buffer_t buffer;
    pmix_byte_object_t bytes = {name->value.data, name->value.len};
    int32_t one = 1;
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    bool good = PMIx_Data_embed(&buffer, &bytes) == PMIX_SUCCESS &&
                PMIx_Data_unpack(NULL, &buffer, ret_publisher, &one, PMIX_PROC) == PMIX_SUCCESS &&
                PMIx_Data_unpack(NULL, &buffer, ret_info, &one, PMIX_INFO) == PMIX_SUCCESS;
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return good;
}

static void note_far_port(struct data_store *store, const struct shared_name *name)
{
    pmix_proc_t proc;
    pmix_info_t info;
    PMIX_INFO_CONSTRUCT(&info);
    if (unpack_datum(name, &proc, &info) && info.value.type == PMIX_STRING &&
        info.value.data.string && info.value.data.string[0] &&
        store->far_ports.count < FAR_PORTS_MAX &&
        !strlist_has(&store->far_ports, info.value.data.string)) {
        strlist_add(&store->far_ports, info.value.data.string);
        strlist_add(&store->far_jobs, name->job);
    }
    PMIX_INFO_DESTRUCT(&info);
}

/* The rank has read this at the launcher: its answer is for the publisher, in whichever job. */
static void answer_publisher(struct pmix_host *host, uint32_t rank, const struct shared_name *name)
{
    pmix_proc_t caller;
    pmix_info_t info;
    PMIX_INFO_CONSTRUCT(&info);
    if (unpack_datum(name, &caller, &info)) {
        int64_t own = pmix_rank_of(host, &caller);
        if (own >= 0)
            answer_rank(host->store, rank, info.key, (uint32_t)own);
        else
            move_answers(host, rank, info.key, &caller);
    }
    PMIX_INFO_DESTRUCT(&info);
}

/* By what name the launcher has the key for this look-up. */
static void name_key(const struct pmix_host *host, const struct asking *asking, const char *key,
                     struct buf *out)
{
    if (asking->calls) {
        pmix_proc_t proc = pmix_proc_of(host, asking->rank);
        exchange_name_answer(out, key, &proc);
    } else {
        buf_add_str(out, key);
    }
}

/* And back. */
static const char *key_of_name(const struct asking *asking, const struct shared_name *name)
{
    return asking->calls ? asking->keys.items[0] : name->key;
}

static void drop_key(struct strlist *keys, const char *key)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (strcmp(keys->items[i], key) != 0)
            continue;
        free(keys->items[i]);
        keys->items[i] = keys->items[--keys->count];
        keys->items[keys->count] = NULL;
        return;
    }
}

static void unlink_await(struct data_await *await)
{
    struct data_await **at = &await->waiter->awaits;
    while (*at != await)
        at = &(*at)->next;
    *at = await->next;
    free(await);
}

static void awaited(struct shared_round *round)
{
    struct data_await *await = round->arg;
    struct data_waiter *waiter = await->waiter;
    struct asking *asking = &waiter->asking;
    struct pmix_host *host = round->host;
    const struct shared_name *name = &round->names[0];
    uint32_t rank = asking->rank;
    unlink_await(await);
    if (name->answer == SHARED_NEVER) {
        reply(host, asking->source, asking->id, PMIX_ERR_LOST_CONNECTION, NULL);
        remove_waiter(host->store, waiter);
    } else if (name->answer == SHARED_YES) {
        buf_add(&waiter->others, name->value.data, name->value.len);
        drop_key(&asking->keys, key_of_name(asking, name));
        if (waiter->others.failed)
            reply(host, asking->source, asking->id, PMIX_ERR_NOMEM, NULL);
        if (waiter->others.failed || try_lookup(host, asking, &waiter->others, false))
            remove_waiter(host->store, waiter);
        answer_publisher(host, rank, name);
        retry_waiters(host);
    }
}

/* Other jobs may publish its keys, too. Without memory it waits for its own job alone. */
static void await_others(struct pmix_host *host, struct data_waiter *waiter)
{
    const struct asking *asking = &waiter->asking;
    for (size_t i = 0; host->job->wire->meets && i < asking->keys.count; i++) {
        const char *key = asking->keys.items[i];
        struct data_await *await =
            find_for(host->store, key, asking) ? NULL : calloc(1, sizeof *await);
        struct shared_round *round = await ? shared_round_new(host, 1, awaited, await) : NULL;
        struct buf name = BUF_INIT;
        if (round)
            name_key(host, asking, key, &name);
        if (!round || name.failed || !host->owner.name) {
            free(round);
            free(await);
            buf_done(&name);
            continue;
        }
        *await = (struct data_await){waiter->awaits, waiter, round};
        waiter->awaits = await;
        shared_round_lookup(round, name.data, true, job_of_key(host->store, key));
        buf_done(&name);
        shared_round_end(round);
    }
}

static void add_waiter(struct pmix_host *host, struct looking *looking, struct buf *others)
{
    struct data_waiter *waiter = NULL;
    const struct asking *asking = &looking->asking;
    uint32_t rank = asking->rank;
    pmix_status_t status = may_wait(host->store, rank);
    if (status == PMIX_SUCCESS && !(waiter = calloc(1, sizeof *waiter)))
        status = PMIX_ERR_NOMEM;
    if (status != PMIX_SUCCESS) {
        reply(host, asking->source, asking->id, status, NULL);
        return;
    }
    *waiter = (struct data_waiter){.next = host->store->waiters,
                                   .host = host,
                                   .asking = *asking,
                                   .others = *others,
                                   .timeout_s = looking->timeout_s};
    looking->asking.keys = (struct strlist)STRLIST_INIT;
    *others = (struct buf)BUF_INIT;
    host->store->waiters = waiter;
    if (waiter->timeout_s > 0) { /* else the end of the job is its deadline */
        struct timeval limit = timeval_from_ms((int64_t)waiter->timeout_s * 1000);
        waiter->timeout = evtimer_new(host->base, on_lookup_timeout, waiter);
        if (!waiter->timeout || evtimer_add(waiter->timeout, &limit) < 0) {
            reply(host, waiter->asking.source, waiter->asking.id, PMIX_ERR_NOMEM, NULL);
            remove_waiter(host->store, waiter);
            return;
        }
    }
    pmix_key_t called = "";
    if (waiter->asking.calls)
        PMIX_LOAD_KEY(called, waiter->asking.keys.items[0]);
    await_others(host, waiter);
    move_calls(host, rank, called);
}

static void looking_free(struct looking *looking)
{
    strlist_done(&looking->asking.keys);
    free(looking);
}

static void looking_done(struct shared_round *round)
{
    struct looking *looking = round->arg;
    struct asking *asking = &looking->asking;
    struct pmix_host *host = round->host;
    struct buf others = BUF_INIT;
    for (size_t i = 0; i < round->count; i++) {
        struct shared_name *name = &round->names[i];
        asking->keys.failed |= name->value.failed;
        if (name->answer != SHARED_YES)
            continue;
        buf_add(&others, name->value.data, name->value.len);
        if (name->job[0] && !looking->wait) /* MPI_Lookup_name */
            note_far_port(host->store, name);
        drop_key(&asking->keys, key_of_name(asking, name));
        answer_publisher(host, asking->rank, name);
    }
    if (asking->keys.failed || others.failed)
        reply(host, asking->source, asking->id, PMIX_ERR_NOMEM, NULL);
    else if (!try_lookup(host, asking, &others, !looking->wait))
        add_waiter(host, looking, &others);
    if (host->store->stirred)
        retry_waiters(host);
    buf_done(&others);
    looking_free(looking);
}

static void lookup(struct pmix_host *host, const Drarun__Wire__Routed *message)
{
    const Drarun__Wire__Lookup *wanted = message->lookup;
    struct shared_round *round = NULL;
    struct looking *looking = malloc(sizeof *looking);
    if (looking) {
        *looking = (struct looking){
            .asking = {.source = message->source, .id = message->id, .rank = wanted->rank},
            .timeout_s = wanted->timeout_s,
            .wait = wanted->wait};
        looking->asking.may_lack = wanted->may_lack < wanted->n_keys ? wanted->may_lack : 0;
        looking->asking.calls = wanted->wait && wanted->n_keys == 1 &&
                                find_fit(host->store, wanted->rank, is_call, wanted->keys[0]);
        for (size_t i = 0; i < wanted->n_keys; i++)
            strlist_add(&looking->asking.keys, wanted->keys[i]);
        round = looking->asking.keys.failed
                    ? NULL
                    : shared_round_new(host, wanted->n_keys, looking_done, looking);
    }
    if (!round) {
        if (looking)
            looking_free(looking);
        reply(host, message->source, message->id, PMIX_ERR_NOMEM, NULL);
        return;
    }
    for (size_t i = 0; i < wanted->n_keys; i++) {
        struct buf name = BUF_INIT;
        if (find_for(host->store, wanted->keys[i], &looking->asking))
            continue;
        name_key(host, &looking->asking, wanted->keys[i], &name);
        if (name.failed || !shared_round_lookup(round, name.data, false, ""))
            looking->asking.keys.failed = true;
        buf_done(&name);
    }
    shared_round_end(round);
}

static bool unpublish_all(struct pmix_host *host, uint32_t rank)
{
    struct published *published = host->store->published;
    struct data_entry *next, *entry = published_next(published, rank, NULL);
    bool good = true;
    for (; entry; entry = next) {
        next = published_next(published, rank, entry);
        good = withdraw(host, entry) && good;
    }
    return good;
}

static pmix_status_t unpublish(struct pmix_host *host, const Drarun__Wire__Unpublish *message)
{
    bool good = message->n_keys > 0 || unpublish_all(host, message->rank);
    for (size_t i = 0; i < message->n_keys; i++) {
        struct data_entry *entry;
        bool gone = true;
        while (gone &&
               (entry = published_find(host->store->published, message->keys[i], message->rank)))
            gone = withdraw(host, entry);
        good = good && gone;
    }
    return good ? PMIX_SUCCESS : PMIX_ERR_NOMEM;
}

void pmix_data_request(struct pmix_host *host, const Drarun__Wire__Routed *message)
{
    if (!host->store)
        host->store = store_new();
    /* Groups may have come since. */
    if (!host->store || published_grow(host->store->published, host->job->map.ranks) < 0) {
        reply(host, message->source, message->id, PMIX_ERR_NOMEM, NULL);
    } else if (message->body_case == DRARUN__WIRE__ROUTED__BODY_LOOKUP) {
        lookup(host, message);
    } else if (message->body_case == DRARUN__WIRE__ROUTED__BODY_PUBLISH) {
        publish(host, message);
    } else {
        reply(host, message->source, message->id, unpublish(host, message->unpublish), NULL);
    }
}
