/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/controller/controller.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jobs/status/drajob.h"
#include "launcher/cluster/controller/private.h"
#include "launcher/cluster/submit/cancel.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/heartbeat_file.h"
#include "lib/base/log.h"
#include "lib/doc/value.h"
#include "lib/kube/list.h"

#define LIFE_S 15     /* of its Lease, as usual for controllers */
#define TURN_MS 60000 /* the longest wait for something to happen */
#define BEAT_MS 2000
#define CONDITIONS_MAX 32  /* of a Job, which has up to five types of them */
#define RECORD_MS 5000     /* at the end, for a status that could not be written at once */
#define LOOK_MAX_MS 600000 /* longer than all calls of a look, with their deadlines */

static bool may_create(void *arg)
{
    const struct controller *c = arg;
    return !c->stop && !c->lost.code;
}

/* ---- the heartbeat ---- */

/* Not for a loop that runs while a look never ends. */
static void on_beat(evutil_socket_t fd, short what, void *arg)
{
    struct controller *c = arg;
    (void)fd, (void)what;
    int64_t oldest = controller_oldest_look(c);
    if (oldest == 0 || clock_ms() - oldest < LOOK_MAX_MS)
        heartbeat_file_beat(c->heartbeat); /* of an error the probe tells */
}

/* From the begin: who waits for the Lease works too. */
static int begin_heartbeat(struct controller *c, struct drarun_error *err)
{
    static const struct timeval pause = {.tv_sec = BEAT_MS / 1000};
    if (!c->options->heartbeat)
        return 0;
    c->heartbeat = heartbeat_file_open(c->options->heartbeat, err);
    if (c->heartbeat < 0)
        return c->heartbeat;
    c->beat = event_new(c->cluster->base, -1, EV_PERSIST, on_beat, c);
    return c->beat && event_add(c->beat, &pause) == 0 ? 0 : error_set(err, ENOMEM, "out of memory");
}

/* ---- what is watched ---- */

static void on_drajob(const json_t *object, void *arg)
{
    controller_note_change(arg, kube_namespace(object), kube_name(object));
}

static void on_drajob_changed(const json_t *object, const json_t *before, void *arg)
{
    (void)before;
    on_drajob(object, arg);
}

/* Another one of that name may be there before it is looked at: nothing of this one counts then. */
static void on_drajob_deleted(const json_t *object, void *arg)
{
    char key[CONTROLLER_KEY_SIZE];
    snprintf(key, sizeof key, "%s/%s", kube_namespace(object), kube_name(object));
    controller_forget(arg, key);
    on_drajob(object, arg);
}

/* An object of a job: the job's name is its label. */
static void on_part(const json_t *object, void *arg)
{
    const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    const char *job = json_string_value(json_object_get(labels, CONTROLLER_LABEL));
    if (job)
        controller_note_change(arg, kube_namespace(object), job);
}

static void on_part_changed(const json_t *object, const json_t *before, void *arg)
{
    (void)before;
    on_part(object, arg);
}

static void on_trouble(const struct drarun_error *err, void *arg)
{
    (void)arg;
    if (err)
        log_note("%s", err->text);
    else
        log_note("the API server answers again");
}

/* The spec of a job is in its DraJob, and of its Job only the conditions are read, when it has
 * begun, whether it has had a pod, and whether it is cancelled. Any account that may create objects
 * decides how large the rest is. */
static void trim_part(json_t *object, void *arg)
{
    static const char *const metadata[] = {"name",
                                           "namespace",
                                           "uid",
                                           "resourceVersion",
                                           "creationTimestamp",
                                           "labels",
                                           "annotations",
                                           "ownerReferences",
                                           "deletionTimestamp",
                                           NULL};
    static const char *const labels[] = {CONTROLLER_LABEL, NULL};
    static const char *const annotations[] = {CANCEL_ANNOTATION, NULL};
    static const char *const status[] = {"conditions", "active",    "succeeded",
                                         "failed",     "startTime", NULL};
    (void)arg;
    json_object_del(object, "spec");
    value_keep_at(object, "status", status);
    value_cut_at(json_object_get(object, "status"), "conditions", CONDITIONS_MAX);
    value_keep_at(object, "metadata", metadata);
    json_t *of = json_object_get(object, "metadata");
    value_keep_at(of, "labels", labels);
    value_keep_at(of, "annotations", annotations);
    value_cut_at(of, "ownerReferences", CONTROLLER_OWNERS_MAX);
}

