/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/submit/create.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/spec/k8s_name.h"
#include "jobs/manifests/objects.h"
#include "jobs/manifests/pod_security.h"
#include "launcher/cluster/submit/dry_run.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/kube/discover.h"

/* ---- what is to be made ---- */

/* Objects of a list, and behind them one for each worker, made when its turn comes: the manifests
 * of 1,000 workers would be most of what a launcher holds. */
struct source {
    json_t *list;
    const struct job_spec *spec;          /* NULL: the list alone */
    const struct render_options *options; /* of the workers' */
    bool pods;                            /* else claims */
};

/* Whose workers have an object of the source each. */
static bool is_of_source(const struct source *source, const struct spec_role *role)
{
    return source->pods || claims_wanted_by(role);
}

static size_t source_count(const struct source *source)
{
    size_t count = json_array_size(source->list);
    bool each = source->spec && source->spec->claims != SPEC_CLAIMS_TEMPLATE;
    for (uint32_t r = 0; each && r < source->spec->role_count; r++)
        if (is_of_source(source, &source->spec->roles[r]))
            count += source->spec->roles[r].workers;
    return count;
}

/* The worker whose object is the index-th of the source's workers. */
static uint32_t worker_at(const struct source *source, uint32_t index)
{
    const struct spec_role *role = source->spec->roles;
    for (; !is_of_source(source, role) || index >= role->workers; role++)
        index -= is_of_source(source, role) ? role->workers : 0;
    return role->first + index;
}

