/* SPDX-License-Identifier: Apache-2.0 */
/* How many pods of a job a node takes, and what keeps the next one away. */
#include "jobs/manifests/node_fit.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/test/quoted_json.h"

static void check_known(const char *node, const char *pod, uint32_t room, const char *why)
{
    char text[1500], got[NODE_FIT_WHY];
    struct node_fit *fit = NULL;
    struct drarun_error err = {0};
    snprintf(text, sizeof text,
             "[{'metadata': {'name': 'n', 'labels': {'pool': 'a', 'cpus': '8'}}, %s}]", node);
    json_t *nodes = quoted_json(text, 0), *spec = quoted_json(pod, 0);
    if (node_fit_new(nodes, spec, &fit, &err) < 0)
        fail_msg("%s", err.text);
    uint32_t found = node_fit_room(fit, "n", got);
    if (found != room || strcmp(got, why) != 0)
        fail_msg("%s on %s: %u, \"%s\"; expected %u, \"%s\"", pod, node, found, got, room, why);
    node_fit_free(fit);
    json_decref(nodes);
    json_decref(spec);
}

static void check(const char *node, const char *pod, uint32_t room, const char *why)
{
    char got[NODE_FIT_WHY];
    struct node_fit *fit = NULL;
    check_known(node, pod, room, why);
    json_t *spec = quoted_json(pod, 0);
    assert_int_equal(node_fit_new(NULL, spec, &fit, NULL), 0);
    assert_int_equal(node_fit_room(fit, "unknown", got), UINT32_MAX);
    assert_string_equal(got, "");
    node_fit_free(fit);
    json_decref(spec);
}

#define ANY UINT32_MAX

static void test_taints(void **state)
{
    static const char tainted[] = "'spec': {'taints': [{'key': 'soft', 'effect': "
                                  "'PreferNoSchedule'}, {'key': 'nvidia.com/gpu', "
                                  "'value': 'present', 'effect': 'NoSchedule'}]}";
    static const char lost[] = "'spec': {'taints': [{'key': 'lost', 'effect': 'NoExecute'}]}";
    static const char cordoned[] = "'spec': {'unschedulable': true}";
    (void)state;
    check("'spec': {}", "{}", ANY, "");
    check(tainted, "{}", 0, "taint nvidia.com/gpu not tolerated");
    check(tainted, "{'tolerations': [{'key': 'nvidia.com/gpu', 'operator': 'Exists'}]}", ANY, "");
    check(tainted, "{'tolerations': [{'key': 'nvidia.com/gpu', 'value': 'present'}]}", ANY, "");
    check(tainted, "{'tolerations': [{'key': 'nvidia.com/gpu', 'value': 'other'}]}", 0,
          "taint nvidia.com/gpu not tolerated");
    check(
        tainted,
        "{'tolerations': [{'key': 'nvidia.com/gpu', 'operator': 'Exists', 'effect': 'NoExecute'}]}",
        0, "taint nvidia.com/gpu not tolerated");
    check(lost, "{}", 0, "taint lost not tolerated");
    check(lost, "{'tolerations': [{'operator': 'Exists'}]}", ANY, "");
    check(cordoned, "{}", 0, "cordoned");
    check(cordoned,
          "{'tolerations': [{'key': 'node.kubernetes.io/unschedulable', 'operator': 'Exists'}]}",
          ANY, "");
}

#define WANTED(expression)                                                                         \
    "{'affinity': {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': "            \
    "{'nodeSelectorTerms': [{'matchExpressions': [" expression "]}]}}}}"

static void test_labels(void **state)
{
    (void)state;
    check("'spec': {}", "{'nodeSelector': {'pool': 'a'}}", ANY, "");
    check("'spec': {}", "{'nodeSelector': {'pool': 'b'}}", 0, "label pool of nodeSelector missing");
    check("'spec': {}", "{'nodeSelector': {'zone': 'a'}}", 0, "label zone of nodeSelector missing");
    check("'spec': {}", WANTED("{'key': 'pool', 'operator': 'In', 'values': ['a', 'c']}"), ANY, "");
    check("'spec': {}", WANTED("{'key': 'pool', 'operator': 'NotIn', 'values': ['a']}"), 0,
          "nodeAffinity not met");
    check("'spec': {}", WANTED("{'key': 'cpus', 'operator': 'Gt', 'values': ['7']}"), ANY, "");
}

