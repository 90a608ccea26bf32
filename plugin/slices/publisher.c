/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/slices/publisher.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/kube/watch.h"
#include "plugin/slices/pool.h"

#define ECHO_MS 5000 /* how long the watch may take to show what was written */
#define RACE_MS 500
#define RACES_FREE 2u /* lost in a row, which one who was faster explains */
#define PAUSE_MS 1000 /* after the first failure; doubles */
#define PAUSE_MAX_MS 60000
#define FIGHTS_FREE 2u  /* restored at once */
#define PEACE_MS 300000 /* without a restoration: the next one is the first again */

enum wait {
    WAIT_NONE = 0,
    WAIT_ECHO, /* until the watch shows what was written, or ECHO_MS */
    WAIT_RACE, /* until the watch shows who was faster, or RACE_MS and longer pauses */
    WAIT_REST, /* before a failed write or a restoration is tried again */
};

struct publisher {
    struct publisher_options options;
    struct kube_resource resource; /* of the version that is served */
    struct kube_watch *watch;
    struct kube_call *call; /* under way: a write, or the Node */
    struct event *timer;    /* ends a wait */
    enum wait wait;
    struct pool pool;
    json_t *all;           /* as slices_split; what the pool wants is this or less */
    char node_uid[64];     /* of the Node that owns the slices */
    bool deleted;          /* a slice, since the Node was read: perhaps because it is another one */
    struct pool_step step; /* of the call */
    char awaited[64];      /* WAIT_ECHO: resourceVersion of what was written; "": a deletion */
    bool settled;    /* the API server holds what was last wanted, as far as the watch has told */
    unsigned failed; /* writes in a row */
    unsigned races;  /* lost in a row */
    unsigned fights; /* restorations in a row */
    int64_t fought_ms;
    char last_error[256];
    struct publisher_counts counts;
};

static void look(struct publisher *p);

/* ---- waiting ---- */

static void wait_for(struct publisher *p, enum wait wait, int64_t ms)
{
    struct timeval after = timeval_from_ms(ms);
    p->wait = wait;
    evtimer_add(p->timer, &after);
}

static void end_wait(struct publisher *p)
{
    p->wait = WAIT_NONE;
    evtimer_del(p->timer);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct publisher *p = arg;
    (void)fd, (void)what;
    p->wait = WAIT_NONE;
    look(p);
}

static int64_t doubled(unsigned times)
{
    int64_t ms = PAUSE_MS;
    for (unsigned i = 0; i < times && ms < PAUSE_MAX_MS; i++)
        ms *= 2;
    return ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS;
}

/* What was settled is not any more, and nobody here wanted that. True: not yet. */
static bool must_rest(struct publisher *p)
{
    int64_t now = clock_ms();
    if (now - p->fought_ms > PEACE_MS)
        p->fights = 0;
    p->fought_ms = now;
    p->counts.restored++;
    if (++p->fights <= FIGHTS_FREE)
        return false;
    if (p->fights == FIGHTS_FREE + 1)
        log_note("somebody keeps changing the slices of %s: restoring them with pauses",
                 p->options.owner.driver);
    wait_for(p, WAIT_REST, doubled(p->fights - FIGHTS_FREE - 1));
    return true;
}

/* ---- writes ---- */

static void tell_failure(struct publisher *p, const struct drarun_error *err)
{
    p->counts.failures++;
    if (strcmp(p->last_error, err->text) != 0)
        log_error("slices of %s: %s", p->options.owner.driver, err->text);
    snprintf(p->last_error, sizeof p->last_error, "%.255s", err->text);
}

static void fail(struct publisher *p, const struct drarun_error *err)
{
    tell_failure(p, err);
    wait_for(p, WAIT_REST, doubled(p->failed++));
}

static void forget_failures(struct publisher *p)
{
    p->failed = p->races = 0;
    p->last_error[0] = '\0';
}

/* Changed or made by another meanwhile, or gone: the watch will show. */
static bool is_race(const struct drarun_error *err)
{
    return err->code == EBUSY || err->code == EEXIST || err->code == ENOENT;
}

/* Where the watch shows nothing it is no race: the watch lags far behind a server that has too much
 * to do already, or the server does not have what is written to it, such as this version. */
static void lose_race(struct publisher *p, const struct drarun_error *err)
{
    unsigned before = p->races++;
    if (before < RACES_FREE) {
        wait_for(p, WAIT_RACE, RACE_MS);
        return;
    }
    tell_failure(p, err);
    wait_for(p, WAIT_RACE, doubled(before - RACES_FREE));
}

/* ---- taints that are dropped ---- */

static bool is_held(const char *name, void *arg)
{
    const struct publisher *p = arg;
    return p->options.held && p->options.held(p->options.devices_of, name, p->options.arg);
}

