/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/forecast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/spec/node_spread.h"
#include "launcher/cluster/client/job_clock.h"
#include "launcher/files/cluster_files.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/kube/list.h"

#define HOLDERS_MAX 3 /* claims that are named */

/* What one look has read and found. */
struct findings {
    struct slices slices;
    json_t *classes, *labels, *claims, *rules;
    struct prediction prediction;
    enum gang_forecast outlook;
    unsigned step, next_step; /* next: see forecast_next_step */
    bool have_slices, predicted;
};

struct forecast {
    struct cluster *cluster;
    const struct job_spec *spec;
    const char *namespace;
    struct findings last;         /* of the last look that is over */
    struct findings coming;       /* of the one that goes on */
    size_t at;                    /* what that reads: of reads */
    struct kube_listing *listing; /* NULL: none goes on */
    void (*looked)(void *arg);    /* when it is over */
    void *arg;
    int64_t looked_ms; /* when the last one was over; 0: there was none */
    int64_t pause_ms;  /* until the next look */
    bool refused;      /* the slices may not be read: nor shall we ask again */
    bool own_claims;   /* those of other namespaces may not be read */
    bool told_classes; /* that the classes cannot be read */
};

static void findings_done(struct findings *found)
{
    if (found->predicted)
        prediction_done(&found->prediction);
    if (found->have_slices)
        slices_done(&found->slices);
    json_decref(found->classes);
    json_decref(found->labels);
    json_decref(found->claims);
    json_decref(found->rules);
    *found = (struct findings){0};
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

void forecast_stop(struct forecast *forecast)
{
    kube_list_cancel(TAKE_PTR(forecast->listing));
    findings_done(&forecast->coming);
}

void forecast_free(struct forecast *forecast)
{
    if (!forecast)
        return;
    forecast_stop(forecast);
    findings_done(&forecast->last);
    free(forecast);
}

/* ---- what is read ---- */

/* Each takes the items of a list, which are NULL where err says why they cannot be had. Not 0: the
 * look ends with that error. */

static int take_slices(struct forecast *f, json_t *items, struct drarun_error *err)
{
    f->refused = !items && err->code == EACCES;
    if (!items)
        return -err->code;
    int rc = slices_read(items, &f->coming.slices, err);
    f->coming.have_slices = rc == 0;
    return rc;
}

/* Which devices a class selects decides over all else: that it is guessed is told. */
static int take_classes(struct forecast *f, json_t *items, struct drarun_error *err)
{
    f->coming.classes = json_incref(items);
    if (items || f->told_classes)
        return 0;
    f->told_classes = true;
    log_note("cannot read the job's DeviceClasses, assuming their drivers' usual devices: %s",
             err->text);
    return 0;
}

/* What may not be read is done without. */
static int take_optional(json_t *items, json_t **ret_items, const struct drarun_error *err)
{
    *ret_items = json_incref(items);
    if (!items)
        log_verbose("%s; predicted without", err->text);
    return 0;
}

static bool wants_rules(const struct forecast *f)
{
    return f->cluster->taint_rules;
}

static int take_rules(struct forecast *f, json_t *items, struct drarun_error *err)
{
    return take_optional(items, &f->coming.rules, err);
}

static int take_nodes(struct forecast *f, json_t *items, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *nodes = NULL;
    take_optional(items, &nodes, err);
    f->coming.labels = nodes ? cluster_node_labels(nodes) : NULL;
    return 0;
}

static bool wants_all_claims(const struct forecast *f)
{
    return !f->own_claims;
}

static int take_all_claims(struct forecast *f, json_t *items, struct drarun_error *err)
{
    f->own_claims = !items && err->code == EACCES;
    f->coming.claims = json_incref(items);
    return 0;
}

static bool wants_own_claims(const struct forecast *f)
{
    return f->own_claims;
}

static int take_own_claims(struct forecast *f, json_t *items, struct drarun_error *err)
{
    return take_optional(items, &f->coming.claims, err);
}

/* One after the other. */
static const struct {
    const struct kube_resource *kind;
    bool (*wanted)(const struct forecast *f); /* NULL: always */
    int (*take)(struct forecast *f, json_t *items, struct drarun_error *err);
    bool own; /* of the job's namespace alone */
} reads[] = {
    {.kind = &kube_resource_slices, .take = take_slices},
    {.kind = &kube_device_classes, .take = take_classes},
    {.kind = &kube_device_taint_rules, .wanted = wants_rules, .take = take_rules},
    {.kind = &kube_nodes, .take = take_nodes},
    {.kind = &kube_resource_claims, .wanted = wants_all_claims, .take = take_all_claims},
    {.kind = &kube_resource_claims,
     .wanted = wants_own_claims,
     .take = take_own_claims,
     .own = true},
};

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
    json_t *claims = f->coming.claims;
    for (size_t i = json_array_size(claims); i > 0; i--)
        if (is_of_job(f, json_array_get(claims, i - 1)))
            json_array_remove(claims, i - 1);
}

