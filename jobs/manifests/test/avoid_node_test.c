/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/manifests/avoid_node.h"
#include "lib/base/cleanup.h"
#include "lib/base/test/quoted_json.h"

#define FIELD(node) "{'key':'metadata.name','operator':'NotIn','values':['" node "']}"
#define REQUIRED(terms)                                                                            \
    "{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"                           \
    "{'nodeSelectorTerms':[" terms "]}}}"
#define ZONE "'matchExpressions':[{'key':'zone','operator':'In','values':['a']}]"

static const struct {
    const char *name, *affinity, *expected;
    const char *nodes[3];
    size_t count;
} cases[] = {
    {"none to avoid", "null", "null", {NULL}, 0},
    {"no affinity",
     "null",
     REQUIRED("{'matchFields':[" FIELD("n1") "," FIELD("n2") "]}"),
     {"n1", "n2"},
     2},
    {"once",
     REQUIRED("{'matchFields':[" FIELD("n1") "]}"),
     REQUIRED("{'matchFields':[" FIELD("n1") "," FIELD("n2") "]}"),
     {"n1", "n2", "n2"},
     3},
    {"in every term",
     REQUIRED("{" ZONE "},{'matchFields':[" FIELD("n9") "]}"),
     REQUIRED("{" ZONE ",'matchFields':[" FIELD("n1") "]},{'matchFields':[" FIELD("n9") "," FIELD(
         "n1") "]}"),
     {"n1"},
     1},
    {"a term that matches nothing still does",
     REQUIRED("{},{" ZONE "}"),
     REQUIRED("{},{" ZONE ",'matchFields':[" FIELD("n1") "]}"),
     {"n1"},
     1},
    {"the rest stays",
     "{'podAntiAffinity':{'x':1},'nodeAffinity':{'preferred':[1]}}",
     "{'podAntiAffinity':{'x':1},'nodeAffinity':{'preferred':[1],"
     "'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{'matchFields':"
     "[" FIELD("n1") "]}]}}}",
     {"n1"},
     1},
};

static void each_case(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(json_decrefp) json_t *spec = json_pack("{s:s}", "restartPolicy", "Never");
        CLEANUP(json_decrefp) json_t *affinity = quoted_json(cases[i].affinity, JSON_DECODE_ANY);
        CLEANUP(json_decrefp) json_t *expected = quoted_json(cases[i].expected, JSON_DECODE_ANY);
        if (!json_is_null(affinity))
            json_object_set(spec, "affinity", affinity);
        for (int twice = 0; twice < 2; twice++) {
            assert_int_equal(avoid_nodes(spec, cases[i].nodes, cases[i].count, NULL), 0);
            const json_t *found = json_object_get(spec, "affinity");
            cleanup_free char *text = json_dumps(found, JSON_ENCODE_ANY);
            if (!json_equal(found, expected) && !(json_is_null(expected) && !found))
                fail_msg("%s: %s", cases[i].name, text);
        }
        assert_string_equal(json_string_value(json_object_get(spec, "restartPolicy")), "Never");
    }
}

static void too_many(void **state)
{
    (void)state;
    const char *nodes[AVOID_NODES_MAX + 1];
    for (size_t i = 0; i <= AVOID_NODES_MAX; i++)
        nodes[i] = "n";
    struct drarun_error err = {0};
    CLEANUP(json_decrefp) json_t *spec = json_object();
    assert_int_equal(avoid_nodes(spec, nodes, AVOID_NODES_MAX + 1, &err), -E2BIG);
    assert_string_equal(err.text, "33 nodes to avoid: more than 32");
    assert_int_equal(json_object_size(spec), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_case), cmocka_unit_test(too_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
