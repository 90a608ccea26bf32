/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/submit/prepare.h"

#include <errno.h>
#include <stdlib.h>

#include "jobs/manifests/claims.h"
#include "jobs/manifests/install.h"
#include "jobs/predict/job_profile.h"
#include "launcher/cluster/submit/name_profile.h"
#include "launcher/cluster/submit/offer.h"
#include "launcher/files/spec_file.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

/* Each waits for what it has begun. */
enum prepare_phase {
    PREPARE_DISCOVERY = 1, /* what the cluster serves is asked for, and the account */
    PREPARE_PROFILE,       /* what names the profile is read */
    PREPARE_OFFER,         /* and what says how the agent comes */
    PREPARE_ACCOUNT,       /* the answer about the account is awaited */
    PREPARE_INSTALL,       /* what the namespace needs once is created */
    PREPARE_OVER,
};

struct preparation {
    struct cluster *cluster;
    const struct job_spec *spec; /* the one given, or named */
    struct job_spec *named;
    struct render_options *render;
    enum prepare_phase phase;
    struct cluster_question question;
    struct survey survey;
    struct cluster_read account;
    json_t *manifests;
    size_t next; /* of them */
    struct kube_call *call;
    struct drarun_error err; /* code 0: none */
};

static void preparation_free(struct preparation *p)
{
    cluster_discover_drop(&p->question);
    survey_done(&p->survey);
    cluster_read_drop(&p->account);
    kube_call_cancel(p->call);
    json_decref(p->manifests);
    free(p);
}
DEFINE_CLEANUP(struct preparation, preparation_free)

static enum prepare_phase after(int rc, enum prepare_phase next)
{
    return rc < 0 ? PREPARE_OVER : next;
}

/* ---- what is known of the cluster ---- */

/* Another one, with its profile named, where that is open. */
static int copy_spec(struct preparation *p)
{
    if (!job_profile_is_open(p->spec))
        return 0;
    int rc = spec_again(p->spec, NULL, NULL, 0, p->named, &p->err);
    if (rc == 0)
        p->spec = p->named;
    return rc;
}

static enum prepare_phase discover(struct preparation *p)
{
    if (!cluster_discover_is_answered(&p->question))
        return PREPARE_DISCOVERY;
    int rc = cluster_discover_end(&p->question, &p->err);
    if (rc == 0 && (claims_wanted(p->spec) || claims_named(p->spec)))
        rc = cluster_need_claims(p->cluster, &p->err);
    if (rc == 0)
        rc = copy_spec(p);
    return after(rc, PREPARE_PROFILE);
}

