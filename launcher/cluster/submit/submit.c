/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/submit/submit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "jobs/manifests/claims.h"
#include "jobs/status/drajob.h"
#include "jobs/manifests/install.h"
#include "jobs/predict/job_profile.h"
#include "jobs/manifests/render.h"
#include "launcher/cluster/submit/create.h"
#include "launcher/cluster/submit/name_profile.h"
#include "launcher/cluster/submit/offer.h"
#include "launcher/cluster/submit/reap.h"
#include "launcher/files/spec_file.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

int submit_name_secret(const char *job, char name[SUBMIT_SECRET_SIZE], struct drarun_error *err)
{
    uint32_t unique;
    if (getrandom(&unique, sizeof unique, 0) != (ssize_t)sizeof unique)
        return error_set(err, errno, "getrandom: %s", strerror(errno));
    snprintf(name, SUBMIT_SECRET_SIZE, "%s-key-%08x", job, unique);
    return 0;
}

static int ask_account(struct cluster *cluster, const char *namespace, struct cluster_read *account,
                       struct drarun_error *err)
{
    const struct kube_target target = {
        .resource = &kube_service_accounts, .namespace_ = namespace, .name = INSTALL_ACCOUNT};
    return cluster_read_start(cluster, &target, account, err);
}

/* The account that the launcher's pod runs as: made where it is missing and we may. */
static int ensure_install(struct cluster *cluster, const char *namespace,
                          struct cluster_read *account, struct drarun_error *err)
{
    struct kube_target target = {.namespace_ = namespace};
    struct drarun_error missing = {0};
    int rc = cluster_read_end(cluster, account, NULL, &missing);
    if (rc != -ENOENT)
        return 0; /* it is there, or we may not look: the Job's Events will tell */
    CLEANUP(json_decrefp) json_t *list = install_manifests(namespace, NULL);
    size_t i;
    json_t *manifest;
    rc = list ? 0 : error_set(err, ENOMEM, "out of memory");
    json_array_foreach(list, i, manifest)
    {
        target.resource =
            kube_resource_find(json_string_value(json_object_get(manifest, "apiVersion")),
                               json_string_value(json_object_get(manifest, "kind")));
        if (rc == 0)
            rc = cluster_create(cluster, &target, manifest, NULL, err);
        if (rc == -EEXIST) {
            error_clear(err);
            rc = 0;
        }
    }
    if (rc == -ENOENT) /* the one 404 that a creation has */
        return error_kind(err, DRARUN_ERR_USAGE, ENOENT,
                          "there is no namespace %s: kubectl create namespace %s makes it",
                          namespace, namespace);
    if (rc < 0)
        return error_prefix(err,
                            "namespace %s lacks drarun's account and role: ask somebody with the "
                            "rights to run drarun install -n %s | kubectl apply --server-side -f -",
                            namespace, namespace);
    log_note("namespace %s: made the account, role and network policy that drarun needs once",
             namespace);
    return 0;
}

static int make_key(char text[SUBMIT_KEY_SIZE], struct drarun_error *err)
{
    unsigned char bytes[32];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_set(err, errno, "getrandom: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    explicit_bzero(bytes, sizeof bytes);
    return 0;
}

/* ---- the job as an object ---- */

struct client_job {
    char *uid; /* of the DraJob that was made; NULL: none */
};

static int say_there_is_one(const struct job_spec *spec, const char *namespace,
                            struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_CLUSTER, EEXIST,
                      "there is a job \"%s\" in namespace %s already: drarun status %s shows it, "
                      "drarun cancel %s ends it, --replace takes the place of one that has ended; "
                      "or give this one another name (--name)",
                      spec->name, namespace, spec->name, spec->name);
}

/* Admission may have named a manager, as Kueue's does for what goes to other clusters. */
static int need_own_object(const json_t *made, struct drarun_error *err)
{
    const char *manager = drajob_manager(made);
    if (!manager)
        return 0;
    return error_kind(err, DRARUN_ERR_CLUSTER, ENOTSUP,
                      "the cluster's admission made %s the manager of DraJob %s "
                      "(spec.managedBy), so drarun may not make its pods: kubectl apply makes the "
                      "DraJob for that controller",
                      manager, kube_name(made));
}

