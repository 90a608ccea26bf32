/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/board.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/spec/k8s_name.h"
#include "jobs/gang/waiting.h"
#include "launcher/cluster/client/launcher_pod.h"
#include "launcher/cluster/client/worker_cache.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/number.h"
#include "lib/kube/watch.h"

enum kind { KIND_PODS = 0, KIND_CLAIMS, KIND_JOBS, KIND_EVENTS, KIND_MAP, KIND_COUNT };

struct source {
    struct board *board;
    enum kind kind;
    struct kube_watch *watch; /* NULL: not watched */
    char *trouble;            /* NULL: none */
    bool refused;             /* by the server's rules: it does not pass */
};

struct board {
    struct cluster *cluster;
    const struct job_spec *spec;
    const char *namespace;
    const char *owner_uid; /* NULL: anybody's */
    struct board_owner owner;
    struct kube_resource claims; /* of the version that is served */
    struct source sources[KIND_COUNT];
    struct event *changed;
    struct worker_cache *workers;
    struct news job_news;
    struct news launcher_news, owner_news; /* of the launcher's pod, and of its Job */
};

static void mark_changed(struct board *board)
{
    event_active(board->changed, EV_TIMEOUT, 0);
}

static void on_changed(evutil_socket_t fd, short what, void *arg)
{
    struct board *board = arg;
    (void)fd, (void)what;
    if (board->owner.changed)
        board->owner.changed(board->owner.arg);
}

/* ---- which worker ---- */

static const char *label(const json_t *object, const char *key)
{
    const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    const char *text = json_string_value(json_object_get(labels, key));
    return text ? text : "";
}

int64_t board_worker_label(const json_t *object)
{
    const char *text = label(object, "drarun.dev/worker");
    int64_t worker = -1;
    if (!text[0])
        text = label(object, "batch.kubernetes.io/job-completion-index");
    return text[0] && number_parse("worker", text, 0, INT32_MAX, &worker, NULL) == 0 ? worker : -1;
}

/* ---- Events ---- */

/* The worker whose pod or claim is called so: NAME-w-I, or NAME-w-I-SUFFIX of an Indexed Job. */
static int64_t worker_by_name(const struct board *board, const char *name)
{
    size_t length = strlen(board->spec->name);
    int64_t worker = -1;
    char digits[16];
    if (!name || strncmp(name, board->spec->name, length) != 0 ||
        strncmp(name + length, "-w-", 3) != 0)
        return -1;
    const char *from = name + length + 3;
    size_t n = strcspn(from, "-");
    if (n == 0 || n >= sizeof digits)
        return -1;
    snprintf(digits, sizeof digits, "%.*s", (int)n, from);
    if (number_parse("worker", digits, 0, board->spec->workers - 1, &worker, NULL) < 0)
        return -1;
    return worker;
}

static bool is_worker_job(const struct board *board, const struct news_subject *subject)
{
    size_t length = strlen(board->spec->name);
    return subject->kind && strcmp(subject->kind, "Job") == 0 && subject->name &&
           strncmp(subject->name, board->spec->name, length) == 0 &&
           strcmp(subject->name + length, "-w") == 0;
}

/* The launcher Job is called as the job is, and its pods as the Job with a suffix. */
static struct news *launcher_news_of(struct board *board, const struct news_subject *subject)
{
    if (!subject->kind || !subject->name)
        return NULL;
    if (strcmp(subject->kind, "Job") == 0 && strcmp(subject->name, board->spec->name) == 0)
        return &board->owner_news;
    bool pod = strcmp(subject->kind, "Pod") == 0 &&
               launcher_pod_is_called(board->spec->name, subject->name);
    return pod ? &board->launcher_news : NULL;
}

static void take_event(struct board *board, const json_t *event)
{
    struct news_subject subject = news_subject(event);
    struct news *launcher = launcher_news_of(board, &subject);
    int64_t worker = worker_by_name(board, subject.name);
    bool added = false;
    if (worker >= 0)
        added = worker_cache_hear(board->workers, (uint32_t)worker, event);
    else if (is_worker_job(board, &subject))
        added = news_add(&board->job_news, event);
    else if (launcher)
        added = news_add(launcher, event);
    if (added)
        mark_changed(board);
}

