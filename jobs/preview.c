/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/preview.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/claims.h"
#include "jobs/cliques.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define COSTLY_PAIRS 8u

/* Pairs that take every NIC of a node need no constraint, which costs the scheduler seconds on a
 * node that has nearly enough of them (docs/design/010-claims.md). */
static const char *advise(const struct job_spec *spec, const struct prediction *prediction)
{
    uint32_t pairs = spec->gpus.count < spec->nics.count ? spec->gpus.count : spec->nics.count;
    if (claims_alignment(spec) != CLAIMS_ALIGNED_BY_CLAIM || pairs < COSTLY_PAIRS)
        return NULL;
    for (size_t i = 0; i < prediction->need_count; i++) {
        const struct predict_need *need = &prediction->needs[i];
        if (strncmp(need->requests, "nic", 3) == 0 && need->most_of_node > spec->nics.count)
            return NULL;
    }
    return "the NICs of a worker are all that a node has: \"nics: {count: all}\" with \"align: "
           "none\" "
           "gives the same devices, and spares the scheduler the seconds that it needs to rule out "
           "a node where one of them is taken";
}

static int predict_step(const struct preview_input *in, struct preview *p, struct drarun_error *err)
{
    json_decref(p->claim);
    p->claim = NULL;
    if (p->predicted)
        prediction_done(&p->prediction);
    p->predicted = false;
    int rc = claims_spec(in->spec, CLAIMS_API_V1, p->step, &p->claim, err);
    if (rc < 0 || !in->slices)
        return rc;
    const struct predict_cluster cluster = {.slices = in->slices,
                                            .classes = in->classes,
                                            .node_labels = in->node_labels,
                                            .claims = in->claims,
                                            .taint_rules = in->taint_rules};
    rc = predict(p->claim, in->spec->workers, &cluster, &p->prediction, err);
    p->predicted = rc == 0;
    if (p->predicted && p->step == 0)
        p->advice = advise(in->spec, &p->prediction);
    return rc;
}

static int climb(const struct preview_input *in, struct preview *p, struct drarun_error *err)
{
    p->steps = claims_attempts(in->spec);
    for (p->step = 0; p->step < p->steps; p->step++) {
        int rc = predict_step(in, p, err);
        if (rc < 0 || !p->predicted || !p->prediction.shortage || p->step + 1 == p->steps)
            return rc;
    }
    return 0;
}

/* As the scheduler would leave it. */
static json_t *allocated(const struct preview *p, const char *name, const struct predict_worker *w)
{
    return json_pack("{s:s, s:s, s:{s:s}, s:O, s:{s:{s:{s:O}}}}", "apiVersion",
                     claims_api_version(CLAIMS_API_V1), "kind", "ResourceClaim", "metadata", "name",
                     name, "spec", p->claim, "status", "allocation", "devices", "results",
                     w->results);
}

/* The channel that NVIDIA's driver adds to each worker of a ComputeDomain; NULL where the node's
 * slices show none. */
static json_t *channel_claim(const struct preview_input *in, const char *name, const char *node)
{
    size_t count = 0;
    const struct slice_device *list = slices_of_node(in->slices, node, &count);
    for (size_t i = 0; i < count; i++) {
        struct device device;
        if (device_read(&list[i], &device, NULL) < 0 || device.kind != DEVICE_CHANNEL)
            continue;
        return json_pack("{s:s, s:s, s:{s:o}, s:{s:{s:{s:[{s:s, s:s, s:s, s:s}]}}}}", "apiVersion",
                         claims_api_version(CLAIMS_API_V1), "kind", "ResourceClaim", "metadata",
                         "name", json_sprintf("%s-channel", name), "status", "allocation",
                         "devices", "results", "request", "channel", "driver", list[i].driver,
                         "pool", list[i].pool, "device", list[i].name);
    }
    return NULL;
}

static int make_workers(const struct preview_input *in, struct preview *p, struct drarun_error *err)
{
    uint32_t count = in->spec->workers;
    p->claims = json_array();
    p->workers = calloc(count + 1u, sizeof *p->workers);
    for (uint32_t i = 0; p->workers && i < count; i++)
        strlist_addf(&p->pods, "%s-w-%u", in->spec->name, i);
    if (!p->workers || !p->claims || p->pods.failed)
        return error_set(err, ENOMEM, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        const struct predict_worker *w = &p->prediction.workers[i];
        json_t *list = json_array();
        json_array_append_new(list, allocated(p, p->pods.items[i], w));
        json_t *channel =
            in->spec->compute_domain ? channel_claim(in, p->pods.items[i], w->node) : NULL;
        if (channel)
            json_array_append_new(list, channel);
        json_array_append_new(p->claims, list);
        p->workers[i] =
            (struct plan_worker_input){.pod = p->pods.items[i], .node = w->node, .claims = list};
    }
    return 0;
}

/* In a compute domain, as the launcher does. */
static int order_ranks(const struct preview_input *in, struct preview *p, struct drarun_error *err)
{
    uint32_t count = in->spec->workers;
    cleanup_free const char **cliques = calloc(count + 1u, sizeof *cliques);
    if (!cliques)
        return error_set(err, ENOMEM, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        const json_t *labels = json_object_get(in->node_labels, p->workers[i].node);
        cliques[i] = json_string_value(json_object_get(labels, CLIQUES_LABEL));
    }
    return in->spec->compute_domain ? cliques_order(cliques, count, &p->rank_order, err) : 0;
}

static int make_plan(const struct preview_input *in, struct preview *p, struct drarun_error *err)
{
    const struct job_spec *spec = in->spec;
    int rc = make_workers(in, p, err);
    if (rc < 0)
        return rc;
    struct plan_input input = plan_input_of(spec);
    if (in->nccl_version)
        input.nccl_version = in->nccl_version;
    input.slices = in->slices;
    input.node_labels = in->node_labels;
    input.profiles = in->profiles;
    input.workers = p->workers;
    input.worker_count = spec->workers;
    rc = order_ranks(in, p, err);
    if (rc < 0)
        return rc;
    input.rank_order = p->rank_order;
    rc = plan_build(&input, &p->plan, err);
    p->planned = rc == 0;
    return rc;
}

int preview_build(const struct preview_input *input, struct preview *ret_preview,
                  struct drarun_error *err)
{
    struct preview p = {0};
    int rc = claims_wanted(input->spec) ? climb(input, &p, err) : 0;
    if (rc == 0 && p.predicted && !p.prediction.shortage)
        rc = make_plan(input, &p, err);
    if (rc < 0)
        preview_done(&p);
    else
        *ret_preview = p;
    return rc;
}

void preview_done(struct preview *preview)
{
    if (preview->planned)
        plan_done(&preview->plan);
    if (preview->predicted)
        prediction_done(&preview->prediction);
    json_decref(preview->claim);
    json_decref(preview->claims);
    free(preview->workers);
    free(preview->rank_order);
    strlist_done(&preview->pods);
    *preview = (struct preview){0};
}
