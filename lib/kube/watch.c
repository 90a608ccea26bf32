/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/chance.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/kube/attempt.h"
#include "lib/kube/list.h"
#include "lib/kube/problem.h"
#include "lib/kube/retry.h"
#include "lib/kube/watch_event.h"
#include "lib/kube/watch_store.h"

#define SERVER_ENDS_S 300 /* and up to as much more by chance, as client-go has it */
#define GRACE_MS 60000    /* for the server to end it */
#define INITIAL_STALL_MS                                                                           \
    20000             /* a streamed list that brings nothing for so long: in pages then            \
                       */
#define BRIEF_MS 1000 /* a watch that ends sooner counts as a failure */
#define REFUSED_MAX_MS 30000
#define METADATA "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
#define PASSING_MAX_MS 2000 /* while a refusal may pass */
#define STREAMS_MAX 3       /* broken off in a row: then one list in pages */

enum watch_phase {
    PHASE_PAUSING = 1, /* `timer` ends it */
    PHASE_STREAMING,   /* the list, as events of the watch that goes on behind it */
    PHASE_PAGING,
    PHASE_LIVE,
};

struct kube_watch {
    struct kube_client *client;
    struct buf path, select, what; /* select: of the query */
    struct kube_target target;     /* its texts are ours */
    struct kube_select selectors;
    struct kube_watch_events events;
    void *arg;
    bool forget, synced, in_trouble;
    bool refused; /* by the last answer, finally */
    bool passes;  /* that was a refusal that may pass */
    enum watch_phase phase;
    struct watch_store store;
    struct watch_decoder decoder;
    char *version; /* to resume from; NULL: all must be read again */
    char *query;   /* of the attempt */
    struct attempt *attempt;
    struct kube_listing *listing;
    struct event *timer;
    unsigned failures; /* since something came */
    unsigned rereads;  /* in a row, since the server had forgotten where we were */
    int64_t reread_ms; /* the last of them */
    bool brought;      /* by the streamed list: something */
    unsigned broken;   /* streamed lists in a row that brought something and did not end */
    int64_t began_ms;
    int trouble_code;
    int entered; /* callbacks of ours on the stack */
    bool freed;  /* while entered: the outermost releases it */
};

static void go(struct kube_watch *w);

static void watch_release(struct kube_watch *w)
{
    attempt_cancel(w->attempt);
    kube_list_cancel(w->listing);
    if (w->timer)
        event_free(w->timer);
    watch_store_done(&w->store);
    watch_decoder_done(&w->decoder);
    buf_done(&w->path);
    buf_done(&w->select);
    buf_done(&w->what);
    free(unconst(w->target.namespace_));
    free(unconst(w->target.name));
    free(unconst(w->selectors.labels));
    free(unconst(w->selectors.fields));
    free(w->version);
    free(w->query);
    free(w);
}

/* Around everything that may call the owner back. */
static void enter(struct kube_watch *w)
{
    w->entered++;
}

static void leave(struct kube_watch *w)
{
    if (--w->entered == 0 && w->freed)
        watch_release(w);
}

void kube_watch_free(struct kube_watch *watch)
{
    if (!watch)
        return;
    if (!watch->entered) {
        watch_release(watch);
        return;
    }
    watch->freed = true;
    attempt_cancel(watch->attempt);
    watch->attempt = NULL;
    kube_list_cancel(watch->listing);
    watch->listing = NULL;
    event_del(watch->timer);
}

static void stop(struct kube_watch *w)
{
    attempt_cancel(w->attempt);
    w->attempt = NULL;
    kube_list_cancel(w->listing);
    w->listing = NULL;
    event_del(w->timer);
    watch_decoder_done(&w->decoder);
}

static int set_version(struct kube_watch *w, const char *version)
{
    char *copy = *version ? strdup(version) : NULL;
    if (*version && !copy)
        return -ENOMEM;
    free(w->version);
    w->version = copy;
    return 0;
}

/* -- what the owner is told -- */

static void tell_trouble(struct kube_watch *w, struct drarun_error *err)
{
    if (w->in_trouble && w->trouble_code == err->code)
        return;
    w->in_trouble = true;
    w->trouble_code = err->code;
    if (err->code == EAGAIN)
        error_prefix(err, "refused for now, tried again for %d s", REFUSAL_PASSES_MS / 1000);
    error_prefix(err, "%s", w->what.data);
    log_verbose("%s", err->text);
    if (w->events.trouble)
        w->events.trouble(err, w->arg);
}

