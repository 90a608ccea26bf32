/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a job have published, on worker 0: found by key and by rank, within limits. Who
 * waits for it, and what other jobs are told of it, is data_store.c's. One thread. */
#ifndef DRARUN_WORKER_PMIX_PUBLISHED_H
#define DRARUN_WORKER_PMIX_PUBLISHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <pmix_common.h>

#define ANY_RANK UINT32_MAX

struct shared_round;

struct data_entry {
    struct data_entry *next; /* of its bucket, in the order of their publication */
    size_t bytes;            /* packed */
    pmix_proc_t publisher;
    uint32_t rank;               /* of the job: the same */
    uint32_t reader;             /* the rank that it is for; ANY_RANK */
    bool first_read;             /* gone after the first lookup (PMIX_PERSIST_FIRST_READ) */
    bool far;                    /* other jobs may know it */
    bool shared;                 /* the launcher has it, too, or is about to */
    bool unshared;               /* the launcher could not have it */
    struct shared_round *moving; /* first_read: while the launcher is about to; owned */
    pmix_key_t key;
    pmix_value_t value;
};

struct published;

/* NULL without memory; published_free accepts it. */
struct published *published_new(void);
void published_free(struct published *table);
/* The ranks are 0 to ranks - 1; never fewer than before. 0; -ENOMEM. */
int published_grow(struct published *table, uint32_t ranks);
uint32_t published_ranks(const struct published *table);

/* Copies publisher, key and value; bytes: what it counts as in the limits of its rank and of the
 * job. PMIX_ERR_DUPLICATE_KEY, PMIX_ERR_OUT_OF_RESOURCE, PMIX_ERR_NOMEM. */
pmix_status_t published_add(struct published *table, const pmix_proc_t *publisher, uint32_t rank,
                            bool first_read, bool far, const pmix_info_t *info, size_t bytes);
void published_remove(struct published *table, struct data_entry *gone);

/* These lend an entry until it is removed; NULL: there is none. */
struct data_entry *published_find(const struct published *table, const char *key, uint32_t rank);
/* What a look-up of this rank may read: what is for it alone before what is for any.
 * calls: it awaits the answer to what it has published (exchange.h). */
struct data_entry *published_find_for(const struct published *table, const char *key, uint32_t rank,
                                      bool calls);
/* All of one rank, one after the other, in no order. before: NULL for the first. */
struct data_entry *published_next(const struct published *table, uint32_t rank,
                                  const struct data_entry *before);
/* Logs that what the rank asks for is too much, once for each rank: the status that it gets has no
 * words. */
void published_tell_full(struct published *table, uint32_t rank, const char *what);

#endif
