/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of a job's workers, and the state of each worker that follows from them. A worker's
 * state is read again only when one of its objects, or an Event about it, has changed: the work per
 * change does not grow with the number of workers. The cache holds references to what it is told
 * of. No I/O; loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_WORKER_CACHE_H
#define DRARUN_LAUNCHER_CLUSTER_WORKER_CACHE_H

#include "jobs/gang/gang_sums.h"
#include "jobs/gang/news.h"
#include "jobs/gang/pod_state.h"
#include "jobs/spec/spec.h"
#include "lib/base/cleanup.h"

enum worker_object { WORKER_POD = 0, WORKER_CLAIM, WORKER_OBJECT_COUNT };

/* Claims made of a template do not say whose they are, their pod's status does: they are looked up
 * by the name that it has. */
struct worker_cache_claims {
    const json_t *(*find)(void *arg, const char *name); /* NULL: there is none */
    void *arg;
};

struct worker_cache;

/* spec is borrowed. claims: for a spec with `claims: template`. */
int worker_cache_new(const struct job_spec *spec, const struct worker_cache_claims *claims,
                     struct worker_cache **ret_cache, struct drarun_error *err);
void worker_cache_free(struct worker_cache *cache);
DEFINE_CLEANUP(struct worker_cache, worker_cache_free)

/* Out of memory, an object could not be kept: what the cache says is not true. */
bool worker_cache_is_incomplete(const struct worker_cache *cache);

/* The uid of the owner of the pods, and of the claims with `claims: direct`: those of others belong
 * to no worker. NULL: any owner. */
void worker_cache_own(struct worker_cache *cache, const char *parent_uid);

/* An object of that worker (-1: of none) is there, or has changed. */
void worker_cache_put(struct worker_cache *cache, enum worker_object kind, int64_t worker,
                      const json_t *object);
/* The object belongs to another worker now. */
void worker_cache_remove(struct worker_cache *cache, enum worker_object kind, int64_t worker,
                         const json_t *object);
/* It was deleted. The state says so (vanished) until the worker has another one. */
void worker_cache_delete(struct worker_cache *cache, enum worker_object kind, int64_t worker,
                         const json_t *object);
/* An Event about an object of that worker; as news_add. */
bool worker_cache_hear(struct worker_cache *cache, uint32_t worker, const json_t *event);

/* The workers of an attempt, spec->workers of them; borrowed until the cache is told of something.
 * Pods of other attempts do not count; claims may be kept from one to the next. */
const struct pod_state *worker_cache_states(struct worker_cache *cache, uint32_t attempt);
/* Of the states that were borrowed last; borrowed likewise. */
const struct gang_sums *worker_cache_sums(const struct worker_cache *cache);
/* The claim of a worker, borrowed likewise; NULL: none. */
const json_t *worker_cache_claim(struct worker_cache *cache, uint32_t worker, uint32_t attempt);

/* Calls fn with each worker whose state was read again since the last call. If fn returns false,
 * the next call calls it for that worker again. fn must tell the cache of nothing. */
void worker_cache_each_changed(struct worker_cache *cache, uint32_t attempt,
                               bool (*fn)(uint32_t worker, const struct pod_state *state,
                                          void *arg),
                               void *arg);

/* How many objects there are, of all attempts: those of the owner, or with `claims: template` all.
 */
size_t worker_cache_count(const struct worker_cache *cache, enum worker_object kind);

/* Of an object of a worker, or of all of them, by its label, from 1; 0: none says which. Pure. */
uint32_t worker_cache_attempt_of(const json_t *object);

#endif