static void trim_drajob(json_t *object, void *arg)
{
    (void)arg;
    drajob_trim(object);
}

static const struct kube_watch_events drajob_events = {.added = on_drajob,
                                                       .changed = on_drajob_changed,
                                                       .deleted = on_drajob_deleted,
                                                       .trouble = on_trouble,
                                                       .trim = trim_drajob};
static const struct kube_watch_events part_events = {.added = on_part,
                                                     .changed = on_part_changed,
                                                     .deleted = on_part,
                                                     .trouble = on_trouble,
                                                     .trim = trim_part};

static int watch(struct controller *c, const struct kube_resource *resource,
                 const struct kube_select *select, const struct kube_watch_events *events,
                 struct kube_watch **ret_watch, struct drarun_error *err)
{
    const struct kube_watch_options options = {
        .target = {.resource = resource, .namespace_ = c->options->namespace}, .select = *select};
    return kube_watch_new(c->cluster->client, &options, events, c, ret_watch, err);
}

struct beginning {
    struct controller *c;
    int64_t now_ms;
};

static void look_since_creation(const json_t *object, void *arg)
{
    const struct beginning *begin = arg;
    controller_again(begin->c, kube_namespace(object), kube_name(object),
                     kube_created_ms(object) - begin->now_ms);
}

/* Who waited for the controller before this one is not known: the oldest are looked at first. */
static void look_at_all(struct controller *c)
{
    struct beginning begin = {c, controller_now(c)};
    kube_watch_each(c->drajobs, look_since_creation, &begin);
}

/* Nothing is decided before all that is there is known. Of a ConfigMap, which anybody may label,
 * the watch brings only that it has changed: the document is read when it is a job's. */
static int watch_all(struct controller *c, struct drarun_error *err)
{
    static const struct kube_select all, parts = {.labels = CONTROLLER_LABEL};
    static const struct kube_select maps = {.labels = CONTROLLER_LABEL, .metadata_only = true};
    int rc = watch(c, &kube_jobs, &parts, &part_events, &c->jobs, err);
    if (rc == 0)
        rc = watch(c, &kube_config_maps, &maps, &part_events, &c->maps, err);
    if (rc == 0)
        rc = watch(c, &kube_dra_jobs, &all, &drajob_events, &c->drajobs, err);
    while (rc == 0 && !c->stop && !c->lost.code &&
           !(kube_watch_synced(c->jobs) && kube_watch_synced(c->maps) &&
             kube_watch_synced(c->drajobs)))
        cluster_turn(c->cluster, TURN_MS);
    if (rc == 0)
        look_at_all(c);
    return rc;
}

/* ---- the course of it ---- */

static void on_signal(void *arg, int signo)
{
    struct controller *c = arg;
    bool ends = signo == SIGINT || signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT;
    if (ends && !c->discovered) { /* it holds nothing yet */
        signals_restore(c->signals);
        raise(signo);
    }
    c->stop |= ends;
    if (signo == SIGTSTP)
        raise(SIGSTOP);
}

static void on_lost(void *arg, const struct drarun_error *why)
{
    struct controller *c = arg;
    c->lost = *why;
}

static bool is_stopped(void *arg)
{
    return ((const struct controller *)arg)->stop;
}

static int take_lease(struct controller *c, struct drarun_error *err)
{
    const struct lease_owner owner = {.lost = on_lost,
                                      .arg = c,
                                      .what = "the controller's Lease",
                                      .life_s = LIFE_S,
                                      .timed = true,
                                      .patient = true,
                                      .stopped = is_stopped};
    CLEANUP(json_decrefp)
    json_t *manifest =
        json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s}}}", "apiVersion", "coordination.k8s.io/v1",
                  "kind", "Lease", "metadata", "name", CONTROLLER_LEASE, "namespace",
                  c->options->lease_namespace, "labels", CONTROLLER_LEASE_LABEL, CONTROLLER_LEASE);
    if (!manifest)
        return error_set(err, ENOMEM, "out of memory");
    return lease_take(c->cluster, manifest, c->options->holder, &owner, &c->lease, err);
}