/* A new reference. */
static int source_get(const struct source *source, size_t index, json_t **ret_manifest,
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

/* ---- one batch ---- */

#define AGAIN_MIN_MS 50 /* between two looks at an object that is going; doubles */
#define AGAIN_MAX_MS 1000
#define UNDER_WAY_MAX (2 * KUBE_CALLS_MAX)
#define WARNED_MAX 20 /* texts of a server, or of its webhooks, that may name the object */

/* On the owner, by which a run knows its own again when the answer to its creation was lost. */
#define MADE_BY "drarun.dev/made-by"

struct item;

struct batch {
    struct cluster *cluster;
    const char *job;
    const char *owner_uid;
    const char *namespace;
    const struct source *source;
    struct item *items; /* count of them, of which those before next were begun */
    size_t count, next;
    size_t most; /* under way at once; 0: UNDER_WAY_MAX */
    bool yields; /* to another process that creates the same objects, once one of its is found */
    bool yielded;
    bool keep_uid;
    const char *mark;    /* with keep_uid: MADE_BY of what this run makes */
    const char *dra_job; /* likewise: uid of its DraJob, or NULL */
    char *made_uid;      /* with keep_uid of the last one; the caller frees it */
    bool suspended;      /* likewise: by the spec, or by the cluster's admission */
    int64_t going_ms;    /* how long an earlier job's object may take to go */
    int64_t end_ms;
    size_t left;
    struct strlist *warned;     /* what the server has warned of; NULL: that is not told */
    const struct item *refused; /* whose pod err is about, where Pod Security refused it */
    struct drarun_error *err;   /* the first */
    int rc;
    bool told;
};

struct item {
    struct batch *batch;
    size_t index; /* in the source */
    char *name;
    struct kube_resource resource;
    struct kube_target target;
    struct event *again; /* an object of that name is on its way out */
    bool lost;           /* an answer was: what is in the way may be this process's */
    char *owner_uid;     /* of what is in the way, while its owner is asked for; NULL: of any uid */
    int64_t pause_ms;
};

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

static int describe(struct item *item, json_t *manifest, struct drarun_error *err)
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

/* Further objects may be created. */
static bool is_open(const struct batch *batch)
{
    return batch->rc == 0 && !batch->yielded;
}

static void note_failure(struct batch *batch, const struct drarun_error *err)
{
    if (is_open(batch))
        batch->rc = error_kind(batch->err, err->kind, err->code, "%s", err->text);
}

static void finish(struct item *item)
{
    item->batch->left--;
}

static int start(struct item *item, struct drarun_error *err)
{
    struct batch *batch = item->batch;
    const struct kube_write again = {.repeat = true, .timeout_ms = batch->cluster->create_ms};
    CLEANUP(json_decrefp) json_t *manifest = NULL;
    int rc = source_get(batch->source, item->index, &manifest, err);
    if (rc == 0 && !item->name)
        rc = describe(item, manifest, err);
    if (rc == 0)
        rc = kube_create(batch->cluster->client, &item->target, manifest, &again, on_created, item,
                         NULL, err);
    return rc;
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
    struct item *item = arg;
    struct drarun_error err = {0};
    (void)fd, (void)what;
    if (is_open(item->batch) && start(item, &err) == 0)
        return;
    if (err.code)
        note_failure(item->batch, &err);
    finish(item);
}

/* A pod takes its grace period to go, and its name with it. */
static bool try_later(struct item *item)
{
    struct batch *batch = item->batch;
    if (!is_open(batch) || clock_ms() + item->pause_ms >= batch->end_ms)
        return false;
    if (!item->again)
        item->again = evtimer_new(batch->cluster->base, on_again, item);
    struct timeval after = timeval_from_ms(item->pause_ms);
    if (!item->again || evtimer_add(item->again, &after) < 0)
        return false;
    if (!batch->told && item->pause_ms == AGAIN_MAX_MS)
        log_note("waiting for %s %s of an earlier job to go", item->target.resource->kind,
                 item->target.name);
    batch->told |= item->pause_ms == AGAIN_MAX_MS;
    item->pause_ms = item->pause_ms * 2 < AGAIN_MAX_MS ? item->pause_ms * 2 : AGAIN_MAX_MS;
    return true;
}

static bool is_deleted(const json_t *object)
{
    return json_object_get(json_object_get(object, "metadata"), "deletionTimestamp");
}

/* What goes with its owner, which is gone already, does not show a deletionTimestamp yet. */
static bool is_going(const json_t *object)
{
    return is_deleted(object) ||
           json_object_get(json_object_get(object, "metadata"), "ownerReferences");
}

static void say_in_the_way(const struct item *item, const json_t *object, struct drarun_error *err)
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

/* A DraJob of that name is ours: the one that owned this has gone. */
static bool is_of_earlier_dra_job(const struct batch *batch, const json_t *object)
{
    const json_t *owners = json_object_get(json_object_get(object, "metadata"), "ownerReferences");
    const char *kind = json_string_value(json_object_get(json_array_get(owners, 0), "kind"));
    return batch->dra_job && kind && strcmp(kind, kube_dra_jobs.kind) == 0 &&
           !kube_is_owned_by(object, batch->dra_job);
}

/* Who owns what is in the way of an owner: a job that is there, or one that has gone. */
static void on_their_owner(const struct kube_answer *answer, const struct drarun_error *err,
                           void *arg)
{
    struct item *item = arg;
    struct batch *batch = item->batch;
    struct drarun_error other = {0};
    const char *uid = err ? NULL : kube_uid(answer->body);
    bool there = !err && !is_deleted(answer->body) &&
                 (!item->owner_uid || (uid && strcmp(uid, item->owner_uid) == 0));
    if (batch->rc == 0 && !there && try_later(item))
        return;
    finish(item);
    if (there)
        say_in_the_way(item, answer->body, &other);
    note_failure(batch, there || !err ? &other : err);
}

static bool ask_for_their_owner(struct item *item)
{
    struct drarun_error err = {0};
    const struct kube_target job = {
        .resource = &kube_jobs, .namespace_ = item->target.namespace_, .name = item->batch->job};
    return kube_get(item->batch->cluster->client, &job, on_their_owner, item, NULL, &err) == 0;
}

/* Asks for the owner that the object names: while it exists, nobody deletes the object. */
static bool ask_for_owner_of(struct item *item, const json_t *object)
{
    static const struct kube_resource *const kinds[] = {&kube_jobs, &kube_config_maps};
    struct drarun_error err = {0};
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
    return item->owner_uid &&
           kube_get(item->batch->cluster->client, &target, on_their_owner, item, NULL, &err) == 0;
}

static bool is_made_by_us(const struct batch *batch, const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const char *mark =
        json_string_value(json_object_get(json_object_get(metadata, "annotations"), MADE_BY));
    return batch->mark && mark && strcmp(mark, batch->mark) == 0;
}

static void keep_owner(struct batch *batch, const json_t *object)
{
    if (!batch->keep_uid || batch->made_uid)
        return;
    batch->made_uid = strdup(kube_uid(object));
    batch->suspended = object_is_suspended(object);
}

/* What is in the way: ours, an earlier job's that is going, or somebody else's. */
static void on_found(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct item *item = arg;
    struct batch *batch = item->batch;
    struct drarun_error other = {0};
    bool gone = err && err->code == ENOENT;
    bool going = !err && is_going(answer->body);
    bool ours =
        !err && !is_deleted(answer->body) &&
        (kube_is_owned_by(answer->body, batch->owner_uid) || is_made_by_us(batch, answer->body));
    if (batch->rc == 0 && batch->keep_uid && !ours && going && !is_deleted(answer->body) &&
        !is_of_earlier_dra_job(batch, answer->body) && ask_for_their_owner(item))
        return;
    if (batch->rc == 0 && !batch->keep_uid && !ours && going && !is_deleted(answer->body) &&
        ask_for_owner_of(item, answer->body))
        return;
    if (batch->rc == 0 && !ours && (gone || going) && try_later(item))
        return;
    finish(item);
    if (err)
        note_failure(batch, err);
    else if (ours)
        keep_owner(batch, answer->body);
    batch->yielded |= ours && batch->yields && !item->lost && batch->rc == 0;
    if (err || ours)
        return;
    say_in_the_way(item, answer->body, &other);
    note_failure(batch, &other);
}

/* A Secret's name is drawn for this run, and no Role of ours lets it be read. */
static bool is_ours_unseen(const struct item *item, const struct kube_answer *answer)
{
    return answer->lost && strcmp(item->resource.kind, kube_secrets.kind) == 0;
}

/* Of pods and templates of pods, which hold what the user wrote. What it says of one worker it says
 * of all. */
static void tell_warnings(const struct item *item, const struct strlist *warnings)
{
    struct strlist *warned = item->batch->warned;
    bool pods = strcmp(item->resource.kind, kube_pods.kind) == 0 ||
                strcmp(item->resource.kind, kube_jobs.kind) == 0;
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
static void note_refusal(const struct item *item, const struct kube_answer *answer,
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
    struct item *item = arg;
    struct batch *batch = item->batch;
    struct drarun_error local = {0};
    bool exists = err && err->code == EEXIST;
    item->lost |= answer->lost;
    tell_warnings(item, answer->warnings);
    if (exists && is_ours_unseen(item, answer)) {
        finish(item);
        return;
    }
    if (exists &&
        kube_get(batch->cluster->client, &item->target, on_found, item, NULL, &local) == 0)
        return;
    if (err && err->code == ENOENT) /* perhaps its API version is not served any more */
        kube_discover_forget(batch->cluster->client);
    if (err)
        note_refusal(item, answer, err);
    else
        keep_owner(batch, answer->body);
    finish(item);
}

static void items_free(struct item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (items[i].again)
            event_free(items[i].again);
        free(items[i].name);
        free(items[i].owner_uid);
    }
    free(items);
}

static void cancel(struct batch *batch, const char *why)
{
    struct drarun_error local = {0};
    error_kind(&local, DRARUN_ERR_CLUSTER, ECANCELED, "job %s: not all of its objects are made: %s",
               batch->job, why);
    note_failure(batch, &local);
}

static bool may_create(struct batch *batch)
{
    const struct cluster *cluster = batch->cluster;
    if (!cluster->may_create || cluster->may_create(cluster->may_create_arg))
        return true;
    cancel(batch, "this process may make no more");
    return false;
}

static void batch_begin(struct batch *batch, const struct source *source)
{
    static const struct drarun_error no_memory = {.code = ENOMEM, .text = "out of memory"};
    batch->count = source_count(source);
    batch->items = calloc(batch->count + 1, sizeof *batch->items);
    batch->source = source;
    batch->refused = NULL;
    batch->next = 0;
    batch->end_ms = clock_ms() + batch->going_ms;
    if (!batch->items)
        note_failure(batch, &no_memory);
}

/* Begins those that may be under way, in order. True: all that were begun are answered, and no
 * others will be. */
static bool batch_go_on(struct batch *batch)
{
    size_t most = batch->most ? batch->most : UNDER_WAY_MAX;
    while (is_open(batch) && batch->next < batch->count && batch->left < most &&
           may_create(batch)) {
        struct drarun_error local = {0};
        struct item *item = &batch->items[batch->next];
        *item = (struct item){.batch = batch, .index = batch->next++, .pause_ms = AGAIN_MIN_MS};
        if (start(item, &local) < 0)
            note_failure(batch, &local);
        else
            batch->left++;
    }
    return batch->left == 0;
}

static int batch_end(struct batch *batch)
{
    if (batch->items)
        items_free(TAKE_PTR(batch->items), batch->count);
    batch->source = NULL;
    return batch->rc;
}

/* Side by side, in order; waits until all are answered. */
static int create_all(struct batch *batch, const struct source *source)
{
    batch_begin(batch, source);
    while (!batch_go_on(batch))
        cluster_turn(batch->cluster, KUBE_CALL_MS);
    return batch_end(batch);
}

static bool is_kind(const json_t *manifest, const char *const *kinds)
{
    const char *kind = json_string_value(json_object_get(manifest, "kind"));
    for (; kind && *kinds; kinds++)
        if (strcmp(kind, *kinds) == 0)
            return true;
    return false;
}

static const char *const starting[] = {"Pod", "Job", NULL}; /* containers */
static const char *const policies[] = {"NetworkPolicy", NULL};
static const char *const of_workers[] = {"ResourceClaim", "ResourceClaimTemplate", "Pod", "Job",
                                         NULL};
/* with these a launcher in its pod was started, and its Role lets it make none */
static const char *const of_launcher[] = {"Secret", "ConfigMap", NULL};

/* The manifests of these kinds, or those of others. */
static json_t *choose(const json_t *list, const char *const *kinds, bool wanted)
{
    json_t *chosen = json_array();
    size_t i;
    json_t *manifest;
    json_array_foreach(list, i, manifest)
    {
        if (is_kind(manifest, kinds) == wanted)
            json_array_append(chosen, manifest);
    }
    return chosen;
}

/* What containers are started with must be the job's own by then, and not what an earlier job of
 * that name has left to be deleted. The policy is there by then. */
struct order {
    struct source first, then;
};

/* list: of render_shared, or some of it. */
static void order_init(struct order *order, const json_t *list, const struct job_spec *spec,
                       const struct render_options *options)
{
    CLEANUP(json_decrefp) json_t *others = choose(list, policies, false);
    order->first =
        (struct source){.list = choose(others, starting, false), .spec = spec, .options = options};
    order->then = (struct source){
        .list = choose(others, starting, true), .spec = spec, .options = options, .pods = true};
}

static void order_done(struct order *order)
{
    json_decref(order->first.list);
    json_decref(order->then.list);
}

static int create_in_order(struct batch *batch, const json_t *list, const struct job_spec *spec,
                           const struct render_options *options)
{
    CLEANUP(order_done) struct order order;
    order_init(&order, list, spec, options);
    int rc = create_all(batch, &order.first);
    return rc < 0 ? rc : create_all(batch, &order.then);
}

size_t create_count_of_workers(const struct job_spec *spec)
{
    const struct source claims = {.spec = spec}, pods = {.spec = spec, .pods = true};
    return source_count(&claims) + source_count(&pods);
}

/* ---- a job ---- */

/* The Secret's name is no other run's. */
static json_t *marked(const json_t *owner, const char *secret)
{
    json_t *copy = json_deep_copy(owner);
    json_t *metadata = json_object_get(copy, "metadata");
    json_t *annotations = json_object_get(metadata, "annotations");
    if (!annotations &&
        json_object_set_new(metadata, "annotations", annotations = json_object()) < 0)
        annotations = NULL;
    if (json_object_set_new(annotations, MADE_BY, json_string(secret)) < 0)
        json_decref(TAKE_PTR(copy));
    return copy;
}

static int create_owner(struct cluster *cluster, const struct job_spec *spec,
                        const struct render_options *options, int64_t going_ms, const json_t *list,
                        struct strlist *warned, char **ret_uid, bool *ret_suspended,
                        struct drarun_error *err)
{
    struct batch batch = {.cluster = cluster,
                          .job = spec->name,
                          .namespace = object_namespace(spec, options),
                          .keep_uid = true,
                          .mark = options->secret,
                          .dra_job = options->dra_job,
                          .going_ms = going_ms,
                          .warned = warned,
                          .err = err};
    CLEANUP(json_decrefp)
    json_t *owner = json_pack("[o]", marked(json_array_get(list, 0), options->secret));
    const struct source source = {.list = owner};
    int rc = owner ? create_all(&batch, &source) : error_set(err, ENOMEM, "out of memory");
    if (rc == 0 && !batch.made_uid)
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc == 0) {
        *ret_uid = TAKE_PTR(batch.made_uid);
        *ret_suspended = batch.suspended;
    }
    free(batch.made_uid);
    return rc;
}

