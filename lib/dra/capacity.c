/* SPDX-License-Identifier: Apache-2.0 */
/* What a request consumes of a device's capacity, after
 * structured/internal/experimental/consumable_capacity.go: what it asks for, rounded up as the
 * capacity's requestPolicy says; else the policy's default; else all. Steps are counted in
 * thousandths where the policy's numbers can be (gate DRAFractionalCapacityRange), else in whole
 * numbers; by whole_capacity always in those. */
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/dra/predict_private.h"
#include "lib/dra/quantity_read.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

/* A quantity together with how to write it. */
struct amount {
    struct cel_quantity value;
    char text[64];
};

static int amount_of(const json_t *from, struct amount *ret, struct drarun_error *err)
{
    char number[QUANTITY_NUMBER];
    const char *text = quantity_text(from, number);
    snprintf(ret->text, sizeof ret->text, "%.60s", text ? text : "");
    return quantity_read(from, "a device's capacity", &ret->value, err);
}

enum format { DECIMAL, BINARY, EXPONENT };

/* Of a quantity as it was written: "1Ki", "5e3", or another. */
static enum format format_of(const char *text)
{
    const char *last = text + strlen(text), *e = strpbrk(text, "eE");
    if (last > text && last[-1] == 'i')
        return BINARY;
    return e && e[1] ? EXPONENT : DECIMAL;
}

static void write_binary(int64_t number, struct amount *ret)
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    size_t unit = 0;
    for (; number != 0 && number % 1024 == 0 && unit + 1 < ARRAY_LEN(units); number /= 1024)
        unit++;
    snprintf(ret->text, sizeof ret->text, "%lld%s", (long long)number, units[unit]);
}

static void write_decimal(int64_t number, bool milli, bool exponent, struct amount *ret)
{
    static const char *const units[] = {"m", "", "k", "M", "G", "T", "P", "E"};
    size_t unit = milli ? 0 : 1;
    for (; number != 0 && number % 1000 == 0 && unit + 1 < ARRAY_LEN(units); number /= 1000)
        unit++;
    if (number == 0 || unit == 1)
        snprintf(ret->text, sizeof ret->text, "%lld", (long long)number);
    else if (exponent)
        snprintf(ret->text, sizeof ret->text, "%llde%d", (long long)number, 3 * (int)unit - 3);
    else
        snprintf(ret->text, sizeof ret->text, "%lld%s", (long long)number, units[unit]);
}

/* As Quantity.String() has it: BinarySI for whole numbers from 1024 alone. */
static int amount_of_number(int64_t number, bool milli, enum format format, struct amount *ret)
{
    if (milli && number % 1000 == 0) {
        number /= 1000;
        milli = false;
    }
    if (format == BINARY && !milli && (number >= 1024 || number <= -1024))
        write_binary(number, ret);
    else
        write_decimal(number, milli, format == EXPONENT, ret);
    return cel_quantity_parse(ret->text, strlen(ret->text), &ret->value);
}

/* The quantity in units of 10^scale, rounded up: Quantity.ScaledValue(). */
static int in_units(const struct cel_quantity *quantity, int scale, int64_t *ret_number,
                    bool *ret_exact)
{
    __int128 digits = quantity->digits;
    int64_t left = quantity->scale - scale;
    bool rest = false;
    for (; left < 0 && digits != 0; left++) {
        rest = rest || digits % 10 != 0;
        digits /= 10;
    }
    for (; left > 0 && digits != 0; left--) {
        if (digits > INT64_MAX || digits < INT64_MIN)
            return -ERANGE;
        digits *= 10;
    }
    digits += rest && quantity->digits > 0;
    if (digits > INT64_MAX || digits < INT64_MIN)
        return -ERANGE;
    *ret_number = (int64_t)digits;
    *ret_exact = !rest;
    return 0;
}

/* A range of which the number is in the same unit as its numbers. */
struct steps {
    bool milli;
    enum format format;
    int64_t least, step, number;
};

static bool is_milli(const struct cel_quantity *quantity, int64_t *ret_number)
{
    bool exact = false;
    return in_units(quantity, -3, ret_number, &exact) == 0 && exact;
}

static bool is_whole(const struct cel_quantity *quantity, int64_t *ret_number)
{
    bool exact;
    return in_units(quantity, 0, ret_number, &exact) == 0;
}

