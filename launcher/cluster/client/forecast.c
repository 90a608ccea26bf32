/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/forecast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/spec/node_spread.h"
#include "launcher/files/cluster_files.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

#define HOLDERS_MAX 3 /* claims that are named */

struct forecast {
    struct cluster *cluster;
    const struct job_spec *spec;
    const char *namespace;
    struct slices slices;
    json_t *classes, *labels, *claims, *rules;
    struct prediction prediction;
    enum gang_forecast outlook;
    unsigned step, next_step; /* next: see forecast_next_step */
    int64_t looked_ms;        /* 0: never */
    int64_t pause_ms;         /* until the next look */
    bool have_slices, predicted;
    bool refused;      /* the slices may not be read: nor shall we ask again */
    bool own_claims;   /* those of other namespaces may not be read */
    bool told_classes; /* that the classes cannot be read */
};

static void forget(struct forecast *f)
{
    if (f->predicted)
        prediction_done(&f->prediction);
    if (f->have_slices)
        slices_done(&f->slices);
    f->predicted = f->have_slices = false;
    f->outlook = GANG_FORECAST_UNKNOWN;
    f->next_step = 0;
    json_decref(TAKE_PTR(f->classes));
    json_decref(TAKE_PTR(f->labels));
    json_decref(TAKE_PTR(f->claims));
    json_decref(TAKE_PTR(f->rules));
}

int forecast_new(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
                 struct forecast **ret_forecast, struct drarun_error *err)
{
    struct forecast *f = calloc(1, sizeof *f);
    if (!f)
        return error_set(err, ENOMEM, "out of memory");
    *f = (struct forecast){.cluster = cluster,
                           .spec = spec,
                           .namespace = namespace,
                           .pause_ms = FORECAST_AGAIN_MIN_MS};
    *ret_forecast = f;
    return 0;
}

void forecast_free(struct forecast *forecast)
{
    if (!forecast)
        return;
    forget(forecast);
    free(forecast);
}

/* ---- reading ---- */

static int list(struct forecast *f, const struct kube_resource *kind, const char *namespace,
                json_t **ret_items, struct drarun_error *err)
{
    struct kube_resource resource = *kind;
    /* of a Node only the labels are read; it also lists all images that it holds */
    const struct kube_select select = {.metadata_only = kind == &kube_nodes};
    const struct kube_target target = {.resource = &resource, .namespace_ = namespace};
    CLEANUP(json_decrefp) json_t *body = NULL;
    if (kind == &kube_device_taint_rules)
        resource.version = f->cluster->taint_rules;
    else if (kind != &kube_nodes)
        resource.version = cluster_claims_version(f->cluster);
    int rc = cluster_list(f->cluster, &target, &select, &body, err);
    if (rc < 0)
        return rc;
    *ret_items = json_incref(json_object_get(body, "items"));
    return *ret_items ? 0 : error_set(err, EPROTO, "the list of %s has no items", kind->plural);
}

static int read_slices(struct forecast *f, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *items = NULL;
    int rc = list(f, &kube_resource_slices, NULL, &items, err);
    f->refused = rc == -EACCES;
    if (rc == 0)
        rc = slices_read(items, &f->slices, err);
    f->have_slices = rc == 0;
    return rc;
}

/* What may not be read is done without. */
static void read_optional(struct forecast *f, const struct kube_resource *kind,
                          const char *namespace, json_t **ret_items)
{
    struct drarun_error missing = {0};
    if (list(f, kind, namespace, ret_items, &missing) < 0)
        log_verbose("%s; predicted without", missing.text);
}

/* Which devices a class selects decides over all else: that it is guessed is told. */
static void read_classes(struct forecast *f)
{
    struct drarun_error missing = {0};
    if (list(f, &kube_device_classes, NULL, &f->classes, &missing) == 0 || f->told_classes)
        return;
    f->told_classes = true;
    log_note("what the job's DeviceClasses select is not known, and is taken to be what their "
             "drivers usually bring: %s",
             missing.text);
}

static void read_claims(struct forecast *f)
{
    struct drarun_error missing = {0};
    if (!f->own_claims && list(f, &kube_resource_claims, NULL, &f->claims, &missing) == -EACCES)
        f->own_claims = true;
    if (f->own_claims)
        read_optional(f, &kube_resource_claims, f->namespace, &f->claims);
}

