/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/submit/batch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/manifests/claims.h"
#include "jobs/manifests/objects.h"
#include "jobs/manifests/pod_security.h"
#include "jobs/spec/k8s_name.h"
#include "launcher/cluster/client/worker_cache.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/kube/discover.h"

#define AGAIN_MIN_MS 50 /* between two looks at an object that is going; doubles */
#define AGAIN_MAX_MS 1000
#define GRACE_MAX_MS 60000    /* of what is late: nobody is told of anything meanwhile */
#define BEYOND_GRACE_MS 10000 /* of a deleted pod, and for what has no grace period */
#define UNDER_WAY_MAX (2 * KUBE_CALLS_MAX)
#define WARNED_MAX 20 /* texts of a server, or of its webhooks, that may name the object */

struct batch_item {
    struct batch *batch;
    size_t index; /* in the source */
    char *name;
    struct kube_resource resource;
    struct kube_target target;
    struct kube_call *call; /* NULL: none is under way */
    struct event *again;    /* an object of that name is on its way out */
    bool lost;              /* an answer was: what is in the way may be this process's */
    char *owner_uid; /* of what is in the way, while its owner is asked for; NULL: of any uid */
    int64_t late;    /* the earlier attempt of what is in the way, which is deleted; 0: none */
    int64_t late_ms; /* until when that may go */
    bool forced;     /* its node is not waited for any more */
    int64_t pause_ms;
};

/* ---- the mark ---- */

json_t *batch_mark(const json_t *object, const char *mark)
{
    json_t *copy = json_deep_copy(object);
    json_t *metadata = json_object_get(copy, "metadata");
    json_t *annotations = json_object_get(metadata, "annotations");
    if (!annotations &&
        json_object_set_new(metadata, "annotations", annotations = json_object()) < 0)
        annotations = NULL;
    if (json_object_set_new(annotations, BATCH_MADE_BY, json_string(mark)) < 0)
        json_decref(TAKE_PTR(copy));
    return copy;
}

bool batch_has_mark(const json_t *object, const char *mark)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const char *theirs =
        json_string_value(json_object_get(json_object_get(metadata, "annotations"), BATCH_MADE_BY));
    return theirs && strcmp(theirs, mark) == 0;
}

/* ---- the source ---- */

/* Whose workers have an object of the source each. */
static bool is_of_source(const struct batch_source *source, const struct spec_role *role)
{
    return source->pods || claims_wanted_by(role);
}

size_t batch_count(const struct batch_source *source)
{
    size_t count = json_array_size(source->list);
    bool each = source->spec && source->spec->claims != SPEC_CLAIMS_TEMPLATE;
    for (uint32_t r = 0; each && r < source->spec->role_count; r++)
        if (is_of_source(source, &source->spec->roles[r]))
            count += source->spec->roles[r].workers;
    return count;
}

/* The worker whose object is the index-th of the source's workers. */
static uint32_t worker_at(const struct batch_source *source, uint32_t index)
{
    const struct spec_role *role = source->spec->roles;
    for (; !is_of_source(source, role) || index >= role->workers; role++)
        index -= is_of_source(source, role) ? role->workers : 0;
    return role->first + index;
}

/* A new reference. */
static int source_get(const struct batch_source *source, size_t index, json_t **ret_manifest,
                      struct drarun_error *err)
{
    size_t listed = json_array_size(source->list);
    if (index < listed) {
        *ret_manifest = json_incref(json_array_get(source->list, index));
        return 0;
    }
    uint32_t worker = worker_at(source, (uint32_t)(index - listed));
    return source->pods ? render_pod(source->spec, source->options, worker, ret_manifest, err)
                        : render_claim(source->spec, source->options, worker, ret_manifest, err);
}

/* ---- one object ---- */

static void on_created(const struct kube_answer *answer, const struct drarun_error *err, void *arg);

/* Kinds of which a cluster may serve another version than the one that we know them by. */
static const struct kube_resource *find_versioned(const char *kind)
{
    static const struct kube_resource *const all[] = {&kube_pod_groups, &kube_resource_claims,
                                                      &kube_resource_claim_templates};
    for (size_t i = 0; kind && i < ARRAY_LEN(all); i++)
        if (strcmp(kind, all[i]->kind) == 0)
            return all[i];
    return NULL;
}

