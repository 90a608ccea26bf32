/* SPDX-License-Identifier: Apache-2.0 */
/* Published data, which live on worker 0. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/fnv.h"
#include "lib/base/log.h"
#include "worker/pmix/host_private.h"

/* What one rank may have published at a time, and all of them together. One message
 * (PMIX_ROUTED_MAX) always fits. */
#define DATA_RANK_ENTRIES_MAX 4096u
#define DATA_RANK_BYTES_MAX FRAME_MAX
#define DATA_RANK_WAITERS_MAX 256u /* lookups that wait */
#define DATA_BYTES_MAX (256u << 20)
#define DATA_BUCKETS 4096u

struct data_entry {
    struct data_entry *next; /* of its bucket */
    size_t bytes;            /* packed */
    pmix_proc_t publisher;
    uint32_t rank;   /* of the job: the same */
    bool first_read; /* gone after the first lookup (PMIX_PERSIST_FIRST_READ) */
    pmix_key_t key;
    pmix_value_t value;
};

/* A lookup that waits until its keys are published. */
struct data_waiter {
    struct data_waiter *next;
    struct pmix_host *host;
    uint32_t source;
    uint32_t rank; /* who asks */
    uint64_t id;
    struct strlist keys;
    struct event *timeout;
};

struct data_usage { /* by one rank */
    uint32_t entries, waiters;
    size_t bytes;
    bool told; /* that it has too many */
};

struct data_store {
    struct data_entry *buckets[DATA_BUCKETS];
    struct data_usage *usage; /* by rank */
    uint32_t ranks;
    size_t bytes;
    struct data_waiter *waiters;
};

static struct data_store *store_new(uint32_t ranks)
{
    struct data_store *store = calloc(1, sizeof *store);
    struct data_usage *usage = calloc(ranks + 1u, sizeof *usage);
    if (!store || !usage) {
        free(store);
        free(usage);
        return NULL;
    }
    store->usage = usage;
    store->ranks = ranks;
    return store;
}

/* Groups have come since. */
static int store_grow(struct data_store *store, uint32_t ranks)
{
    if (ranks <= store->ranks)
        return 0;
    struct data_usage *usage = realloc(store->usage, (ranks + 1u) * sizeof *usage);
    if (!usage)
        return -ENOMEM;
    memset(usage + store->ranks, 0, (ranks + 1u - store->ranks) * sizeof *usage);
    store->usage = usage;
    store->ranks = ranks;
    return 0;
}

static void entry_free(struct data_entry *entry)
{
    PMIX_VALUE_DESTRUCT(&entry->value);
    free(entry);
}

static void waiter_free(struct data_waiter *waiter)
{
    if (waiter->timeout)
        event_free(waiter->timeout);
    strlist_done(&waiter->keys);
    free(waiter);
}

void data_store_free(struct data_store *store)
{
    if (!store)
        return;
    for (size_t b = 0; b < DATA_BUCKETS; b++)
        while (store->buckets[b]) {
            struct data_entry *next = store->buckets[b]->next;
            entry_free(store->buckets[b]);
            store->buckets[b] = next;
        }
    while (store->waiters) {
        struct data_waiter *next = store->waiters->next;
        waiter_free(store->waiters);
        store->waiters = next;
    }
    free(store->usage);
    free(store);
}

static struct data_entry **bucket_of(struct data_store *store, const char *key)
{
    return &store->buckets[fnv1a_32(key, strlen(key)) % DATA_BUCKETS];
}

static struct data_entry *find(struct data_store *store, const char *key)
{
    for (struct data_entry *entry = *bucket_of(store, key); entry; entry = entry->next)
        if (strcmp(entry->key, key) == 0)
            return entry;
    return NULL;
}

static void remove_entry(struct data_store *store, struct data_entry *gone)
{
    struct data_entry **at = bucket_of(store, gone->key);
    struct data_usage *usage = &store->usage[gone->rank];
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    usage->entries--;
    usage->bytes -= gone->bytes;
    store->bytes -= gone->bytes;
    entry_free(gone);
}