/* A controller of all namespaces, if there is one, leaves this one to us once it has seen our
 * Lease. It has, if another one held that for as long, and until just now. */
static int64_t leave_ms(const struct controller *c)
{
    int64_t now = kube_client_now(c->cluster->client);
    if (!c->options->namespace ||
        lease_was_held(c->lease, now, CONTROLLER_LEAVE_MS, CONTROLLER_QUIET_MS / 2))
        return 0;
    log_note("begins in %d s: until then a controller of all namespaces may manage the DraJobs of "
             "namespace %s",
             CONTROLLER_LEAVE_MS / 1000, c->options->namespace);
    return CONTROLLER_LEAVE_MS;
}

/* Two controllers that both manage a namespace would delete what the other one creates. */
static void await_others(struct controller *c)
{
    int64_t end = clock_ms() + leave_ms(c), left = end - clock_ms();
    for (; !c->stop && !c->lost.code && (left > 0 || !controller_knows_namespaces(c));
         left = end - clock_ms()) {
        controller_check_namespaces(c);
        int64_t check = controller_check_namespaces_due(c) - clock_ms();
        left = left > 0 ? left : TURN_MS;
        cluster_turn(c->cluster, left < check ? left : check);
    }
}

/* Of those whose objects were made here, the one whose status is to be written again first; NULL:
 * none. Borrowed. */
static const char *first_unrecorded(const struct controller *c, int64_t *ret_at)
{
    const char *first = NULL, *key;
    json_t *uid;
    json_object_foreach(c->made, key, uid)
    {
        const json_t *at = json_object_get(c->due, key);
        if (!at || (first && json_integer_value(at) >= *ret_at))
            continue;
        first = key;
        *ret_at = json_integer_value(at);
    }
    return first;
}

static void await_looks(struct controller *c)
{
    for (;;) {
        controller_go_on_looking(c);
        if (controller_count_looks(c) == 0)
            break;
        cluster_turn(c->cluster, TURN_MS);
    }
}

/* Another one may have changed the DraJob just before. */
static void record_rest(struct controller *c)
{
    int64_t at = 0, end = clock_ms() + RECORD_MS;
    const char *key;
    while ((key = first_unrecorded(c, &at)) && clock_ms() < end && !c->lost.code) {
        int64_t left = (at < end ? at : end) - clock_ms();
        if (left <= 0) {
            controller_look(c, key);
            await_looks(c);
        } else {
            cluster_turn(c->cluster, left);
        }
    }
}

/* A complete job that its status does not name would be deleted by the next leader. Waits for what
 * was asked of the API server. */
static void take_results(struct controller *c)
{
    controller_stop_looking(c);
    await_looks(c);
    for (size_t i = 0; i < ARRAY_LEN(c->making); i++) {
        if (!c->making[i].submission)
            continue;
        c->making[i].over = true;
        controller_look(c, c->making[i].key);
    }
    await_looks(c);
    record_rest(c);
}

/* A job that is being created goes first when it has changed: nothing more of it is created before
 * that. Not twice in a row: its author may change it again and again. */
static const char *next(struct controller *c, int64_t *ret_at)
{
    const char *due = controller_first_due(c, ret_at);
    const char *making = c->made_first ? NULL : controller_next_making(c);
    c->made_first = making;
    if (!making)
        return due;
    *ret_at = 0;
    return making;
}

static int64_t next_check(const struct controller *c)
{
    int64_t launchers = controller_check_due(c), namespaces = controller_check_namespaces_due(c);
    return launchers < namespaces ? launchers : namespaces;
}

static void serve(struct controller *c)
{
    while (!c->stop && !c->lost.code) {
        int64_t at = 0;
        if (lease_is_overdue(c->lease)) {
            cluster_turn(c->cluster, TURN_MS);
            continue;
        }
        controller_go_on_looking(c);
        controller_go_on_making(c);
        controller_check_launchers(c);
        controller_check_namespaces(c);
        const char *key = next(c, &at);
        int64_t left = key ? at - clock_ms() : TURN_MS;
        int64_t check = next_check(c) - clock_ms();
        if (left <= 0)
            controller_look(c, key);
        else
            left = left < check ? left : check;
        /* also between two that are due: the Lease, the watches and the heartbeat go on */
        cluster_turn(c->cluster, left < TURN_MS ? left : TURN_MS);
    }
    take_results(c);
}