/* Before its pods, whose label depends on it. Not everybody may make policies, and a quota may
 * allow none: then the namespace's is for the job's pods. */
static int create_policy(struct batch *batch, const struct job_spec *spec,
                         struct render_options *options)
{
    struct drarun_error *err = batch->err, refused = {0};
    CLEANUP(json_decrefp) json_t *list = NULL, *policy = NULL;
    int rc = options->shared_policy ? 0 : render_shared(spec, options, &list, err);
    if (rc < 0 || !list)
        return rc;
    policy = choose(list, policies, true);
    const struct source source = {.list = policy};
    batch->err = &refused;
    rc = create_all(batch, &source);
    batch->err = err;
    if (rc == 0)
        return 0;
    if (refused.code != EACCES)
        return error_kind(err, refused.kind, refused.code, "%s", refused.text);
    log_note("%s; the job's workers are reached by those of other jobs in namespace %s",
             refused.text, batch->namespace);
    options->shared_policy = true;
    batch->rc = 0;
    return 0;
}

/* Never in silence: workers that come one by one may hold devices that no job can use. */
static void tell_unknown_gang(const struct cluster *cluster, const struct job_spec *spec,
                              const struct render_options *options)
{
    struct render_options served = *options;
    served.pod_groups = cluster->pod_groups_unknown;
    if (object_has_pod_group(spec, &served))
        log_error("this drarun knows no %s/%s, the only version in which the cluster serves "
                  "PodGroups: the scheduler places the workers one by one, and drarun deletes them "
                  "where not all fit; a newer drarun may support it",
                  kube_pod_groups.group, cluster->pod_groups_unknown);
}