/* ---- watching ---- */

/* A claim made of a template says which pod's it is, and not which worker's. */
static int64_t worker_of(const struct board *board, const json_t *object)
{
    int64_t worker = board_worker_label(object);
    size_t i;
    json_t *owner;
    const json_t *owners = json_object_get(json_object_get(object, "metadata"), "ownerReferences");
    json_array_foreach(owners, i, owner)
    {
        const char *name = json_string_value(json_object_get(owner, "name"));
        const char *uid = json_string_value(json_object_get(owner, "uid"));
        const json_t *pod = worker < 0 && name
                                ? kube_watch_find(board->sources[KIND_PODS].watch, NULL, name)
                                : NULL;
        if (pod && uid && strcmp(kube_uid(pod), uid) == 0)
            worker = board_worker_label(pod);
    }
    return worker;
}

static bool is_of_worker(enum kind kind)
{
    return kind == KIND_PODS || kind == KIND_CLAIMS;
}

static enum worker_object object_kind(enum kind kind)
{
    return kind == KIND_PODS ? WORKER_POD : WORKER_CLAIM;
}

/* Whose the pods are: the owner's, or the worker Job's. */
static void find_parent(struct board *board)
{
    const char *parent = board->owner_uid;
    if (parent && board->spec->claims != SPEC_CLAIMS_DIRECT) {
        const json_t *job = board_worker_job(board);
        parent = job ? kube_uid(job) : "";
    }
    worker_cache_own(board->workers, parent);
}

static void on_added(const json_t *object, void *arg)
{
    struct source *source = arg;
    struct board *board = source->board;
    if (source->kind == KIND_EVENTS) {
        take_event(board, object);
        return;
    }
    if (is_of_worker(source->kind))
        worker_cache_put(board->workers, object_kind(source->kind), worker_of(board, object),
                         object);
    else if (source->kind == KIND_JOBS)
        find_parent(board);
    mark_changed(board);
}

static void on_object_changed(const json_t *object, const json_t *before, void *arg)
{
    struct source *source = arg;
    struct board *board = source->board;
    int64_t worker = is_of_worker(source->kind) ? board_worker_label(before) : -1;
    if (worker >= 0 && worker != board_worker_label(object))
        worker_cache_remove(board->workers, object_kind(source->kind), worker, before);
    on_added(object, arg);
}

static void on_deleted(const json_t *object, void *arg)
{
    struct source *source = arg;
    struct board *board = source->board;
    if (is_of_worker(source->kind))
        worker_cache_delete(board->workers, object_kind(source->kind), worker_of(board, object),
                            object);
    else if (source->kind == KIND_JOBS)
        find_parent(board);
    if (source->kind != KIND_EVENTS)
        mark_changed(board);
}

static void on_synced(void *arg)
{
    mark_changed(((struct source *)arg)->board);
}

static void on_trouble(const struct drarun_error *err, void *arg)
{
    struct source *source = arg;
    free(source->trouble);
    source->trouble = err ? strdup(err->text) : NULL;
    source->refused = err && err->code == EACCES;
    if (err)
        log_note("%s", err->text);
    else
        log_verbose("the cluster can be watched again");
    mark_changed(source->board);
}

static void trim(json_t *object, void *arg)
{
    const struct source *source = arg;
    if (source->kind == KIND_PODS)
        pod_state_trim(object);
}

static const struct kube_watch_events watch_events = {
    .trim = trim,
    .added = on_added,
    .changed = on_object_changed,
    .deleted = on_deleted,
    .synced = on_synced,
    .trouble = on_trouble,
};

static int watch(struct board *board, enum kind kind, const struct kube_resource *resource,
                 const char *labels, const char *name, struct drarun_error *err)
{
    struct source *source = &board->sources[kind];
    struct kube_watch_options options = {
        .target = {.resource = resource, .namespace_ = board->namespace, .name = name},
        .select.labels = labels,
        .forget = kind == KIND_EVENTS,
    };
    *source = (struct source){.board = board, .kind = kind};
    return kube_watch_new(board->cluster->client, &options, &watch_events, source, &source->watch,
                          err);
}