static int begin(struct controller *c, struct drarun_error *err)
{
    c->due = json_object();
    c->outdated = json_object();
    c->pauses = json_object();
    c->going = json_object();
    c->untold = json_object();
    c->made = json_object();
    c->refused = json_object();
    c->rests = json_object();
    c->silent = json_object();
    c->large = (struct queue){json_object(), json_object()};
    c->small = (struct queue){json_object(), json_object()};
    c->held = json_object();
    c->unread = json_object();
    c->late = json_object();
    c->limits = json_object();
    if (!c->due || !c->outdated || !c->pauses || !c->going || !c->untold || !c->made ||
        !c->refused || !c->rests || !c->silent || !c->large.turns || !c->large.waiting ||
        !c->small.turns || !c->small.waiting || !c->held || !c->unread || !c->late || !c->limits)
        return error_set(err, ENOMEM, "out of memory");
    c->signals = signals_new(c->cluster->base, on_signal, c, err);
    int rc = c->signals ? begin_heartbeat(c, err) : -err->code;
    if (rc == 0)
        rc = controller_serve_metrics(c, err);
    if (rc == 0)
        rc = cluster_discover(c->cluster, err);
    c->discovered = rc == 0;
    /* from here on it says so itself */
    kube_client_tell_unanswered(c->cluster->client, NULL, NULL);
    if (rc == 0 && !c->cluster->dra_jobs)
        rc = error_kind(
            err, DRARUN_ERR_CLUSTER, ENOTSUP,
            "%s does not serve DraJobs: ask somebody with the rights to run drarun install --crd | "
            "kubectl apply --server-side -f -",
            kube_config_server(c->cluster->config));
    if (rc == 0)
        rc = take_lease(c, err);
    if (rc < 0)
        return rc;
    await_others(c);
    c->cluster->create_ms = CONTROLLER_CREATE_MS;
    c->cluster->may_create = may_create;
    c->cluster->may_create_arg = c;
    if (!c->stop && !c->lost.code)
        log_note("manages the DraJobs of %s%s, as %s",
                 c->options->namespace ? "namespace " : "all namespaces",
                 c->options->namespace ? c->options->namespace : "", c->options->holder);
    return watch_all(c, err);
}

static void done(struct controller *c)
{
    controller_stop_checking(c);
    kube_list_cancel(c->controllers);
    metrics_server_free(c->metrics);
    kube_watch_free(c->drajobs);
    kube_watch_free(c->jobs);
    kube_watch_free(c->maps);
    if (c->lease && !c->lost.code)
        lease_give_back(c->lease);
    lease_free(c->lease);
    if (c->beat)
        event_free(c->beat);
    close_fd(&c->heartbeat);
    signals_free(c->signals);
    json_decref(c->due);
    json_decref(c->outdated);
    json_decref(c->pauses);
    json_decref(c->going);
    json_decref(c->untold);
    json_decref(c->made);
    json_decref(c->refused);
    json_decref(c->rests);
    json_decref(c->silent);
    json_decref(c->large.turns);
    json_decref(c->large.waiting);
    json_decref(c->small.turns);
    json_decref(c->small.waiting);
    json_decref(c->held);
    json_decref(c->unread);
    json_decref(c->late);
    json_decref(c->limits);
    json_decref(c->ceded);
    json_decref(c->tally.ended);
}

int controller_run(struct cluster *cluster, const struct controller_options *options)
{
    struct controller c = {.cluster = cluster, .options = options, .heartbeat = -1};
    struct drarun_error err = {0};
    int rc = begin(&c, &err);
    if (rc == 0)
        serve(&c);
    if (rc == 0 && c.lost.code)
        rc = error_kind(&err, c.lost.kind, c.lost.code, "%s", c.lost.text);
    done(&c);
    if (rc == 0 || rc == -ECANCELED)
        return 0;
    log_error("controller: %s", err.text);
    return error_exit_status(err.kind);
}
