/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/kube/refusal.h"

#define PODS "/api/v1/namespaces/x/pods"

static struct refusals *make(void)
{
    struct refusals *r = NULL;
    assert_int_equal(refusals_new(&r, NULL), 0);
    return r;
}

static bool passes(struct refusals *r, const char *verb, const char *path, int64_t now_ms)
{
    const struct refusal refusal = {.verb = verb, .path = path, .by_role = true};
    return refusal_passes(r, &refusal, now_ms);
}

static void test_what_was_never_allowed_is_final(void **state)
{
    CLEANUP(refusals_freep) struct refusals *r = make();
    (void)state;
    assert_false(passes(r, "WATCH", PODS, 1000));
    assert_false(passes(r, "WATCH", PODS, 2000));
    refusals_note_allowed(r, "GET", PODS);
    assert_false(passes(r, "WATCH", PODS, 3000));                      /* another verb, */
    assert_false(passes(r, "GET", "/api/v1/namespaces/y/pods", 3000)); /* namespace, */
    assert_false(passes(r, "GET", PODS "/p", 3000));                   /* or get and not list */
}

static void test_what_was_allowed_is_tried_for_a_time(void **state)
{
    CLEANUP(refusals_freep) struct refusals *r = make();
    (void)state;
    refusals_note_allowed(r, "WATCH", PODS);
    for (int64_t now = 100000; now < 100000 + REFUSAL_PASSES_MS; now += 1000)
        assert_true(passes(r, "WATCH", PODS, now));
    assert_false(passes(r, "WATCH", PODS, 100000 + REFUSAL_PASSES_MS));
    assert_false(passes(r, "WATCH", PODS, 999999)); /* and stays so */
    refusals_note_allowed(r, "WATCH", PODS);
    assert_true(passes(r, "WATCH", PODS, 1000000));
}

static void test_after_a_lost_connection_all_is(void **state)
{
    CLEANUP(refusals_freep) struct refusals *r = make();
    const struct refusal unknown = {.verb = "POST", .path = PODS};
    (void)state;
    refusals_note_loss(r, 100000);
    assert_true(passes(r, "WATCH", PODS, 129000)); /* from here on 30 s, not from the loss */
    assert_true(passes(r, "WATCH", PODS, 158000));
    assert_false(passes(r, "WATCH", PODS, 159000));
    assert_false(passes(r, "GET", PODS, 130000)); /* that comes too late to be due to it */
    assert_true(refusal_passes(r, &unknown, 120000));
    refusals_note_loss(r, 200000); /* another one */
    assert_true(passes(r, "WATCH", PODS, 201000));
    assert_true(passes(r, "WATCH", PODS, 230000));
    assert_false(passes(r, "WATCH", PODS, 231000));
}

static void test_quota_is_no_role(void **state)
{
    CLEANUP(refusals_freep) struct refusals *r = make();
    const struct refusal quota = {.verb = "POST", .path = PODS};
    (void)state;
    refusals_note_allowed(r, "POST", PODS);
    assert_false(refusal_passes(r, &quota, 1000));
    assert_true(passes(r, "POST", PODS, 1000));
}

static void test_objects_of_a_kind_are_alike(void **state)
{
    static const struct {
        const char *allowed, *refused;
        bool alike;
    } rows[] = {
        {PODS "/a", PODS "/b", true},
        {PODS "/a/log", PODS "/b/log?follow=true", true},
        {PODS "/a/log", PODS "/a/exec", false},
        {PODS "/a", PODS, false},
        {"/api/v1/nodes/a", "/api/v1/nodes/b", true},
        {"/api/v1/namespaces/a", "/api/v1/namespaces/b", true},
        {"/api/v1/namespaces/a/pods/p", "/api/v1/namespaces/b/pods/p", false},
        {"/apis/batch/v1/namespaces/x/jobs/a/status", "/apis/batch/v1/namespaces/x/jobs/b/status",
         true},
        {"/apis/batch/v1/namespaces/x/jobs/a", "/apis/apps/v1/namespaces/x/jobs/a", false},
        {"/apis/resource.k8s.io/v1/resourceslices",
         "/apis/resource.k8s.io/v1/resourceslices?limit=5", true},
        {"/version", "/version", true},
        {"/apis", "/api", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(refusals_freep) struct refusals *r = make();
        refusals_note_allowed(r, "GET", rows[i].allowed);
        if (passes(r, "GET", rows[i].refused, 1000) != rows[i].alike)
            fail_msg("%s and %s", rows[i].allowed, rows[i].refused);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_never_allowed_is_final),
        cmocka_unit_test(test_what_was_allowed_is_tried_for_a_time),
        cmocka_unit_test(test_after_a_lost_connection_all_is),
        cmocka_unit_test(test_quota_is_no_role),
        cmocka_unit_test(test_objects_of_a_kind_are_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