static int watch_all(struct board *board, bool events, struct drarun_error *err)
{
    char selector[32 + K8S_LABEL_MAX];
    snprintf(selector, sizeof selector, "drarun.dev/job=%s", board->spec->name);
    int rc = watch(board, KIND_PODS, &kube_pods, selector, NULL, err);
    if (rc == 0 && claims_wanted(board->spec)) {
        board->claims = kube_resource_claims;
        board->claims.version = cluster_claims_version(board->cluster);
        rc = watch(board, KIND_CLAIMS, &board->claims, selector, NULL, err);
    }
    if (rc == 0)
        rc = watch(board, KIND_JOBS, &kube_jobs, selector, NULL, err);
    if (rc == 0 && events)
        rc = watch(board, KIND_EVENTS, &kube_events, NULL, NULL, err);
    return rc;
}

static const json_t *find_claim(void *arg, const char *name)
{
    const struct kube_watch *claims = ((struct board *)arg)->sources[KIND_CLAIMS].watch;
    return claims ? kube_watch_find(claims, NULL, name) : NULL;
}

int board_new(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
              bool events, const struct board_owner *owner, struct board **ret_board,
              struct drarun_error *err)
{
    CLEANUP(board_freep) struct board *board = calloc(1, sizeof *board);
    if (!board)
        return error_set(err, ENOMEM, "out of memory");
    *board =
        (struct board){.cluster = cluster, .spec = spec, .namespace = namespace, .owner = *owner};
    const struct worker_cache_claims claims = {.find = find_claim, .arg = board};
    board->changed = event_new(cluster->base, -1, 0, on_changed, board);
    if (!board->changed)
        return error_set(err, ENOMEM, "out of memory");
    int rc = worker_cache_new(spec, &claims, &board->workers, err);
    if (rc == 0 && (claims_wanted(spec) || claims_named(spec)))
        rc = cluster_need_claims(cluster, err);
    if (rc == 0)
        rc = watch_all(board, events, err);
    if (rc == 0)
        *ret_board = TAKE_PTR(board);
    return rc;
}

void board_free(struct board *board)
{
    if (!board)
        return;
    for (size_t i = 0; i < KIND_COUNT; i++) {
        kube_watch_free(board->sources[i].watch);
        free(board->sources[i].trouble);
    }
    if (board->changed)
        event_free(board->changed);
    worker_cache_free(board->workers);
    news_done(&board->job_news);
    news_done(&board->launcher_news);
    news_done(&board->owner_news);
    free(board);
}

/* ---- state ---- */

static bool is_synced(const struct board *board)
{
    for (size_t i = 0; i < KIND_EVENTS; i++)
        if (board->sources[i].watch && !kube_watch_synced(board->sources[i].watch))
            return false;
    return true;
}

int board_check(const struct board *board, struct drarun_error *err)
{
    if (worker_cache_is_incomplete(board->workers))
        return error_set(err, ENOMEM, "out of memory for the job's pods and claims");
    for (size_t i = 0; i < KIND_EVENTS; i++)
        if (board->sources[i].refused && board->sources[i].trouble)
            return error_kind(err, DRARUN_ERR_CLUSTER, EACCES, "%s", board->sources[i].trouble);
    return 0;
}

int board_sync(struct board *board, int64_t ms, struct drarun_error *err)
{
    int64_t end = clock_ms() + ms;
    while (!is_synced(board)) {
        int64_t left = end - clock_ms();
        const char *trouble = board_trouble(board);
        int rc = board_check(board, err);
        if (rc < 0)
            return rc;
        if (left <= 0)
            return error_kind(err, DRARUN_ERR_CLUSTER, ETIMEDOUT,
                              "the job's objects could not be listed within %" PRId64 " s%s%s",
                              ms / 1000, trouble ? ": " : "", trouble ? trouble : "");
        cluster_turn(board->cluster, left);
    }
    return board_check(board, err);
}