static void tell_well(struct kube_watch *w)
{
    w->failures = 0;
    if (!w->in_trouble)
        return;
    w->in_trouble = false;
    log_verbose("%s: works again", w->what.data);
    if (w->events.trouble)
        w->events.trouble(NULL, w->arg);
}

static void tell_deleted(struct kube_watch *w, const json_t *object)
{
    if (w->events.deleted)
        w->events.deleted(object, w->arg);
}

static json_t *only_names(const json_t *object)
{
    return json_pack("{s:{s:s, s:s, s:s, s:s}}", "metadata", "namespace", kube_namespace(object),
                     "name", kube_name(object), "uid", kube_uid(object), "resourceVersion",
                     kube_resource_version(object));
}

static void forget(struct kube_watch *w, const json_t *object)
{
    json_t *names = only_names(object);
    if (names)
        watch_store_swap(&w->store, names);
    json_decref(names);
}

static void normalise(struct kube_watch *w, json_t *object)
{
    const struct kube_resource *r = w->target.resource;
    json_object_del(json_object_get(object, "metadata"), "managedFields");
    if (!json_object_get(object, "kind")) { /* items of a list have neither */
        char version[128];
        snprintf(version, sizeof version, "%s%s%s", r->group, *r->group ? "/" : "", r->version);
        json_object_set_new(object, "apiVersion", json_string(version));
        json_object_set_new(object, "kind", json_string(r->kind));
    }
    if (w->events.trim)
        w->events.trim(object, w->arg);
}

static int put(struct kube_watch *w, json_t *object, struct drarun_error *err)
{
    json_t *before = NULL;
    normalise(w, object);
    int change = watch_store_put(&w->store, object, &before, err);
    if (change == WATCH_CHANGE_REPLACED)
        tell_deleted(w, before);
    if (change == WATCH_CHANGE_CHANGED && !w->freed && w->events.changed)
        w->events.changed(object, before, w->arg);
    if ((change == WATCH_CHANGE_NEW || change == WATCH_CHANGE_REPLACED) && !w->freed &&
        w->events.added)
        w->events.added(object, w->arg);
    if (w->forget && change > 0 && !w->freed)
        forget(w, object);
    json_decref(before);
    return change < 0 ? change : 0;
}

static void take_away(struct kube_watch *w, json_t *object)
{
    json_t *before = watch_store_remove(&w->store, object);
    if (before) {
        normalise(w, object);
        tell_deleted(w, object);
    }
    json_decref(before);
}

/* All was read: what was not seen again is gone. */
static void list_complete(struct kube_watch *w)
{
    json_t *gone = NULL, *object;
    const char *key;
    watch_store_end(&w->store, &gone);
    json_object_foreach(gone, key, object) if (!w->freed) tell_deleted(w, object);
    json_decref(gone);
    w->phase = PHASE_LIVE;
    w->broken = 0;
    event_del(w->timer);
    if (!w->synced && !w->freed) {
        w->synced = true;
        if (w->events.synced)
            w->events.synced(w->arg);
    }
}

/* -- failures -- */

static bool is_refusal(int code)
{
    return code == EACCES || code == ENOENT || code == EINVAL || code == EKEYREJECTED;
}

static void pause_then_go(struct kube_watch *w, int64_t retry_after_ms)
{
    int64_t most = w->refused ? REFUSED_MAX_MS : w->passes ? PASSING_MAX_MS : RETRY_MAX_MS;
    struct timeval after =
        timeval_from_ms(retry_pause_ms(w->failures + 1, most, retry_after_ms, chance_draw()));
    w->client->counts.retries++;
    w->phase = PHASE_PAUSING;
    event_add(w->timer, &after);
}

/* Lists are read by calls, which know this verb by the method. */
static const char *verb_of(const struct kube_watch *w)
{
    return w->phase == PHASE_PAGING ? "GET" : "WATCH";
}

