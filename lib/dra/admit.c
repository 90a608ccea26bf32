/* SPDX-License-Identifier: Apache-2.0 */
/* Selectors over devices: the class's first, then the request's, each term of each counted. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/dra/device_class.h"
#include "lib/dra/known_class.h"
#include "lib/dra/predict_private.h"
#include "lib/dra/taint.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "lib/cel/cel.h"
#include "lib/doc/value.h"

struct filter {
    struct cel_program *program;
    size_t first; /* of its terms among the kind's */
};

struct predict_filters {
    struct filter list[64];
    size_t count;
};

void predict_filters_free(struct predict_filters *filters)
{
    for (size_t i = 0; filters && i < filters->count; i++)
        cel_program_free(filters->list[i].program);
    free(filters);
}

static int add_filter(struct predict_need *need, struct predict_filters *filters, const char *where,
                      const char *expression, bool of_class, struct drarun_error *err)
{
    if (filters->count == ARRAY_LEN(filters->list))
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: more than 64 selectors", where);
    struct cel_program *program = cel_compile(expression, err);
    if (!program)
        return error_prefix(err, "%s: selector", where);
    filters->list[filters->count++] = (struct filter){program, need->term_count};
    /* a class is there already */
    if (!of_class && cel_program_admit(program, err) < 0)
        return error_prefix(err, "%s: selector", where);
    size_t terms = cel_term_count(program);
    struct predict_term *grown =
        realloc(need->terms, (need->term_count + terms) * sizeof *need->terms);
    if (!grown)
        return error_set(err, ENOMEM, "out of memory");
    need->terms = grown;
    for (size_t t = 0; t < terms; t++) {
        struct predict_term *term = &need->terms[need->term_count++];
        *term = (struct predict_term){strdup(where), strdup(cel_term_text(program, t)), 0};
        if (!term->where || !term->text)
            return error_set(err, ENOMEM, "out of memory");
    }
    return 0;
}

static int add_selectors(struct predict_need *need, struct predict_filters *filters,
                         const char *where, const json_t *selectors, bool of_class,
                         struct drarun_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(selectors); i++) {
        const json_t *cel = json_object_get(json_array_get(selectors, i), "cel");
        const char *expression = json_string_value(json_object_get(cel, "expression"));
        rc = expression ? add_filter(need, filters, where, expression, of_class, err)
                        : error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                                     "%s: selector %zu has no cel.expression", where, i);
    }
    return rc;
}

static int no_class(const char *name, const json_t *classes, struct drarun_error *err)
{
    CLEANUP(buf_done) struct buf names = BUF_INIT;
    for (size_t i = 0; i < json_array_size(classes); i++)
        buf_printf(&names, "%s%s", i ? ", " : "", device_class_name(json_array_get(classes, i)));
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                      "the cluster has no DeviceClass %s: install the driver that brings it, or "
                      "name one that is there: %s",
                      name, names.len ? names.data : "there is none");
}

static int add_class(const char *name, struct predict_need *need, struct predict_filters *filters,
                     const json_t *classes, struct predict_inventory *inventory,
                     struct drarun_error *err)
{
    char where[128];
    snprintf(where, sizeof where, "class %.100s", name);
    const json_t *class = device_class_find(classes, name);
    if (class)
        return add_selectors(need, filters, where,
                             json_object_get(json_object_get(class, "spec"), "selectors"), true,
                             err);
    if (inventory->classes_known)
        return no_class(name, classes, err);
    const struct known_class *known = known_class(name);
    if (known && known->assumed)
        predict_note(inventory,
                     "which devices DeviceClass %s selects, as it is published nowhere: taken for "
                     "all of driver %s; give it, as kubectl get deviceclasses -o yaml prints it",
                     name, known->driver);
    if (known && known->expression)
        return add_filter(need, filters, where, known->expression, true, err);
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                      "no DeviceClass %s is known here: give the cluster's classes, as kubectl get "
                      "deviceclasses -o yaml prints them",
                      name);
}

/* The requests of a kind, for people; malloc'ed. */
static char *names_of(const struct predict_claim *claim, size_t kind)
{
    struct buf text = BUF_INIT;
    const char *last = "";
    for (size_t r = 0; r < claim->request_count; r++)
        for (size_t c = 0; c < claim->requests[r].choice_count; c++) {
            const struct predict_request *request = &claim->requests[r];
            const struct predict_choice *choice = &request->choices[c];
            const char *name = request->words ? request->words : request->name;
            if (choice->kind != kind || (request->words && strcmp(name, last) == 0))
                continue;
            last = name;
            buf_printf(&text, "%s%s%s%s", text.len ? ", " : "", name, choice->subrequest ? "/" : "",
                       choice->subrequest ? choice->subrequest : "");
        }
    return buf_take(&text);
}

