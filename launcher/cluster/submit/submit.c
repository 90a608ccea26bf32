/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/submit/submit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "jobs/manifests/render.h"
#include "jobs/status/drajob.h"
#include "launcher/cluster/submit/batch.h"
#include "launcher/cluster/submit/create.h"
#include "launcher/cluster/submit/prepare.h"
#include "launcher/cluster/submit/reap.h"
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

/* One is there: of an earlier job, -EEXIST, or of this run, which lost the answer to its creation
 * and sent it again. */
static int take_made(struct cluster *cluster, const struct kube_target *target, const char *mark,
                     json_t **ret_made, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *found = NULL;
    int rc = cluster_get(cluster, target, &found, err);
    if (rc < 0)
        return error_prefix(err,
                            "DraJob %s is there already, and nobody knows whether this run "
                            "made it",
                            target->name);
    if (!batch_has_mark(found, mark))
        return -EEXIST;
    *ret_made = TAKE_PTR(found);
    return 0;
}

/* Where DraJobs are no objects, or not for this user, the job goes without; not where the site has
 * judged the object and does not want it. mark: of this run. */
static int client_job_make(struct cluster *cluster, const struct job_spec *spec,
                           const char *namespace, const char *mark, struct client_job *own,
                           struct drarun_error *err)
{
    const struct kube_target target = {
        .resource = &kube_dra_jobs, .namespace_ = namespace, .name = spec->name};
    struct drarun_error local = {0};
    CLEANUP(json_decrefp) json_t *made = NULL;
    if (!cluster->dra_jobs)
        return 0;
    CLEANUP(json_decrefp) json_t *plain = drajob_object(spec, namespace);
    CLEANUP(json_decrefp) json_t *object = plain ? batch_mark(plain, mark) : NULL;
    int rc = object ? cluster_create(cluster, &target, object, &made, &local)
                    : error_set(&local, ENOMEM, "out of memory");
    if (rc == -EEXIST) {
        rc = take_made(cluster, &target, mark, &made, err);
        if (rc < 0 && rc != -EEXIST)
            return rc;
    }
    if (rc == -EEXIST)
        return say_there_is_one(spec, namespace, err);
    bool not_for_us = rc == -EINVAL || rc == -EACCES || rc == -ENOENT;
    if (not_for_us && !create_is_denied(&local)) {
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
        rc = prepare_job(cluster, &spec, &named, &render, err);
    if (rc == 0 && own)
        rc = client_job_make(cluster, spec, options->namespace, secret, own, err);
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

/* What preparation and creation borrow: the next job has other answers of the cluster. */
struct submission {
    struct cluster *cluster;
    struct job_spec spec, named;
    char *namespace, *image, *dra_job, *delivery;
    char key[SUBMIT_KEY_SIZE], secret[SUBMIT_SECRET_SIZE];
    struct agent_claim agent;
    struct render_options render;
    int64_t going_ms;
    struct preparation *preparation; /* NULL: it is over */
    bool has_answers;                /* those of the cluster are kept */
    struct creation *creation;       /* NULL: not begun */
    struct drarun_error err;         /* why it is not; code 0: nothing has failed */
};

static void submission_free(struct submission *submission)
{
    prepare_drop(submission->preparation);
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

static int begin(struct submission *s, const struct submit_options *options,
                 struct drarun_error *err)
{
    s->going_ms = options->going_ms ? options->going_ms : CREATE_GOING_MS;
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
        rc = submit_name_secret(s->spec.name, s->secret, err);
    return rc == 0
               ? prepare_begin(s->cluster, &s->spec, &s->named, &s->render, &s->preparation, err)
               : rc;
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
    s->cluster = cluster;
    s->spec = *spec_take;
    *spec_take = (struct job_spec){0};
    int rc = begin(s, options, err);
    if (rc == 0)
        *ret_submission = TAKE_PTR(s);
    return rc;
}

const char *submission_launcher(const struct submission *submission)
{
    return submission->creation ? create_owner_uid(submission->creation) : NULL;
}

bool submission_has_answers(const struct submission *submission)
{
    return submission->has_answers || submission->err.code || !submission->preparation;
}

/* Of what the preparation borrows from the cluster. */
static void keep_answers(struct submission *s)
{
    struct render_options *render = &s->render;
    s->has_answers = true;
    s->delivery = copy_of(render->delivery);
    if (!s->delivery != !render->delivery)
        error_set(&s->err, ENOMEM, "out of memory");
    render->delivery = s->delivery;
    if (!render->agent)
        return;
    s->agent = *render->agent;
    render->agent = &s->agent;
}

static void refuse(struct submission *s, const char *why)
{
    error_kind(&s->err, DRARUN_ERR_CLUSTER, ECANCELED,
               "job %s: not all of its objects are made: %s", s->spec.name, why);
}

/* True: its creation has begun, or will not. */
static bool prepare(struct submission *s)
{
    const struct cluster *cluster = s->cluster;
    const struct job_spec *spec = NULL;
    if (s->creation || s->err.code)
        return true;
    if (cluster->may_create && !cluster->may_create(cluster->may_create_arg)) {
        refuse(s, "this process may make no more");
        return true;
    }
    bool over = prepare_go_on(s->preparation);
    if (!s->has_answers && prepare_has_answers(s->preparation))
        keep_answers(s);
    if (!over || s->err.code)
        return over;
    int rc = prepare_end(TAKE_PTR(s->preparation), &spec, &s->err);
    if (rc == 0)
        create_begin(s->cluster, spec, &s->render, s->going_ms, &s->creation, &s->err);
    return true;
}

bool submission_go_on(struct submission *submission, size_t most)
{
    return prepare(submission) &&
           (submission->err.code || create_go_on(submission->creation, most));
}

void submission_leave(struct submission *submission)
{
    create_leave(submission->creation);
}

void submission_cancel(struct submission *submission, const char *why)
{
    if (submission->creation)
        create_cancel(submission->creation, why);
    else if (!submission->err.code)
        refuse(submission, why);
}

bool submission_undo(struct submission *submission)
{
    return submission->creation && create_undo(submission->creation);
}

int submission_end(struct submission *submission_take, char **ret_uid, struct drarun_error *err)
{
    CLEANUP(submission_freep) struct submission *s = submission_take;
    while (!submission_go_on(s, 0))
        cluster_turn(s->cluster, KUBE_CALL_MS);
    if (s->creation)
        return create_end(s->creation, ret_uid, err);
    if (err)
        *err = s->err;
    return -s->err.code;
}