/* The scheduler never sees a pod with a nodeName. */
static void test_named_node(void **state)
{
    static const char tainted[] = "'spec': {'unschedulable': true, 'taints': [{'key': 'a', "
                                  "'effect': 'NoSchedule'}]}";
    static const char lost[] = "'spec': {'taints': [{'key': 'lost', 'effect': 'NoExecute'}]}";
    char got[NODE_FIT_WHY];
    struct node_fit *fit = NULL;
    (void)state;
    check_known(tainted, "{'nodeName': 'n'}", ANY, "");
    check_known(lost, "{'nodeName': 'n'}", 0, "taint lost not tolerated");
    check_known("'spec': {}", "{'nodeName': 'n', 'nodeSelector': {'pool': 'b'}}", 0,
                "label pool of nodeSelector missing");
    check_known("'spec': {}", "{'nodeName': 'o'}", 0, "not the nodeName of the pods");
    json_t *pod = quoted_json("{'nodeName': 'o'}", 0);
    assert_int_equal(node_fit_new(NULL, pod, &fit, NULL), 0);
    assert_int_equal(node_fit_room(fit, "unknown", got), 0);
    assert_int_equal(node_fit_room(fit, "o", got), UINT32_MAX);
    node_fit_free(fit);
    json_decref(pod);
}

#define NODE_OF(amounts) "'status': {'allocatable': {" amounts "}}"
#define SMALL NODE_OF("'cpu': '3900m', 'memory': '8Gi', 'pods': '110', 'nvidia.com/gpu': '8'")

#define CPUS NODE_OF("'cpu': '4', 'memory': '8Gi', 'pods': '110'")

static void test_amounts(void **state)
{
    (void)state;
    check(SMALL, "{'containers': [{}]}", 110, "too little pods");
    check(SMALL, "{'containers': [{'resources': {'requests': {'cpu': '1300m'}}}]}", 3,
          "too little cpu");
    check(SMALL, "{'containers': [{'resources': {'requests': {'cpu': 4}}}]}", 0, "too little cpu");
    check(SMALL, "{'containers': [{'resources': {'limits': {'memory': '3Gi'}}}]}", 2,
          "too little memory"); /* a limit alone is a request */
    check(SMALL,
          "{'containers': [{'resources': {'requests': {'memory': '2Gi'}, 'limits': {'memory': "
          "'8Gi'}}}]}",
          4, "too little memory");
    check(SMALL, "{'containers': [{'resources': {'limits': {'nvidia.com/gpu': '8'}}}]}", 1,
          "too little nvidia.com/gpu");
    check(SMALL, "{'containers': [{'resources': {'limits': {'rdma/hca': 1}}}]}", 0,
          "too little rdma/hca");
    /* all containers run at once, initial ones before them, one by one */
    check(SMALL,
          "{'containers': [{'resources': {'requests': {'cpu': 1}}}, {'resources': {'requests': "
          "{'cpu': '900m'}}}],"
          " 'initContainers': [{'resources': {'requests': {'cpu': '1500m'}}}]}",
          2, "too little cpu");
    check(SMALL,
          "{'containers': [{'resources': {'requests': {'cpu': '100m'}}}],"
          " 'initContainers': [{'resources': {'requests': {'cpu': 2}}}, {'resources': {'requests': "
          "{'cpu': 1}}}]}",
          1, "too little cpu");
    /* YAML leaves fractions unquoted */
    check(SMALL,
          "{'containers': [{'resources': {'requests': {'cpu': 0.5}, 'limits': {'cpu': 1.5}}}]}", 7,
          "too little cpu");
    /* one that stays runs beside what comes after it */
    check(
        SMALL,
        "{'containers': [{'resources': {'requests': {'cpu': 1}}}],"
        " 'initContainers': [{'restartPolicy': 'Always', 'resources': {'requests': {'cpu': 3}}}]}",
        0, "too little cpu");
    check("'status': {}", "{'containers': [{'resources': {'requests': {'cpu': 400}}}]}", ANY, "");
}

/* What the pod says itself replaces what its containers come to. */
static void test_amounts_of_the_pod(void **state)
{
    static const char huge[] = NODE_OF("'cpu': '8', 'pods': '110', 'hugepages-2Mi': '1Gi'");
    (void)state;
    check(SMALL, "{'resources': {'requests': {'cpu': 60}}, 'containers': [{}]}", 0,
          "too little cpu");
    check(SMALL,
          "{'resources': {'requests': {'cpu': 1}}, 'containers': [{'resources': {'limits': "
          "{'cpu': 3, 'memory': '4Gi'}}}]}",
          2, "too little memory");
    check(SMALL, "{'resources': {'limits': {'memory': '3Gi'}}, 'containers': [{}]}", 2,
          "too little memory"); /* a request, as nobody asks for less */
    check(SMALL,
          "{'resources': {'limits': {'cpu': 3}}, 'containers': [{'resources': {'requests': "
          "{'cpu': '1300m'}}}]}",
          3, "too little cpu");
    check(SMALL,
          "{'resources': {'requests': {'nvidia.com/gpu': '9'}}, 'containers': [{'resources': "
          "{'limits': {'nvidia.com/gpu': '4'}}}]}",
          2, "too little nvidia.com/gpu"); /* pods cannot say that */
    check(huge,
          "{'resources': {'limits': {'hugepages-2Mi': '512Mi'}}, 'containers': [{'resources': "
          "{'limits': {'hugepages-2Mi': '256Mi'}}}]}",
          2, "too little hugepages-2Mi");
}

