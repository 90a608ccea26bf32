/* SPDX-License-Identifier: Apache-2.0 */
/* matchAttribute and distinctAttribute, after structured/internal/experimental/constraint.go. A
 * list attribute (gate DRAListTypeAttributes) is the set of its elements, any other the set of its
 * value: devices match while their sets have elements in common, and are distinct while they have
 * none. Slices hold lists only where the gate is on, so no option says whether it is. */
#include <string.h>

#include "lib/dra/predict_private.h"

static bool is_domain(const char *name, const char *slash, const char *driver)
{
    size_t length = (size_t)(slash - name);
    return strlen(driver) == length && memcmp(name, driver, length) == 0;
}

/* By its full name, or by its own when the domain is the driver's. */
static const json_t *lookup(const struct slice_device *device, const char *name)
{
    const json_t *value = json_object_get(device->attributes, name);
    const char *slash = strchr(name, '/');
    if (!value && slash && is_domain(name, slash, device->driver))
        value = json_object_get(device->attributes, slash + 1);
    return value;
}

/* The type as an index, lists and single values alike, and the value; -1: none that is known. */
static int typed(const json_t *attribute, const json_t **ret_value)
{
    static const char *const lists[] = {"ints", "bools", "strings", "versions"};
    static const char *const singles[] = {"int", "bool", "string", "version"};
    for (int t = 0; t < 4; t++) {
        *ret_value = json_object_get(attribute, lists[t]);
        if (json_array_size(*ret_value) > 0)
            return t;
    }
    for (int t = 0; t < 4; t++) {
        *ret_value = json_object_get(attribute, singles[t]);
        if (*ret_value && !json_is_null(*ret_value))
            return t;
    }
    return -1;
}

static size_t size_of(const json_t *value)
{
    return json_is_array(value) ? json_array_size(value) : 1;
}

static const json_t *element(const json_t *value, size_t i)
{
    return json_is_array(value) ? json_array_get(value, i) : value;
}

/* A bit for each element of a that b has, too; the API allows 48 values in a list. */
static uint64_t in_common(const json_t *a, const json_t *b)
{
    const json_t *left, *right;
    int type = typed(a, &left);
    uint64_t bits = 0;
    if (type < 0 || typed(b, &right) != type)
        return 0;
    for (size_t i = 0; i < size_of(left) && i < 64; i++)
        for (size_t j = 0; j < size_of(right); j++)
            if (json_equal(element(left, i), element(right, j)))
                bits |= UINT64_C(1) << i;
    return bits;
}

static bool can_match(const struct predict_rules *rules, struct predict_constraint_state *state,
                      const json_t *attribute)
{
    size_t n = state->devices;
    uint64_t common = UINT64_MAX;
    if (n > 0)
        common = state->common[rules->losses_stay ? 0 : n - 1] &
                 in_common(state->attributes[0], attribute);
    if (common)
        state->common[rules->losses_stay ? 0 : n] = common;
    return common;
}

static bool is_distinct(const struct predict_rules *rules,
                        const struct predict_constraint_state *state, const json_t *attribute)
{
    const json_t *const *others =
        rules->distinct_from_latest ? state->of_request : state->attributes;
    size_t count = rules->distinct_from_latest ? PREDICT_REQUESTS_MAX : state->devices;
    for (size_t i = 0; i < count; i++)
        if (others[i] && in_common(attribute, others[i]))
            return false;
    return true;
}

const json_t *predict_constraint_attribute(const struct predict_constraint *constraint,
                                           const struct slice_device *device)
{
    return lookup(device, constraint->attribute);
}

bool predict_constraint_add(const struct predict_rules *rules,
                            const struct predict_constraint *constraint,
                            struct predict_constraint_state *state, size_t request,
                            const struct slice_device *device)
{
    const json_t *attribute = lookup(device, constraint->attribute), *value;
    /* the first of distinct devices is taken whatever its attribute is */
    bool any = constraint->distinct && state->devices == 0;
    if (!attribute || (!any && typed(attribute, &value) < 0))
        return false;
    if (constraint->distinct ? !is_distinct(rules, state, attribute)
                             : !can_match(rules, state, attribute))
        return false;
    state->of_request[request] = attribute;
    state->attributes[state->devices++] = attribute;
    return true;
}

void predict_constraint_remove(const struct predict_constraint *constraint,
                               struct predict_constraint_state *state, size_t request)
{
    state->devices--;
    if (constraint->distinct)
        state->of_request[request] = NULL;
}
