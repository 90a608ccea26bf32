/* SPDX-License-Identifier: Apache-2.0 */
/* The claim that the scheduler makes for extended resources. */
#include "jobs/manifests/extended_claim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/test/quoted_json.h"

#define GPU                                                                                        \
    "{'metadata': {'name': 'gpu.nvidia.com', 'creationTimestamp': '2026-01-01T00:00:00Z'}, "       \
    "'spec': {'extendedResourceName': 'nvidia.com/gpu'}}"
#define OLD                                                                                        \
    "{'metadata': {'name': 'a', 'creationTimestamp': '2025-01-01T00:00:00Z'}, 'spec': "            \
    "{'extendedResourceName': 'nvidia.com/gpu'}}"
#define NODE(amounts) "{'status': {'allocatable': {'cpu': '8'" amounts "}}}"
#define ASKS(count) "{'resources': {'limits': {'cpu': '1', 'nvidia.com/gpu': '" count "'}}}"

/* requests: each as "name class count", one after the other; note: a part of the one, or NULL. */
static void check(unsigned minor, const char *nodes, const char *pod, const char *requests,
                  const char *note)
{
    CLEANUP(json_decrefp) json_t *classes = quoted_json("[" OLD ", " GPU "]", 0);
    CLEANUP(json_decrefp) json_t *list = quoted_json(nodes, 0);
    CLEANUP(json_decrefp) json_t *spec = quoted_json(pod, 0);
    CLEANUP(json_decrefp) json_t *got = NULL;
    const struct extended_cluster cluster = {list, classes, minor};
    struct strlist notes = STRLIST_INIT;
    struct drarun_error err = {0};
    char text[500] = "";
    size_t i;
    json_t *request;
    if (extended_claim(spec, &cluster, &got, NULL, &notes, &err) < 0)
        fail_msg("%s", err.text);
    json_array_foreach(got, i, request)
    {
        const json_t *exactly = json_object_get(request, "exactly");
        const char *name = json_string_value(json_object_get(request, "name"));
        assert_true(extended_claim_has(name));
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s %s %d", i ? ", " : "", name,
                 json_string_value(json_object_get(exactly, "deviceClassName")),
                 (int)json_integer_value(json_object_get(exactly, "count")));
    }
    if (strcmp(text, requests) != 0)
        fail_msg("%s on %s: \"%s\"; expected \"%s\"", pod, nodes, text, requests);
    if (notes.count != (note ? 1 : 0) || (note && !strstr(notes.items[0], note)))
        fail_msg("%s on %s: %zu notes: %s", pod, nodes, notes.count,
                 notes.count ? notes.items[0] : "");
    strlist_done(&notes);
}

static void test_source(void **state)
{
    static const char pod[] = "{'containers': [" ASKS("2") "]}";
    static const char wanted[] = "container-0-request-1 gpu.nvidia.com 2";
    (void)state;
    check(36, "[" NODE("") "]", pod, wanted, NULL); /* of the newer class */
    check(0, "[" NODE(", 'nvidia.com/gpu': '0'") "]", pod, wanted, NULL);
    check(35, "[" NODE("") "]", pod, "", NULL);
    check(36, "[" NODE(", 'nvidia.com/gpu': '8'") "]", pod, "", NULL);
    check(36, "[" NODE(", 'nvidia.com/gpu': '8'") ", " NODE("") "]", pod, "",
          "some nodes have a device plugin");
    check(36, "[" NODE("") ", {}]", pod, "", "status.allocatable of the Nodes");
    check(36, "[" NODE("") "]", "{'containers': [{}]}", "", NULL);
    check(36, "[" NODE("") "]",
          "{'containers': [{'resources': {'requests': {'deviceclass.resource.kubernetes.io/a': "
          "1}}}]}",
          "container-0-request-0 a 1", NULL);
    check(36, "[" NODE("") "]", "{'containers': [{'resources': {'limits': {'a.b/nic': 1}}}]}", "",
          NULL);
}

/* Initial containers use what others hold later, but for those that stay. */
static void test_containers(void **state)
{
    static const char node[] = "[" NODE("") "]";
    (void)state;
    check(36, node, "{'containers': [" ASKS("2") ", {}, " ASKS("1") "]}",
          "container-0-request-1 gpu.nvidia.com 2, container-2-request-1 gpu.nvidia.com 1", NULL);
    check(36, node, "{'initContainers': [" ASKS("2") "], 'containers': [" ASKS("2") "]}",
          "container-1-request-1 gpu.nvidia.com 2", NULL);
    check(36, node,
          "{'initContainers': [" ASKS("3") ", " ASKS("5") "], 'containers': [" ASKS("2") "]}",
          "container-1-request-1 gpu.nvidia.com 3, container-2-request-1 gpu.nvidia.com 2", NULL);
    check(36, node,
          "{'initContainers': [{'restartPolicy': 'Always', 'resources': {'limits': "
          "{'nvidia.com/gpu': 1}}}, " ASKS("1") "], 'containers': [{}]}",
          "container-0-request-0 gpu.nvidia.com 1, container-1-request-1 gpu.nvidia.com 1", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_source),
        cmocka_unit_test(test_containers),
    };
    return cmocka_run_group_tests_name("extended_claim", tests, NULL, NULL);
}
