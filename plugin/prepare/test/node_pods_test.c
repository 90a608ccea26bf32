/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "plugin/prepare/node_pods.h"

#define METADATA                                                                                   \
    "\"metadata\":{\"name\":\"w-0\",\"namespace\":\"train\",\"resourceVersion\":\"7\",\"uid\":"    \
    "\"pu\"}"

static const struct {
    const char *before, *after;
} cases[] = {
    /* with a claim: what claimed.h and agent_config.h read */
    {"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"w-0\",\"namespace\":\"train\",\"uid\":\"pu\","
     "\"resourceVersion\":\"7\",\"labels\":{\"a\":\"b\"}},\"spec\":{\"nodeName\":\"n0\","
     "\"hostNetwork\":true,\"hostUsers\":false,"
     "\"volumes\":[{}],\"resources\":{\"limits\":{\"a.com/1\":\"1\",\"memory\":\"1Gi\"}},"
     "\"resourceClaims\":[{\"name\":\"nics\"}],"
     "\"containers\":["
     "{\"name\":\"main\",\"env\":[{}],\"resources\":{\"claims\":[{\"name\":\"nics\"}],"
     "\"requests\":{\"a.com/1\":\"1\"},\"limits\":{\"a.com/1\":\"1\"}}}],"
     "\"initContainers\":[{\"image\":\"i\",\"restartPolicy\":\"Always\"}]},\"status\":{\"phase\":"
     "\"Running\","
     "\"resourceClaimStatuses\":[{}],\"extendedResourceClaimStatus\":{}}}",
     "{" METADATA ",\"spec\":{\"containers\":[{\"resources\":{\"claims\":[{\"name\":\"nics\"}],"
     "\"limits\":{}}}],"
     "\"hostNetwork\":true,\"hostUsers\":false,\"initContainers\":[{\"restartPolicy\":\"Always\"}],"
     "\"nodeName\":\"n0\","
     "\"resourceClaims\":[{\"name\":\"nics\"}],\"resources\":{\"limits\":{\"memory\":\"1Gi\"}}},"
     "\"status\":{\"extendedResourceClaimStatus\":{},\"resourceClaimStatuses\":[{}]}}"},
    /* without: nothing */
    {"{\"metadata\":{\"name\":\"w-0\",\"namespace\":\"train\",\"uid\":\"pu\",\"resourceVersion\":"
     "\"7\"},"
     "\"spec\":{\"nodeName\":\"n0\",\"containers\":[{\"image\":\"i\"}]},\"status\":{\"phase\":"
     "\"Running\"}}",
     "{" METADATA "}"},
    /* nor with a status that says something of other claims */
    {"{" METADATA ",\"spec\":{\"nodeName\":\"n0\",\"resourceClaims\":[],\"containers\":[{}]},"
     "\"status\":{\"resourceClaimStatuses\":[{}]}}",
     "{" METADATA "}"},
    /* an extended resource's claim stands in the status alone */
    {"{\"metadata\":{},\"spec\":{\"nodeName\":\"n0\"},\"status\":{\"extendedResourceClaimStatus\":{"
     "}}}",
     "{\"metadata\":{},\"spec\":{\"nodeName\":\"n0\"},\"status\":{\"extendedResourceClaimStatus\":{"
     "}}}"},
    /* no pod at all */
    {"{\"spec\":7,\"status\":[1]}", "{}"},
    {"[1]", "[1]"},
};

static void what_is_left(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *pod = json_loads(cases[i].before, 0, NULL);
        assert_non_null(pod);
        node_pods_trim(pod);
        char *text = json_dumps(pod, JSON_COMPACT | JSON_SORT_KEYS);
        assert_string_equal(text, cases[i].after);
        free(text);
        json_decref(pod);
    }
}

/* Such a pod is asked for when it is prepared. */
static void claims_without_end(void **state)
{
    (void)state;
    json_t *claims = json_array();
    for (int i = 0; i < 100000; i++)
        json_array_append_new(claims, json_pack("{s:s}", "name", "c"));
    json_t *pod = json_pack("{s:{s:s}, s:{s:s, s:o}}", "metadata", "name", "w-0", "spec",
                            "nodeName", "n0", "resourceClaims", claims);
    node_pods_trim(pod);
    assert_null(json_object_get(pod, "spec"));
    assert_non_null(json_object_get(pod, "metadata"));
    json_decref(pod);
}

static void none_is_known_without_a_watch(void **state)
{
    (void)state;
    assert_null(node_pods_find(NULL, "train", "w-0", "pu"));
    node_pods_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left),
        cmocka_unit_test(claims_without_end),
        cmocka_unit_test(none_is_known_without_a_watch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