/* The version that this cluster serves; NULL: there is one alone. */
static const char *version_served(const struct cluster *cluster, const char *kind)
{
    if (strcmp(kind, "ResourceClaim") == 0 || strcmp(kind, "ResourceClaimTemplate") == 0)
        return cluster_claims_version(cluster);
    return strcmp(kind, kube_pod_groups.kind) == 0 ? cluster->pod_groups : NULL;
}

static int describe(struct batch_item *item, json_t *manifest, struct drarun_error *err)
{
    const char *version = json_string_value(json_object_get(manifest, "apiVersion"));
    const char *kind = json_string_value(json_object_get(manifest, "kind"));
    const struct kube_resource *found = kube_resource_find(version, kind);
    if (!found)
        found = find_versioned(kind);
    if (!found)
        return error_set(err, EINVAL, "internal error: no resource for %s %s", version, kind);
    const char *served = version_served(item->batch->cluster, kind);
    item->resource = *found;
    if (served)
        item->resource.version = served;
    item->name = strdup(kube_name(manifest));
    item->target = (struct kube_target){
        .resource = &item->resource, .namespace_ = item->batch->namespace, .name = item->name};
    return item->name ? 0 : error_set(err, ENOMEM, "out of memory");
}

bool batch_is_open(const struct batch *batch)
{
    return batch->rc == 0 && !batch->yielded;
}

static void note_failure(struct batch *batch, const struct drarun_error *err)
{
    if (batch_is_open(batch))
        batch->rc = error_kind(batch->err, err->kind, err->code, "%s", err->text);
}

static void finish(struct batch_item *item)
{
    item->batch->left--;
}

static int start(struct batch_item *item, struct drarun_error *err)
{
    struct batch *batch = item->batch;
    const struct kube_write again = {.repeat = true, .timeout_ms = batch->cluster->create_ms};
    CLEANUP(json_decrefp) json_t *manifest = NULL;
    int rc = source_get(batch->source, item->index, &manifest, err);
    if (rc == 0 && !item->name)
        rc = describe(item, manifest, err);
    if (rc == 0)
        rc = kube_create(batch->cluster->client, &item->target, manifest, &again, on_created, item,
                         &item->call, err);
    return rc;
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
    struct batch_item *item = arg;
    struct drarun_error err = {0};
    (void)fd, (void)what;
    if (batch_is_open(item->batch) && start(item, &err) == 0)
        return;
    if (err.code)
        note_failure(item->batch, &err);
    finish(item);
}

/* A pod takes its grace period to go, and its name with it. */
static bool try_later(struct batch_item *item)
{
    struct batch *batch = item->batch;
    int64_t end_ms = item->late ? item->late_ms : batch->end_ms;
    if (!batch_is_open(batch) || clock_ms() + item->pause_ms >= end_ms)
        return false;
    if (!item->again)
        item->again = evtimer_new(batch->cluster->base, on_again, item);
    struct timeval after = timeval_from_ms(item->pause_ms);
    if (!item->again || evtimer_add(item->again, &after) < 0)
        return false;
    if (!batch->told && item->pause_ms == AGAIN_MAX_MS)
        log_note("waiting for %s %s of an earlier %s to go", item->target.resource->kind,
                 item->target.name, item->late ? "attempt" : "job");
    batch->told |= item->pause_ms == AGAIN_MAX_MS;
    item->pause_ms = item->pause_ms * 2 < AGAIN_MAX_MS ? item->pause_ms * 2 : AGAIN_MAX_MS;
    return true;
}

static bool ask(struct batch_item *item, const struct kube_target *target, kube_call_fn fn)
{
    struct drarun_error err = {0};
    return kube_get(item->batch->cluster->client, target, fn, item, &item->call, &err) == 0;
}

/* What goes with its owner, which is gone already, does not show a deletionTimestamp yet. */
static bool is_going(const json_t *object)
{
    return kube_is_terminating(object) ||
           json_object_get(json_object_get(object, "metadata"), "ownerReferences");
}

