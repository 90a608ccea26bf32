/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/submit/create.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/spec/k8s_name.h"
#include "jobs/manifests/objects.h"
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

/* The Secret's name is no other run's. */
static json_t *marked(const json_t *owner, const char *secret)
{
    json_t *copy = json_deep_copy(owner);
    json_t *metadata = json_object_get(copy, "metadata");
    json_t *annotations = json_object_get(metadata, "annotations");
    if (!annotations &&
        json_object_set_new(metadata, "annotations", annotations = json_object()) < 0)
        annotations = NULL;
    if (json_object_set_new(annotations, BATCH_MADE_BY, json_string(secret)) < 0)
        json_decref(TAKE_PTR(copy));
    return copy;
}

static int create_owner(struct cluster *cluster, const struct job_spec *spec,
                        const struct render_options *options, int64_t going_ms, const json_t *list,
                        struct strlist *warned, char **ret_uid, bool *ret_suspended,
                        struct drarun_error *err)
{
    struct batch_owner made = {.mark = options->secret, .dra_job = options->dra_job};
    struct batch batch = {.cluster = cluster,
                          .job = spec->name,
                          .owner = &made,
                          .namespace = object_namespace(spec, options),
                          .going_ms = going_ms,
                          .warned = warned,
                          .err = err};
    CLEANUP(json_decrefp)
    json_t *owner = json_pack("[o]", marked(json_array_get(list, 0), options->secret));
    const struct batch_source source = {.list = owner};
    int rc = owner ? batch_create(&batch, &source) : error_set(err, ENOMEM, "out of memory");
    if (rc == 0 && !made.uid)
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc == 0) {
        *ret_uid = TAKE_PTR(made.uid);
        *ret_suspended = made.suspended;
    }
    free(made.uid);
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
    const struct batch_source source = {.list = policy};
    batch->err = &refused;
    rc = batch_create(batch, &source);
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
    if (c->starts || !batch_is_open(&c->batch))
        return true;
    batch_end(&c->batch);
    c->starts = true;
    batch_begin(&c->batch, &c->order.then);
    return batch_go_on(&c->batch);
}

const char *create_owner_uid(const struct creation *creation)
{
    return creation->uid;
}

bool create_go_on(struct creation *creation, size_t most)
{
    creation->batch.most = most;
    return creation_go_on(creation);
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
    c->batch.most = 0;
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