/* Of another kind, on the node and on one that is not known. */
static void test_other_pods(void **state)
{
    char why[NODE_FIT_WHY];
    struct node_fit *fit = NULL;
    struct predict_worker there[] = {{.node = "n"}, {.node = "other"}, {.node = "n"}, {0}};
    (void)state;
    json_t *nodes = quoted_json("[{'metadata': {'name': 'n'}, " SMALL "}]", 0);
    json_t *pod = quoted_json("{'containers': [{'resources': {'requests': {'cpu': '900m'}}}]}", 0);
    json_t *other = quoted_json("{'containers': [{'resources': {'requests': {'cpu': 1}}}]}", 0);
    assert_int_equal(node_fit_new(nodes, pod, &fit, NULL), 0);
    assert_int_equal(node_fit_room(fit, "n", why), 4);
    assert_string_equal(why, "too little cpu");
    assert_int_equal(node_fit_add_pods(fit, other, there, 4, NULL), 0);
    assert_int_equal(node_fit_room(fit, "n", why), 2); /* 1900m are left */
    assert_string_equal(why, "too little cpu beside the job's other pods");
    assert_int_equal(node_fit_add_pods(fit, other, there, 4, NULL), 0);
    assert_int_equal(node_fit_room(fit, "n", why), 0);
    node_fit_free(fit);
    json_decref(nodes);
    json_decref(pod);
    json_decref(other);
}

/* A node without what others have of a plugin takes pods for the devices of a class that it has. */
static void test_devices_of_a_class(void **state)
{
    char why[NODE_FIT_WHY];
    struct node_fit *fit = NULL;
    (void)state;
    json_t *nodes =
        quoted_json("[{'metadata': {'name': 'plugin'}, " SMALL "}, {'metadata': {'name': "
                    "'dra'}, " CPUS "}, {'metadata': {'name': 'cpus'}, " CPUS "}]",
                    0);
    json_t *classes = quoted_json("[{'metadata': {'name': 'gpu.nvidia.com'}, 'spec': "
                                  "{'extendedResourceName': 'nvidia.com/gpu'}}]",
                                  0);
    json_t *pod =
        quoted_json("{'containers': [{'resources': {'limits': {'nvidia.com/gpu': 2}}}]}", 0);
    json_t *devices = quoted_json("{'dra': 5}", 0);
    assert_int_equal(node_fit_new(nodes, pod, &fit, NULL), 0);
    node_fit_use_classes(fit, classes, 36);
    assert_int_equal(node_fit_room(fit, "cpus", why), 110); /* a claim for them decides */
    assert_int_equal(node_fit_use_devices(fit, "nvidia.com/gpu", devices, NULL), 0);
    assert_int_equal(node_fit_room(fit, "plugin", why), 4);
    assert_int_equal(node_fit_room(fit, "dra", why), 2);
    assert_int_equal(node_fit_room(fit, "cpus", why), 0);
    assert_string_equal(why, "too little nvidia.com/gpu");
    node_fit_free(fit);
    json_decref(devices);
    json_decref(nodes);
    json_decref(classes);
    json_decref(pod);
}

static void test_no_amount(void **state)
{
    struct node_fit *fit = NULL;
    struct drarun_error err = {0};
    (void)state;
    json_t *pod = quoted_json("{'containers': [{'resources': {'requests': {'cpu': 'much'}}}]}", 0);
    assert_int_equal(node_fit_new(NULL, pod, &fit, &err), -EINVAL);
    assert_non_null(strstr(err.text, "cpu"));
    json_decref(pod);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taints),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_named_node),
        cmocka_unit_test(test_amounts),
        cmocka_unit_test(test_amounts_of_the_pod),
        cmocka_unit_test(test_other_pods),
        cmocka_unit_test(test_devices_of_a_class),
        cmocka_unit_test(test_no_amount),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