static void say_in_the_way(const struct batch_item *item, const json_t *object,
                           struct drarun_error *err)
{
    const char *job = item->batch->job, *namespace = item->target.namespace_;
    const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    const char *theirs = json_string_value(json_object_get(labels, "drarun.dev/job"));
    if (theirs && strcmp(theirs, job) == 0)
        error_kind(
            err, DRARUN_ERR_CLUSTER, EEXIST,
            "there is a job \"%s\" in namespace %s already: drarun status %s shows it, drarun "
            "cancel %s ends it, or deletes what remains of it (as does run --replace); or give "
            "this one another name",
            job, namespace, job, job);
    else
        error_kind(
            err, DRARUN_ERR_CLUSTER, EEXIST,
            "%s \"%s\" exists in namespace %s and belongs to no job: delete it, or give the job "
            "another name",
            item->target.resource->kind, item->target.name, namespace);
}

static void say_left(const struct batch_item *item, struct drarun_error *err)
{
    error_kind(err, DRARUN_ERR_CLUSTER, ETIMEDOUT,
               "%s %s of an earlier job still exists after %" PRId64
               " s: its owner is gone or being deleted, and the cluster's garbage collector has "
               "not deleted it; delete it, and submit the job again",
               item->target.resource->kind, item->target.name, item->batch->going_ms / 1000);
}

/* A DraJob of that name is ours: the one that owned this has gone. */
static bool is_of_earlier_dra_job(const struct batch *batch, const json_t *object)
{
    const json_t *owners = json_object_get(json_object_get(object, "metadata"), "ownerReferences");
    const char *kind = json_string_value(json_object_get(json_array_get(owners, 0), "kind"));
    const char *ours = batch->owner->dra_job;
    return ours && kind && strcmp(kind, kube_dra_jobs.kind) == 0 && !kube_is_owned_by(object, ours);
}

/* Who owns what is in the way of an owner: a job that is there, or one that has gone. */
static void on_their_owner(const struct kube_answer *answer, const struct drarun_error *err,
                           void *arg)
{
    struct batch_item *item = arg;
    struct batch *batch = item->batch;
    struct drarun_error other = {0};
    const char *uid = err ? NULL : kube_uid(answer->body);
    item->call = NULL;
    bool there = !err && !kube_is_terminating(answer->body) &&
                 (!item->owner_uid || (uid && strcmp(uid, item->owner_uid) == 0));
    if (batch->rc == 0 && !there && try_later(item))
        return;
    finish(item);
    if (there)
        say_in_the_way(item, answer->body, &other);
    else if (!err || err->code == ENOENT)
        say_left(item, &other);
    note_failure(batch, other.code ? &other : err);
}

static bool ask_for_their_owner(struct batch_item *item)
{
    const struct kube_target job = {
        .resource = &kube_jobs, .namespace_ = item->target.namespace_, .name = item->batch->job};
    return ask(item, &job, on_their_owner);
}

/* Asks for the owner that the object names: while it exists, nobody deletes the object. */
static bool ask_for_owner_of(struct batch_item *item, const json_t *object)
{
    static const struct kube_resource *const kinds[] = {&kube_jobs, &kube_config_maps};
    const json_t *owners = json_object_get(json_object_get(object, "metadata"), "ownerReferences");
    const json_t *owner = json_array_get(owners, 0);
    const char *kind = json_string_value(json_object_get(owner, "kind"));
    const char *uid = json_string_value(json_object_get(owner, "uid"));
    struct kube_target target = {.namespace_ = item->target.namespace_,
                                 .name = json_string_value(json_object_get(owner, "name"))};
    for (size_t i = 0; kind && i < ARRAY_LEN(kinds); i++)
        if (strcmp(kind, kinds[i]->kind) == 0)
            target.resource = kinds[i];
    if (!target.resource || !target.name || !uid)
        return false;
    free(item->owner_uid);
    item->owner_uid = strdup(uid);
    return item->owner_uid && ask(item, &target, on_their_owner);
}

