/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/submit/dry_run.h"

#include <errno.h>

#include "jobs/manifests/objects.h"
#include "jobs/manifests/pod_security.h"
#include "jobs/manifests/render.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

struct dry_run {
    struct cluster *cluster;
    const char *namespace;
    struct buf *out;
    struct drarun_error *first; /* refusal */
    int rc;                     /* of it */
    struct strlist warned;      /* what the server has warned of */
};

/* What it says of one object it says of all that are like it. */
static void add_warnings(struct dry_run *run, const struct strlist *warnings)
{
    for (size_t i = 0; i < warnings->count; i++) {
        if (strlist_has(&run->warned, warnings->items[i]))
            continue;
        strlist_add(&run->warned, warnings->items[i]);
        buf_printf(run->out, "  the API server warns: %s\n", warnings->items[i]);
    }
}

static void try_one(struct dry_run *run, const json_t *object)
{
    struct drarun_error refusal = {0};
    CLEANUP(cluster_said_done) struct cluster_said said = {0};
    const char *version = value_text_or(object, "apiVersion", ""),
               *kind = value_text_or(object, "kind", "");
    const struct kube_resource *resource = kube_resource_find(version, kind);
    const struct kube_target target = {.resource = resource, .namespace_ = run->namespace};
    int rc = resource ? cluster_try_create(run->cluster, &target, object, &said, &refusal)
                      : error_set(&refusal, ENOTSUP, "internal error: no resource of this kind");
    pod_security_explain(said.status, run->namespace, &refusal);
    buf_printf(run->out, "%s %s %s: %s\n", version, kind, kube_name(object),
               rc < 0 ? refusal.text : "ok");
    add_warnings(run, &said.warnings);
    if (rc < 0 && run->rc == 0) {
        run->rc = rc;
        *run->first = refusal;
    }
}

/* The first worker of a role; the others are alike. An Indexed Job makes claims of what was tried,
 * and pods that nobody has tried. */
static int try_worker(struct dry_run *run, const struct job_spec *spec,
                      const struct spec_role *role, const struct render_options *options,
                      struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *claim = NULL, *pod = NULL;
    bool claims = claims_wanted_by(role) && spec->claims != SPEC_CLAIMS_TEMPLATE;
    int rc = claims ? render_claim(spec, options, role->first, &claim, err) : 0;
    if (rc == 0)
        rc = render_pod(spec, options, role->first, &pod, err);
    if (rc == 0 && claim)
        try_one(run, claim);
    if (rc == 0)
        try_one(run, pod);
    return rc;
}

int dry_run_job(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
                const char *image, struct buf *out, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *shared = NULL;
    struct drarun_error first = {0};
    struct dry_run run = {.cluster = cluster, .namespace = namespace, .out = out, .first = &first};
    bool claims = claims_wanted(spec) || claims_named(spec);
    int rc = claims ? cluster_need_claims(cluster, err) : 0;
    if (rc < 0)
        return rc;
    const struct render_options options = {
        .attempt = 1,
        .namespace = namespace,
        .image = image,
        .api = cluster->api,
        .agent = cluster->agent.agent[0] ? &cluster->agent : NULL,
        .image_volume = cluster->image_volume,
        .delivery = cluster->delivery,
        .metrics_port = cluster->metrics_port,
        .pod_groups = cluster->pod_groups,
    };
    rc = render_shared(spec, &options, &shared, err);
    for (size_t i = 0; rc == 0 && i < json_array_size(shared); i++)
        try_one(&run, json_array_get(shared, i));
    for (uint32_t r = 0; rc == 0 && r < spec->role_count; r++)
        rc = try_worker(&run, spec, &spec->roles[r], &options, err);
    strlist_done(&run.warned);
    return rc < 0 || run.rc == 0 ? rc : error_kind(err, first.kind, first.code, "%s", first.text);
}

/* ---- beside other work ---- */

static void on_tried(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct pod_trial *trial = arg;
    struct drarun_error refusal = {0};
    trial->call = NULL;
    if (!err)
        return;
    refusal = *err;
    if (pod_security_explain(answer->body, object_namespace(trial->spec, trial->options), &refusal))
        trial->err = refusal;
}

static int try_pod(struct pod_trial *trial, const struct spec_role *role)
{
    const struct kube_write dry = {
        .repeat = true, .dry_run = true, .timeout_ms = trial->cluster->create_ms};
    const struct kube_target target = {.resource = &kube_pods,
                                       .namespace_ = object_namespace(trial->spec, trial->options)};
    CLEANUP(json_decrefp) json_t *pod = NULL;
    int rc = render_pod(trial->spec, trial->options, role->first, &pod, &trial->err);
    return rc < 0 ? rc
                  : kube_create(trial->cluster->client, &target, pod, &dry, on_tried, trial,
                                &trial->call, &trial->err);
}

bool pod_trial_go_on(struct pod_trial *trial)
{
    if (trial->call)
        return false;
    if (trial->err.code || trial->next == trial->spec->role_count)
        return true;
    return try_pod(trial, &trial->spec->roles[trial->next++]) < 0;
}

void pod_trial_drop(struct pod_trial *trial)
{
    kube_call_cancel(TAKE_PTR(trial->call));
}