/* Where DraJobs are no objects, or not for this user, the job goes without. */
static int client_job_make(struct cluster *cluster, const struct job_spec *spec,
                           const char *namespace, struct client_job *own, struct drarun_error *err)
{
    const struct kube_target target = {.resource = &kube_dra_jobs, .namespace_ = namespace};
    struct drarun_error local = {0};
    CLEANUP(json_decrefp) json_t *made = NULL;
    if (!cluster->dra_jobs)
        return 0;
    CLEANUP(json_decrefp) json_t *object = drajob_object(spec, namespace);
    int rc = object ? cluster_create(cluster, &target, object, &made, &local)
                    : error_set(err, ENOMEM, "out of memory");
    if (rc == -EEXIST)
        return say_there_is_one(spec, namespace, err);
    if (rc == -EINVAL || rc == -EACCES || rc == -ENOENT) {
        log_verbose("the job has no DraJob object: %s", local.text);
        return 0;
    }
    if (rc < 0)
        return error_kind(err, local.kind, local.code, "%s", local.text);
    own->uid = strdup(kube_uid(made));
    if (!own->uid)
        return error_set(err, ENOMEM, "out of memory");
    return need_own_object(made, err);
}

static void client_job_undo(struct cluster *cluster, const struct job_spec *spec,
                            const char *namespace, const struct client_job *own)
{
    struct drarun_error err = {0};
    const struct kube_target target = {
        .resource = &kube_dra_jobs, .namespace_ = namespace, .name = spec->name};
    const struct kube_delete this = {.propagation = "Background", .uid = own->uid};
    if (own->uid && cluster_delete(cluster, &target, &this, &err) < 0)
        log_error("%s; the DraJob remains, but its job was not created", err.text);
}

static void set_render(const struct cluster *cluster, struct render_options *render)
{
    render->api = cluster->api;
    render->agent = cluster->agent.agent[0] ? &cluster->agent : NULL;
    render->image_volume = cluster->image_volume;
    render->delivery = cluster->delivery;
    render->metrics_port = cluster->metrics_port;
    render->pod_groups = cluster->pod_groups;
}

/* *spec: the same with its profile named, in *named, where it leaves that open. */
static int name_in_copy(struct cluster *cluster, const struct job_spec **spec,
                        struct job_spec *named, struct drarun_error *err)
{
    if (!job_profile_is_open(*spec))
        return 0;
    int rc = spec_again(*spec, NULL, NULL, 0, named, err);
    if (rc < 0)
        return rc;
    *spec = named;
    return name_profile(cluster, named, err);
}

/* What is known of the cluster before anything is created. *spec: as name_in_copy. */
static int prepare(struct cluster *cluster, const struct job_spec **spec, struct job_spec *named,
                   struct render_options *render, struct drarun_error *err)
{
    CLEANUP(cluster_read_drop) struct cluster_read account = {0};
    int rc = ask_account(cluster, render->namespace, &account, err);
    if (rc == 0)
        rc = cluster_discover(cluster, err);
    if (rc == 0 && (claims_wanted(*spec) || claims_named(*spec)))
        rc = cluster_need_claims(cluster, err);
    if (rc == 0)
        rc = name_in_copy(cluster, spec, named, err);
    if (rc == 0)
        offer_look(cluster, *spec);
    set_render(cluster, render);
    return rc == 0 ? ensure_install(cluster, render->namespace, &account, err) : rc;
}

/* key: of the job, 64 hexadecimal digits; own: NULL, or what becomes of its object. */
static int submit(struct cluster *cluster, const struct job_spec *spec,
                  const struct submit_options *options, const char *key, struct client_job *own,
                  char **ret_uid, struct drarun_error *err)
{
    struct job_spec named = {0};
    char secret[SUBMIT_SECRET_SIZE];
    struct render_options render = {.attempt = 1,
                                    .namespace = options->namespace,
                                    .image = options->image,
                                    .key = key,
                                    .secret = secret,
                                    .keep_s = options->keep_s};
    int rc = submit_name_secret(spec->name, secret, err);
    if (rc == 0)
        rc = prepare(cluster, &spec, &named, &render, err);
    if (rc == 0 && own)
        rc = client_job_make(cluster, spec, options->namespace, own, err);
    if (own)
        render.dra_job = own->uid;
    if (rc == 0)
        rc = reap_create(cluster, spec, &render, ret_uid, err);
    job_spec_done(&named);
    return rc;
}

int submit_job(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
               const char *image, char **ret_uid, struct drarun_error *err)
{
    const struct submit_options options = {.namespace = namespace, .image = image};
    struct client_job own = {0};
    char key[SUBMIT_KEY_SIZE];
    int rc = make_key(key, err);
    if (rc == 0)
        rc = submit(cluster, spec, &options, key, &own, ret_uid, err);
    explicit_bzero(key, sizeof key);
    if (rc == 0)
        reap_abandoned(cluster, namespace);
    else
        client_job_undo(cluster, spec, namespace, &own);
    free(own.uid);
    return rc;
}