static bool is_made_by_us(const struct batch *batch, const json_t *object)
{
    return batch->owner && batch_has_mark(object, batch->owner->mark);
}

static void keep_owner(struct batch *batch, const json_t *object)
{
    struct batch_owner *owner = batch->owner;
    if (!owner || owner->uid)
        return;
    owner->uid = strdup(kube_uid(object));
    owner->suspended = object_is_suspended(object);
}

static bool is_kind(const struct batch_item *item, const struct kube_resource *resource)
{
    return strcmp(item->resource.kind, resource->kind) == 0;
}

/* A restart goes on with the claims that it finds; they are of its step. */
static bool is_of_other_step(const struct batch_item *item, const json_t *claim)
{
    struct drarun_error err = {0};
    CLEANUP(json_decrefp) json_t *own = NULL;
    return source_get(item->batch->source, item->index, &own, &err) == 0 &&
           !claims_same_step(json_object_get(claim, "spec"), json_object_get(own, "spec"));
}

/* Of what this attempt does not take over, by its label; 0: it is of no earlier one than the
 * batch's, or stays. */
static int64_t earlier_attempt(const struct batch_item *item, const json_t *object)
{
    static const struct kube_resource *const kinds[] = {&kube_pods, &kube_jobs,
                                                        &kube_resource_claim_templates};
    uint32_t attempt = worker_cache_attempt_of(object);
    if (attempt >= item->batch->attempt)
        return 0;
    bool replaced = is_kind(item, &kube_resource_claims) && is_of_other_step(item, object);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        replaced |= is_kind(item, kinds[i]);
    return replaced ? attempt : 0;
}

static bool is_pod(const struct batch_item *item)
{
    return is_kind(item, &kube_pods);
}

static void say_stays(const struct batch_item *item, struct drarun_error *err)
{
    error_kind(err, DRARUN_ERR_CLUSTER, ETIMEDOUT,
               "%s %s of an earlier attempt of job %s still exists: %s", item->resource.kind,
               item->name, item->batch->job,
               is_kind(item, &kube_resource_claims) ? "a pod may still use it"
                                                    : "its node may be lost");
}

static void on_late_deleted(const struct kube_answer *answer, const struct drarun_error *err,
                            void *arg)
{
    struct batch_item *item = arg;
    struct batch *batch = item->batch;
    struct drarun_error stays = {0};
    (void)answer;
    item->call = NULL;
    bool gone = err && (err->code == ENOENT || err->code == EBUSY); /* or is another one by now */
    if ((!err || gone) && try_later(item))
        return;
    finish(item);
    say_stays(item, &stays);
    note_failure(batch, err && !gone ? err : &stays);
}

/* A launcher's Role lets it delete pods and claims by selectors alone. */
static bool is_deleted_by_selectors(const struct batch_item *item)
{
    return is_pod(item) || is_kind(item, &kube_resource_claims);
}

static int delete_by_selectors(struct batch_item *item, struct drarun_error *err)
{
    char labels[96 + K8S_LABEL_MAX], fields[32 + K8S_SUBDOMAIN_MAX];
    const struct kube_target all = {.resource = &item->resource,
                                    .namespace_ = item->target.namespace_};
    const struct kube_select select = {.labels = labels, .fields = fields};
    const struct kube_delete options = {.now = item->forced};
    snprintf(labels, sizeof labels, "drarun.dev/job=%s,drarun.dev/attempt=%" PRId64,
             item->batch->job, item->late);
    snprintf(fields, sizeof fields, "metadata.name=%s", item->name);
    return kube_delete_all(item->batch->cluster->client, &all, &select, &options, on_late_deleted,
                           item, &item->call, err);
}