/* A server that ends the stream of whom it finds too slow would do so again and again. */
static void note_broken_stream(struct kube_watch *w)
{
    if (w->phase == PHASE_STREAMING && w->brought)
        w->broken++;
}

/* One lost connection is no news: what follows it may be. Nor is one refusal that may pass. */
static void fail(struct kube_watch *w, struct drarun_error *err, bool passes,
                 int64_t retry_after_ms)
{
    bool refused = is_refusal(err->code) && !passes;
    note_broken_stream(w);
    stop(w);
    if (err->code == ESTALE)
        set_version(w, "");
    if (refused != w->refused || passes != w->passes)
        w->failures = 0; /* one kind's long pauses are not the other's */
    w->refused = refused;
    w->passes = passes;
    w->failures++;
    if (passes)
        err->code = EAGAIN;
    if (refused || w->failures > 1)
        tell_trouble(w, err);
    else
        log_debug("%s: %s", w->what.data, err->text);
    if (!w->freed)
        pause_then_go(w, retry_after_ms);
}

/* Read all again, at once: what the server has forgotten is not its failure. One that forgets
 * sooner than a list is read is not asked for one list after the other. */
static void read_again(struct kube_watch *w)
{
    int64_t now = clock_ms();
    note_broken_stream(w);
    stop(w);
    set_version(w, "");
    log_verbose("%s: the server has forgotten where we were; reading all again", w->what.data);
    w->refused = w->passes = false;
    w->rereads = retry_count_rereads(w->rereads, now - w->reread_ms);
    w->reread_ms = now;
    w->failures = w->failures + 1 > w->rereads ? w->failures + 1 : w->rereads;
    if (w->failures > 1)
        pause_then_go(w, -1);
    else
        go(w);
}

/* -- events -- */

static bool ends_initial(const json_t *object)
{
    const json_t *notes = json_object_get(json_object_get(object, "metadata"), "annotations");
    const char *end = json_string_value(json_object_get(notes, "k8s.io/initial-events-end"));
    return end && strcmp(end, "true") == 0;
}

static int on_error_event(struct kube_watch *w, const json_t *status, struct drarun_error *err)
{
    int code = (int)json_integer_value(json_object_get(status, "code"));
    (void)w;
    return problem_from_status(code ? code : 500, status, err);
}

static int apply_event(struct kube_watch *w, enum watch_event_type type, json_t *object,
                       struct drarun_error *err)
{
    int rc = 0;
    if (type == WATCH_ERROR)
        return on_error_event(w, object, err);
    if (type == WATCH_ADDED || type == WATCH_MODIFIED)
        rc = put(w, object, err);
    else if (type == WATCH_DELETED)
        take_away(w, object);
    else if (w->phase == PHASE_STREAMING && ends_initial(object))
        list_complete(w);
    if (rc == 0 && w->phase == PHASE_LIVE && !w->freed &&
        set_version(w, kube_resource_version(object)) < 0)
        return error_set(err, ENOMEM, "out of memory");
    return rc;
}

static void on_head(void *arg)
{
    struct kube_watch *w = arg;
    enter(w);
    if (w->phase == PHASE_LIVE)
        tell_well(w);
    leave(w);
}

static void touch_stall(struct kube_watch *w)
{
    struct timeval after = timeval_from_ms(INITIAL_STALL_MS);
    if (w->phase == PHASE_STREAMING)
        event_add(w->timer, &after);
}

static void on_data(const char *bytes, size_t length, void *arg)
{
    struct kube_watch *w = arg;
    struct drarun_error err = {0};
    int rc = 1;
    enter(w);
    touch_stall(w);
    while (rc > 0 && !w->freed) {
        enum watch_event_type type = 0;
        json_t *object = NULL;
        rc = watch_decoder_next(&w->decoder, &bytes, &length, &type, &object, &err);
        if (rc > 0 && type != WATCH_ERROR) {
            w->brought = true;
            tell_well(w);
        }
        int applied = rc > 0 && !w->freed ? apply_event(w, type, object, &err) : 0;
        json_decref(object);
        if (applied < 0)
            rc = applied;
    }
    if (rc == -ESTALE && !w->freed)
        read_again(w);
    else if (rc < 0 && !w->freed)
        fail(w, &err, false, -1);
    leave(w);
}