/* useMilli. */
static int choose_unit(const struct predict_rules *rules, const json_t *range,
                       const struct cel_quantity *least, const struct cel_quantity *step,
                       struct steps *steps, struct drarun_error *err)
{
    const json_t *given = json_object_get(range, "max");
    struct amount most;
    int64_t number;
    if (given && amount_of(given, &most, err) < 0)
        return -EINVAL;
    steps->milli = !rules->whole_capacity && is_milli(least, &steps->least) &&
                   is_milli(step, &steps->step) && steps->step >= 1 &&
                   (!given || is_milli(&most.value, &number));
    if (!steps->milli &&
        (!is_whole(least, &steps->least) || !is_whole(step, &steps->step) || steps->step == 0))
        return error_kind(err, DRARUN_ERR_SPEC, ERANGE,
                          "a device's capacity: the range of its request policy is not one that is "
                          "modelled (64 bits, step above 0)");
    return 0;
}

/* By whole_capacity, numbers of more than 64 bits are cut to something else. */
static int cannot_count(const struct predict_rules *rules, const char *text,
                        struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_SPEC, ERANGE,
                      "a device's capacity: %s of it cannot be counted in the steps of its request "
                      "policy, in 64 bits%s",
                      text,
                      rules->whole_capacity ? ", which is not modelled"
                                            : ": the scheduler gives up on such a claim");
}

static int steps_of(const struct predict_rules *rules, const json_t *range,
                    const struct amount *amount, struct steps *ret, struct drarun_error *err)
{
    struct amount least = {0}, step = {0};
    int rc = amount_of(json_object_get(range, "min"), &least, err);
    rc = rc < 0 ? rc : amount_of(json_object_get(range, "step"), &step, err);
    rc = rc < 0 ? rc : choose_unit(rules, range, &least.value, &step.value, ret, err);
    if (rc < 0)
        return rc;
    ret->format = rules->whole_capacity ? BINARY : format_of(step.text);
    return (ret->milli ? is_milli : is_whole)(&amount->value, &ret->number)
               ? 0
               : cannot_count(rules, amount->text, err);
}

static int round_to_range(const struct predict_rules *rules, const json_t *range,
                          struct amount *amount, struct drarun_error *err)
{
    struct amount least;
    struct steps s = {0};
    int rc = amount_of(json_object_get(range, "min"), &least, err);
    if (rc < 0)
        return rc;
    if (cel_quantity_compare(&amount->value, &least.value) < 0) {
        *amount = least;
        return 0;
    }
    if (!json_object_get(range, "step"))
        return 0;
    rc = steps_of(rules, range, amount, &s, err);
    if (rc < 0)
        return rc;
    __int128 beyond = (__int128)s.number - s.least;
    __int128 sum = s.least + s.step * (beyond / s.step + (beyond % s.step != 0));
    return sum > INT64_MAX || sum < INT64_MIN ||
                   amount_of_number((int64_t)sum, s.milli, s.format, amount) < 0
               ? cannot_count(rules, amount->text, err)
               : 0;
}

static int round_to_values(const json_t *values, struct amount *amount, struct drarun_error *err)
{
    for (size_t i = 0; i < json_array_size(values); i++) {
        struct amount valid;
        int rc = amount_of(json_array_get(values, i), &valid, err);
        if (rc < 0)
            return rc;
        if (cel_quantity_compare(&amount->value, &valid.value) <= 0) {
            *amount = valid;
            return 0;
        }
    }
    return 0;
}

static int consumed(const struct predict_rules *rules, const json_t *capacity,
                    const json_t *requested, struct amount *ret, struct drarun_error *err)
{
    const json_t *policy = json_object_get(capacity, "requestPolicy");
    const json_t *otherwise = json_object_get(policy, "default");
    const json_t *range = json_object_get(policy, "validRange");
    const json_t *values = json_object_get(policy, "validValues");
    if (!requested)
        return amount_of(otherwise ? otherwise : json_object_get(capacity, "value"), ret, err);
    int rc = amount_of(requested, ret, err);
    if (rc == 0 && json_object_get(range, "min"))
        return round_to_range(rules, range, ret, err);
    return rc == 0 && values ? round_to_values(values, ret, err) : rc;
}

