/* SPDX-License-Identifier: Apache-2.0 */
/* What a request consumes of a device's capacity, and whether there is that much: the rules of
 * Kubernetes' consumable capacity (KEP-5075) that all versions have, in small numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/dra/predict_private.h"
#include "lib/base/cleanup.h"

#define RANGE "{\"value\": \"40G\", \"requestPolicy\": {\"default\": \"2G\", \"validRange\": "
#define VALUES "{\"value\": \"8\", \"requestPolicy\": {\"default\": \"2\", \"validValues\": "

enum { NO, YES, WRONG };

/* One capacity, "c". requested NULL: nothing is. taken, taking: of it by others and by this job. */
struct capacity_case {
    const char *capacity, *requested;
    const char *taken, *taking; /* NULL: none */
    int fits;
    const char *consumed;
};

static const struct capacity_case cases[] = {
    /* without a policy: what is requested, or all */
    {"{\"value\": \"10\"}", NULL, NULL, NULL, YES, "10"},
    {"{\"value\": \"10\"}", NULL, "1", NULL, NO, "10"},
    {"{\"value\": \"10\"}", "3", "7", NULL, YES, "3"},
    {"{\"value\": 10.5}", NULL, NULL, NULL, YES, "10.5"}, /* as YAML leaves it */
    {"{\"value\": \"10\"}", "3", "8", NULL, NO, "3"},
    {"{\"value\": \"10\"}", "3", "4", "3", YES, "3"},
    {"{\"value\": \"10\"}", "3", "4", "4", NO, "3"},
    /* the default of a policy, which need not be in its range */
    {RANGE "{\"min\": \"5G\"}}}", NULL, NULL, NULL, YES, "2G"},
    {RANGE "{\"min\": \"5G\"}}}", NULL, "38G", NULL, YES, "2G"},
    {RANGE "{\"min\": \"5G\"}}}", NULL, "39G", NULL, NO, "2G"},
    /* a range: at least its least, at most its most */
    {RANGE "{\"min\": \"5G\"}}}", "1G", NULL, NULL, YES, "5G"},
    {RANGE "{\"min\": \"5G\"}}}", "6G", NULL, NULL, YES, "6G"},
    {RANGE "{\"min\": \"5G\", \"max\": \"20G\"}}}", "20G", NULL, NULL, YES, "20G"},
    {RANGE "{\"min\": \"5G\", \"max\": \"20G\"}}}", "21G", NULL, NULL, NO, "21G"},
    {RANGE "{\"max\": \"20G\"}}}", "21G", NULL, NULL, NO, "21G"},
    /* in steps from its least */
    {RANGE "{\"min\": \"5\", \"step\": \"4\"}}}", "5", NULL, NULL, YES, "5"},
    {RANGE "{\"min\": \"5\", \"step\": \"4\"}}}", "6", NULL, NULL, YES, "9"},
    {RANGE "{\"min\": \"5\", \"step\": \"4\"}}}", "9", NULL, NULL, YES, "9"},
    {RANGE "{\"min\": \"5\", \"step\": \"4\"}}}", "10", NULL, NULL, YES, "13"},
    {RANGE "{\"min\": \"1Ki\", \"step\": \"1Ki\"}}}", "1025", NULL, NULL, YES, "2Ki"},
    {RANGE "{\"min\": \"1Ki\", \"step\": \"1Ki\"}}}", "1048570", NULL, NULL, YES, "1Mi"},
    {RANGE "{\"min\": \"0\", \"step\": \"7\", \"max\": \"20\"}}}", "15", NULL, NULL, NO, "21"},
    {RANGE "{\"min\": \"0\", \"step\": \"0\"}}}", "15", NULL, NULL, WRONG, NULL},
    /* parts of one are rounded up to a whole */
    {RANGE "{\"min\": \"1\", \"step\": \"1\"}}}", "2500m", NULL, NULL, YES, "3"},
    {RANGE "{\"min\": \"1\", \"step\": \"1\"}}}", "2001m", NULL, NULL, YES, "3"},
    {RANGE "{\"min\": \"1\", \"step\": \"1\"}}}", "2000m", NULL, NULL, YES, "2"},
    {RANGE "{\"min\": \"1\", \"step\": \"1\"}}}", "2010e0", NULL, NULL, YES, "2010"},
    {RANGE "{\"min\": \"1\", \"step\": \"1\"}}}", "9223372036854775808", NULL, NULL, WRONG, NULL},
    /* a list: the next that is as large, and none beyond the last */
    {VALUES "[\"1\", \"2\", \"4\"]}}", "2", NULL, NULL, YES, "2"},
    {VALUES "[\"1\", \"2\", \"4\"]}}", "3", NULL, NULL, YES, "4"},
    {VALUES "[\"1\", \"2\", \"4\"]}}", "5", NULL, NULL, NO, "5"},
    {VALUES "[\"1\", \"2\", \"4\"]}}", NULL, "6", NULL, YES, "2"},
    {VALUES "[\"1\", \"2\", \"4\"]}}", "3", "5", NULL, NO, "4"},
    {VALUES "[]}}", "3", NULL, NULL, YES, "3"},
    /* what is no quantity */
    {"{\"value\": \"much\"}", NULL, NULL, NULL, WRONG, NULL},
};

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);
    if (!json)
        fail_msg("%s: %s", error.text, text);
    return json;
}

