/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmix/published.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/fnv.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "worker/pmix/host_private.h"

/* What one rank may have published at a time, and all of them together. One message
 * (PMIX_ROUTED_MAX) always fits. */
#define RANK_ENTRIES_MAX 4096u
#define RANK_BYTES_MAX FRAME_MAX
#define ALL_BYTES_MAX (256u << 20)
#define BUCKETS 4096u

struct usage { /* by one rank */
    uint32_t entries;
    size_t bytes;
    bool told; /* that it asks for too much */
};

struct published {
    struct data_entry *buckets[BUCKETS];
    struct usage *usage; /* by rank */
    uint32_t ranks;
    size_t bytes;
};

struct published *published_new(void)
{
    return calloc(1, sizeof(struct published));
}

static void entry_free(struct data_entry *entry)
{
    if (entry->moving)
        shared_round_drop(entry->moving);
    PMIX_VALUE_DESTRUCT(&entry->value);
    free(entry);
}

void published_free(struct published *table)
{
    if (!table)
        return;
    for (size_t b = 0; b < BUCKETS; b++)
        while (table->buckets[b]) {
            struct data_entry *next = table->buckets[b]->next;
            entry_free(table->buckets[b]);
            table->buckets[b] = next;
        }
    free(table->usage);
    free(table);
}

int published_grow(struct published *table, uint32_t ranks)
{
    if (ranks <= table->ranks)
        return 0;
    struct usage *usage = realloc(table->usage, ranks * sizeof *usage);
    if (!usage)
        return -ENOMEM;
    memset(usage + table->ranks, 0, (ranks - table->ranks) * sizeof *usage);
    table->usage = usage;
    table->ranks = ranks;
    return 0;
}

uint32_t published_ranks(const struct published *table)
{
    return table->ranks;
}

static size_t bucket_of(const char *key)
{
    return fnv1a_32(key, strlen(key)) % BUCKETS;
}

struct data_entry *published_find(const struct published *table, const char *key, uint32_t rank)
{
    struct data_entry *entry = table->buckets[bucket_of(key)];
    while (entry && (entry->rank != rank || strcmp(entry->key, key) != 0))
        entry = entry->next;
    return entry;
}

/* What is for one look-up, and has gone to the launcher, is looked up there by this job, too. */
static bool may_read(const struct data_entry *entry, uint32_t rank, bool calls)
{
    if (!entry->first_read)
        return true;
    return !entry->shared && (entry->reader == rank || (entry->reader == ANY_RANK && !calls));
}

struct data_entry *published_find_for(const struct published *table, const char *key, uint32_t rank,
                                      bool calls)
{
    struct data_entry *found = NULL;
    for (struct data_entry *entry = table->buckets[bucket_of(key)]; entry; entry = entry->next) {
        if (strcmp(entry->key, key) != 0 || !may_read(entry, rank, calls))
            continue;
        if (entry->reader == rank)
            return entry;
        if (!found)
            found = entry;
    }
    return found;
}

struct data_entry *published_next(const struct published *table, uint32_t rank,
                                  const struct data_entry *before)
{
    if (rank >= table->ranks || table->usage[rank].entries == 0)
        return NULL;
    size_t b = before ? bucket_of(before->key) : 0;
    struct data_entry *entry = before ? before->next : table->buckets[0];
    for (;;) {
        for (; entry; entry = entry->next)
            if (entry->rank == rank)
                return entry;
        if (++b == BUCKETS)
            return NULL;
        entry = table->buckets[b];
    }
}

void published_remove(struct published *table, struct data_entry *gone)
{
    struct data_entry **at = &table->buckets[bucket_of(gone->key)];
    struct usage *usage = &table->usage[gone->rank];
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    usage->entries--;
    usage->bytes -= gone->bytes;
    table->bytes -= gone->bytes;
    entry_free(gone);
}

void published_tell_full(struct published *table, uint32_t rank, const char *what)
{
    const struct log_about about = {.of_rank = true, .rank = rank};
    struct usage *usage = &table->usage[rank];
    if (!usage->told)
        log_about(&about, LOG_QUIET, "rank %u: PMIx: %s: the rest is rejected", rank, what);
    usage->told = true;
}

static bool has_room(struct published *table, uint32_t rank, size_t bytes)
{
    const struct usage *usage = &table->usage[rank];
    char what[120];
    if (bytes > ALL_BYTES_MAX - table->bytes)
        snprintf(what, sizeof what, "all ranks have published more than %u bytes", ALL_BYTES_MAX);
    else if (usage->entries >= RANK_ENTRIES_MAX || bytes > RANK_BYTES_MAX - usage->bytes)
        snprintf(what, sizeof what, "it has published more than %u keys or %u bytes",
                 RANK_ENTRIES_MAX, RANK_BYTES_MAX);
    else
        return true;
    published_tell_full(table, rank, what);
    return false;
}

/* Processes that call the same one publish the same key; each of them does once at a time. */
static bool is_duplicate(const struct published *table, const char *key, uint32_t rank,
                         bool first_read)
{
    const struct data_entry *entry = table->buckets[bucket_of(key)];
    for (; entry; entry = entry->next) {
        if (strcmp(entry->key, key) != 0)
            continue;
        if (!first_read || !entry->first_read || (entry->rank == rank && entry->reader == ANY_RANK))
            return true;
    }
    return false;
}

pmix_status_t published_add(struct published *table, const pmix_proc_t *publisher, uint32_t rank,
                            bool first_read, bool far, const pmix_info_t *info, size_t bytes)
{
    if (rank >= table->ranks)
        return PMIX_ERR_BAD_PARAM;
    if (is_duplicate(table, info->key, rank, first_read))
        return PMIX_ERR_DUPLICATE_KEY;
    if (!has_room(table, rank, bytes))
        return PMIX_ERR_OUT_OF_RESOURCE;
    struct data_entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return PMIX_ERR_NOMEM;
    entry->publisher = *publisher;
    entry->rank = rank;
    entry->reader = ANY_RANK;
    entry->first_read = first_read;
    entry->far = far;
    entry->bytes = bytes;
    PMIX_LOAD_KEY(entry->key, info->key);
    pmix_status_t status = PMIx_Value_xfer(&entry->value, unconst(&info->value));
    if (status != PMIX_SUCCESS) {
        free(entry);
        return status;
    }
    struct data_entry **at = &table->buckets[bucket_of(entry->key)];
    while (*at)
        at = &(*at)->next;
    *at = entry;
    table->usage[rank].entries++;
    table->usage[rank].bytes += bytes;
    table->bytes += bytes;
    return PMIX_SUCCESS;
}