int submit_kept(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
                const char *image, uint32_t keep_s, char ret_key[SUBMIT_KEY_SIZE], char **ret_uid,
                struct drarun_error *err)
{
    const struct submit_options options = {
        .namespace = namespace, .image = image, .keep_s = keep_s};
    int rc = make_key(ret_key, err);
    if (rc == 0)
        rc = submit(cluster, spec, &options, ret_key, NULL, ret_uid, err);
    if (rc == 0)
        reap_abandoned(cluster, namespace);
    return rc;
}

/* ---- beside other work ---- */

/* What the creation borrows: the next job has other answers of the cluster. */
struct submission {
    struct job_spec spec, named;
    char *namespace, *image, *dra_job, *delivery;
    char key[SUBMIT_KEY_SIZE], secret[SUBMIT_SECRET_SIZE];
    struct agent_claim agent;
    struct render_options render;
    struct creation *creation;
};

static void submission_free(struct submission *submission)
{
    job_spec_done(&submission->spec);
    job_spec_done(&submission->named);
    free(submission->namespace);
    free(submission->image);
    free(submission->dra_job);
    free(submission->delivery);
    explicit_bzero(submission->key, sizeof submission->key);
    free(submission);
}
DEFINE_CLEANUP(struct submission, submission_free)

static char *copy_of(const char *text)
{
    return text ? strdup(text) : NULL;
}

/* Of what set_render borrows from the cluster. */
static int keep_answers(struct submission *s, struct drarun_error *err)
{
    struct render_options *render = &s->render;
    s->delivery = copy_of(render->delivery);
    if (!s->delivery != !render->delivery)
        return error_set(err, ENOMEM, "out of memory");
    render->delivery = s->delivery;
    if (!render->agent)
        return 0;
    s->agent = *render->agent;
    render->agent = &s->agent;
    return 0;
}

static int begin(struct submission *s, struct cluster *cluster,
                 const struct submit_options *options, struct drarun_error *err)
{
    const struct job_spec *spec = &s->spec;
    int64_t going_ms = options->going_ms ? options->going_ms : CREATE_GOING_MS;
    s->namespace = copy_of(options->namespace);
    s->image = copy_of(options->image);
    s->dra_job = copy_of(options->dra_job);
    if (!s->namespace || !s->image != !options->image || !s->dra_job)
        return error_set(err, ENOMEM, "out of memory");
    s->render = (struct render_options){.attempt = 1,
                                        .namespace = s->namespace,
                                        .image = s->image,
                                        .key = s->key,
                                        .secret = s->secret,
                                        .dra_job = s->dra_job,
                                        .expires = true,
                                        .keep_s = options->keep_s};
    int rc = make_key(s->key, err);
    if (rc == 0)
        rc = submit_name_secret(spec->name, s->secret, err);
    if (rc == 0)
        rc = prepare(cluster, &spec, &s->named, &s->render, err);
    if (rc == 0)
        rc = keep_answers(s, err);
    return rc == 0 ? create_begin(cluster, spec, &s->render, going_ms, &s->creation, err) : rc;
}

int submission_begin(struct cluster *cluster, struct job_spec *spec_take,
                     const struct submit_options *options, struct submission **ret_submission,
                     struct drarun_error *err)
{
    CLEANUP(submission_freep) struct submission *s = calloc(1, sizeof *s);
    if (!s) {
        job_spec_done(spec_take);
        return error_set(err, ENOMEM, "out of memory");
    }
    s->spec = *spec_take;
    *spec_take = (struct job_spec){0};
    int rc = begin(s, cluster, options, err);
    if (rc == 0)
        *ret_submission = TAKE_PTR(s);
    return rc;
}

const char *submission_launcher(const struct submission *submission)
{
    return create_owner_uid(submission->creation);
}

bool submission_go_on(struct submission *submission, size_t most)
{
    return create_go_on(submission->creation, most);
}

void submission_leave(struct submission *submission)
{
    create_leave(submission->creation);
}

void submission_cancel(struct submission *submission, const char *why)
{
    create_cancel(submission->creation, why);
}

int submission_end(struct submission *submission_take, char **ret_uid, struct drarun_error *err)
{
    CLEANUP(submission_freep) struct submission *s = submission_take;
    return create_end(s->creation, ret_uid, err);
}