/* 1: it may be consumed; 0: the policy forbids it. */
static int permitted(const struct predict_rules *rules, const json_t *policy,
                     const struct amount *amount, struct drarun_error *err)
{
    const json_t *range = json_object_get(policy, "validRange");
    const json_t *values = json_object_get(policy, "validValues");
    struct amount limit;
    struct steps s = {0};
    if (json_is_object(range)) {
        const json_t *most = json_object_get(range, "max");
        if (most && amount_of(most, &limit, err) < 0)
            return -EINVAL;
        if (most && cel_quantity_compare(&amount->value, &limit.value) > 0)
            return 0;
        if (!json_object_get(range, "step"))
            return 1;
        int rc = steps_of(rules, range, amount, &s, err);
        return rc < 0 ? rc : ((__int128)s.number - s.least) % s.step == 0;
    }
    for (size_t i = 0; i < json_array_size(values); i++) {
        if (amount_of(json_array_get(values, i), &limit, err) < 0)
            return -EINVAL;
        if (cel_quantity_compare(&amount->value, &limit.value) == 0)
            return 1;
    }
    return json_array_size(values) == 0;
}

int predict_shares_add(struct predict_shares *shares, size_t device, const char *capacity,
                       const struct cel_quantity *quantity)
{
    struct predict_share *list =
        array_room(shares->list, shares->count, &shares->cap, sizeof *list);
    if (!list)
        return -ENOMEM;
    shares->list = list;
    shares->list[shares->count++] = (struct predict_share){device, capacity, *quantity};
    return 0;
}

static int add_shares(const struct predict_shares *shares, size_t device, const char *capacity,
                      struct cel_quantity *sum)
{
    for (size_t i = 0; i < shares->count; i++)
        if (shares->list[i].device == device && strcmp(shares->list[i].capacity, capacity) == 0 &&
            cel_quantity_add(sum, &shares->list[i].quantity, sum) < 0)
            return -ERANGE;
    return 0;
}

int predict_capacity_fits(const struct predict_rules *rules, const struct predict_device *device,
                          const json_t *requests, const struct predict_shares *taken,
                          size_t taken_device, const struct predict_shares *taking,
                          size_t taking_device, struct drarun_error *err)
{
    const char *name;
    json_t *capacity;
    /* a driver may have ended the sharing of a device that is shared already */
    bool whole = !device->multiple && !(device->taken & PREDICT_TAKEN_CAPACITY);
    if (whole && !device->policy && json_object_size(requests) == 0)
        return 1; /* all of it, and there is all of it */
    value_foreach(requests, name, capacity)
    {
        if (!json_object_get(device->slice.capacity, name))
            return 0;
    }
    /* what cannot be counted comes before what does not fit, in whatever order they are listed */
    value_foreach(device->slice.capacity, name, capacity)
    {
        struct amount wanted;
        const json_t *requested = json_object_get(requests, name);
        int rc = requested ? consumed(rules, capacity, requested, &wanted, err) : 0;
        if (rc < 0)
            return rc;
    }
    value_foreach(device->slice.capacity, name, capacity)
    {
        const json_t *policy = json_object_get(capacity, "requestPolicy");
        const json_t *requested = json_object_get(requests, name);
        struct amount wanted, whole_of;
        int rc = consumed(rules, capacity, requested, &wanted, err);
        if (rc == 0)
            rc = amount_of(json_object_get(capacity, "value"), &whole_of, err);
        if (rc < 0)
            return rc;
        bool is_default = !requested && json_object_get(policy, "default");
        rc = is_default ? 1 : permitted(rules, policy, &wanted, err);
        if (rc <= 0)
            return rc;
        if (add_shares(taken, taken_device, name, &wanted.value) < 0 ||
            add_shares(taking, taking_device, name, &wanted.value) < 0)
            return error_kind(err, DRARUN_ERR_SPEC, ERANGE,
                              "a device's capacity: more than 38 digits");
        if (cel_quantity_compare(&wanted.value, &whole_of.value) > 0)
            return 0;
    }
    return 1;
}

int predict_capacity_consumed(const struct predict_rules *rules,
                              const struct predict_device *device, const json_t *requests,
                              json_t **ret_consumed, struct drarun_error *err)
{
    const char *name;
    json_t *capacity, *amounts = json_object();
    value_foreach(device->slice.capacity, name, capacity)
    {
        struct amount amount;
        int rc = consumed(rules, capacity, json_object_get(requests, name), &amount, err);
        if (rc < 0) {
            json_decref(amounts);
            return rc;
        }
        json_object_set_new(amounts, name, json_string(amount.text));
    }
    if (!amounts)
        return error_set(err, ENOMEM, "out of memory");
    *ret_consumed = amounts;
    return 0;
}