static enum prepare_phase find_profile(struct preparation *p)
{
    if (!name_profile_is_ready(p->spec, &p->survey))
        return PREPARE_PROFILE;
    int rc = p->spec == p->named ? name_profile_by(&p->survey, p->named, &p->err) : 0;
    return after(rc, PREPARE_OFFER);
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

static enum prepare_phase find_offer(struct preparation *p)
{
    if (!offer_is_ready(p->spec, &p->survey))
        return PREPARE_OFFER;
    offer_choose(&p->survey, p->spec);
    survey_done(&p->survey);
    set_render(p->cluster, p->render);
    return PREPARE_ACCOUNT;
}

/* ---- what its namespace needs once ---- */

static int ask_account(struct preparation *p)
{
    const struct kube_target target = {.resource = &kube_service_accounts,
                                       .namespace_ = p->render->namespace,
                                       .name = INSTALL_ACCOUNT};
    return cluster_read_start(p->cluster, &target, &p->account, &p->err);
}

/* The account that the launcher's pod runs as: made where it is missing and we may. */
static enum prepare_phase take_account(struct preparation *p)
{
    if (p->account.call)
        return PREPARE_ACCOUNT;
    if (p->account.err.code != ENOENT)
        return PREPARE_OVER; /* it is there, or we may not look: the Job's Events will tell */
    p->manifests = install_manifests(p->render->namespace, NULL);
    return after(p->manifests ? 0 : error_set(&p->err, ENOMEM, "out of memory"), PREPARE_INSTALL);
}

static int explain(const struct preparation *p, struct drarun_error *err)
{
    const char *namespace = p->render->namespace;
    if (err->code == ENOENT) /* the one 404 that a creation has */
        return error_kind(err, DRARUN_ERR_USAGE, ENOENT,
                          "there is no namespace %s: kubectl create namespace %s makes it",
                          namespace, namespace);
    return error_prefix(err,
                        "namespace %s lacks drarun's account and role: ask somebody with the "
                        "rights to run drarun install -n %s | kubectl apply --server-side -f -",
                        namespace, namespace);
}

static void on_installed(const struct kube_answer *answer, const struct drarun_error *err,
                         void *arg)
{
    struct preparation *p = arg;
    (void)answer;
    p->call = NULL;
    p->next++;
    if (!err || err->code == EEXIST)
        return;
    p->err = *err;
    explain(p, &p->err);
}

static enum prepare_phase install(struct preparation *p)
{
    const json_t *manifest = json_array_get(p->manifests, p->next);
    const struct kube_write again = {.repeat = true, .timeout_ms = p->cluster->create_ms};
    struct kube_target target = {.namespace_ = p->render->namespace};
    if (p->call)
        return PREPARE_INSTALL;
    if (p->err.code)
        return PREPARE_OVER;
    if (!manifest) {
        log_note("namespace %s: made the account, role and network policy that drarun needs once",
                 p->render->namespace);
        return PREPARE_OVER;
    }
    target.resource = kube_resource_find(json_string_value(json_object_get(manifest, "apiVersion")),
                                         json_string_value(json_object_get(manifest, "kind")));
    int rc = kube_create(p->cluster->client, &target, manifest, &again, on_installed, p, &p->call,
                         &p->err);
    return after(rc < 0 ? explain(p, &p->err) : 0, PREPARE_INSTALL);
}

/* ---- from one phase to the next ---- */

static enum prepare_phase (*const steps[])(struct preparation *p) = {
    [PREPARE_DISCOVERY] = discover, [PREPARE_PROFILE] = find_profile,
    [PREPARE_OFFER] = find_offer,   [PREPARE_ACCOUNT] = take_account,
    [PREPARE_INSTALL] = install,
};

int prepare_begin(struct cluster *cluster, const struct job_spec *spec, struct job_spec *named,
                  struct render_options *render, struct preparation **ret_preparation,
                  struct drarun_error *err)
{
    CLEANUP(preparation_freep) struct preparation *p = calloc(1, sizeof *p);
    if (!p)
        return error_set(err, ENOMEM, "out of memory");
    *p = (struct preparation){.cluster = cluster,
                              .spec = spec,
                              .named = named,
                              .render = render,
                              .phase = PREPARE_DISCOVERY,
                              .survey = {.cluster = cluster}};
    int rc = ask_account(p);
    if (rc == 0)
        rc = cluster_discover_start(cluster, &p->question, &p->err);
    if (rc < 0)
        return error_kind(err, p->err.kind, p->err.code, "%s", p->err.text);
    *ret_preparation = TAKE_PTR(p);
    return 0;
}

bool prepare_go_on(struct preparation *p)
{
    enum prepare_phase before = 0;
    while (p->phase != PREPARE_OVER && p->phase != before) {
        before = p->phase;
        p->phase = steps[before](p);
    }
    return p->phase == PREPARE_OVER;
}

bool prepare_has_answers(const struct preparation *p)
{
    return p->phase >= PREPARE_ACCOUNT;
}

int prepare_end(struct preparation *preparation_take, const struct job_spec **ret_spec,
                struct drarun_error *err)
{
    CLEANUP(preparation_freep) struct preparation *p = preparation_take;
    if (p->err.code) {
        if (err)
            *err = p->err;
        return -p->err.code;
    }
    *ret_spec = p->spec;
    return 0;
}

void prepare_drop(struct preparation *preparation)
{
    if (preparation)
        preparation_free(preparation);
}

int prepare_job(struct cluster *cluster, const struct job_spec **spec, struct job_spec *named,
                struct render_options *render, struct drarun_error *err)
{
    struct preparation *p = NULL;
    int rc = prepare_begin(cluster, *spec, named, render, &p, err);
    if (rc < 0)
        return rc;
    while (!prepare_go_on(p))
        cluster_turn(cluster, KUBE_CALL_MS);
    return prepare_end(p, spec, err);
}
