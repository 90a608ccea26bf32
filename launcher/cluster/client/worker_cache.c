/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/worker_cache.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/gang/gang.h"
#include "jobs/manifests/claims.h"
#include "lib/base/error.h"
#include "lib/base/number.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"
#include "lib/kube/object.h"

#define UID_SIZE 64

/* The last object of a worker that was deleted. */
struct deleted {
    uint32_t attempt;     /* 0: none, or no label says which */
    char owner[UID_SIZE]; /* its uid: of a claim made of a template it is the pod */
};

struct worker {
    json_t *objects[WORKER_OBJECT_COUNT]; /* by kind, arrays of those that are there; or NULL */
    const json_t *pod;                    /* that of the attempt: one of objects; or NULL */
    json_t *claim; /* a reference: one made of a template is not in objects */
    struct deleted deleted[WORKER_OBJECT_COUNT];
    struct news news;
    bool stale;   /* its state is to be read again */
    bool changed; /* it was, and worker_cache_each_changed has not said so */
};

struct worker_cache {
    const struct job_spec *spec;
    struct worker_cache_claims claims;
    char parent[UID_SIZE];
    bool owned;        /* parent counts */
    uint32_t attempt;  /* of the states */
    struct worker *of; /* spec->workers of them, and one for what is of no worker of the spec */
    struct pod_state *states;
    struct gang_sums sums;     /* of states */
    uint32_t *stale, *changed; /* the numbers of the workers that are marked so */
    uint32_t stale_count, changed_count;
    size_t counts[WORKER_OBJECT_COUNT];
    bool incomplete;
    bool telling; /* worker_cache_each_changed goes through changed, which must not grow */
};

static bool is_direct(const struct worker_cache *cache)
{
    return cache->spec->claims == SPEC_CLAIMS_DIRECT;
}

/* ---- begin and end ---- */

static void mark(struct worker_cache *cache, uint32_t worker)
{
    assert(!cache->telling);
    if (worker >= cache->spec->workers || cache->of[worker].stale)
        return;
    cache->of[worker].stale = true;
    cache->stale[cache->stale_count++] = worker;
}

static void mark_all(struct worker_cache *cache)
{
    for (uint32_t i = 0; i < cache->spec->workers; i++)
        mark(cache, i);
}

int worker_cache_new(const struct job_spec *spec, const struct worker_cache_claims *claims,
                     struct worker_cache **ret_cache, struct drarun_error *err)
{
    CLEANUP(worker_cache_freep) struct worker_cache *cache = calloc(1, sizeof *cache);
    size_t count = spec->workers;
    if (!cache)
        return error_set(err, ENOMEM, "out of memory");
    *cache = (struct worker_cache){.spec = spec,
                                   .claims = *claims,
                                   .of = calloc(count + 1, sizeof *cache->of),
                                   .states = calloc(count, sizeof *cache->states),
                                   .stale = calloc(count, sizeof *cache->stale),
                                   .changed = calloc(count, sizeof *cache->changed)};
    if (gang_sums_init(&cache->sums, spec->workers) < 0 || !cache->of || !cache->states ||
        !cache->stale || !cache->changed)
        return error_set(err, ENOMEM, "out of memory");
    mark_all(cache);
    *ret_cache = TAKE_PTR(cache);
    return 0;
}

void worker_cache_free(struct worker_cache *cache)
{
    if (!cache)
        return;
    for (uint32_t i = 0; cache->of && i <= cache->spec->workers; i++) {
        struct worker *worker = &cache->of[i];
        json_decref(worker->objects[WORKER_POD]);
        json_decref(worker->objects[WORKER_CLAIM]);
        json_decref(worker->claim);
        news_done(&worker->news);
    }
    gang_sums_done(&cache->sums);
    free(cache->of);
    free(cache->states);
    free(cache->stale);
    free(cache->changed);
    free(cache);
}

bool worker_cache_is_incomplete(const struct worker_cache *cache)
{
    return cache->incomplete;
}

/* ---- whose an object is ---- */

static bool is_owned(const struct worker_cache *cache, const json_t *object)
{
    return !cache->owned || kube_is_owned_by(object, cache->parent);
}

/* With `claims: template` the pods' owner goes before they do. */
static bool counts(const struct worker_cache *cache, const json_t *object)
{
    return !is_direct(cache) || is_owned(cache, object);
}