static void reply(struct pmix_host *host, uint32_t to, uint64_t id, pmix_status_t status,
                  const pmix_data_buffer_t *buffer)
{
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    Drarun__Wire__DataReply body = DRARUN__WIRE__DATA_REPLY__INIT;
    body.status = status;
    if (buffer && buffer->bytes_used > PMIX_ROUTED_MAX) {
        body.status = PMIX_ERR_OUT_OF_RESOURCE;
    } else if (buffer) {
        body.data.data = (uint8_t *)buffer->base_ptr;
        body.data.len = buffer->bytes_used;
    }
    message.destination = to;
    message.id = id;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_DATA_REPLY;
    message.data_reply = &body;
    pmix_route(host, &message);
}

/* Answers when all keys are there, or (at_once) with those that are; false when it must wait. */
static bool try_lookup(struct pmix_host *host, const struct strlist *keys, uint32_t source,
                       uint64_t id, bool at_once)
{
    struct data_store *store = host->store;
    size_t found = 0;
    for (size_t i = 0; i < keys->count; i++)
        found += find(store, keys->items[i]) != NULL;
    if (found < keys->count && !at_once)
        return false;
    pmix_data_buffer_t buffer;
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    for (size_t i = 0; i < keys->count; i++) {
        struct data_entry *entry = find(store, keys->items[i]);
        if (!entry)
            continue;
        pmix_info_t info;
        PMIX_INFO_CONSTRUCT(&info);
        PMIX_LOAD_KEY(info.key, entry->key);
        info.value = entry->value; /* lent for packing */
        PMIx_Data_pack(NULL, &buffer, &entry->publisher, 1, PMIX_PROC);
        PMIx_Data_pack(NULL, &buffer, &info, 1, PMIX_INFO);
        if (entry->first_read)
            remove_entry(store, entry);
    }
    reply(host, source, id, found > 0 ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND, &buffer);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return true;
}

static void remove_waiter(struct data_store *store, struct data_waiter *gone)
{
    struct data_waiter **at = &store->waiters;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    store->usage[gone->rank].waiters--;
    waiter_free(gone);
}

static void on_lookup_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct data_waiter *waiter = arg;
    struct pmix_host *host = waiter->host;
    (void)fd, (void)what;
    reply(host, waiter->source, waiter->id, PMIX_ERR_TIMEOUT, NULL);
    remove_waiter(host->store, waiter);
}

static void retry_waiters(struct pmix_host *host)
{
    struct data_waiter *next;
    for (struct data_waiter *waiter = host->store->waiters; waiter; waiter = next) {
        next = waiter->next;
        if (try_lookup(host, &waiter->keys, waiter->source, waiter->id, false))
            remove_waiter(host->store, waiter);
    }
}

/* Once for each rank: the status that it gets has no words. */
static void tell_full(struct data_usage *usage, uint32_t rank, const char *what)
{
    const struct log_about about = {.of_rank = true, .rank = rank};
    if (!usage->told)
        log_about(&about, LOG_QUIET, "rank %u: PMIx: %s: the rest is refused", rank, what);
    usage->told = true;
}

static bool has_room(struct data_store *store, uint32_t rank, size_t bytes)
{
    struct data_usage *usage = &store->usage[rank];
    char what[120];
    if (bytes > DATA_BYTES_MAX - store->bytes)
        snprintf(what, sizeof what, "all ranks have published more than %u bytes", DATA_BYTES_MAX);
    else if (usage->entries >= DATA_RANK_ENTRIES_MAX || bytes > DATA_RANK_BYTES_MAX - usage->bytes)
        snprintf(what, sizeof what, "it has published more than %u keys or %u bytes",
                 DATA_RANK_ENTRIES_MAX, DATA_RANK_BYTES_MAX);
    else
        return true;
    tell_full(usage, rank, what);
    return false;
}

static pmix_status_t add_entry(struct data_store *store, const pmix_proc_t *publisher,
                               uint32_t rank, bool first_read, pmix_info_t *info, size_t bytes)
{
    if (rank >= store->ranks)
        return PMIX_ERR_BAD_PARAM;
    if (find(store, info->key))
        return PMIX_ERR_DUPLICATE_KEY;
    if (!has_room(store, rank, bytes))
        return PMIX_ERR_OUT_OF_RESOURCE;
    struct data_entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return PMIX_ERR_NOMEM;
    entry->publisher = *publisher;
    entry->rank = rank;
    entry->first_read = first_read;
    entry->bytes = bytes;
    PMIX_LOAD_KEY(entry->key, info->key);
    pmix_status_t status = PMIx_Value_xfer(&entry->value, &info->value);
    if (status != PMIX_SUCCESS) {
        free(entry);
        return status;
    }
    struct data_entry **bucket = bucket_of(store, entry->key);
    entry->next = *bucket;
    *bucket = entry;
    store->usage[rank].entries++;
    store->usage[rank].bytes += bytes;
    store->bytes += bytes;
    return PMIX_SUCCESS;
}