struct creation {
    const struct job_spec *spec;
    struct render_options options; /* with the owner */
    char *uid;                     /* the owner's */
    struct strlist warned;
    struct batch batch;
    struct order order;
    bool starts; /* what starts containers is being made */
    struct drarun_error err;
};

static void creation_free(struct creation *creation)
{
    batch_end(&creation->batch);
    order_done(&creation->order);
    strlist_done(&creation->warned);
    free(creation->uid);
    free(creation);
}
DEFINE_CLEANUP(struct creation, creation_free)

/* The owner is there. */
static int begin_rest(struct creation *c)
{
    CLEANUP(json_decrefp) json_t *list = NULL;
    int rc = create_policy(&c->batch, c->spec, &c->options);
    if (rc == 0)
        rc = render_shared(c->spec, &c->options, &list, &c->err);
    if (rc < 0)
        return rc;
    json_array_remove(list, 0);
    order_init(&c->order, list, c->spec, &c->options);
    batch_begin(&c->batch, &c->order.first);
    return 0;
}

int create_begin(struct cluster *cluster, const struct job_spec *spec,
                 const struct render_options *options, int64_t going_ms,
                 struct creation **ret_creation, struct drarun_error *err)
{
    CLEANUP(creation_freep) struct creation *c = calloc(1, sizeof *c);
    CLEANUP(json_decrefp) json_t *list = NULL;
    if (!c)
        return error_set(err, ENOMEM, "out of memory");
    c->spec = spec;
    c->options = *options;
    tell_unknown_gang(cluster, spec, options);
    int rc = render_shared(spec, options, &list, err);
    if (rc == 0 && spec->claims == SPEC_CLAIMS_TEMPLATE)
        rc = dry_run_indexed(cluster, spec, options, err);
    if (rc == 0)
        rc = create_owner(cluster, spec, options, going_ms, list, &c->warned, &c->uid,
                          &c->options.suspended, err);
    if (rc < 0)
        return rc;
    c->options.owner_uid = c->uid;
    c->batch = (struct batch){.cluster = cluster,
                              .job = spec->name,
                              .owner_uid = c->uid,
                              .namespace = object_namespace(spec, options),
                              .going_ms = going_ms,
                              .warned = &c->warned,
                              .err = &c->err};
    rc = begin_rest(c);
    if (rc < 0)
        c->batch.rc = rc;
    c->batch.yields = true;
    *ret_creation = TAKE_PTR(c);
    return 0;
}