static void begin_deletion(struct batch_item *item, const char *uid)
{
    struct batch *batch = item->batch;
    struct drarun_error err = {0};
    const struct kube_delete options = {.propagation = "Background", .uid = uid};
    const struct job_spec *spec = batch->source->spec;
    int64_t grace_ms = is_pod(item) && !item->forced && spec ? job_spec_grace_ms(spec) : 0;
    grace_ms = grace_ms < GRACE_MAX_MS ? grace_ms : GRACE_MAX_MS;
    item->late_ms = clock_ms() + grace_ms + BEYOND_GRACE_MS;
    item->pause_ms = AGAIN_MIN_MS;
    int rc = is_deleted_by_selectors(item)
                 ? delete_by_selectors(item, &err)
                 : kube_delete(batch->cluster->client, &item->target, &options, on_late_deleted,
                               item, &item->call, &err);
    if (rc == 0)
        return;
    note_failure(batch, &err);
    finish(item);
}

/* The client or the controller may create one of the first objects when that attempt has ended, and
 * its objects are deleted. */
static bool delete_late(struct batch_item *item, const json_t *object)
{
    int64_t attempt = earlier_attempt(item, object);
    if (attempt == 0)
        return false;
    log_note("%s %s of attempt %" PRId64 " was created late: it is deleted for attempt %" PRIu32,
             item->resource.kind, item->name, attempt, item->batch->attempt);
    item->late = attempt;
    item->forced = false;
    begin_deletion(item, kube_uid(object));
    return true;
}

/* Of what has not gone in time; its node may be lost. */
static bool force_late(struct batch_item *item)
{
    if (!item->late || item->forced || !is_pod(item))
        return false;
    log_note("pod %s of attempt %" PRId64
             " still exists: it is deleted from the API without waiting for its node",
             item->name, item->late);
    item->forced = true;
    begin_deletion(item, NULL);
    return true;
}

/* What is in the way: ours, an earlier job's that is going, or somebody else's. */
static void on_found(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct batch_item *item = arg;
    struct batch *batch = item->batch;
    struct drarun_error other = {0};
    item->call = NULL;
    bool gone = err && err->code == ENOENT;
    bool going = !err && is_going(answer->body);
    bool ours =
        !err && !kube_is_terminating(answer->body) &&
        (kube_is_owned_by(answer->body, batch->owner_uid) || is_made_by_us(batch, answer->body));
    if (batch->rc == 0 && batch->owner && !ours && going && !kube_is_terminating(answer->body) &&
        !is_of_earlier_dra_job(batch, answer->body) && ask_for_their_owner(item))
        return;
    if (batch->rc == 0 && !batch->owner && !ours && going && !kube_is_terminating(answer->body) &&
        ask_for_owner_of(item, answer->body))
        return;
    if (batch->rc == 0 && !ours && (gone || going) && try_later(item))
        return;
    if (batch->rc == 0 && ours && delete_late(item, answer->body))
        return;
    if (batch_is_open(batch) && !err && kube_is_terminating(answer->body) && force_late(item))
        return;
    finish(item);
    if (err)
        note_failure(batch, err);
    else if (ours)
        keep_owner(batch, answer->body);
    if (ours && batch->yields && !item->lost && batch->rc == 0)
        batch_leave(batch);
    if (err || ours)
        return;
    if (item->late && kube_is_terminating(answer->body))
        say_stays(item, &other);
    else
        say_in_the_way(item, answer->body, &other);
    note_failure(batch, &other);
}

/* A Secret's name is drawn for this run, and no Role of ours lets it be read. */
static bool is_ours_unseen(const struct batch_item *item, const struct kube_answer *answer)
{
    return answer->lost && is_kind(item, &kube_secrets);
}

/* Of pods and templates of pods, which hold what the user wrote. What it says of one worker it says
 * of all. */
static void tell_warnings(const struct batch_item *item, const struct strlist *warnings)
{
    struct strlist *warned = item->batch->warned;
    bool pods = is_pod(item) || is_kind(item, &kube_jobs);
    for (size_t i = 0; warned && pods && i < warnings->count; i++) {
        const char *text = warnings->items[i];
        if (warned->count >= WARNED_MAX || strlist_has(warned, text))
            continue;
        strlist_add(warned, text);
        log_note("the API server warns of %s %s in namespace %s: %s", item->resource.kind,
                 item->name, item->batch->namespace, text);
    }
}

/* Of pods that Pod Security refuses the first one is told, whichever answer came first: a
 * controller that tries again says the same again. */
