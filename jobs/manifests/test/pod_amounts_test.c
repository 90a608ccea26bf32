/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/pod_amounts.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/test/quoted_json.h"

#define REQUESTS(list) "'resources': {'requests': {" list "}}"
#define LIMITS(list) "'resources': {'limits': {" list "}}"
#define ONE(container) "{'containers': [{" container "}]}"
#define ALWAYS "'restartPolicy': 'Always', "

/* As component-helpers' resource.PodRequests and PodLimits. */
static void test_sums(void **state)
{
    static const struct {
        const char *pod, *requests, *limits;
    } rows[] = {
        {"{}", "{}", "{}"},
        {ONE(""), "{}", "{}"},
        {ONE(REQUESTS("'cpu': 1, 'memory': '1Ki'")), "{'cpu': 1, 'memory': 1024}", "{}"},
        {ONE(LIMITS("'cpu': '500m', 'a.b/c': 2")), "{'cpu': 0.5, 'a.b/c': 2}",
         "{'cpu': 0.5, 'a.b/c': 2}"},
        {ONE("'resources': {'requests': {'cpu': 1}, 'limits': {'cpu': 2, 'memory': 3}}"),
         "{'cpu': 1, 'memory': 3}", "{'cpu': 2, 'memory': 3}"},
        {"{'containers': [{" REQUESTS("'cpu': 1") "}, {" REQUESTS("'cpu': 2, 'a.b/c': 1") "}]}",
         "{'cpu': 3, 'a.b/c': 1}", "{}"},
        /* one after the other, before the containers */
        {"{'initContainers': [{" REQUESTS("'cpu': 4") "}, {" REQUESTS(
             "'cpu': 1, 'memory': 9") "}], "
                                      "'containers': [{" REQUESTS("'cpu': 2") "}, {" REQUESTS(
                                          "'cpu': 1, 'memory': 8") "}]}",
         "{'cpu': 4, 'memory': 9}", "{}"},
        /* beside the containers, and beside those that come after it */
        {"{'initContainers': [{" REQUESTS("'cpu': 6") "}, {" ALWAYS
             REQUESTS("'cpu': 2") "}, {" REQUESTS("'cpu': 3") "}], 'containers': [{" REQUESTS(
                 "'cpu': 1") "}]}",
         "{'cpu': 6}", "{}"},
        {"{'initContainers': [{" ALWAYS
             REQUESTS("'cpu': 2") "}, {" REQUESTS("'cpu': 3") "}, {" ALWAYS REQUESTS(
                 "'cpu': 1") "}], 'containers': [{" REQUESTS("'cpu': 1") "}]}",
         "{'cpu': 5}", "{}"},
        {"{'initContainers': [{" ALWAYS LIMITS("'cpu': 2") "}], 'containers': [{" LIMITS(
             "'cpu': 1") "}]}",
         "{'cpu': 3}", "{'cpu': 3}"},
        /* the pod's own */
        {"{" REQUESTS("'cpu': 7") ", 'containers': [{" REQUESTS("'cpu': 9, 'memory': 1") "}]}",
         "{'cpu': 7, 'memory': 1}", "{}"},
        {"{" LIMITS("'cpu': 7, 'memory': 5") ", 'containers': [{" REQUESTS("'cpu': 2") "}]}",
         "{'cpu': 2, 'memory': 5}", "{'cpu': 7, 'memory': 5}"},
        {"{" LIMITS("'hugepages-2Mi': 8") ", 'containers': [{" LIMITS("'hugepages-2Mi': 4") "}]}",
         "{'hugepages-2Mi': 8}", "{'hugepages-2Mi': 8}"},
        {"{" REQUESTS("'a.b/c': 7") ", 'containers': [{" LIMITS("'a.b/c': 1") "}]}", "{'a.b/c': 1}",
         "{'a.b/c': 1}"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(json_decrefp) json_t *pod = quoted_json(rows[i].pod, JSON_DECODE_INT_AS_REAL);
        for (int of_limits = 0; of_limits <= 1; of_limits++) {
            CLEANUP(json_decrefp) json_t *sum = json_object();
            CLEANUP(json_decrefp)
            json_t *expected =
                quoted_json(of_limits ? rows[i].limits : rows[i].requests, JSON_DECODE_INT_AS_REAL);
            assert_int_equal(of_limits ? pod_limits(pod, sum, NULL) : pod_requests(pod, sum, NULL),
                             0);
            cleanup_free char *is = json_dumps(sum, JSON_SORT_KEYS);
            if (!json_equal(sum, expected))
                fail_msg("%s: %s: %s", rows[i].pod, of_limits ? "limits" : "requests", is);
        }
    }
}

static void test_no_quantity(void **state)
{
    static const char *const pods[] = {
        ONE(LIMITS("'cpu': 'many'")),
        "{'initContainers': [{" LIMITS("'cpu': '1 core'") "}]}",
        "{" LIMITS("'memory': '1GiB'") ", 'containers': []}",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(pods); i++) {
        CLEANUP(json_decrefp) json_t *pod = quoted_json(pods[i], JSON_DECODE_INT_AS_REAL);
        for (int of_limits = 0; of_limits <= 1; of_limits++) {
            CLEANUP(json_decrefp) json_t *sum = json_object();
            struct drarun_error err = {0};
            assert_int_equal(of_limits ? pod_limits(pod, sum, &err) : pod_requests(pod, sum, &err),
                             -EINVAL);
            assert_int_equal(err.kind, DRARUN_ERR_SPEC);
        }
    }
}

static void test_what_a_pod_says_itself(void **state)
{
    static const struct {
        const char *pod;
        bool has;
    } rows[] = {
        {"{}", false},
        {ONE(REQUESTS("'cpu': 1")), false},
        {"{" REQUESTS("") "}", false},
        {"{" REQUESTS("'a.b/c': 1") "}", false},
        {"{" REQUESTS("'cpu': 1") "}", true},
        {"{" LIMITS("'memory': 1") "}", true},
        {"{" LIMITS("'hugepages-1Gi': 1") "}", true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(json_decrefp) json_t *pod = quoted_json(rows[i].pod, JSON_DECODE_INT_AS_REAL);
        assert_int_equal(pod_has_amounts(pod), rows[i].has);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums),
                                       cmocka_unit_test(test_no_quantity),
                                       cmocka_unit_test(test_what_a_pod_says_itself)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