/* A server without the WatchList feature forbids the parameter by its name. */
static bool is_no_streaming(const struct kube_watch *w, const struct exchange_result *result)
{
    return w->phase == PHASE_STREAMING && (result->status == 400 || result->status == 422) &&
           result->body->data && strstr(result->body->data, "sendInitialEvents");
}

static void ended_well(struct kube_watch *w)
{
    struct drarun_error err = {0};
    if (w->phase == PHASE_LIVE && clock_ms() - w->began_ms >= BRIEF_MS) {
        go(w);
        return;
    }
    error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ECONNRESET, "%s: the watch ended at once",
               kube_config_server(w->client->config));
    fail(w, &err, false, -1);
}

static void answered_badly(struct kube_watch *w, const struct exchange_result *result)
{
    struct drarun_error err = {0};
    CLEANUP(json_decrefp)
    json_t *status =
        json_loadb(result->body->data ? result->body->data : "", result->body->len, 0, NULL);
    problem_from_answer(result->status, result->body->data, result->body->len, status, &err);
    if (err.code == ESTALE)
        read_again(w);
    else
        fail(w, &err,
             client_refusal_passes(w->client, verb_of(w), w->path.data, result->status, status),
             result->retry_after_ms);
}

static void on_done(const struct exchange_result *result, const struct drarun_error *why, void *arg)
{
    struct kube_watch *w = arg;
    struct drarun_error err = {0};
    w->attempt = NULL;
    enter(w);
    if (why) {
        err = *why;
        fail(w, &err, false, -1);
    } else if (result->code != CURLE_OK) {
        problem_from_curl(result->code, result->text, kube_config_server(w->client->config), &err);
        fail(w, &err, false, -1);
    } else if (is_no_streaming(w, result)) {
        w->client->pages_only = true;
        go(w);
    } else if (result->status >= 300) {
        answered_badly(w, result);
    } else {
        ended_well(w);
    }
    leave(w);
}

/* -- requests -- */

static void open_watch(struct kube_watch *w, bool initial)
{
    static const struct attempt_events events = {.head = on_head, .data = on_data, .done = on_done};
    struct drarun_error err = {0};
    struct buf query = BUF_INIT;
    char seconds[16];
    int length = SERVER_ENDS_S + (int)(chance_draw() * SERVER_ENDS_S);
    snprintf(seconds, sizeof seconds, "%d", length);
    if (w->select.len)
        buf_add(&query, w->select.data, w->select.len);
    kube_query_add(&query, "watch", "true");
    kube_query_add(&query, "allowWatchBookmarks", "true");
    kube_query_add(&query, "timeoutSeconds", seconds);
    kube_query_add(&query, "sendInitialEvents", initial ? "true" : NULL);
    kube_query_add(&query, "resourceVersionMatch", initial ? "NotOlderThan" : NULL);
    kube_query_add(&query, "resourceVersion", initial ? NULL : w->version);
    free(w->query);
    w->query = buf_take(&query);
    struct attempt_request request = {.method = "GET",
                                      .path = w->path.data,
                                      .query = w->query,
                                      .accept = w->selectors.metadata_only ? METADATA : NULL,
                                      .timeout_ms = (int64_t)length * 1000 + GRACE_MS,
                                      .stream = true};
    w->phase = initial ? PHASE_STREAMING : PHASE_LIVE;
    w->brought = false;
    w->began_ms = clock_ms();
    touch_stall(w);
    int rc = w->query ? attempt_start(w->client, &request, &events, w, &w->attempt, &err)
                      : error_set(&err, ENOMEM, "out of memory");
    if (rc < 0)
        fail(w, &err, false, -1);
}

static void on_page(const struct kube_answer *answer, const struct drarun_error *why, void *arg)
{
    struct kube_watch *w = arg;
    struct drarun_error err = {0};
    size_t i;
    json_t *item;
    bool last = why || !kube_list_has_more(answer->body);
    enter(w);
    if (last)
        w->listing = NULL;
    int rc = why ? -why->code : 0;
    if (why)
        err = *why;
    else
        tell_well(w);
    json_array_foreach(json_object_get(answer->body, "items"), i, item) if (rc == 0 && !w->freed)
        rc = put(w, item, &err);
    if (rc < 0 && !w->freed) {
        if (rc == -ESTALE)
            read_again(w);
        else
            fail(w, &err,
                 why && client_refusal_passes(w->client, verb_of(w), w->path.data, answer->status,
                                              answer->body),
                 -1);
    } else if (last && !w->freed) {
        list_complete(w);
        if (!w->freed && set_version(w, kube_resource_version(answer->body)) == 0)
            go(w);
    }
    leave(w);
}

