/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that look the same to a claim. A search without a solution takes long, since it tries the
 * devices in every order, and a cluster has hundreds of machines of one type: its result counts for
 * all of them. Only where devices are given whole: without shares, counters and broken pools. */
#include <stdlib.h>
#include <string.h>

#include "lib/dra/predict_private.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"

static bool asks_for_shares(const struct predict_claim *claim)
{
    for (size_t r = 0; r < claim->request_count; r++)
        for (size_t c = 0; c < claim->requests[r].choice_count; c++)
            if (claim->requests[r].choices[c].capacity)
                return true;
    return false;
}

static const struct predict_device *device_of(const struct predict_view *view, size_t candidate)
{
    return &view->inventory->devices[view->candidates[candidate].device];
}

static bool has_shape(const struct predict_claim *claim, const struct predict_view *view)
{
    for (size_t p = 0; p < view->pool_count; p++)
        if (view->pools[p].broken)
            return false;
    for (size_t at = 0; at < view->count; at++) {
        const struct predict_device *device = device_of(view, at);
        if (device->multiple || device->policy || device->taken & PREDICT_TAKEN_CAPACITY ||
            view->candidates[at].use_count > 0)
            return false;
    }
    return !asks_for_shares(claim);
}

static void add_attribute(const struct predict_constraint *constraint,
                          const struct predict_device *device, struct buf *out)
{
    const json_t *attribute = predict_constraint_attribute(constraint, &device->slice);
    cleanup_free char *text =
        attribute ? json_dumps(attribute, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    out->failed = out->failed || (attribute && !text);
    buf_printf(out, "%s\n", text ? text : "");
}

static bool is_told(const struct predict_claim *claim, size_t constraint)
{
    for (size_t c = 0; c < constraint; c++)
        if (strcmp(claim->constraints[c].attribute, claim->constraints[constraint].attribute) == 0)
            return true;
    return false;
}

/* All that a search on the view depends on; empty: more than this can tell. */
static void write_shape(const struct predict_claim *claim, const struct predict_view *view,
                        struct buf *out)
{
    if (!has_shape(claim, view))
        return;
    for (size_t at = 0; at < view->count; at++) {
        const struct predict_device *device = device_of(view, at);
        char how = (char)((view->candidates[at].here ? 1 : 0) |
                          (device->taken & PREDICT_TAKEN_WHOLE ? 2 : 0));
        buf_add(out, &how, 1);
        for (size_t k = 0; k < claim->kind_count; k++)
            buf_add(out, &claim->kinds[k].admits[view->candidates[at].device], 1);
        for (size_t c = 0; c < claim->constraint_count; c++)
            if (!is_told(claim, c))
                add_attribute(&claim->constraints[c], device, out);
    }
    if (out->failed)
        buf_reset(out);
}

enum predict_fit predict_shapes_find(const struct predict_shapes *shapes,
                                     const struct predict_claim *claim,
                                     const struct predict_view *view, size_t *ret_request)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    if (shapes->count > 0)
        write_shape(claim, view, &text);
    for (size_t i = 0; text.len > 0 && i < shapes->count; i++) {
        const struct predict_shape *shape = &shapes->list[i];
        if (shape->length != text.len || memcmp(shape->text, text.data, text.len) != 0)
            continue;
        *ret_request = shape->request;
        return shape->fit;
    }
    return 0;
}

void predict_shapes_add(struct predict_shapes *shapes, const struct predict_claim *claim,
                        const struct predict_view *view, enum predict_fit fit, size_t request)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    if (shapes->count < PREDICT_SHAPES_MAX)
        write_shape(claim, view, &text);
    if (text.len == 0)
        return;
    size_t length = text.len;
    shapes->list[shapes->count++] = (struct predict_shape){buf_take(&text), length, fit, request};
}

void predict_shapes_done(struct predict_shapes *shapes)
{
    for (size_t i = 0; i < shapes->count; i++)
        free(shapes->list[i].text);
    *shapes = (struct predict_shapes){0};
}