/* A term that fails makes the whole fail unless a later one is false, as && has it. */
static int admit(struct predict_need *need, const struct filter *filter,
                 const struct cel_device *device, bool counts, bool *ret_match,
                 struct drarun_error *err)
{
    struct drarun_error first = {0};
    bool match = true;
    for (size_t t = 0; t < cel_term_count(filter->program); t++) {
        struct drarun_error failure = {0};
        if (cel_eval_term(filter->program, t, device, &match, &failure) < 0) {
            first = first.code ? first : failure;
            match = true;
        } else if (!match) {
            need->terms[filter->first + t].ruled_out += counts;
            *ret_match = false;
            return 0;
        }
    }
    *ret_match = true;
    if (first.code && err)
        *err = first;
    return -first.code;
}

static int admit_device(struct predict_kind *kind, const struct slice_device *slice,
                        const struct cel_device *device, bool counts, bool *ret_match,
                        struct drarun_error *err)
{
    const struct predict_filters *filters = kind->filters;
    *ret_match = true;
    for (size_t f = 0; f < filters->count && *ret_match; f++) {
        const char *where = kind->need.terms[filters->list[f].first].where;
        int rc = admit(&kind->need, &filters->list[f], device, counts, ret_match, err);
        if (rc < 0 && !err)
            return rc;
        if (rc < 0)
            return error_prefix(err,
                                "%s: device %s of pool %s: the scheduler gives up on such a "
                                "claim",
                                where, slice->name, slice->pool);
    }
    return 0;
}

static const char *repelled(const struct predict_device *device, const json_t *tolerations)
{
    const char *key = taint_repelling(device->slice.taints, tolerations);
    return key ? key : taint_repelling(device->rules, tolerations);
}

static struct cel_device *device_new(const struct predict_device *from, struct drarun_error *err)
{
    const struct slice_device *slice = &from->slice;
    json_t *device = json_object();
    if (from->multiple)
        json_object_set_new(device, "allowMultipleAllocations", json_true());
    if (slice->attributes)
        json_object_set(device, "attributes", unconst(slice->attributes));
    if (slice->capacity)
        json_object_set(device, "capacity", unconst(slice->capacity));
    struct cel_device *made = cel_device_new(slice->driver, device, err);
    json_decref(device);
    return made;
}

static int make_filters(struct predict_claim *claim, size_t k, struct predict_inventory *inventory,
                        const json_t *classes, struct drarun_error *err)
{
    struct predict_kind *kind = &claim->kinds[k];
    char where[128];
    kind->need.requests = names_of(claim, k);
    kind->admits = calloc(inventory->device_count + 1, 1);
    kind->filters = calloc(1, sizeof *kind->filters);
    if (!kind->admits || !kind->need.requests || !kind->filters)
        return error_set(err, ENOMEM, "out of memory");
    int rc = add_class(kind->class, &kind->need, kind->filters, classes, inventory, err);
    snprintf(where, sizeof where, "request %.100s", kind->need.requests);
    return rc == 0 ? add_selectors(&kind->need, kind->filters, where, kind->selectors, false, err)
                   : rc;
}

/* Outdated devices count as well where a node still sees them, but not in what people are told. */
static void judge(struct predict_kind *kind, size_t at, const struct predict_device *from,
                  const struct cel_device *device)
{
    bool match = false;
    int rc = admit_device(kind, &from->slice, device, from->current, &match, NULL);
    const char *taint = repelled(from, kind->tolerations);
    kind->failing += rc < 0;
    kind->admits[at] = (uint8_t)((rc < 0  ? PREDICT_FAILS
                                  : match ? PREDICT_ADMITTED
                                          : 0) |
                                 (taint ? PREDICT_TAINTED : 0));
    if (!from->current)
        return;
    kind->need.devices++;
    kind->need.admitted += rc == 0 && match && !taint;
    kind->need.tainted += rc == 0 && match && taint;
    if (rc == 0 && match && taint)
        kind->need.taint = taint;
}

int predict_admit(struct predict_claim *claim, struct predict_inventory *inventory,
                  const json_t *classes, struct drarun_error *err)
{
    int rc = 0;
    for (size_t k = 0; rc == 0 && k < claim->kind_count; k++)
        rc = make_filters(claim, k, inventory, classes, err);
    for (size_t d = 0; rc == 0 && d < inventory->device_count; d++) {
        struct cel_device *device = device_new(&inventory->devices[d], err);
        rc = device ? 0 : error_prefix(err, "device %s", inventory->devices[d].slice.name);
        for (size_t k = 0; rc == 0 && k < claim->kind_count; k++)
            judge(&claim->kinds[k], d, &inventory->devices[d], device);
        cel_device_free(device);
    }
    return rc;
}

int predict_admit_failure(struct predict_kind *kind, const struct predict_device *device,
                          struct drarun_error *err)
{
    bool match = false;
    CLEANUP(cel_device_freep) struct cel_device *made = device_new(device, err);
    return made ? admit_device(kind, &device->slice, made, false, &match, err) : -err->code;
}