void board_sync_events(struct board *board, int64_t ms)
{
    int64_t end = clock_ms() + ms;
    const struct source *events = &board->sources[KIND_EVENTS];
    while (events->watch && !kube_watch_synced(events->watch) && !events->trouble &&
           clock_ms() < end)
        cluster_turn(board->cluster, end - clock_ms());
}

const char *board_trouble(const struct board *board)
{
    for (size_t i = 0; i < KIND_EVENTS; i++)
        if (board->sources[i].trouble)
            return board->sources[i].trouble;
    return NULL;
}

void board_own(struct board *board, const char *owner_uid)
{
    board->owner_uid = owner_uid;
    find_parent(board);
    mark_changed(board);
}

const struct pod_state *board_workers(struct board *board, uint32_t attempt)
{
    return worker_cache_states(board->workers, attempt);
}

const struct gang_sums *board_sums(const struct board *board)
{
    return worker_cache_sums(board->workers);
}

void board_each_changed(struct board *board, uint32_t attempt,
                        bool (*fn)(uint32_t worker, const struct pod_state *state, void *arg),
                        void *arg)
{
    worker_cache_each_changed(board->workers, attempt, fn, arg);
}

json_t *board_claims(struct board *board, uint32_t attempt)
{
    CLEANUP(json_decrefp) json_t *list = json_array();
    int rc = list ? 0 : -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < board->spec->workers; i++) {
        const json_t *claim = worker_cache_claim(board->workers, i, attempt);
        rc = json_array_append_new(list, claim ? json_pack("[O]", claim) : json_array());
    }
    return rc < 0 ? NULL : TAKE_PTR(list);
}

size_t board_remains(const struct board *board, bool claims)
{
    const struct kube_watch *watch = board->sources[KIND_CLAIMS].watch;
    size_t count = worker_cache_count(board->workers, WORKER_POD);
    if (!claims || !watch)
        return count;
    /* those made of a template have no label of ours that says which worker's they are */
    return count + (board->spec->claims == SPEC_CLAIMS_DIRECT
                        ? worker_cache_count(board->workers, WORKER_CLAIM)
                        : kube_watch_count(watch));
}

static const json_t *job_called(const struct board *board, const char *suffix)
{
    char name[K8S_LABEL_MAX + 8];
    snprintf(name, sizeof name, "%s%s", board->spec->name, suffix);
    return kube_watch_find(board->sources[KIND_JOBS].watch, NULL, name);
}

int board_watch_map(struct board *board, struct drarun_error *err)
{
    char name[K8S_LABEL_MAX + 8];
    snprintf(name, sizeof name, "%s-status", board->spec->name);
    return watch(board, KIND_MAP, &kube_config_maps, NULL, name, err);
}

const json_t *board_owner(const struct board *board)
{
    char name[K8S_LABEL_MAX + 8];
    if (!board->sources[KIND_MAP].watch)
        return board_launcher_job(board);
    snprintf(name, sizeof name, "%s-status", board->spec->name);
    return kube_watch_find(board->sources[KIND_MAP].watch, NULL, name);
}

const json_t *board_launcher_job(const struct board *board)
{
    return job_called(board, "");
}

char *board_launcher_waits(const struct board *board)
{
    const json_t *job = board_launcher_job(board);
    struct waiting_launcher launcher;
    if (!job)
        return NULL;
    const json_t *pod = launcher_pod_find(board->sources[KIND_PODS].watch, kube_uid(job));
    waiting_of_launcher(pod, &board->launcher_news, news_about(&board->owner_news, kube_uid(job)),
                        &launcher);
    char *words = launcher.fails ? TAKE_PTR(launcher.text) : NULL;
    waiting_launcher_done(&launcher);
    return words;
}

const json_t *board_worker_job(const struct board *board)
{
    const json_t *job = job_called(board, "-w");
    return !board->owner_uid || kube_is_owned_by(job, board->owner_uid) ? job : NULL;
}

const struct news *board_job_news(const struct board *board)
{
    const json_t *job = board_worker_job(board);
    return news_about(&board->job_news, job ? kube_uid(job) : NULL);
}
