/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "jobs/manifests/claim_usage.h"
#include "lib/base/cleanup.h"
#include "lib/base/test/quoted_json.h"

/* The resources' names, after which the quantities stand. */
#define CLAIMS "'count/resourceclaims.resource.k8s.io':"
#define OF(class) "'" class ".deviceclass.resource.k8s.io/devices':"
#define IMPLICIT(class) "'requests.deviceclass.resource.kubernetes.io/" class "':"
#define EXACTLY(class, more) "{'exactly':{'deviceClassName':'" class "'" more "}}"
#define EITHER(first, second)                                                                      \
    "{'firstAvailable':[{'deviceClassName':" first "},{'deviceClassName':" second "}]}"

static const struct {
    const char *requests; /* NULL: no devices */
    unsigned minor;
    const char *usage;
} rows[] = {
    {NULL, 35, "{" CLAIMS "1.0}"},
    {EXACTLY("nic", ""), 35, "{" CLAIMS "1.0," OF("nic") "1.0}"},
    {EXACTLY("nic", ",'count':4"), 35, "{" CLAIMS "1.0," OF("nic") "4.0}"},
    {EXACTLY("nic", ",'allocationMode':'ExactCount','count':2"), 35,
     "{" CLAIMS "1.0," OF("nic") "2.0}"},
    /* as many as a claim can hold */
    {EXACTLY("nic", ",'allocationMode':'All'"), 35, "{" CLAIMS "1.0," OF("nic") "32.0}"},
    {EXACTLY("nic", ",'count':2") "," EXACTLY("gpu", ",'count':3"), 35,
     "{" CLAIMS "1.0," OF("nic") "2.0," OF("gpu") "3.0}"},
    {EXACTLY("nic", ",'count':2") "," EXACTLY("nic", ",'count':3"), 35,
     "{" CLAIMS "1.0," OF("nic") "5.0}"},
    /* of alternatives the most of each class */
    {EITHER("'nic','count':2", "'nic','count':5"), 35, "{" CLAIMS "1.0," OF("nic") "5.0}"},
    {EITHER("'nic','count':5", "'nic','count':2"), 35, "{" CLAIMS "1.0," OF("nic") "5.0}"},
    {EITHER("'nic','count':2", "'gpu'"), 35, "{" CLAIMS "1.0," OF("nic") "2.0," OF("gpu") "1.0}"},
    {EITHER("'nic','count':2", "'gpu'") "," EXACTLY("gpu", ",'count':3"), 35,
     "{" CLAIMS "1.0," OF("nic") "2.0," OF("gpu") "4.0}"},
    {EXACTLY("nic", ",'count':0"), 35, "{" CLAIMS "1.0}"},
    /* devices that count as an extended resource, too */
    {EXACTLY("nic", ",'count':2"), 36, "{" CLAIMS "1.0," OF("nic") "2.0," IMPLICIT("nic") "2.0}"},
    {EXACTLY("gpu", ",'count':3"), 36,
     "{" CLAIMS "1.0," OF("gpu") "3.0," IMPLICIT("gpu") "3.0,'requests.example.com/gpu':3.0}"},
    /* either of two classes is charged: the larger of both */
    {EXACTLY("gpu", ",'count':3") "," EXACTLY("big-gpu", ",'count':2"), 36,
     "{" CLAIMS "1.0," OF("gpu") "3.0," OF("big-gpu") "2.0," IMPLICIT("gpu") "3.0," IMPLICIT(
         "big-gpu") "2.0,'requests.example.com/gpu':3.0}"},
    {EXACTLY("big-gpu", ",'count':2") "," EXACTLY("gpu", ",'count':3"), 36,
     "{" CLAIMS "1.0," OF("gpu") "3.0," OF("big-gpu") "2.0," IMPLICIT("gpu") "3.0," IMPLICIT(
         "big-gpu") "2.0,'requests.example.com/gpu':3.0}"},
};

static json_t *classes_new(void)
{
    return quoted_json("[{'metadata':{'name':'nic'},'spec':{}},"
                       "{'metadata':{'name':'gpu'},'spec':{'extendedResourceName':"
                       "'example.com/gpu'}},{'metadata':{'name':'big-gpu'},'spec':{"
                       "'extendedResourceName':'example.com/gpu'}}]",
                       0);
}

static json_t *claim_new(const char *requests)
{
    char text[1024];
    snprintf(text, sizeof text, requests ? "{'devices':{'requests':[%s]}}" : "{}",
             requests ? requests : "");
    return quoted_json(text, 0);
}

static void test_what_a_quota_charges(void **state)
{
    CLEANUP(json_decrefp) json_t *classes = classes_new();
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(json_decrefp) json_t *claim = claim_new(rows[i].requests);
        CLEANUP(json_decrefp) json_t *usage = json_object();
        CLEANUP(json_decrefp) json_t *expected = quoted_json(rows[i].usage, 0);
        struct drarun_error err = {0};
        assert_int_equal(claim_usage(claim, classes, rows[i].minor, usage, &err), 0);
        cleanup_free char *got = json_dumps(usage, JSON_SORT_KEYS);
        if (!json_equal(usage, expected))
            fail_msg("row %zu: %s", i, got);
    }
}

/* Those of several claims are added. */
static void test_several_claims(void **state)
{
    CLEANUP(json_decrefp) json_t *classes = classes_new();
    CLEANUP(json_decrefp) json_t *first = claim_new(EXACTLY("gpu", ",'count':3"));
    CLEANUP(json_decrefp) json_t *second = claim_new(EXACTLY("big-gpu", ",'count':2"));
    CLEANUP(json_decrefp) json_t *usage = json_object();
    CLEANUP(json_decrefp)
    json_t *expected = quoted_json("{" CLAIMS "2.0," OF("gpu") "3.0," OF("big-gpu") "2.0," IMPLICIT(
                                       "gpu") "3.0," IMPLICIT("big-gpu") "2.0,'requests.example."
                                                                         "com/gpu':5.0}",
                                   0);
    struct drarun_error err = {0};
    (void)state;
    assert_int_equal(claim_usage(first, classes, 36, usage, &err), 0);
    assert_int_equal(claim_usage(second, classes, 36, usage, &err), 0);
    assert_true(json_equal(usage, expected));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_a_quota_charges),
                                       cmocka_unit_test(test_several_claims)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