static void count_again(struct worker_cache *cache, enum worker_object kind)
{
    size_t i;
    json_t *object;
    cache->counts[kind] = 0;
    for (uint32_t w = 0; w <= cache->spec->workers; w++)
        json_array_foreach(cache->of[w].objects[kind], i, object) cache->counts[kind] +=
            counts(cache, object);
}

void worker_cache_own(struct worker_cache *cache, const char *parent_uid)
{
    if (cache->owned == !!parent_uid && strcmp(cache->parent, parent_uid ? parent_uid : "") == 0)
        return;
    cache->owned = parent_uid;
    snprintf(cache->parent, sizeof cache->parent, "%s", parent_uid ? parent_uid : "");
    count_again(cache, WORKER_POD);
    count_again(cache, WORKER_CLAIM);
    mark_all(cache);
}

/* ---- what there is ---- */

/* NULL: it is no worker's. */
static struct worker *worker_of(struct worker_cache *cache, int64_t worker)
{
    uint32_t count = cache->spec->workers;
    return worker < 0 ? NULL : &cache->of[worker < count ? worker : count];
}

/* SIZE_MAX: it is not there. */
static size_t find(const json_t *list, const json_t *object)
{
    size_t i;
    json_t *each;
    json_array_foreach(list, i, each) if (strcmp(kube_name(each), kube_name(object)) == 0) return i;
    return SIZE_MAX;
}

void worker_cache_remove(struct worker_cache *cache, enum worker_object kind, int64_t worker,
                         const json_t *object)
{
    struct worker *of = worker_of(cache, worker);
    json_t *list = of ? of->objects[kind] : NULL;
    size_t at = find(list, object);
    if (of)
        mark(cache, (uint32_t)(of - cache->of));
    if (at == SIZE_MAX)
        return;
    cache->counts[kind] -= counts(cache, json_array_get(list, at));
    json_array_remove(list, at);
}

void worker_cache_put(struct worker_cache *cache, enum worker_object kind, int64_t worker,
                      const json_t *object)
{
    struct worker *of = worker_of(cache, worker);
    if (!of)
        return;
    mark(cache, (uint32_t)(of - cache->of));
    if (kind == WORKER_CLAIM && !is_direct(cache))
        return; /* found by its name */
    if (!of->objects[kind])
        of->objects[kind] = json_array();
    json_t *list = of->objects[kind];
    size_t at = find(list, object);
    if (at != SIZE_MAX)
        cache->counts[kind] -= counts(cache, json_array_get(list, at));
    int rc = at == SIZE_MAX ? json_array_append(list, unconst(object))
                            : json_array_set(list, at, unconst(object));
    if (rc == 0)
        cache->counts[kind] += counts(cache, object);
    else
        cache->incomplete = true;
}

uint32_t worker_cache_attempt_of(const json_t *object)
{
    const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    const char *label = json_string_value(json_object_get(labels, "drarun.dev/attempt"));
    int64_t attempt = 0;
    number_parse("attempt", label ? label : "", 0, UINT32_MAX, &attempt, NULL);
    return (uint32_t)attempt;
}

void worker_cache_delete(struct worker_cache *cache, enum worker_object kind, int64_t worker,
                         const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *owners = json_object_get(metadata, "ownerReferences");
    const char *owner = json_string_value(json_object_get(json_array_get(owners, 0), "uid"));
    worker_cache_remove(cache, kind, worker, object);
    if (worker < 0 || worker >= cache->spec->workers)
        return;
    struct deleted *deleted = &cache->of[worker].deleted[kind];
    deleted->attempt = worker_cache_attempt_of(object);
    snprintf(deleted->owner, sizeof deleted->owner, "%s", owner ? owner : "");
}

bool worker_cache_hear(struct worker_cache *cache, uint32_t worker, const json_t *event)
{
    if (worker >= cache->spec->workers)
        return false;
    mark(cache, worker); /* also of an Event that says nothing: it may take the place of others */
    return news_add(&cache->of[worker].news, event);
}

size_t worker_cache_count(const struct worker_cache *cache, enum worker_object kind)
{
    return cache->counts[kind];
}

/* ---- the state of a worker ---- */

