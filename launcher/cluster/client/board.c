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
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/number.h"
#include "lib/doc/value.h"
#include "lib/kube/watch.h"

enum kind { KIND_PODS = 0, KIND_CLAIMS, KIND_JOBS, KIND_EVENTS, KIND_MAP, KIND_COUNT };

struct source {
    struct board *board;
    enum kind kind;
    struct kube_watch *watch; /* NULL: not watched */
    char *trouble;            /* NULL: none */
    bool refused;             /* by the server's rules: it does not pass */
};

/* The last object of a worker that was seen to go. */
struct gone {
    uint32_t attempt; /* 0: none, or no label says which */
    char owner[40];   /* its uid: of a claim made of a template it is the pod */
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
    struct pod_state *states;
    const json_t **pods, **claims_of;     /* by worker; sort() fills them without needing memory */
    struct gone *gone_pods, *gone_claims; /* by worker */
    struct news *news;                    /* by worker */
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

static bool is_of_attempt(const json_t *object, uint32_t attempt)
{
    int64_t number = 0;
    return number_parse("attempt", label(object, "drarun.dev/attempt"), 0, UINT32_MAX, &number,
                        NULL) == 0 &&
           number == attempt;
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
        added = news_add(&board->news[worker], event);
    else if (is_worker_job(board, &subject))
        added = news_add(&board->job_news, event);
    else if (launcher)
        added = news_add(launcher, event);
    if (added)
        mark_changed(board);
}

/* ---- watching ---- */

static void on_added(const json_t *object, void *arg)
{
    struct source *source = arg;
    if (source->kind == KIND_EVENTS)
        take_event(source->board, object);
    else
        mark_changed(source->board);
}

static void on_object_changed(const json_t *object, const json_t *before, void *arg)
{
    (void)before;
    on_added(object, arg);
}

static const char *owner_of(const json_t *object)
{
    const json_t *owners = json_object_get(json_object_get(object, "metadata"), "ownerReferences");
    const char *uid = json_string_value(json_object_get(json_array_get(owners, 0), "uid"));
    return uid ? uid : "";
}

struct looking {
    const char *uid;
    int64_t worker; /* of the pod of that uid; -1: none */
};

static void look_at_pod(const json_t *pod, void *arg)
{
    struct looking *l = arg;
    if (strcmp(kube_uid(pod), l->uid) == 0)
        l->worker = board_worker_label(pod);
}

/* A claim made of a template says which pod's it is, and not which worker's. */
static int64_t worker_of(const struct board *board, const json_t *object)
{
    struct looking l = {owner_of(object), board_worker_label(object)};
    if (l.worker < 0)
        kube_watch_each(board->sources[KIND_PODS].watch, look_at_pod, &l);
    return l.worker < board->spec->workers ? l.worker : -1;
}

static void note_gone(struct board *board, enum kind kind, const json_t *object)
{
    int64_t worker = worker_of(board, object), attempt = 0;
    if (worker < 0)
        return;
    struct gone *gone = kind == KIND_PODS ? &board->gone_pods[worker] : &board->gone_claims[worker];
    number_parse("attempt", label(object, "drarun.dev/attempt"), 0, UINT32_MAX, &attempt, NULL);
    gone->attempt = (uint32_t)attempt;
    snprintf(gone->owner, sizeof gone->owner, "%s", owner_of(object));
}

/* It was made for this attempt by the launcher, which alone makes it again. */
static bool is_ours(const struct board *board, const struct gone *gone, uint32_t attempt)
{
    return gone->attempt == attempt &&
           (!board->owner_uid || strcmp(gone->owner, board->owner_uid) == 0);
}

/* Of `claims: template` the Job controller makes a pod again; nobody makes a pod's claim again. */
static bool has_vanished(const struct board *board, uint32_t worker, uint32_t attempt)
{
    const struct pod_state *state = &board->states[worker];
    const struct gone *claim = &board->gone_claims[worker];
    if (board->spec->claims != SPEC_CLAIMS_DIRECT)
        return state->claim == CLAIM_ABSENT && state->uid && claim->owner[0] &&
               strcmp(claim->owner, state->uid) == 0;
    return (state->phase == POD_ABSENT && is_ours(board, &board->gone_pods[worker], attempt)) ||
           (state->claim == CLAIM_ABSENT && is_ours(board, claim, attempt));
}

static void on_deleted(const json_t *object, void *arg)
{
    struct source *source = arg;
    if (source->kind == KIND_PODS || source->kind == KIND_CLAIMS)
        note_gone(source->board, source->kind, object);
    if (source->kind != KIND_EVENTS)
        mark_changed(source->board);
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

/* Of 1,000 pods most of what a launcher would hold is their templates, all the same: the rest is
 * what jobs/gang/pod_state reads. */
static void trim(json_t *object, void *arg)
{
    static const char *const of_spec[] = {
        "nodeName",   "schedulingGates", "schedulingGroup", "readinessGates",
        "containers", "initContainers",  "volumes",         NULL};
    static const char *const of_volume[] = {"name", "image", NULL};
    static const char *const of_container[] = {"name", "image", "restartPolicy", NULL};
    const struct source *source = arg;
    json_t *spec = json_object_get(object, "spec"), *container;
    size_t i;
    if (source->kind != KIND_PODS)
        return;
    value_keep(spec, of_spec);
    json_array_foreach(json_object_get(spec, "containers"), i, container)
        value_keep(container, of_container);
    json_array_foreach(json_object_get(spec, "initContainers"), i, container)
        value_keep(container, of_container);
    json_array_foreach(json_object_get(spec, "volumes"), i, container)
        value_keep(container, of_volume);
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

int board_new(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
              bool events, const struct board_owner *owner, struct board **ret_board,
              struct drarun_error *err)
{
    CLEANUP(board_freep) struct board *board = calloc(1, sizeof *board);
    if (!board)
        return error_set(err, ENOMEM, "out of memory");
    *board = (struct board){.cluster = cluster,
                            .spec = spec,
                            .namespace = namespace,
                            .owner = *owner,
                            .states = calloc(spec->workers, sizeof *board->states),
                            .gone_pods = calloc(spec->workers, sizeof *board->gone_pods),
                            .gone_claims = calloc(spec->workers, sizeof *board->gone_claims),
                            .news = calloc(spec->workers, sizeof *board->news),
                            .pods = calloc(spec->workers, sizeof *board->pods),
                            .claims_of = calloc(spec->workers, sizeof *board->claims_of)};
    board->changed = event_new(cluster->base, -1, 0, on_changed, board);
    if (!board->states || !board->gone_pods || !board->gone_claims || !board->news ||
        !board->pods || !board->claims_of || !board->changed)
        return error_set(err, ENOMEM, "out of memory");
    bool claims = claims_wanted(spec) || claims_named(spec);
    int rc = claims ? cluster_need_claims(cluster, err) : 0;
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
    for (uint32_t i = 0; board->news && i < board->spec->workers; i++)
        news_done(&board->news[i]);
    news_done(&board->job_news);
    news_done(&board->launcher_news);
    news_done(&board->owner_news);
    free(board->news);
    free(board->states);
    free(board->pods);
    free(board->claims_of);
    free(board->gone_pods);
    free(board->gone_claims);
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
        if (board_check(board, err) < 0)
            return -EACCES;
        if (left <= 0)
            return error_kind(err, DRARUN_ERR_CLUSTER, ETIMEDOUT,
                              "the job's objects could not be listed within %" PRId64 " s%s%s",
                              ms / 1000, trouble ? ": " : "", trouble ? trouble : "");
        cluster_turn(board->cluster, left);
    }
    return 0;
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
    mark_changed(board);
}

struct sorting {
    struct board *board;
    const char *parent_uid; /* whose the pods are; NULL: anybody's */
    uint32_t attempt;
};

static void sort_pod(const json_t *pod, void *arg)
{
    struct sorting *s = arg;
    int64_t worker = board_worker_label(pod);
    if (worker < 0 || worker >= s->board->spec->workers || !is_of_attempt(pod, s->attempt) ||
        (s->parent_uid && !kube_is_owned_by(pod, s->parent_uid)))
        return;
    const json_t **place = &s->board->pods[worker];
    /* an Indexed Job may have replaced it: the one that is not on its way out */
    const json_t *metadata = json_object_get(pod, "metadata");
    if (!*place || !json_object_get(metadata, "deletionTimestamp"))
        *place = pod;
}

static void sort_claim(const json_t *claim, void *arg)
{
    struct sorting *s = arg;
    int64_t worker = board_worker_label(claim);
    if (worker >= 0 && worker < s->board->spec->workers &&
        (!s->parent_uid || kube_is_owned_by(claim, s->parent_uid)))
        s->board->claims_of[worker] = claim;
}

/* Claims made of a template are called by the pod's status. */
static const json_t *claim_of(const struct board *board, const json_t *pod)
{
    size_t i;
    json_t *status;
    const json_t *list = json_object_get(json_object_get(pod, "status"), "resourceClaimStatuses");
    json_array_foreach(list, i, status)
    {
        const char *name = json_string_value(json_object_get(status, "name"));
        const char *claim = json_string_value(json_object_get(status, "resourceClaimName"));
        if (name && claim && strcmp(name, "devices") == 0)
            return kube_watch_find(board->sources[KIND_CLAIMS].watch, NULL, claim);
    }
    return NULL;
}

/* Whose the pods are: the owner's, or the worker Job's. */
static const char *parent_uid(const struct board *board)
{
    if (!board->owner_uid || board->spec->claims == SPEC_CLAIMS_DIRECT)
        return board->owner_uid;
    const json_t *job = board_worker_job(board);
    return job ? kube_uid(job) : "";
}

static void sort(struct board *board, uint32_t attempt)
{
    uint32_t count = board->spec->workers;
    struct sorting s = {.board = board, .parent_uid = parent_uid(board), .attempt = attempt};
    memset(board->pods, 0, count * sizeof *board->pods);
    memset(board->claims_of, 0, count * sizeof *board->claims_of);
    kube_watch_each(board->sources[KIND_PODS].watch, sort_pod, &s);
    if (!board->sources[KIND_CLAIMS].watch)
        return;
    if (board->spec->claims == SPEC_CLAIMS_DIRECT)
        kube_watch_each(board->sources[KIND_CLAIMS].watch, sort_claim, &s);
    for (uint32_t i = 0; board->spec->claims == SPEC_CLAIMS_TEMPLATE && i < count; i++)
        board->claims_of[i] = board->pods[i] ? claim_of(board, board->pods[i]) : NULL;
}

const struct pod_state *board_workers(struct board *board, uint32_t attempt)
{
    sort(board, attempt);
    for (uint32_t i = 0; i < board->spec->workers; i++) {
        bool wanted = claims_wanted_by(spec_role_of(board->spec, i));
        pod_state_read(board->pods[i], board->claims_of[i], wanted, &board->news[i],
                       &board->states[i]);
        board->states[i].vanished = has_vanished(board, i, attempt);
    }
    return board->states;
}

json_t *board_claims(struct board *board, uint32_t attempt)
{
    CLEANUP(json_decrefp) json_t *list = json_array();
    int rc = list ? 0 : -ENOMEM;
    sort(board, attempt);
    for (uint32_t i = 0; rc == 0 && i < board->spec->workers; i++) {
        const json_t *claim = board->claims_of[i];
        rc = json_array_append_new(list, claim ? json_pack("[O]", claim) : json_array());
    }
    return rc < 0 ? NULL : TAKE_PTR(list);
}

struct counting {
    const char *parent_uid;
    size_t count;
};

static void count_worker(const json_t *object, void *arg)
{
    struct counting *c = arg;
    c->count += board_worker_label(object) >= 0 &&
                (!c->parent_uid || !c->parent_uid[0] || kube_is_owned_by(object, c->parent_uid));
}

/* Claims made of a template have no label of ours that says which worker's they are. */
static void count_claim(const json_t *claim, void *arg)
{
    struct counting *c = arg;
    (void)claim;
    c->count++;
}

size_t board_remains(const struct board *board, bool claims)
{
    bool direct = board->spec->claims == SPEC_CLAIMS_DIRECT;
    struct counting c = {.parent_uid = direct ? board->owner_uid : NULL};
    kube_watch_each(board->sources[KIND_PODS].watch, count_worker, &c);
    if (claims && board->sources[KIND_CLAIMS].watch)
        kube_watch_each(board->sources[KIND_CLAIMS].watch, direct ? count_worker : count_claim, &c);
    return c.count;
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
    const json_t *pod = launcher_pod_find(board->sources[KIND_PODS].watch, kube_uid(job), NULL);
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