static pmix_status_t publish(struct data_store *store, const Drarun__Wire__Publish *message)
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
        status = add_entry(store, &publisher, message->rank, first_read, &info, bytes);
        PMIX_INFO_DESTRUCT(&info);
    }
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return status;
}

static pmix_status_t may_wait(struct data_store *store, uint32_t rank)
{
    char what[80];
    if (rank >= store->ranks)
        return PMIX_ERR_BAD_PARAM;
    if (store->usage[rank].waiters < DATA_RANK_WAITERS_MAX)
        return PMIX_SUCCESS;
    snprintf(what, sizeof what, "more than %u of its lookups wait", DATA_RANK_WAITERS_MAX);
    tell_full(&store->usage[rank], rank, what);
    return PMIX_ERR_OUT_OF_RESOURCE;
}

static void lookup(struct pmix_host *host, const Drarun__Wire__Routed *message)
{
    const Drarun__Wire__Lookup *wanted = message->lookup;
    struct strlist keys = STRLIST_INIT;
    for (size_t i = 0; i < wanted->n_keys; i++)
        strlist_add(&keys, wanted->keys[i]);
    if (try_lookup(host, &keys, message->source, message->id, !wanted->wait)) {
        strlist_done(&keys);
        return;
    }
    struct data_waiter *waiter = NULL;
    pmix_status_t status = may_wait(host->store, wanted->rank);
    if (status == PMIX_SUCCESS && !(waiter = calloc(1, sizeof *waiter)))
        status = PMIX_ERR_NOMEM;
    if (status != PMIX_SUCCESS) {
        strlist_done(&keys);
        reply(host, message->source, message->id, status, NULL);
        return;
    }
    *waiter = (struct data_waiter){.next = host->store->waiters,
                                   .host = host,
                                   .source = message->source,
                                   .rank = wanted->rank,
                                   .id = message->id,
                                   .keys = keys};
    host->store->waiters = waiter;
    host->store->usage[wanted->rank].waiters++;
    if (wanted->timeout_s == 0)
        return; /* the end of the job is its deadline */
    struct timeval limit = timeval_from_ms((int64_t)wanted->timeout_s * 1000);
    waiter->timeout = evtimer_new(host->base, on_lookup_timeout, waiter);
    if (waiter->timeout)
        evtimer_add(waiter->timeout, &limit);
}

static void unpublish_all(struct data_store *store, uint32_t rank)
{
    struct data_entry *next;
    for (size_t b = 0; b < DATA_BUCKETS; b++)
        for (struct data_entry *entry = store->buckets[b]; entry; entry = next) {
            next = entry->next;
            if (entry->rank == rank)
                remove_entry(store, entry);
        }
}

static void unpublish(struct data_store *store, const Drarun__Wire__Unpublish *message)
{
    if (message->n_keys == 0)
        unpublish_all(store, message->rank);
    for (size_t i = 0; i < message->n_keys; i++) {
        struct data_entry *entry = find(store, message->keys[i]);
        if (entry && entry->rank == message->rank)
            remove_entry(store, entry);
    }
}

void pmix_data_request(struct pmix_host *host, const Drarun__Wire__Routed *message)
{
    if (!host->store)
        host->store = store_new(host->job->map.ranks);
    if (!host->store || store_grow(host->store, host->job->map.ranks) < 0) {
        reply(host, message->source, message->id, PMIX_ERR_NOMEM, NULL);
    } else if (message->body_case == DRARUN__WIRE__ROUTED__BODY_LOOKUP) {
        lookup(host, message);
    } else if (message->body_case == DRARUN__WIRE__ROUTED__BODY_PUBLISH) {
        reply(host, message->source, message->id, publish(host->store, message->publish), NULL);
        retry_waiters(host);
    } else {
        unpublish(host->store, message->unpublish);
        reply(host, message->source, message->id, PMIX_SUCCESS, NULL);
    }
}