static bool is_of_job(const struct forecast *f, const json_t *claim)
{
    const json_t *metadata = json_object_get(claim, "metadata");
    const char *job =
        json_string_value(json_object_get(json_object_get(metadata, "labels"), "drarun.dev/job"));
    const char *namespace = json_string_value(json_object_get(metadata, "namespace"));
    return job && namespace && strcmp(job, f->spec->name) == 0 &&
           strcmp(namespace, f->namespace) == 0;
}

/* What the job holds itself is there for it. */
static void leave_out_own(struct forecast *f)
{
    for (size_t i = json_array_size(f->claims); i > 0; i--)
        if (is_of_job(f, json_array_get(f->claims, i - 1)))
            json_array_remove(f->claims, i - 1);
}

static void read_labels(struct forecast *f)
{
    CLEANUP(json_decrefp) json_t *nodes = NULL;
    read_optional(f, &kube_nodes, NULL, &nodes);
    f->labels = nodes ? cluster_node_labels(nodes) : NULL;
}

static int read_all(struct forecast *f, struct drarun_error *err)
{
    int rc = read_slices(f, err);
    if (rc < 0)
        return rc;
    read_classes(f);
    if (f->cluster->taint_rules)
        read_optional(f, &kube_device_taint_rules, NULL, &f->rules);
    read_labels(f);
    read_claims(f);
    leave_out_own(f);
    return 0;
}

/* ---- evaluating ---- */

static struct predict_cluster with_claims(const struct forecast *f, const json_t *claims)
{
    return (struct predict_cluster){.slices = &f->slices,
                                    .classes = f->classes,
                                    .classes_known = f->classes != NULL,
                                    .node_labels = f->labels,
                                    .claims = claims,
                                    .taint_rules = f->rules,
                                    .minor = f->cluster->minor};
}

/* The workers of one role, as if there were no others: what they do not find alone they do not find
 * beside others. */
static int predict_role(const struct forecast *f, const struct spec_role *role, unsigned step,
                        const json_t *claims, struct prediction *ret_prediction,
                        struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *claim = NULL;
    struct predict_cluster cluster = with_claims(f, claims);
    int rc = claims_spec(role, CLAIMS_API_V1, step, &claim, err);
    if (rc == 0)
        rc = node_spread_predict(f->spec, role, &cluster, err);
    return rc == 0 ? predict(claim, role->workers, &cluster, ret_prediction, err) : rc;
}

/* The prediction is that of the first role that finds too little, or else of the last. */
static int evaluate(struct forecast *f, const json_t *claims, const struct spec_role **ret_short,
                    struct drarun_error *err)
{
    int rc = 0;
    *ret_short = NULL;
    for (uint32_t r = 0; rc == 0 && !*ret_short && r < f->spec->role_count; r++) {
        const struct spec_role *role = &f->spec->roles[r];
        if (!claims_wanted_by(role))
            continue;
        if (f->predicted)
            prediction_done(&f->prediction);
        rc = predict_role(f, role, f->step, claims, &f->prediction, err);
        f->predicted = rc == 0;
        if (rc == 0 && f->prediction.shortage)
            *ret_short = role;
    }
    return rc;
}

/* How many workers of the role an empty cluster takes with this step's claims; all where it is not
 * known. */
static uint32_t placed_of(const struct forecast *f, const struct spec_role *role, unsigned step)
{
    struct prediction prediction;
    struct drarun_error why = {0};
    if (!claims_wanted_by(role) || predict_role(f, role, step, NULL, &prediction, &why) < 0)
        return role->workers;
    uint32_t placed = prediction.placed;
    prediction_done(&prediction);
    return placed;
}

static uint32_t most_placed(const struct forecast *f, unsigned step)
{
    uint32_t placed = 0;
    for (uint32_t r = 0; r < f->spec->role_count; r++)
        placed += placed_of(f, &f->spec->roles[r], step);
    return placed;
}

/* Of the present step, whose prediction is that of a role which finds too little: those before it
 * have room. */