/* 1: the pool wants other devices than before; 0; -ENOMEM. */
static int want_offered(struct publisher *p, struct drarun_error *err)
{
    json_t *parts =
        p->pool.drops_taints ? slices_without_tainted(p->all, is_held, p) : json_incref(p->all);
    if (!parts)
        return error_set(err, ENOMEM, "slices: out of memory");
    bool changed = pool_want_take(&p->pool, parts);
    if (!p->pool.drops_taints) { /* one copy of them */
        json_decref(p->all);
        p->all = json_incref(p->pool.parts);
    }
    p->settled = p->settled && !changed;
    return changed;
}

static void on_dropped_taints(struct publisher *p)
{
    struct drarun_error err = {0};
    log_error(
        "slices of %s: the API server drops the taints of devices: its feature gate "
        "DRADeviceTaints is off (alpha in Kubernetes 1.34 and 1.35). Devices with a fault are "
        "left out of the slices unless a claim holds them, until this plugin starts again",
        p->options.owner.driver);
    if (want_offered(p, &err) < 0)
        log_error("%s", err.text);
}

static void on_written(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct publisher *p = arg;
    struct pool_step step = p->step;
    enum pool_step_kind kind = step.kind;
    bool dropped = p->pool.drops_taints;
    p->call = NULL;
    p->step.object = NULL;
    if (!err && kind != POOL_DELETE)
        pool_written(&p->pool, &step, answer->body);
    pool_step_done(&step);
    if (err && kind == POOL_DELETE && err->code == ENOENT)
        err = NULL;
    if (err && !is_race(err)) {
        fail(p, err);
        return;
    }
    if (err) {
        lose_race(p, err);
        return;
    }
    forget_failures(p);
    p->counts.writes++;
    p->awaited[0] = '\0';
    if (kind != POOL_DELETE) {
        snprintf(p->awaited, sizeof p->awaited, "%s", kube_resource_version(answer->body));
    }
    if (p->pool.drops_taints && !dropped)
        on_dropped_taints(p);
    wait_for(p, WAIT_ECHO, ECHO_MS);
    look(p); /* the echo may have come before the answer */
}

static int start_write(struct publisher *p, struct drarun_error *err)
{
    struct kube_client *client = p->options.client;
    struct kube_target target = {.resource = &p->resource};
    static const struct kube_write again = {.repeat = true};
    const struct kube_delete same = {.uid = p->step.uid};
    switch (p->step.kind) {
    case POOL_CREATE:
        return kube_create(client, &target, p->step.object, &again, on_written, p, &p->call, err);
    case POOL_REPLACE:
        target.name = p->step.name;
        return kube_replace(client, &target, p->step.object, &again, on_written, p, &p->call, err);
    default:
        target.name = p->step.name;
        return kube_delete(client, &target, &same, on_written, p, &p->call, err);
    }
}

/* ---- the owner ---- */

/* A Node that was deleted and made again has another UID, and the garbage collector deletes what
 * the old one owned, as often as it is written. */
static void on_node(const struct kube_answer *answer, const struct drarun_error *failure, void *arg)
{
    struct publisher *p = arg;
    p->call = NULL;
    if (failure) {
        struct drarun_error err = *failure;
        p->deleted = true;
        error_prefix(&err, "their owner");
        fail(p, &err);
        return;
    }
    if (strcmp(p->node_uid, kube_uid(answer->body)) != 0)
        log_note("slices of %s: Node %s was made again: they are its own from now on",
                 p->options.owner.driver, p->options.owner.node);
    snprintf(p->node_uid, sizeof p->node_uid, "%s", kube_uid(answer->body));
    forget_failures(p);
    look(p);
}

static int read_node(struct publisher *p, struct drarun_error *err)
{
    const struct kube_target node = {.resource = &kube_nodes, .name = p->options.owner.node};
    p->deleted = false; /* of what is deleted while it is read, the owner is read again */
    int rc = kube_get(p->options.client, &node, on_node, p, &p->call, err);
    if (rc < 0)
        p->deleted = true;
    return rc;
}

/* ---- looking ---- */

static void collect(const json_t *object, void *arg)
{
    json_array_append(unconst(arg), unconst(object));
}

static bool has_version(const json_t *held, const char *version)
{
    size_t i;
    json_t *object;
    json_array_foreach(held, i, object)
    {
        if (strcmp(kube_resource_version(object), version) == 0)
            return true;
    }
    return false;
}

static void settle(struct publisher *p)
{
    if (!p->settled) {
        log_note("%s: %zu slices published, generation %lld", p->options.owner.driver,
                 json_array_size(p->pool.parts), (long long)p->pool.generation);
        malloc_trim(0); /* what was read and written for them is larger than what stays */
    }
    forget_failures(p);
    p->settled = true;
}

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void act(struct publisher *p, const json_t *held)
{
    struct drarun_error err = {0};
    int rc = pool_next(&p->pool, held, wall_ms(), &p->step, &err);
    if (rc == 0 && p->step.kind == POOL_SETTLED) {
        settle(p);
        return;
    }
    bool was_settled = p->settled;
    p->settled = false;
    if (rc == 0 && was_settled && must_rest(p)) {
        pool_step_done(&p->step);
        return;
    }
    if (rc == 0 && p->deleted) { /* the step is computed again, with the owner of then */
        pool_step_done(&p->step);
        rc = read_node(p, &err);
    } else if (rc == 0) {
        rc = start_write(p, &err);
    }
    if (rc < 0) {
        pool_step_done(&p->step);
        fail(p, &err);
    }
}