static bool creation_go_on(struct creation *c)
{
    if (!batch_go_on(&c->batch))
        return false;
    if (c->starts || !is_open(&c->batch))
        return true;
    batch_end(&c->batch);
    c->starts = true;
    batch_begin(&c->batch, &c->order.then);
    return batch_go_on(&c->batch);
}

bool create_go_on(struct creation *creation, size_t most)
{
    creation->batch.most = most;
    return creation_go_on(creation);
}

void create_leave(struct creation *creation)
{
    creation->batch.yielded = true;
}

void create_cancel(struct creation *creation, const char *why)
{
    cancel(&creation->batch, why);
}

/* Who may create nothing any more deletes nothing either: what was made is another's. */
static void undo(struct creation *c)
{
    struct cluster *cluster = c->batch.cluster;
    struct drarun_error left = {0};
    if (cluster->may_create && !cluster->may_create(cluster->may_create_arg))
        return;
    if (delete_job(cluster, c->spec->name, c->batch.namespace, c->options.here, c->uid, &left) < 0)
        log_error("%s; the objects of the job created so far remain", left.text);
}

int create_end(struct creation *creation_take, char **ret_uid, struct drarun_error *err)
{
    CLEANUP(creation_freep) struct creation *c = creation_take;
    c->batch.most = UNDER_WAY_MAX;
    while (!creation_go_on(c))
        cluster_turn(c->batch.cluster, KUBE_CALL_MS);
    int rc = c->batch.rc;
    if (rc == 0) {
        *ret_uid = TAKE_PTR(c->uid);
        return 0;
    }
    if (rc != -ECANCELED)
        undo(c);
    return error_kind(err, c->err.kind, c->err.code, "%s", c->err.text);
}