static uint32_t placed_now(const struct forecast *f, const struct spec_role *lacking)
{
    uint32_t placed = lacking->first + f->prediction.placed;
    for (const struct spec_role *role = lacking + 1; role < f->spec->roles + f->spec->role_count;
         role++)
        placed += placed_of(f, role, f->step);
    return placed;
}

static unsigned find_next_step(const struct forecast *f, const struct spec_role *lacking)
{
    uint32_t most = placed_now(f, lacking);
    unsigned best = GANG_STEP_NONE;
    for (unsigned step = f->step + 1; step < claims_attempts(f->spec) && most < f->spec->workers;
         step++) {
        uint32_t placed = most_placed(f, step);
        if (placed > most) {
            most = placed;
            best = step;
        }
    }
    return best;
}

/* Of claims of other namespaces only where those may be read. */
static void name_holders(struct forecast *f, const struct spec_role *role)
{
    const struct predict_cluster cluster = with_claims(f, f->claims);
    CLEANUP(json_decrefp) json_t *claim = NULL;
    if (claims_spec(role, CLAIMS_API_V1, f->step, &claim, NULL) == 0)
        f->prediction.holders = predict_holders(claim, &cluster, HOLDERS_MAX);
}

/* First the empty cluster: what it does not have is told of that, and not of who holds the rest. */
static int predict_job(struct forecast *f, struct drarun_error *err)
{
    const struct spec_role *lacking = NULL;
    int rc = evaluate(f, NULL, &lacking, err);
    if (rc < 0)
        return rc;
    if (lacking) {
        f->outlook = f->labels && f->classes ? GANG_FORECAST_NEVER : GANG_FORECAST_UNKNOWN;
        f->next_step = find_next_step(f, lacking);
        return 0;
    }
    rc = evaluate(f, f->claims, &lacking, err);
    if (rc < 0)
        return rc;
    /* that each of several roles has room alone does not say that all have together */
    bool known = !f->own_claims && f->claims && f->classes && f->spec->role_count == 1;
    f->outlook = lacking ? GANG_FORECAST_FULL : known ? GANG_FORECAST_FITS : GANG_FORECAST_UNKNOWN;
    if (lacking)
        name_holders(f, lacking);
    return 0;
}

static void set_pause(struct forecast *f, bool same)
{
    f->pause_ms = same ? f->pause_ms * 2 : FORECAST_AGAIN_MIN_MS;
    if (f->pause_ms > FORECAST_AGAIN_MAX_MS)
        f->pause_ms = FORECAST_AGAIN_MAX_MS;
}

void forecast_look(struct forecast *forecast, unsigned step, int64_t now_ms)
{
    struct drarun_error why = {0};
    const enum gang_forecast outlook = forecast->outlook;
    const unsigned next_step = forecast->next_step, last_step = forecast->step;
    const bool again = forecast->looked_ms;
    forget(forecast);
    forecast->step = step;
    forecast->looked_ms = now_ms;
    int rc = read_all(forecast, &why);
    if (rc == 0)
        rc = predict_job(forecast, &why);
    if (rc < 0)
        log_verbose("cannot find out which devices the slices have for the job: %s", why.text);
    bool same = again && step == last_step && outlook == forecast->outlook &&
                next_step == forecast->next_step;
    set_pause(forecast, same);
}

int64_t forecast_due(const struct forecast *forecast, unsigned step)
{
    if (forecast->refused)
        return INT64_MAX;
    return forecast->looked_ms && forecast->step == step ? forecast->looked_ms + forecast->pause_ms
                                                         : 0;
}

enum gang_forecast forecast_outlook(const struct forecast *forecast, unsigned step)
{
    return forecast->step == step ? forecast->outlook : GANG_FORECAST_UNKNOWN;
}

unsigned forecast_next_step(const struct forecast *forecast, unsigned step)
{
    return forecast->step == step ? forecast->next_step : 0;
}

const char *forecast_missing_class(const struct forecast *forecast)
{
    return claims_missing_class(forecast->spec, forecast->classes);
}

const struct prediction *forecast_prediction(const struct forecast *forecast, unsigned step)
{
    return forecast->predicted && forecast->step == step ? &forecast->prediction : NULL;
}
