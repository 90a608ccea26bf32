/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/predict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/predict_private.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* Why nodes were passed over, so that a sentence can say it for thousands of them. */
struct tally {
    size_t nodes;
    size_t too_few[PREDICT_REQUESTS_MAX]; /* by request */
    size_t taken[PREDICT_REQUESTS_MAX];
    size_t no_match, too_hard;
};

static const char *node_at(const struct slices *slices, size_t device)
{
    return slices->devices[device].node;
}

/* The end of the run of devices of one node. */
static size_t node_end(const struct slices *slices, size_t first)
{
    size_t end = first + 1;
    while (end < slices->device_count && strcmp(node_at(slices, end), node_at(slices, first)) == 0)
        end++;
    return end;
}

static void note(struct tally *tally, enum predict_fit fit, size_t request)
{
    tally->nodes++;
    tally->too_few[request] += fit == PREDICT_TOO_FEW;
    tally->taken[request] += fit == PREDICT_TAKEN;
    tally->no_match += fit == PREDICT_NO_MATCH;
    tally->too_hard += fit == PREDICT_TOO_HARD;
}

static char *describe(const struct tally *tally, const struct predict_claim *claim, uint32_t worker,
                      uint32_t count)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, "worker %u of %u has no node", worker, count);
    if (tally->nodes == 0)
        buf_add_str(&text, ": no node has devices");
    const char *separator = ": ";
    for (size_t r = 0; r < claim->request_count; r++) {
        const char *name = claim->requests[r].name;
        if (tally->too_few[r])
            buf_printf(&text, "%stoo few devices for request %s on %zu nodes", separator, name,
                       tally->too_few[r]);
        separator = tally->too_few[r] ? ", " : separator;
        if (tally->taken[r])
            buf_printf(&text, "%sthose for request %s are taken by earlier workers on %zu nodes",
                       separator, name, tally->taken[r]);
        separator = tally->taken[r] ? ", " : separator;
    }
    if (tally->no_match)
        buf_printf(&text, "%sno free devices share %s as the constraints want on %zu nodes",
                   separator, claim->constraint_count ? claim->attributes[0] : "a value",
                   tally->no_match);
    separator = tally->no_match ? ", " : separator;
    if (tally->too_hard)
        buf_printf(&text, "%sgave up on %zu nodes with too many combinations", separator,
                   tally->too_hard);
    return buf_take(&text);
}

static json_t *results_json(const struct predict_claim *claim, const struct slices *slices,
                            const struct predict_found *found)
{
    json_t *results = json_array();
    for (size_t i = 0; i < found->count; i++) {
        const struct predict_request *request = &claim->requests[found->results[i].request];
        const char *sub = request->choices[found->results[i].choice].subrequest;
        const struct slice_device *device = &slices->devices[found->results[i].device];
        json_array_append_new(
            results, json_pack("{s:o, s:s, s:s, s:s}", "request",
                               json_sprintf(sub ? "%s/%s" : "%s", request->name, sub), "driver",
                               device->driver, "pool", device->pool, "device", device->name));
    }
    return results;
}

/* Node after node, each until it is full: what does not fit now never will, since devices are only
 * given away. */
static int place(const struct predict_claim *claim, const struct slices *slices,
                 struct prediction *p, struct drarun_error *err)
{
    cleanup_free uint8_t *taken = calloc(slices->device_count + 1, 1);
    struct tally tally = {0};
    if (!taken)
        return error_set(err, ENOMEM, "out of memory");
    size_t first = 0;
    while (first < slices->device_count && !node_at(slices, first))
        first++; /* devices of no one node: see slices.h for their order */
    while (p->placed < p->count && first < slices->device_count) {
        size_t end = node_end(slices, first), request = 0;
        struct predict_found found;
        enum predict_fit fit =
            predict_search(claim, slices, first, end - first, taken, &found, &request);
        if (fit != PREDICT_FITS) {
            note(&tally, fit, request);
            first = end;
            continue;
        }
        for (size_t i = 0; i < found.count; i++)
            taken[found.results[i].device] = 1;
        p->workers[p->placed++] =
            (struct predict_worker){node_at(slices, first), results_json(claim, slices, &found)};
    }
    if (p->placed < p->count)
        p->shortage = describe(&tally, claim, p->placed, p->count);
    return 0;
}

static void count_of_nodes(struct predict_claim *claim, const struct slices *slices)
{
    for (size_t k = 0; k < claim->kind_count; k++) {
        struct predict_kind *kind = &claim->kinds[k];
        const char *node = NULL;
        size_t count = 0;
        for (size_t d = 0; d < slices->device_count; d++) {
            const char *other = node_at(slices, d);
            count = node && other && strcmp(node, other) == 0 ? count : 0;
            node = other;
            count += node && kind->admits[d];
            kind->need.most_of_node =
                count > kind->need.most_of_node ? count : kind->need.most_of_node;
        }
    }
}

static int take_needs(struct predict_claim *claim, struct prediction *p, struct drarun_error *err)
{
    p->needs = calloc(claim->kind_count + 1, sizeof *p->needs);
    if (!p->needs)
        return error_set(err, ENOMEM, "out of memory");
    for (size_t k = 0; k < claim->kind_count; k++)
        p->needs[p->need_count++] = claim->kinds[k].need;
    return 0;
}

static void need_done(struct predict_need *need)
{
    for (size_t t = 0; t < need->term_count; t++) {
        free(need->terms[t].where);
        free(need->terms[t].text);
    }
    free(need->terms);
    free(need->requests);
}

int predict(const json_t *claim, uint32_t workers, const struct slices *slices,
            const json_t *classes, struct prediction *ret_prediction, struct drarun_error *err)
{
    cleanup_free struct predict_claim *read = calloc(1, sizeof *read);
    struct prediction p = {.count = workers};
    p.workers = calloc(workers + 1u, sizeof *p.workers);
    if (!read || !p.workers) {
        free(p.workers);
        return error_set(err, ENOMEM, "out of memory");
    }
    int rc = predict_claim_read(claim, read, err);
    if (rc == 0)
        rc = predict_admit(read, slices, classes, err);
    if (rc == 0)
        count_of_nodes(read, slices);
    if (rc == 0)
        rc = take_needs(read, &p, err);
    else
        for (size_t k = 0; k < read->kind_count; k++)
            need_done(&read->kinds[k].need);
    if (rc == 0)
        rc = place(read, slices, &p, err);
    predict_claim_done(read);
    if (rc < 0)
        prediction_done(&p);
    else
        *ret_prediction = p;
    return rc;
}

void prediction_done(struct prediction *prediction)
{
    for (uint32_t i = 0; prediction->workers && i < prediction->count; i++)
        json_decref(prediction->workers[i].results);
    for (size_t k = 0; k < prediction->need_count; k++)
        need_done(&prediction->needs[k]);
    free(prediction->workers);
    free(prediction->needs);
    free(prediction->shortage);
    *prediction = (struct prediction){0};
}