static void go(struct kube_watch *w)
{
    struct drarun_error err = {0};
    if (w->version) {
        open_watch(w, false);
        return;
    }
    int rc = watch_store_begin(&w->store, &err);
    if (rc == 0 && !w->client->pages_only && w->broken < STREAMS_MAX) {
        open_watch(w, true);
        return;
    }
    w->phase = PHASE_PAGING;
    if (rc == 0)
        rc = kube_list_pages(w->client, &w->target, &w->selectors, on_page, w, &w->listing, &err);
    if (rc < 0)
        fail(w, &err, false, -1);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct kube_watch *w = arg;
    (void)fd;
    (void)what;
    enter(w);
    if (w->phase == PHASE_STREAMING) {
        w->client->pages_only = true;
        stop(w);
    }
    go(w);
    leave(w);
}

static bool copy_text(const char **target, const char *text)
{
    return !text || (*target = strdup(text));
}

static int fill(struct kube_watch *w, const struct kube_watch_options *options,
                struct drarun_error *err)
{
    struct timeval now = {0};
    cleanup_free char *one = NULL;
    const struct kube_target *target = &options->target;
    w->target.resource = target->resource;
    w->selectors.metadata_only = options->select.metadata_only;
    w->selectors.small_pages = w->events.trim;
    if (target->name &&
        asprintf(&one, "metadata.name=%s%s%s", target->name, options->select.fields ? "," : "",
                 options->select.fields ? options->select.fields : "") < 0)
        one = NULL;
    if (!copy_text(&w->target.namespace_, target->namespace_) ||
        !copy_text(&w->selectors.labels, options->select.labels) ||
        !copy_text(&w->selectors.fields, target->name ? one : options->select.fields) ||
        (target->name && !one))
        return error_set(err, ENOMEM, "out of memory");
    kube_path(&w->target, &w->path);
    kube_target_describe("watch", target, &w->what);
    kube_query_add(&w->select, "labelSelector", w->selectors.labels);
    kube_query_add(&w->select, "fieldSelector", w->selectors.fields);
    w->timer = event_new(w->client->base, -1, 0, on_timer, w);
    if (w->path.failed || w->what.failed || w->select.failed || !w->timer ||
        event_add(w->timer, &now) < 0)
        return error_set(err, ENOMEM, "out of memory");
    w->phase = PHASE_PAUSING;
    return watch_store_init(&w->store, err);
}

int kube_watch_new(struct kube_client *client, const struct kube_watch_options *options,
                   const struct kube_watch_events *events, void *arg, struct kube_watch **ret_watch,
                   struct drarun_error *err)
{
    struct kube_watch *w = calloc(1, sizeof *w);
    if (!w)
        return error_set(err, ENOMEM, "out of memory");
    w->client = client;
    w->events = *events;
    w->arg = arg;
    w->forget = options->forget;
    int rc = fill(w, options, err);
    if (rc < 0)
        watch_release(w);
    else
        *ret_watch = w;
    return rc;
}

bool kube_watch_synced(const struct kube_watch *watch)
{
    return watch->synced;
}

const json_t *kube_watch_find(const struct kube_watch *watch, const char *namespace_,
                              const char *name)
{
    const char *own = watch->target.namespace_ ? watch->target.namespace_ : "";
    return watch_store_find(&watch->store, namespace_ ? namespace_ : own, name);
}

size_t kube_watch_count(const struct kube_watch *watch)
{
    return watch_store_count(&watch->store);
}

void kube_watch_each(const struct kube_watch *watch, void (*fn)(const json_t *object, void *arg),
                     void *arg)
{
    json_t *maps[] = {watch->store.known, watch->store.fresh}, *object;
    const char *key;
    for (size_t i = 0; i < ARRAY_LEN(maps); i++)
        json_object_foreach(maps[i], key, object) fn(object, arg);
}