/* Shares of device 1, and of a device and a capacity that must not count. */
static void share(struct predict_shares *shares, const char *amount)
{
    struct cel_quantity quantity, other;
    assert_int_equal(cel_quantity_parse("30G", 3, &other), 0);
    assert_int_equal(predict_shares_add(shares, 0, "c", &other), 0);
    assert_int_equal(predict_shares_add(shares, 1, "other", &other), 0);
    if (!amount)
        return;
    assert_int_equal(cel_quantity_parse(amount, strlen(amount), &quantity), 0);
    assert_int_equal(predict_shares_add(shares, 1, "c", &quantity), 0);
}

static void check(const struct capacity_case *c, unsigned minor)
{
    struct predict_shares taken = {0}, taking = {0};
    struct drarun_error err = {0};
    struct predict_device device = {.multiple = true};
    json_t *capacities = json_pack("{s:o}", "c", parse(c->capacity)), *consumed = NULL;
    json_t *requests = json_pack("{s:s*}", "c", c->requested);
    device.slice.capacity = capacities;
    share(&taken, c->taken);
    share(&taking, c->taking);
    const struct predict_rules rules = predict_rules_of(minor);
    int fits = predict_capacity_fits(&rules, &device, requests, &taken, 1, &taking, 1, &err);
    if (c->fits == WRONG ? fits >= 0 || !err.text[0] : fits != c->fits)
        fail_msg("%s of %s, %s and %s taken: fits %d %s", c->requested, c->capacity, c->taken,
                 c->taking, fits, err.text);
    int rc = predict_capacity_consumed(&rules, &device, requests, &consumed, &err);
    const char *text = json_string_value(json_object_get(consumed, "c"));
    if (c->consumed ? !text || strcmp(text, c->consumed) != 0 : rc >= 0)
        fail_msg("%s of %s: consumes %s, expected %s", c->requested, c->capacity, text,
                 c->consumed);
    json_decref(consumed);
    json_decref(requests);
    json_decref(capacities);
    free(taken.list);
    free(taking.list);
}

static void test_amounts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check(&cases[i], 36);
        check(&cases[i], 37);
    }
}

static void test_unknown_capacity_does_not_fit(void **state)
{
    (void)state;
    struct predict_device device = {0};
    json_t *capacities = parse("{\"c\": {\"value\": \"1\"}}"), *requests = parse("{\"d\": \"1\"}");
    const struct predict_shares none = {0};
    device.slice.capacity = capacities;
    const struct predict_rules rules = predict_rules_of(0);
    assert_int_equal(predict_capacity_fits(&rules, &device, requests, &none, 0, &none, 0, NULL), 0);
    assert_int_equal(predict_capacity_fits(&rules, &device, NULL, &none, 0, &none, 0, NULL), 1);
    json_decref(requests);
    json_decref(capacities);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_amounts),
        cmocka_unit_test(test_unknown_capacity_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
