/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/profiles/profiles.h"
#include "lib/base/unconst.h"

static const char *detected_on(json_t *labels, const char *layer, const char *ibdev,
                               const char *arch)
{
    static char name[64];
    struct profiles profiles;
    char fact[256] = "";
    struct profile_facts facts = {
        .labels = labels, .link_layer = layer, .ibdev = ibdev, .arch = arch};
    assert_int_equal(profiles_builtin(&profiles, NULL), 0);
    const struct profile *found = profiles_detect(&profiles, &facts, fact, sizeof fact);
    strncpy(name, found ? found->name : "none", sizeof name - 1);
    assert_true(!found || fact[0]);
    profiles_done(&profiles);
    json_decref(labels);
    return name;
}

static const char *detected(json_t *labels, const char *layer, const char *ibdev)
{
    return detected_on(labels, layer, ibdev, NULL);
}

static json_t *instance(const char *type)
{
    return json_pack("{s:s}", "node.kubernetes.io/instance-type", type);
}

static void machine_types(void **unused)
{
    static const char *const table[][2] = {
        {"a4-highgpu-8g", "gke-a4"},
        {"a3-ultragpu-8g-nolssd", "gke-a3u"},
        {"a4x-highgpu-4g", "gke-a4x"},
        {"a4x-maxgpu-4g-metal", "gke-a4x-max"},
        {"a3-megagpu-8g", "gke-tcpxo"},
        {"a3-highgpu-8g", "gke-tcpx"},
        {"p5en.48xlarge", "aws-efa"},
        {"p6-b200.48xlarge", "aws-efa"},
        {"Standard_ND96isr_H100_v5", "azure-ndv5"},
        {"standard_nd96isrf_h200_v5", "azure-ndv5"},
        {"Standard_ND96amsr_A100_v4", "azure-ndv4"},
        {"Standard_ND128isr_GB300_v6", "azure-gb"},
        {"Standard_ND96isr_MI300X_v5", "azure-mi300x"},
        {"BM.GPU.H100.8", "oci-roce"},
        {"BM.GPU.GB200-v3.4", "oci-gb200"},
        {"gx3d-160x1792x8h100", "ibm-h100"},
        {"p4de.24xlarge", "aws-efa"},
        {"p5e.48xlarge", "aws-efa"},
        {"p6e-gb200.36xlarge", "aws-efa-gb"},
        {"g4-standard-384", "gke-g4"},
        {"BM.GPU4.8", "oci-roce"},
        {"BM.GPU.GB200-v2.4", "oci-gb200"},
        {"BM.GPU.GB300.4", "oci-gb200"},
        {"n2-standard-4", "none"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        assert_string_equal(detected(instance(table[i][0]), NULL, NULL), table[i][1]);
}

static void what_the_pod_shows(void **unused)
{
    (void)unused;
    assert_string_equal(detected(NULL, "InfiniBand", "mlx5_0"), "generic-ib");
    assert_string_equal(detected(NULL, "InfiniBand", "ibp0"), "coreweave-ib");
    assert_string_equal(detected_on(NULL, "InfiniBand", "ibp0", "arm64"), "coreweave-gb");
    assert_string_equal(detected_on(NULL, "Ethernet", "ibp0", "arm64"), "coreweave-roce");
    assert_string_equal(detected(NULL, "InfiniBand", "ibp15"), "coreweave-ib");
    /* udev's names by bus and slot, which any machine has with a distribution's rdma-core */
    assert_string_equal(detected(NULL, "InfiniBand", "ibp65s0"), "generic-ib");
    assert_string_equal(detected_on(NULL, "InfiniBand", "ibP2p1s0f0", "arm64"), "generic-ib");
    assert_string_equal(detected(NULL, "Ethernet", "mlx5_0"), "generic-roce");
    assert_string_equal(detected(NULL, "Ethernet", "erdma_0"), "alibaba-erdma");
    assert_string_equal(detected(NULL, NULL, NULL), "none");
    /* the label wins over what the pod shows */
    assert_string_equal(detected(instance("a4-highgpu-8g"), "InfiniBand", "mlx5_0"), "gke-a4");
}

static void a_site_adds_one(void **unused)
{
    struct profiles profiles;
    char fact[256];
    (void)unused;
    json_t *site = json_loads(
        "{\"profiles\": [{\"name\": \"ours\", \"detect\": {\"label\": {\"rack\": [\"gold-*\"]}}, "
        "\"variables\": [{\"name\": \"NCCL_IB_TC\", \"value\": \"96\", \"reason\": \"our "
        "switches\"}]}, {\"name\": \"generic-ib\", \"detect\": {\"linkLayer\": [\"InfiniBand\"]}, "
        "\"variables\": []}]}",
        0, NULL);
    assert_int_equal(profiles_load(site, &profiles, NULL), 0);
    struct profile_facts facts = {.labels = json_pack("{s:s}", "rack", "gold-7")};
    assert_string_equal(profiles_detect(&profiles, &facts, fact, sizeof fact)->name, "ours");
    /* one of a known name takes its place */
    assert_int_equal(json_array_size(profiles_find(&profiles, "generic-ib")->variables), 0);
    assert_non_null(profiles_find(&profiles, "gke-a4"));
    assert_true(profiles_is_of_site(&profiles, "ours"));
    assert_true(profiles_is_of_site(&profiles, "generic-ib"));
    assert_false(profiles_is_of_site(&profiles, "gke-a4"));
    assert_false(profiles_is_of_site(&profiles, "auto"));
    json_decref(unconst(facts.labels));
    profiles_done(&profiles);
    json_decref(site);
}

static void a_site_is_wrong(void **unused)
{
    static const char *const table[][2] = {
        {"[]", "expected an object"},
        {"{\"profiles\": [{}]}", "without a name"},
        {"{\"profiles\": [{\"name\": \"x\", \"colour\": 1}]}", "unknown key \"colour\""},
        {"{\"profiles\": [{\"name\": \"x\", \"script\": \"set.sh\"}]}",
         "script: expected an absolute path, got \"set.sh\""},
        {"{\"profiles\": [{\"name\": \"x\", \"script\": [\"/set.sh\"]}]}",
         "script has the wrong type"},
        {"{\"profiles\": [{\"name\": \"x\", \"c2c\": 1}]}", "c2c has the wrong type"},
        {"{\"profiles\": [{\"name\": \"x\", \"variables\": [{\"name\": \"A\"}]}]}",
         "expected name, value and reason"},
        {"{\"profiles\": [{\"name\": \"x\", \"variables\": [{\"name\": \"A=B\", \"value\": \"\", "
         "\"reason\": \"\"}]}]}",
         "expected name, value and reason"},
        {"{\"profiles\": [{\"name\": \"x\", \"detect\": {\"moon\": []}}]}", "unknown key \"moon\""},
        {"{\"profiles\": [{\"name\": \"x\", \"machine\": {\"wheels\": 4}}]}",
         "profile x: machine: unknown key \"wheels\""},
        {"{\"profiles\": [{\"name\": \"x\", \"machine\": {\"mounts\": [{\"name\": \"a\"}]}}]}",
         "a mount has name, host and pod"},
        {"{\"profiles\": [{\"name\": \"x\", \"sizes\": [{\"nicMbps\": \"fast\"}]}]}",
         "sizes: nicMbps has the wrong type"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct profiles profiles;
        struct drarun_error err = {0};
        json_t *site = json_loads(table[i][0], 0, NULL);
        assert_int_equal(profiles_load(site, &profiles, &err), -EINVAL);
        if (!strstr(err.text, table[i][1]))
            fail_msg("\"%s\" does not say \"%s\"", err.text, table[i][1]);
        json_decref(site);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machine_types),
        cmocka_unit_test(what_the_pod_shows),
        cmocka_unit_test(a_site_adds_one),
        cmocka_unit_test(a_site_is_wrong),
    };
    return cmocka_run_group_tests_name("profiles", tests, NULL, NULL);
}