/* An Indexed Job may have replaced it: the one that is not on its way out. */
static const json_t *choose_pod(const struct worker_cache *cache, const struct worker *worker)
{
    size_t i;
    json_t *pod;
    const json_t *chosen = NULL;
    json_array_foreach(worker->objects[WORKER_POD], i, pod)
    {
        if (worker_cache_attempt_of(pod) == cache->attempt && is_owned(cache, pod) &&
            (!chosen || !kube_is_terminating(pod)))
            chosen = pod;
    }
    return chosen;
}

/* Claims made of a template are called by the pod's status. */
static const json_t *claim_of_pod(const struct worker_cache *cache, const json_t *pod)
{
    const json_t *list = json_object_get(json_object_get(pod, "status"), "resourceClaimStatuses");
    const char *claim = value_text(value_find(list, "name", "devices"), "resourceClaimName");
    return claim ? cache->claims.find(cache->claims.arg, claim) : NULL;
}

static const json_t *choose_claim(const struct worker_cache *cache, const struct worker *worker)
{
    size_t i;
    json_t *claim;
    const json_t *chosen = NULL;
    if (cache->spec->claims == SPEC_CLAIMS_TEMPLATE)
        return claim_of_pod(cache, worker->pod);
    json_array_foreach(worker->objects[WORKER_CLAIM], i, claim) if (is_owned(cache, claim)) chosen =
        claim;
    return chosen;
}

/* It was made for this attempt by the launcher, which alone makes it again. */
static bool is_ours(const struct worker_cache *cache, const struct deleted *deleted)
{
    return deleted->attempt == cache->attempt &&
           (!cache->owned || strcmp(deleted->owner, cache->parent) == 0);
}

/* Of `claims: template` the Job controller makes a pod again; nobody makes a pod's claim again. */
static bool has_vanished(const struct worker_cache *cache, const struct worker *worker,
                         const struct pod_state *state)
{
    const struct deleted *pod = &worker->deleted[WORKER_POD];
    const struct deleted *claim = &worker->deleted[WORKER_CLAIM];
    if (!is_direct(cache))
        return state->claim == CLAIM_ABSENT && state->uid && claim->owner[0] &&
               strcmp(claim->owner, state->uid) == 0;
    return (state->phase == POD_ABSENT && is_ours(cache, pod)) ||
           (state->claim == CLAIM_ABSENT && is_ours(cache, claim));
}

static void read_again(struct worker_cache *cache, uint32_t number)
{
    struct worker *worker = &cache->of[number];
    struct pod_state *state = &cache->states[number];
    json_t *before = worker->claim;
    worker->pod = choose_pod(cache, worker);
    worker->claim = json_incref(unconst(choose_claim(cache, worker)));
    json_decref(before);
    pod_state_read(worker->pod, worker->claim, claims_wanted_by(spec_role_of(cache->spec, number)),
                   &worker->news, state);
    state->vanished = has_vanished(cache, worker, state);
    gang_sums_set(&cache->sums, number, gang_marks(state), state->ordered_ms);
    worker->stale = false;
    if (!worker->changed)
        cache->changed[cache->changed_count++] = number;
    worker->changed = true;
}

static void refresh(struct worker_cache *cache, uint32_t attempt)
{
    if (attempt != cache->attempt)
        mark_all(cache);
    cache->attempt = attempt;
    for (uint32_t i = 0; i < cache->stale_count; i++)
        read_again(cache, cache->stale[i]);
    cache->stale_count = 0;
}

const struct pod_state *worker_cache_states(struct worker_cache *cache, uint32_t attempt)
{
    refresh(cache, attempt);
    return cache->states;
}

const struct gang_sums *worker_cache_sums(const struct worker_cache *cache)
{
    return &cache->sums;
}

const json_t *worker_cache_claim(struct worker_cache *cache, uint32_t worker, uint32_t attempt)
{
    refresh(cache, attempt);
    return cache->of[worker].claim;
}

void worker_cache_each_changed(struct worker_cache *cache, uint32_t attempt,
                               bool (*fn)(uint32_t worker, const struct pod_state *state,
                                          void *arg),
                               void *arg)
{
    uint32_t kept = 0;
    refresh(cache, attempt);
    cache->telling = true;
    for (uint32_t i = 0; i < cache->changed_count; i++) {
        uint32_t worker = cache->changed[i];
        bool done = fn(worker, &cache->states[worker], arg);
        cache->of[worker].changed = !done;
        if (!done)
            cache->changed[kept++] = worker;
    }
    cache->changed_count = kept;
    cache->telling = false;
}