int create_job(struct cluster *cluster, const struct job_spec *spec,
               const struct render_options *options, int64_t going_ms, char **ret_uid,
               struct drarun_error *err)
{
    struct creation *creation = NULL;
    int rc = create_begin(cluster, spec, options, going_ms, &creation, err);
    return rc < 0 ? rc : create_end(creation, ret_uid, err);
}

/* What the owner owns of these kinds, or of others. */
static int create_owned(struct cluster *cluster, const struct job_spec *spec,
                        const struct render_options *options, const char *const *kinds, bool wanted,
                        struct drarun_error *err)
{
    struct batch batch = {.cluster = cluster,
                          .job = spec->name,
                          .owner_uid = options->owner_uid,
                          .namespace = object_namespace(spec, options),
                          .going_ms = CREATE_GOING_MS,
                          .err = err};
    struct render_options owned = *options;
    CLEANUP(json_decrefp) json_t *list = NULL, *chosen = NULL;
    int rc = create_policy(&batch, spec, &owned);
    if (rc == 0)
        rc = render_shared(spec, &owned, &list, err);
    if (rc < 0)
        return rc;
    json_array_remove(list, 0); /* the owner */
    chosen = choose(list, kinds, wanted);
    return create_in_order(&batch, chosen, spec, &owned);
}

int create_workers(struct cluster *cluster, const struct job_spec *spec,
                   const struct render_options *options, struct drarun_error *err)
{
    return create_owned(cluster, spec, options, of_workers, true, err);
}

int create_missing(struct cluster *cluster, const struct job_spec *spec,
                   const struct render_options *options, struct drarun_error *err)
{
    return create_owned(cluster, spec, options, of_launcher, false, err);
}

bool create_may_pass(const struct drarun_error *err)
{
    bool overloaded =
        err->code == EBUSY || err->code == EAGAIN || err->code == EIO || err->code == ETIMEDOUT;
    return err->kind == DRARUN_ERR_INFRASTRUCTURE ||
           (err->kind == DRARUN_ERR_CLUSTER && overloaded) ||
           (err->code == EACCES && strstr(err->text, "exceeded quota"));
}