/* Computed from what is known, after each event; does nothing when nothing is to be done. */
static void look(struct publisher *p)
{
    if (p->call || !p->pool.parts || !kube_watch_synced(p->watch))
        return;
    json_t *held = json_array();
    if (!held)
        return;
    kube_watch_each(p->watch, collect, held);
    if (p->wait == WAIT_ECHO && p->awaited[0] && has_version(held, p->awaited))
        end_wait(p);
    if (p->wait == WAIT_NONE)
        act(p, held);
    json_decref(held);
}

/* ---- the watch ---- */

static void news(struct publisher *p)
{
    if (p->wait == WAIT_RACE || (p->wait == WAIT_ECHO && !p->awaited[0]))
        end_wait(p);
    look(p);
}

static void on_added(const json_t *object, void *arg)
{
    (void)object;
    news(arg);
}

static void on_changed(const json_t *object, const json_t *before, void *arg)
{
    (void)object, (void)before;
    news(arg);
}

static void on_deleted(const json_t *object, void *arg)
{
    struct publisher *p = arg;
    (void)object;
    p->deleted = true;
    news(p);
}

static void on_synced(void *arg)
{
    look(arg);
}

static void on_trouble(const struct drarun_error *err, void *arg)
{
    const struct publisher *p = arg;
    if (err)
        log_error("slices of %s cannot be watched: %s", p->options.owner.driver, err->text);
}

static int start_watch(struct publisher *p, struct drarun_error *err)
{
    static const struct kube_watch_events events = {.added = on_added,
                                                    .changed = on_changed,
                                                    .deleted = on_deleted,
                                                    .synced = on_synced,
                                                    .trouble = on_trouble};
    struct buf fields = BUF_INIT;
    buf_printf(&fields, "spec.nodeName=%s,spec.driver=%s", p->options.owner.node,
               p->options.owner.driver);
    const struct kube_watch_options options = {.target = {.resource = &p->resource},
                                               .select = {.fields = fields.data}};
    int rc = fields.failed
                 ? error_set(err, ENOMEM, "slices: out of memory")
                 : kube_watch_new(p->options.client, &options, &events, p, &p->watch, err);
    buf_done(&fields);
    return rc;
}

/* ---- life ---- */

int publisher_new(const struct publisher_options *options, struct publisher **ret_publisher,
                  struct drarun_error *err)
{
    struct publisher *p = calloc(1, sizeof *p);
    if (!p)
        return error_set(err, ENOMEM, "slices: out of memory");
    p->options = *options;
    if (!p->options.devices_of)
        p->options.devices_of = options->owner.driver;
    p->resource = kube_resource_slices;
    p->resource.version = options->version;
    snprintf(p->node_uid, sizeof p->node_uid, "%s", options->owner.node_uid);
    p->pool = (struct pool){.owner = options->owner, .version = options->version};
    p->pool.owner.node_uid = p->node_uid;
    p->timer = evtimer_new(options->base, on_timer, p);
    int rc = p->timer ? start_watch(p, err) : error_set(err, ENOMEM, "slices: out of memory");
    if (rc < 0)
        publisher_free(p);
    else
        *ret_publisher = p;
    return rc;
}

void publisher_free(struct publisher *p)
{
    if (!p)
        return;
    kube_call_cancel(p->call);
    kube_watch_free(p->watch);
    if (p->timer)
        event_free(p->timer);
    pool_step_done(&p->step);
    pool_done(&p->pool);
    json_decref(p->all);
    free(p);
}

int publisher_want(struct publisher *p, const struct node_devices *devices,
                   struct drarun_error *err)
{
    json_t *parts = slices_split(devices, p->options.devices_of);
    if (parts && p->options.agent && !slices_offer_agent(parts, p->options.agent))
        json_decref(TAKE_PTR(parts));
    if (!parts)
        return error_set(err, ENOMEM, "slices: out of memory");
    json_decref(p->all);
    p->all = parts;
    int rc = want_offered(p, err);
    if (rc > 0)
        look(p);
    return rc < 0 ? rc : 0;
}

void publisher_held_changed(struct publisher *p)
{
    struct drarun_error err = {0};
    if (!p->all || !p->pool.drops_taints)
        return;
    int rc = want_offered(p, &err);
    if (rc > 0)
        look(p);
    else if (rc < 0)
        log_error("%s", err.text);
}

void publisher_count(const struct publisher *p, struct publisher_counts *ret_counts)
{
    *ret_counts = p->counts;
}