/* ---- evaluating ---- */

static struct predict_cluster with_claims(const struct forecast *f, const json_t *claims)
{
    return (struct predict_cluster){.slices = &f->coming.slices,
                                    .classes = f->coming.classes,
                                    .classes_known = f->coming.classes != NULL,
                                    .node_labels = f->coming.labels,
                                    .claims = claims,
                                    .taint_rules = f->coming.rules,
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
        if (f->coming.predicted)
            prediction_done(&f->coming.prediction);
        rc = predict_role(f, role, f->coming.step, claims, &f->coming.prediction, err);
        f->coming.predicted = rc == 0;
        if (rc == 0 && f->coming.prediction.shortage)
            *ret_short = role;
    }
    return rc;
}

/* How many workers of the role an empty cluster takes with this step's claims; all where it is not
 * known. */
static uint32_t placed_of(const struct forecast *f, const struct spec_role *role, unsigned step)
{
    struct prediction prediction = {0};
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
    uint32_t placed = lacking->first + f->coming.prediction.placed;
    for (const struct spec_role *role = lacking + 1; role < f->spec->roles + f->spec->role_count;
         role++)
        placed += placed_of(f, role, f->coming.step);
    return placed;
}

static unsigned find_next_step(const struct forecast *f, const struct spec_role *lacking)
{
    uint32_t most = placed_now(f, lacking);
    unsigned best = GANG_STEP_NONE;
    for (unsigned step = f->coming.step + 1;
         step < claims_attempts(f->spec) && most < f->spec->workers; step++) {
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
    const struct predict_cluster cluster = with_claims(f, f->coming.claims);
    CLEANUP(json_decrefp) json_t *claim = NULL;
    if (claims_spec(role, CLAIMS_API_V1, f->coming.step, &claim, NULL) == 0)
        f->coming.prediction.holders = predict_holders(claim, &cluster, HOLDERS_MAX);
}

/* First the empty cluster: what it does not have is told of that, and not of who holds the rest. */
static int predict_job(struct forecast *f, struct drarun_error *err)
{
    const struct spec_role *lacking = NULL;
    int rc = evaluate(f, NULL, &lacking, err);
    if (rc < 0)
        return rc;
    if (lacking) {
        f->coming.outlook =
            f->coming.labels && f->coming.classes ? GANG_FORECAST_NEVER : GANG_FORECAST_UNKNOWN;
        f->coming.next_step = find_next_step(f, lacking);
        return 0;
    }
    rc = evaluate(f, f->coming.claims, &lacking, err);
    if (rc < 0)
        return rc;
    /* that each of several roles has room alone does not say that all have together */
    bool known =
        !f->own_claims && f->coming.claims && f->coming.classes && f->spec->role_count == 1;
    f->coming.outlook = lacking ? GANG_FORECAST_FULL
                        : known ? GANG_FORECAST_FITS
                                : GANG_FORECAST_UNKNOWN;
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

/* ---- a look ---- */

static void end_look(struct forecast *f, const struct drarun_error *why)
{
    const struct findings *last = &f->last, *now = &f->coming;
    bool same = f->looked_ms && now->step == last->step && now->outlook == last->outlook &&
                now->next_step == last->next_step;
    if (why->code)
        log_verbose("cannot find out which devices the slices have for the job: %s", why->text);
    findings_done(&f->last);
    f->last = f->coming;
    f->coming = (struct findings){0};
    f->looked_ms = lead_now();
    set_pause(f, same);
    f->looked(f->arg);
}

static void on_list(const struct kube_answer *answer, const struct drarun_error *err, void *arg);

static int ask(struct forecast *f, struct drarun_error *err)
{
    const struct kube_resource *kind = reads[f->at].kind;
    struct kube_resource resource = *kind;
    /* of a Node only the labels are read; it also lists all images that it holds */
    const struct kube_select select = {.metadata_only = kind == &kube_nodes};
    const struct kube_target target = {.resource = &resource,
                                       .namespace_ = reads[f->at].own ? f->namespace : NULL};
    if (kind == &kube_device_taint_rules)
        resource.version = f->cluster->taint_rules;
    else if (kind != &kube_nodes)
        resource.version = cluster_claims_version(f->cluster);
    return kube_list(f->cluster->client, &target, &select, on_list, f, &f->listing, err);
}

/* From the at-th on. */
static void read_on(struct forecast *f)
{
    struct drarun_error why = {0};
    while (f->at < ARRAY_LEN(reads) && reads[f->at].wanted && !reads[f->at].wanted(f))
        f->at++;
    if (f->at < ARRAY_LEN(reads) && ask(f, &why) == 0)
        return;
    if (!why.code) {
        leave_out_own(f);
        predict_job(f, &why);
    }
    end_look(f, &why);
}

static void on_list(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct forecast *f = arg;
    struct drarun_error why = {0};
    json_t *items = err ? NULL : json_object_get(answer->body, "items");
    f->listing = NULL;
    if (err)
        why = *err;
    else if (!items)
        error_set(&why, EPROTO, "the list of %s has no items", reads[f->at].kind->plural);
    if (reads[f->at].take(f, items, &why) < 0) {
        end_look(f, &why);
        return;
    }
    f->at++;
    read_on(f);
}

void forecast_start(struct forecast *forecast, unsigned step, void (*looked)(void *arg), void *arg)
{
    forecast->coming.step = step;
    forecast->at = 0;
    forecast->looked = looked;
    forecast->arg = arg;
    read_on(forecast);
}

static void on_looked(void *arg)
{
    *(bool *)arg = true;
}

void forecast_look(struct forecast *forecast, unsigned step)
{
    bool done = false;
    forecast_start(forecast, step, on_looked, &done);
    if (cluster_await(forecast->cluster, &done, NULL) < 0)
        forecast_stop(forecast);
}

bool forecast_is_looking(const struct forecast *forecast)
{
    return forecast->listing;
}

/* ---- what was found ---- */

static bool has_looked(const struct forecast *f, unsigned step)
{
    return f->looked_ms && f->last.step == step;
}

int64_t forecast_due(const struct forecast *forecast, unsigned step)
{
    if (forecast->refused || forecast_is_looking(forecast))
        return INT64_MAX;
    return has_looked(forecast, step) ? forecast->looked_ms + forecast->pause_ms : 0;
}

enum gang_forecast forecast_outlook(const struct forecast *forecast, unsigned step)
{
    if (has_looked(forecast, step))
        return forecast->last.outlook;
    return forecast_is_looking(forecast) ? GANG_FORECAST_AWAITED : GANG_FORECAST_UNKNOWN;
}

unsigned forecast_next_step(const struct forecast *forecast, unsigned step)
{
    return forecast->last.step == step ? forecast->last.next_step : 0;
}

const char *forecast_missing_class(const struct forecast *forecast)
{
    return claims_missing_class(forecast->spec, forecast->last.classes);
}

const struct prediction *forecast_prediction(const struct forecast *forecast, unsigned step)
{
    const struct findings *last = &forecast->last;
    return last->predicted && last->step == step ? &last->prediction : NULL;
}
