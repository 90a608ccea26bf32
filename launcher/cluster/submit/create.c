/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/submit/create.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/spec/k8s_name.h"
#include "jobs/manifests/objects.h"
#include "launcher/cluster/client/job_map.h"
#include "launcher/cluster/submit/batch.h"
#include "launcher/cluster/submit/dry_run.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

/* ---- in order ---- */

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
    struct batch_source first, then;
};

/* list: of render_shared, or some of it. */
static void order_init(struct order *order, const json_t *list, const struct job_spec *spec,
                       const struct render_options *options)
{
    CLEANUP(json_decrefp) json_t *others = choose(list, policies, false);
    order->first = (struct batch_source){
        .list = choose(others, starting, false), .spec = spec, .options = options};
    order->then = (struct batch_source){
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
    int rc = batch_create(batch, &order.first);
    return rc < 0 ? rc : batch_create(batch, &order.then);
}

size_t create_count_of_workers(const struct job_spec *spec)
{
    const struct batch_source claims = {.spec = spec}, pods = {.spec = spec, .pods = true};
    return batch_count(&claims) + batch_count(&pods);
}

/* ---- a job ---- */

/* Before its pods, whose label depends on it. Not everybody may make policies, and a quota may
 * allow none: then the namespace's is for the job's pods. */
struct policy {
    struct batch_source source;
    struct drarun_error refused, *err; /* the batch's own meanwhile */
};

static void policy_done(struct policy *policy)
{
    json_decref(TAKE_PTR(policy->source.list));
}

/* The batch creates it, if there is one. */
static int policy_begin(struct policy *policy, struct batch *batch, const struct job_spec *spec,
                        const struct render_options *options)
{
    CLEANUP(json_decrefp) json_t *list = NULL;
    int rc = options->shared_policy ? 0 : render_shared(spec, options, &list, batch->err);
    if (rc < 0)
        return rc;
    *policy = (struct policy){.err = batch->err};
    policy->source.list = choose(list, policies, true);
    batch->err = &policy->refused;
    batch_begin(batch, &policy->source);
    return 0;
}

/* After batch_go_on has returned true. */
static int policy_end(struct policy *policy, struct batch *batch, struct render_options *options)
{
    const struct drarun_error *refused = &policy->refused;
    int rc = batch_end(batch);
    batch->err = policy->err;
    policy_done(policy);
    if (rc == 0)
        return 0;
    if (refused->code != EACCES)
        return error_kind(batch->err, refused->kind, refused->code, "%s", refused->text);
    log_note("%s; the job's workers are reached by those of other jobs in namespace %s",
             refused->text, batch->namespace);
    options->shared_policy = true;
    batch->rc = 0;
    return 0;
}

/* Runs the loop. */
static int create_policy(struct batch *batch, const struct job_spec *spec,
                         struct render_options *options)
{
    struct policy policy = {0};
    int rc = policy_begin(&policy, batch, spec, options);
    if (rc < 0)
        return rc;
    while (!batch_go_on(batch))
        cluster_turn(batch->cluster, KUBE_CALL_MS);
    return policy_end(&policy, batch, options);
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

/* What all else of a job goes with. */
static const struct kube_resource *name_owner(const char *job, bool here,
                                              char name[JOB_MAP_NAME_SIZE])
{
    if (here)
        job_map_name(job, name);
    else
        snprintf(name, JOB_MAP_NAME_SIZE, "%s", job);
    return here ? &kube_config_maps : &kube_jobs;
}

/* Each waits for what it has begun. */
enum creation_phase {
    CREATION_TRIAL = 1, /* whether an Indexed Job's pods would be taken */
    CREATION_OWNER,
    CREATION_POLICY,
    CREATION_FIRST, /* what containers are started with, */
    CREATION_THEN,  /* and what starts them */
    CREATION_OVER,
    CREATION_UNDO, /* the owner is deleted again, since another object could not be created */
};

struct creation {
    struct cluster *cluster;
    const struct job_spec *spec;
    struct render_options options; /* with the owner, once it is there */
    int64_t going_ms;
    size_t most; /* calls under way */
    enum creation_phase phase;
    struct pod_trial trial;
    struct batch_source owner;
    struct batch_owner made;
    struct strlist warned;
    struct policy policy;
    struct batch batch; /* of the phase; its rc is the creation's */
    struct order order;
    struct kube_call *undoing;
    bool undone; /* or it cannot be */
    struct drarun_error err;
};

static void creation_free(struct creation *creation)
{
    pod_trial_drop(&creation->trial);
    kube_call_cancel(creation->undoing);
    batch_end(&creation->batch);
    json_decref(creation->owner.list);
    policy_done(&creation->policy);
    order_done(&creation->order);
    strlist_done(&creation->warned);
    free(creation->made.uid);
    free(creation);
}
DEFINE_CLEANUP(struct creation, creation_free)

static void on_undone(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct creation *c = arg;
    (void)answer;
    c->undoing = NULL;
    if (err && err->code != ENOENT)
        log_error("%s; the objects of the job created so far remain", err->text);
}

static int undo(struct creation *c, struct drarun_error *err)
{
    char name[JOB_MAP_NAME_SIZE];
    const struct kube_target target = {.resource = name_owner(c->spec->name, c->options.here, name),
                                       .namespace_ = c->batch.namespace,
                                       .name = name};
    const struct kube_delete options = {.propagation = "Background", .uid = c->made.uid};
    return kube_delete(c->cluster->client, &target, &options, on_undone, c, &c->undoing, err);
}

static enum creation_phase fail(struct creation *c, int rc)
{
    c->batch.rc = rc;
    return CREATION_OVER;
}

static enum creation_phase begin_owner(struct creation *c)
{
    batch_begin(&c->batch, &c->owner);
    return CREATION_OWNER;
}

static enum creation_phase try_pods(struct creation *c)
{
    const struct drarun_error *refused = &c->trial.err;
    if (!batch_is_open(&c->batch))
        return CREATION_OVER;
    if (!pod_trial_go_on(&c->trial))
        return CREATION_TRIAL;
    if (!refused->code)
        return begin_owner(c);
    return fail(c, error_kind(&c->err, refused->kind, refused->code, "%s", refused->text));
}

static enum creation_phase begin_policy(struct creation *c)
{
    c->batch = (struct batch){.cluster = c->cluster,
                              .job = c->spec->name,
                              .owner_uid = c->made.uid,
                              .namespace = object_namespace(c->spec, &c->options),
                              .going_ms = c->going_ms,
                              .most = c->most,
                              .warned = &c->warned,
                              .err = &c->err};
    int rc = policy_begin(&c->policy, &c->batch, c->spec, &c->options);
    return rc < 0 ? fail(c, rc) : CREATION_POLICY;
}

static enum creation_phase create_owner(struct creation *c)
{
    if (!batch_go_on(&c->batch))
        return CREATION_OWNER;
    int rc = batch_end(&c->batch);
    if (rc == 0 && !c->made.uid)
        return fail(c, error_set(&c->err, ENOMEM, "out of memory"));
    if (rc < 0 || c->batch.yielded)
        return CREATION_OVER;
    c->options.owner_uid = c->made.uid;
    c->options.suspended = c->made.suspended;
    return begin_policy(c);
}

static enum creation_phase create_own_policy(struct creation *c)
{
    CLEANUP(json_decrefp) json_t *list = NULL;
    if (!batch_go_on(&c->batch))
        return CREATION_POLICY;
    int rc = policy_end(&c->policy, &c->batch, &c->options);
    if (rc == 0 && batch_is_open(&c->batch))
        rc = render_shared(c->spec, &c->options, &list, &c->err);
    if (rc < 0)
        return fail(c, rc);
    if (!batch_is_open(&c->batch))
        return CREATION_OVER;
    json_array_remove(list, 0);
    order_init(&c->order, list, c->spec, &c->options);
    c->batch.yields = true;
    batch_begin(&c->batch, &c->order.first);
    return CREATION_FIRST;
}

static enum creation_phase create_first(struct creation *c)
{
    if (!batch_go_on(&c->batch))
        return CREATION_FIRST;
    if (!batch_is_open(&c->batch))
        return CREATION_OVER;
    batch_end(&c->batch);
    batch_begin(&c->batch, &c->order.then);
    return CREATION_THEN;
}

static enum creation_phase create_then(struct creation *c)
{
    return batch_go_on(&c->batch) ? CREATION_OVER : CREATION_THEN;
}

static enum creation_phase await_undo(struct creation *c)
{
    return c->undoing ? CREATION_UNDO : CREATION_OVER;
}

static enum creation_phase (*const steps[])(struct creation *c) = {
    [CREATION_TRIAL] = try_pods,           [CREATION_OWNER] = create_owner,
    [CREATION_POLICY] = create_own_policy, [CREATION_FIRST] = create_first,
    [CREATION_THEN] = create_then,         [CREATION_UNDO] = await_undo,
};

int create_begin(struct cluster *cluster, const struct job_spec *spec,
                 const struct render_options *options, int64_t going_ms,
                 struct creation **ret_creation, struct drarun_error *err)
{
    CLEANUP(creation_freep) struct creation *c = calloc(1, sizeof *c);
    CLEANUP(json_decrefp) json_t *list = NULL;
    if (!c)
        return error_set(err, ENOMEM, "out of memory");
    *c = (struct creation){.cluster = cluster,
                           .spec = spec,
                           .options = *options,
                           .going_ms = going_ms,
                           .phase = CREATION_TRIAL,
                           .made = {.mark = options->secret, .dra_job = options->dra_job}};
    c->batch = (struct batch){.cluster = cluster,
                              .job = spec->name,
                              .owner = &c->made,
                              .namespace = object_namespace(spec, options),
                              .going_ms = going_ms,
                              .warned = &c->warned,
                              .err = &c->err};
    c->trial = (struct pod_trial){.cluster = cluster, .spec = spec, .options = &c->options};
    tell_unknown_gang(cluster, spec, options);
    int rc = render_shared(spec, options, &list, err);
    if (rc < 0)
        return rc;
    /* the Secret's name is no other run's */
    c->owner.list = json_pack("[o]", batch_mark(json_array_get(list, 0), options->secret));
    if (!c->owner.list)
        return error_set(err, ENOMEM, "out of memory");
    if (spec->claims != SPEC_CLAIMS_TEMPLATE)
        c->phase = begin_owner(c);
    *ret_creation = TAKE_PTR(c);
    return 0;
}

const char *create_owner_uid(const struct creation *creation)
{
    return creation->made.uid;
}

bool create_go_on(struct creation *c, size_t most)
{
    enum creation_phase before = 0;
    c->most = c->batch.most = most;
    while (c->phase != CREATION_OVER && c->phase != before) {
        before = c->phase;
        c->phase = steps[before](c);
    }
    return c->phase == CREATION_OVER;
}

void create_leave(struct creation *creation)
{
    batch_leave(&creation->batch);
}

void create_cancel(struct creation *creation, const char *why)
{
    batch_cancel(&creation->batch, why);
}

/* Who may create nothing any more deletes nothing either: what was made is another's. */
bool create_undo(struct creation *c)
{
    const struct cluster *cluster = c->cluster;
    struct drarun_error left = {0};
    if (!c->made.uid || c->undone || c->batch.rc == 0 || c->batch.rc == -ECANCELED ||
        (cluster->may_create && !cluster->may_create(cluster->may_create_arg)))
        return false;
    c->undone = true;
    if (undo(c, &left) == 0)
        c->phase = CREATION_UNDO;
    else
        log_error("%s; the objects of the job created so far remain", left.text);
    return c->phase == CREATION_UNDO;
}

int create_end(struct creation *creation_take, char **ret_uid, struct drarun_error *err)
{
    CLEANUP(creation_freep) struct creation *c = creation_take;
    do
        while (!create_go_on(c, 0))
            cluster_turn(c->cluster, KUBE_CALL_MS);
    while (create_undo(c));
    if (c->batch.rc < 0)
        return error_kind(err, c->err.kind, c->err.code, "%s", c->err.text);
    *ret_uid = TAKE_PTR(c->made.uid);
    return 0;
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
                          .attempt = options->attempt,
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
    bool conflicts = err->code == EBUSY || err->code == ETIMEDOUT; /* with an earlier job's */
    return err->kind == DRARUN_ERR_INFRASTRUCTURE || kube_may_answer_later(err) ||
           (err->kind == DRARUN_ERR_CLUSTER && conflicts) ||
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

bool create_is_denied(const struct drarun_error *err)
{
    bool refused = err->code == EACCES || err->code == EINVAL;
    return err->kind == DRARUN_ERR_CLUSTER && refused &&
           (strstr(err->text, "exceeded quota") || is_by_admission(err->text));
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
    char owner[JOB_MAP_NAME_SIZE];
    const struct kube_resource *resource = name_owner(name, here, owner);
    return delete_named(cluster, resource, namespace, owner, uid, err);
}