static void note_refusal(const struct batch_item *item, const struct kube_answer *answer,
                         const struct drarun_error *err)
{
    struct batch *batch = item->batch;
    struct drarun_error told = *err;
    if (pod_security_explain(answer->body, batch->namespace, &told)) {
        if (batch->refused && item->index < batch->refused->index)
            batch->rc = 0;
        if (batch->rc == 0)
            batch->refused = item;
    }
    note_failure(batch, &told);
}

static void on_created(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct batch_item *item = arg;
    struct batch *batch = item->batch;
    bool exists = err && err->code == EEXIST;
    item->call = NULL;
    item->lost |= answer->lost;
    tell_warnings(item, answer->warnings);
    if (exists && is_ours_unseen(item, answer)) {
        finish(item);
        return;
    }
    if (exists && ask(item, &item->target, on_found))
        return;
    if (err && err->code == ENOENT) /* perhaps its API version is not served any more */
        kube_discover_forget(batch->cluster->client);
    if (err)
        note_refusal(item, answer, err);
    else
        keep_owner(batch, answer->body);
    finish(item);
}

/* ---- all of them ---- */

static void items_free(struct batch_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (items[i].again)
            event_free(items[i].again);
        free(items[i].name);
        free(items[i].owner_uid);
    }
    free(items);
}

static void refuse(struct batch *batch, const char *why)
{
    batch->rc = error_kind(batch->err, DRARUN_ERR_CLUSTER, ECANCELED,
                           "job %s: not all of its objects are made: %s", batch->job, why);
}

/* Calls that are tried again, or are held up on the way, would create objects later. */
static void drop_calls(struct batch *batch)
{
    for (size_t i = 0; batch->items && i < batch->next; i++) {
        struct batch_item *item = &batch->items[i];
        bool waits = item->again && evtimer_pending(item->again, NULL);
        if (!item->call && !waits)
            continue;
        kube_call_cancel(TAKE_PTR(item->call));
        if (waits)
            evtimer_del(item->again);
        finish(item);
    }
}

void batch_leave(struct batch *batch)
{
    batch->yielded = true;
    batch->rc = 0;
    drop_calls(batch);
}

void batch_cancel(struct batch *batch, const char *why)
{
    refuse(batch, why);
    drop_calls(batch);
}

static bool may_create(struct batch *batch)
{
    const struct cluster *cluster = batch->cluster;
    if (!cluster->may_create || cluster->may_create(cluster->may_create_arg))
        return true;
    refuse(batch, "this process may make no more");
    return false;
}

void batch_begin(struct batch *batch, const struct batch_source *source)
{
    static const struct drarun_error no_memory = {.code = ENOMEM, .text = "out of memory"};
    batch->count = batch_count(source);
    batch->items = calloc(batch->count + 1, sizeof *batch->items);
    batch->source = source;
    batch->refused = NULL;
    batch->next = 0;
    batch->end_ms = clock_ms() + batch->going_ms;
    if (!batch->items)
        note_failure(batch, &no_memory);
}

bool batch_go_on(struct batch *batch)
{
    size_t most = batch->most ? batch->most : UNDER_WAY_MAX;
    while (batch_is_open(batch) && batch->next < batch->count && batch->left < most &&
           may_create(batch)) {
        struct drarun_error local = {0};
        struct batch_item *item = &batch->items[batch->next];
        *item =
            (struct batch_item){.batch = batch, .index = batch->next++, .pause_ms = AGAIN_MIN_MS};
        if (start(item, &local) < 0)
            note_failure(batch, &local);
        else
            batch->left++;
    }
    return batch->left == 0;
}

int batch_end(struct batch *batch)
{
    if (batch->items)
        items_free(TAKE_PTR(batch->items), batch->count);
    batch->source = NULL;
    return batch->rc;
}

int batch_create(struct batch *batch, const struct batch_source *source)
{
    batch_begin(batch, source);
    while (!batch_go_on(batch))
        cluster_turn(batch->cluster, KUBE_CALL_MS);
    return batch_end(batch);
}
