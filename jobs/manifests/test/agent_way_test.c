/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "jobs/manifests/agent_way.h"
#include "lib/base/cleanup.h"

static const struct {
    const char *pod, *text;
} cases[] = {
    {"{\"spec\":{\"volumes\":[{\"name\":\"scratch\",\"emptyDir\":{}}]}}", "by its claim"},
    {"{}", "by its claim"},
    {"{\"spec\":{\"volumes\":[{\"name\":\"drarun\",\"image\":{\"reference\":\"r/drarun:1\"}}]}}",
     "by an image volume of r/drarun:1"},
    {"{\"spec\":{\"volumes\":[{\"name\":\"drarun\",\"emptyDir\":{}}],\"initContainers\":["
     "{\"name\":\"other\",\"image\":\"o\"},{\"name\":\"drarun-agent\",\"image\":\"r/drarun:1\"}]}}",
     "copied by an init container of r/drarun:1"},
    {"{\"spec\":{\"initContainers\":[{\"name\":\"drarun-agent\"}]}}",
     "copied by an init container of ?"},
};

static void as_the_pod_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out = BUF_INIT;
        json_t *pod = json_loads(cases[i].pod, 0, NULL);
        assert_non_null(pod);
        agent_way_text(pod, &out);
        assert_string_equal(out.data, cases[i].text);
        buf_done(&out);
        json_decref(pod);
    }
}

static const struct {
    const char *kubelet, *runtime, *allocatable;
    bool copy;
} nodes[] = {
    {"v1.35.0", "containerd://2.1.0", "{\"a/nic\": \"4\"}", false},
    {"v1.36.3-gke.100", "containerd://2.2.0-rc.1", "{\"a/nic\": \"4\"}", false},
    {"v2.0.0", "containerd://3.0.0", "{\"a/nic\": \"4\"}", false},
    {"v1.34.2-eks-99", "containerd://2.2.0", "{\"a/nic\": \"4\"}", true},
    {"v1.36.0", "containerd://2.0.6", "{\"a/nic\": \"4\"}", true},
    {"v1.36.0", "containerd://1.7.27", "{\"a/nic\": \"4\"}", true},
    {"v1.36.0", "cri-o://1.36.0", "{\"a/nic\": \"4\"}", false},
    {"v1.34.0", "containerd://1.7.27", "{\"a/nic\": \"0\"}", false},
    {"v1.34.0", "containerd://1.7.27", "{}", false},
    {"?", "containerd://?", "{\"a/nic\": \"4\"}", false},
};

static bool is_copy(const struct spec_role *role, size_t i)
{
    CLEANUP(json_decrefp)
    json_t *list = json_pack(
        "[{s:{s:s, s:{s:s}}, s:{s:o, s:{s:s, s:s}}}]", "metadata", "name", "n0", "labels", "pool",
        "a", "status", "allocatable", json_loads(nodes[i].allocatable, 0, NULL), "nodeInfo",
        "kubeletVersion", nodes[i].kubelet, "containerRuntimeVersion", nodes[i].runtime);
    assert_non_null(list);
    return agent_way_is_copy(list, role);
}

/* A worker may get the node, which may not be able to mount images. */
static void as_the_nodes_can(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
        struct spec_role role = {.nics.resource = "a/nic"};
        if (is_copy(&role, i) != nodes[i].copy)
            fail_msg("%s, %s", nodes[i].kubelet, nodes[i].runtime);
        role.template = json_pack("{s:{s:{s:s}}}", "spec", "nodeSelector", "pool", "b");
        assert_false(is_copy(&role, i));
        json_decref(role.template);
    }
    struct spec_role role = {0};
    CLEANUP(json_decrefp) json_t *unknown = json_pack("[{s:{s:s}}]", "metadata", "name", "n0");
    assert_false(agent_way_is_copy(unknown, &role));
    assert_false(agent_way_is_copy(NULL, &role));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_pod_says),
        cmocka_unit_test(as_the_nodes_can),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