/* A policy without a reason answers 422, and a webhook that gives no code 400 (apiserver/pkg/
 * admission/plugin of Kubernetes 1.37). One of ours judges what a claim says, as validation does.
 */
static bool is_by_admission(const char *text)
{
    static const char of_claims[] = "'drarun-plugin-configuration'";
    static const char kind[] = "ValidatingAdmissionPolicy ";
    const char *policy = strstr(text, kind);
    if (policy)
        return strncmp(policy + strlen(kind), of_claims, strlen(of_claims)) != 0;
    return strstr(text, "admission webhook \"");
}

bool create_is_invalid(const struct drarun_error *err)
{
    return err->kind == DRARUN_ERR_SPEC ||
           (err->kind == DRARUN_ERR_CLUSTER && err->code == EINVAL && !is_by_admission(err->text));
}

/* ---- away with it ---- */

static int delete_named(struct cluster *cluster, const struct kube_resource *resource,
                        const char *namespace, const char *name, const char *uid,
                        struct drarun_error *err)
{
    struct kube_target target = {.resource = resource, .namespace_ = namespace, .name = name};
    struct kube_delete options = {.propagation = "Background", .uid = uid};
    return cluster_delete(cluster, &target, &options, err);
}

static int delete_collection(struct cluster *cluster, const struct kube_resource *resource,
                             const char *namespace, const char *name, struct drarun_error *err)
{
    char selector[64 + K8S_LABEL_MAX];
    struct kube_target target = {.resource = resource, .namespace_ = namespace};
    struct kube_select select = {.labels = selector};
    snprintf(selector, sizeof selector, "drarun.dev/job=%s,drarun.dev/worker", name);
    return cluster_delete_all(cluster, &target, &select, NULL, err);
}

int delete_pods_and_claims(struct cluster *cluster, const struct job_spec *spec,
                           const char *namespace, struct drarun_error *err)
{
    struct kube_resource claims = kube_resource_claims;
    char name[K8S_LABEL_MAX + 4];
    snprintf(name, sizeof name, "%s-w", spec->name);
    if (spec->claims == SPEC_CLAIMS_TEMPLATE)
        return delete_named(cluster, &kube_jobs, namespace, name, NULL, err);
    int rc = delete_collection(cluster, &kube_pods, namespace, spec->name, err);
    if (rc < 0 || !claims_wanted(spec))
        return rc;
    claims.version = cluster_claims_version(cluster);
    return delete_collection(cluster, &claims, namespace, spec->name, err);
}

int delete_workers(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
                   struct drarun_error *err)
{
    struct kube_resource templates = kube_resource_claim_templates;
    char name[K8S_LABEL_MAX + 4];
    snprintf(name, sizeof name, "%s-w", spec->name);
    int rc = delete_pods_and_claims(cluster, spec, namespace, err);
    if (rc < 0 || spec->claims != SPEC_CLAIMS_TEMPLATE || !claims_wanted(spec))
        return rc;
    templates.version = cluster_claims_version(cluster);
    return delete_named(cluster, &templates, namespace, name, NULL, err);
}

int delete_pods(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
                const char *node, bool now, struct drarun_error *err)
{
    char labels[128 + K8S_LABEL_MAX], fields[320];
    bool indexed = spec->claims == SPEC_CLAIMS_TEMPLATE;
    struct kube_target target = {.resource = &kube_pods, .namespace_ = namespace};
    struct kube_select select = {.labels = labels, .fields = node ? fields : NULL};
    struct kube_delete options = {.now = now};
    snprintf(labels, sizeof labels, "drarun.dev/job=%s,%s", spec->name,
             indexed ? "batch.kubernetes.io/job-completion-index" : "drarun.dev/worker");
    snprintf(fields, sizeof fields, "spec.nodeName=%s", node ? node : "");
    return cluster_delete_all(cluster, &target, &select, &options, err);
}

int delete_job(struct cluster *cluster, const char *name, const char *namespace, bool here,
               const char *uid, struct drarun_error *err)
{
    char status[K8S_LABEL_MAX + 8];
    snprintf(status, sizeof status, "%s-status", name);
    return delete_named(cluster, here ? &kube_config_maps : &kube_jobs, namespace,
                        here ? status : name, uid, err);
}
