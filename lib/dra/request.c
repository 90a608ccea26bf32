/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/dra/predict_private.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

static int refuse(struct drarun_error *err, const char *name, const char *what)
{
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "request %s: %s", name, what);
}

static bool same(const json_t *a, const json_t *b)
{
    return a == b || (a && b && json_equal(a, b));
}

static size_t kind_for(struct predict_claim *claim, const json_t *request)
{
    const char *class = value_text_or(request, "deviceClassName", "");
    const json_t *selectors = json_object_get(request, "selectors");
    const json_t *tolerations = json_object_get(request, "tolerations");
    for (size_t i = 0; i < claim->kind_count; i++)
        if (strcmp(claim->kinds[i].class, class) == 0 &&
            same(claim->kinds[i].selectors, selectors) &&
            same(claim->kinds[i].tolerations, tolerations))
            return i;
    claim->kinds[claim->kind_count] =
        (struct predict_kind){.class = class, .selectors = selectors, .tolerations = tolerations};
    return claim->kind_count++;
}

static int read_choice(struct predict_claim *claim, struct predict_request *request,
                       const json_t *from, bool alternative, struct drarun_error *err)
{
    const char *mode = value_text_or(from, "allocationMode", "");
    const json_t *count = json_object_get(from, "count");
    struct predict_choice *choice = &request->choices[request->choice_count];
    *choice = (struct predict_choice){.count = 1};
    if (!value_text_or(from, "deviceClassName", "")[0])
        return refuse(err, request->name, "no deviceClassName");
    choice->admin = !alternative && json_is_true(json_object_get(from, "adminAccess"));
    choice->capacity = json_object_get(json_object_get(from, "capacity"), "requests");
    if (alternative)
        choice->subrequest = value_text_or(from, "name", "");
    choice->all = strcmp(mode, "All") == 0;
    if (mode[0] && !choice->all && strcmp(mode, "ExactCount") != 0)
        return refuse(err, request->name, "an allocationMode that is not known");
    if (count && json_integer_value(count) > 0)
        choice->count = json_integer_value(count) < PREDICT_RESULTS_MAX + 1
                            ? (uint32_t)json_integer_value(count)
                            : PREDICT_RESULTS_MAX + 1;
    choice->kind = kind_for(claim, from);
    request->choice_count++;
    return 0;
}

static int read_request(struct predict_claim *claim, const json_t *from, struct drarun_error *err)
{
    struct predict_request *request = &claim->requests[claim->request_count];
    const json_t *exactly = json_object_get(from, "exactly");
    const json_t *list = json_object_get(from, "firstAvailable");
    request->name = value_text_or(from, "name", "");
    if (!exactly == !list)
        return refuse(err, request->name,
                      "expected exactly or firstAvailable, as in "
                      "resource.k8s.io/v1");
    if (json_array_size(list) > PREDICT_ALTERNATIVES_MAX)
        return refuse(err, request->name, "more than 8 alternatives");
    int rc = exactly ? read_choice(claim, request, exactly, false, err) : 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
        rc = read_choice(claim, request, json_array_get(list, i), true, err);
    claim->request_count++;
    return rc;
}

/* "gpu" means every alternative of gpu, "gpu/big" that one. */
static bool names_choice(const json_t *names, const struct predict_request *request,
                         const struct predict_choice *choice)
{
    size_t length = strlen(request->name);
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *text = json_string_value(json_array_get(names, i));
        if (!text || strncmp(text, request->name, length) != 0)
            continue;
        if (!text[length] || (choice->subrequest && text[length] == '/' &&
                              strcmp(text + length + 1, choice->subrequest) == 0))
            return true;
    }
    return json_array_size(names) == 0;
}

static int read_constraint(struct predict_claim *claim, const json_t *from,
                           struct drarun_error *err)
{
    const json_t *names = json_object_get(from, "requests");
    const char *match = value_text_or(from, "matchAttribute", "");
    const char *distinct = value_text_or(from, "distinctAttribute", "");
    uint32_t bit = 1u << claim->constraint_count;
    if (!match[0] && !distinct[0])
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "constraint %zu: only matchAttribute and distinctAttribute are modelled",
                          claim->constraint_count);
    claim->constraints[claim->constraint_count++] =
        (struct predict_constraint){match[0] ? match : distinct, !match[0]};
    for (size_t r = 0; r < claim->request_count; r++)
        for (size_t c = 0; c < claim->requests[r].choice_count; c++) {
            struct predict_choice *choice = &claim->requests[r].choices[c];
            if (names_choice(names, &claim->requests[r], choice))
                choice->constraints |= bit;
        }
    return 0;
}

int predict_claim_read(const json_t *claim, struct predict_claim *ret_claim,
                       struct drarun_error *err)
{
    const json_t *devices = json_object_get(claim, "devices");
    json_t *requests = json_object_get(devices, "requests"), *item;
    json_t *constraints = json_object_get(devices, "constraints");
    size_t i;
    int rc = 0;
    if (json_array_size(requests) == 0 || json_array_size(requests) > PREDICT_REQUESTS_MAX ||
        json_array_size(constraints) > PREDICT_CONSTRAINTS_MAX)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "claim: expected 1 to 32 requests and at most 32 constraints");
    json_array_foreach(requests, i, item) if (rc == 0) rc = read_request(ret_claim, item, err);
    json_array_foreach(constraints, i, item) if (rc == 0) rc =
        read_constraint(ret_claim, item, err);
    return rc;
}

void predict_claim_done(struct predict_claim *claim)
{
    for (size_t k = 0; k < claim->kind_count; k++) {
        free(claim->kinds[k].admits);
        predict_filters_free(claim->kinds[k].filters);
    }
}
