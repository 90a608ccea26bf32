/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/manifests/claims.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/cel/cel.h"

/* Of the spec that is made last. */
static struct spec_role role;

static struct job_spec job(uint32_t gpus, uint32_t nics, enum spec_align align)
{
    role = (struct spec_role){
        .workers = 2,
        .gpus = {.count = gpus, .class = "gpu.nvidia.com"},
        .nics = {.count = nics, .class = "dranet"},
        .align = align,
        .nccl_profile = "auto",
    };
    return (struct job_spec){
        .name = "job",
        .workers = 2,
        .roles = &role,
        .role_count = 1,
        .claims = SPEC_CLAIMS_DIRECT,
    };
}

/* "gpu-0*1 nic-0*2 | gpu-0+nic-0": requests with their counts (* alone: all), constraints. */
static char *shape(const json_t *claim, bool flat)
{
    struct buf out = BUF_INIT;
    const json_t *devices = json_object_get(claim, "devices");
    size_t i, j;
    json_t *item, *name;
    json_array_foreach(json_object_get(devices, "requests"), i, item)
    {
        const json_t *fields = flat ? item : json_object_get(item, "exactly");
        assert_non_null(json_object_get(fields, "deviceClassName"));
        buf_printf(&out, "%s%s*", i ? " " : "", json_string_value(json_object_get(item, "name")));
        if (json_object_get(fields, "count"))
            buf_printf(&out, "%lld", json_integer_value(json_object_get(fields, "count")));
        else
            assert_string_equal(json_string_value(json_object_get(fields, "allocationMode")),
                                "All");
    }
    json_array_foreach(json_object_get(devices, "constraints"), i, item)
    {
        const char *attribute = json_string_value(json_object_get(item, "matchAttribute"));
        const char *distinct = json_string_value(json_object_get(item, "distinctAttribute"));
        buf_add_str(&out, i ? " " : " | ");
        json_array_foreach(json_object_get(item, "requests"), j, name)
            buf_printf(&out, "%s%s", j ? "+" : "", json_string_value(name));
        if (distinct && strcmp(distinct, CLAIMS_NUMA_ATTRIBUTE) == 0)
            buf_add_str(&out, ":distinct-numa");
        else if (strcmp(attribute, CLAIMS_NUMA_ATTRIBUTE) == 0)
            buf_add_str(&out, ":numa");
        else if (strcmp(attribute, CLAIMS_ROOT_ATTRIBUTE) != 0)
            buf_printf(&out, ":%s", attribute);
    }
    return buf_take(&out);
}

static void expect(const struct job_spec *spec, unsigned step, const char *expected)
{
    static const enum claims_api apis[] = {CLAIMS_API_V1, CLAIMS_API_V1BETA2, CLAIMS_API_V1BETA1};
    for (size_t i = 0; i < ARRAY_LEN(apis); i++) {
        json_t *claim = NULL;
        assert_int_equal(claims_spec(&spec->roles[0], apis[i], step, &claim, NULL), 0);
        cleanup_free char *text = shape(claim, apis[i] == CLAIMS_API_V1BETA1);
        assert_string_equal(text, expected);
        json_decref(claim);
    }
}

static void test_pairs(void **state)
{
    static const struct {
        uint32_t gpus, nics;
        const char *shape;
    } cases[] = {
        {1, 1, "gpu-0*1 nic-0*1 | gpu-0+nic-0"},
        {2, 2, "gpu-0*1 nic-0*1 gpu-1*1 nic-1*1 | gpu-0+nic-0 gpu-1+nic-1"},
        {1, 2, "gpu-0*1 nic-0*2 | gpu-0+nic-0"},
        {4, 2, "gpu-0*2 nic-0*1 gpu-1*2 nic-1*1 | gpu-0+nic-0 gpu-1+nic-1"},
        {2, 3, "gpu-0*1 nic-0*1 gpu-1*1 nic-1*1 nic-more*1 | gpu-0+nic-0 gpu-1+nic-1"},
        {5, 2, "gpu-0*2 nic-0*1 gpu-1*2 nic-1*1 gpu-more*1 | gpu-0+nic-0 gpu-1+nic-1"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct job_spec spec = job(cases[i].gpus, cases[i].nics, SPEC_ALIGN_REQUIRED);
        assert_int_equal(claims_attempts(&spec), 1);
        expect(&spec, 0, cases[i].shape);
    }
}

static void test_ladder(void **state)
{
    struct job_spec spec = job(2, 2, SPEC_ALIGN_PREFERRED);
    (void)state;
    assert_int_equal(claims_attempts(&spec), 3);
    assert_int_equal(claims_alignment(&spec.roles[0]), CLAIMS_ALIGNED_BY_CLAIM);
    expect(&spec, 0, "gpu-0*1 nic-0*1 gpu-1*1 nic-1*1 | gpu-0+nic-0 gpu-1+nic-1");
    expect(&spec, 1, "gpu-0*1 nic-0*1 gpu-1*1 nic-1*1 | gpu-0+nic-0:numa gpu-1+nic-1:numa");
    expect(&spec, 2, "gpu*2 nic*2");
    assert_int_equal(claims_rung(&spec.roles[0], 0), CLAIMS_RUNG_ROOT);
    assert_int_equal(claims_rung(&spec.roles[0], 1), CLAIMS_RUNG_NUMA);
    assert_int_equal(claims_rung(&spec.roles[0], 2), CLAIMS_RUNG_NONE);

    spec.roles[0].gpus.count = spec.roles[0].nics.count = 8;
    assert_int_equal(claims_attempts(&spec), 2);
    assert_int_equal(claims_rung(&spec.roles[0], 1), CLAIMS_RUNG_NONE);
    spec.roles[0].gpus.count = spec.roles[0].nics.count = 2;

    spec.roles[0].align = SPEC_ALIGN_REQUIRED;
    assert_int_equal(claims_attempts(&spec), 1);
    assert_int_equal(claims_rung(&spec.roles[0], 0), CLAIMS_RUNG_ROOT);

    spec.roles[0].align = SPEC_ALIGN_NONE;
    assert_int_equal(claims_attempts(&spec), 1);
    assert_int_equal(claims_alignment(&spec.roles[0]), CLAIMS_NOT_ALIGNED);
    expect(&spec, 0, "gpu*2 nic*2");
}

/* A job that goes on to another step finds claims of an earlier one. match: the user's own
 * constraint, which is over all of them in each step. */
static void test_step_of_a_claim(void **state)
{
    static const char *const matches[] = {NULL, CLAIMS_NUMA_ATTRIBUTE};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(matches); i++) {
        struct job_spec spec = job(1, 1, SPEC_ALIGN_PREFERRED);
        json_t *claims[3];
        if (matches[i])
            strlist_add(&spec.roles[0].match, matches[i]);
        for (unsigned step = 0; step < ARRAY_LEN(claims); step++)
            assert_int_equal(claims_spec(&spec.roles[0], CLAIMS_API_V1, step, &claims[step], NULL),
                             0);
        for (unsigned a = 0; a < ARRAY_LEN(claims); a++)
            for (unsigned b = 0; b < ARRAY_LEN(claims); b++)
                assert_int_equal(claims_same_step(claims[a], claims[b]), a == b);
        for (unsigned step = 0; step < ARRAY_LEN(claims); step++)
            json_decref(claims[step]);
        strlist_done(&spec.roles[0].match);
    }
}

/* Where the machine has no common root, the NUMA node is the nearest that can be had. */
static void test_no_common_root(void **state)
{
    static const char aligned[] = "gpu-0*1 nic-0*1 gpu-1*1 nic-1*1 | gpu-0+nic-0:numa "
                                  "gpu-1+nic-1:numa";
    struct job_spec spec = job(2, 2, SPEC_ALIGN_PREFERRED);
    (void)state;
    assert_int_equal(machine_builtin("oci-gb200", &spec.roles[0].machine, NULL), 0);
    assert_int_equal(claims_alignment(&spec.roles[0]), CLAIMS_ALIGNED_BY_CLAIM);
    assert_int_equal(claims_attempts(&spec), 2);
    expect(&spec, 0, aligned);
    expect(&spec, 1, "gpu*2 nic*2");
    spec.roles[0].gpus.count = spec.roles[0].nics.count = 8; /* too costly for the allocator */
    assert_int_equal(claims_alignment(&spec.roles[0]), CLAIMS_ALIGNED_IN_POD);
    assert_int_equal(claims_attempts(&spec), 1);
    expect(&spec, 0, "gpu*8 nic*8");
    spec.roles[0].gpus.count = spec.roles[0].nics.count = 2;
    spec.roles[0].align = SPEC_ALIGN_REQUIRED;
    assert_int_equal(claims_attempts(&spec), 1);
    assert_int_equal(claims_rung(&spec.roles[0], 0), CLAIMS_RUNG_NUMA);
    expect(&spec, 0, aligned);
    machine_done(&spec.roles[0].machine);
}

/* Where no constraint can say it. */
static void test_aligned_in_pod(void **state)
{
    struct job_spec spec;
    (void)state;
    spec = job(8, 0, SPEC_ALIGN_REQUIRED);
    spec.roles[0].nics.all = true;
    assert_int_equal(claims_alignment(&spec.roles[0]), CLAIMS_ALIGNED_IN_POD);
    expect(&spec, 0, "gpu*8 nic*");

    spec = job(8, 8, SPEC_ALIGN_REQUIRED);
    spec.roles[0].gpus.class = NULL;
    spec.roles[0].gpus.resource = "nvidia.com/gpu";
    assert_int_equal(claims_alignment(&spec.roles[0]), CLAIMS_ALIGNED_IN_POD);
    expect(&spec, 0, "nic*8");
}

static void test_one_kind(void **state)
{
    struct job_spec spec = job(2, 0, SPEC_ALIGN_REQUIRED);
    (void)state;
    assert_int_equal(claims_alignment(&spec.roles[0]), CLAIMS_NOT_ALIGNED);
    expect(&spec, 0, "gpu*2");
    spec = job(0, 3, SPEC_ALIGN_PREFERRED);
    expect(&spec, 0, "nic*3");
    spec = job(0, 0, SPEC_ALIGN_PREFERRED);
    assert_false(claims_wanted(&spec));
    json_t *claim = NULL;
    struct drarun_error err = {0};
    assert_true(claims_spec(&spec.roles[0], CLAIMS_API_V1, 0, &claim, &err) < 0);
    assert_int_equal(err.kind, DRARUN_ERR_SPEC);
    assert_null(claim);
}

/* The user's own constraints stay on every step. */
static void test_match(void **state)
{
    struct job_spec spec = job(2, 2, SPEC_ALIGN_PREFERRED);
    (void)state;
    strlist_add(&spec.roles[0].gpus.match, "gpu.nvidia.com/partition2");
    expect(&spec, 0,
           "gpu-0*1 nic-0*1 gpu-1*1 nic-1*1 | gpu-0+nic-0 gpu-1+nic-1 "
           "gpu-0+gpu-1:gpu.nvidia.com/partition2");
    expect(&spec, 2, "gpu*2 nic*2 | gpu:gpu.nvidia.com/partition2");
    strlist_done(&spec.roles[0].gpus.match);
    strlist_add(&spec.roles[0].match, CLAIMS_NUMA_ATTRIBUTE);
    expect(&spec, 0,
           "gpu-0*1 nic-0*1 gpu-1*1 nic-1*1 | gpu-0+nic-0 gpu-1+nic-1 "
           "gpu-0+gpu-1+nic-0+nic-1:numa");
    expect(&spec, 2, "gpu*2 nic*2 | gpu+nic:numa");
    strlist_done(&spec.roles[0].match);
}

/* Each alternative has what holds for all, and its own. */
static void test_first_available(void **state)
{
    struct job_spec spec = job(2, 0, SPEC_ALIGN_NONE);
    struct spec_choice choices[2] = {{.class = "gpu.nvidia.com"}, {.class = "old.example.com"}};
    json_t *claim = NULL;
    (void)state;
    strlist_add(&spec.roles[0].gpus.selectors, "true");
    strlist_add(&choices[0].selectors, "1 < 2");
    choices[1].tolerations = json_pack("[{s:s}]", "operator", "Exists");
    spec.roles[0].gpus.choices = choices;
    spec.roles[0].gpus.choice_count = 2;
    assert_int_equal(claims_spec(&spec.roles[0], CLAIMS_API_V1, 0, &claim, NULL), 0);
    json_t *expected = json_loads(
        "{\"devices\": {\"requests\": [{\"name\": \"gpu\", \"firstAvailable\": ["
        "  {\"name\": \"choice-0\", \"deviceClassName\": \"gpu.nvidia.com\", \"count\": 2,"
        "   \"selectors\": [{\"cel\": {\"expression\": \"true\"}}, {\"cel\": {\"expression\": \"1 "
        "< 2\"}}]},"
        "  {\"name\": \"choice-1\", \"deviceClassName\": \"old.example.com\", \"count\": 2,"
        "   \"selectors\": [{\"cel\": {\"expression\": \"true\"}}],"
        "   \"tolerations\": [{\"operator\": \"Exists\"}]}]}]}}",
        0, NULL);
    assert_non_null(expected);
    assert_true(json_equal(claim, expected));
    json_t *classes = json_pack("[{s:{s:s}}]", "metadata", "name", "gpu.nvidia.com");
    assert_string_equal(claims_missing_class(&spec, classes), "old.example.com");
    json_decref(classes);
    json_decref(expected);
    json_decref(claim);
    json_decref(choices[1].tolerations);
    strlist_done(&choices[0].selectors);
    strlist_done(&spec.roles[0].gpus.selectors);
}

#define HAS(domain, id, amount)                                                                    \
    "\\\"" id "\\\" in device.capacity[" domain "] && device.capacity[" domain "][\\\"" id         \
    "\\\"].compareTo(quantity(\\\"" amount "\\\")) >= 0"

/* As the API has it and as a selector, which holds where the API server drops the field; versions
 * of servers that refuse the field have the selector alone. */
static void test_capacity(void **state)
{
    struct job_spec spec = job(2, 0, SPEC_ALIGN_NONE);
    struct spec_choice choices[2] = {{.class = "gpu.nvidia.com"}, {.class = "old.example.com"}};
    json_t *claim = NULL;
    (void)state;
    spec.roles[0].gpus.capacity = json_pack("{s:s, s:s}", "memory", "79Gi", "a.b/cores", "4");
    strlist_add(&spec.roles[0].gpus.selectors, "true");
    assert_int_equal(claims_spec(&spec.roles[0], CLAIMS_API_V1, 0, &claim, NULL), 0);
    json_t *expected =
        json_loads("{\"devices\": {\"requests\": [{\"name\": \"gpu\", \"exactly\": {"
                   "  \"deviceClassName\": \"gpu.nvidia.com\", \"count\": 2, \"selectors\": ["
                   "    {\"cel\": {\"expression\": \"true\"}}, {\"cel\": {\"expression\": \"" HAS(
                       "device.driver", "memory",
                       "79Gi") " && " HAS("\\\"a.b\\\"", "cores",
                                          "4") "\"}}],"
                                               "  \"capacity\": {\"requests\": {\"memory\": "
                                               "\"79Gi\", \"a.b/cores\": \"4\"}}}}]}}",
                   0, NULL);
    assert_non_null(expected);
    assert_true(json_equal(claim, expected));
    json_t *exactly = json_object_get(
        json_array_get(json_object_get(json_object_get(claim, "devices"), "requests"), 0),
        "exactly");
    json_t *selector = json_array_get(json_object_get(exactly, "selectors"), 1);
    struct drarun_error err = {0};
    if (cel_admit(
            json_string_value(json_object_get(json_object_get(selector, "cel"), "expression")),
            &err) < 0)
        fail_msg("%s", err.text);
    json_object_del(exactly, "capacity");
    json_decref(expected);
    expected = json_deep_copy(claim);
    json_decref(claim);
    assert_int_equal(claims_spec(&spec.roles[0], CLAIMS_API_V1BETA2, 0, &claim, NULL), 0);
    assert_true(json_equal(claim, expected));
    json_decref(expected);
    json_decref(claim);

    json_decref(spec.roles[0].gpus.capacity);
    spec.roles[0].gpus.capacity = json_pack("{s:s}", "memory", "40Gi");
    choices[1].capacity = json_pack("{s:s}", "a.b/cores", "4");
    spec.roles[0].gpus.choices = choices;
    spec.roles[0].gpus.choice_count = 2;
    assert_int_equal(claims_spec(&spec.roles[0], CLAIMS_API_V1, 0, &claim, NULL), 0);
    expected = json_loads(
        "{\"devices\": {\"requests\": [{\"name\": \"gpu\", \"firstAvailable\": ["
        "  {\"name\": \"choice-0\", \"deviceClassName\": \"gpu.nvidia.com\", \"count\": 2,"
        "   \"selectors\": [{\"cel\": {\"expression\": \"true\"}},"
        "     {\"cel\": {\"expression\": \"" HAS(
            "device.driver", "memory",
            "40Gi") "\"}}],"
                    "   \"capacity\": {\"requests\": {\"memory\": \"40Gi\"}}},"
                    "  {\"name\": \"choice-1\", \"deviceClassName\": \"old.example.com\", "
                    "\"count\": 2,"
                    "   \"selectors\": [{\"cel\": {\"expression\": \"true\"}}, {\"cel\": "
                    "{\"expression\": \"" HAS("device.driver", "memory", "40Gi") " && " HAS(
                        "\\\"a.b\\\"", "cores", "4") "\"}}],"
                                                     "   \"capacity\": {\"requests\": {\"memory\": "
                                                     "\"40Gi\", \"a.b/cores\": \"4\"}}}]}]}}",
        0, NULL);
    assert_non_null(expected);
    assert_true(json_equal(claim, expected));
    json_decref(expected);
    json_decref(claim);
    json_decref(choices[1].capacity);
    json_decref(spec.roles[0].gpus.capacity);
    strlist_done(&spec.roles[0].gpus.selectors);
}

/* Behind GPUs and NICs; parts of several groups are apart, and one attribute may be over all. */
static void test_cpus(void **state)
{
    struct job_spec spec = job(1, 1, SPEC_ALIGN_NONE);
    json_t *claim = NULL;
    (void)state;
    spec.roles[0].cpus = (struct spec_devices){
        .count = 2, .class = "dra.cpu", .capacity = json_pack("{s:s}", "dra.cpu/cpu", "16")};
    assert_int_equal(claims_spec(&spec.roles[0], CLAIMS_API_V1, 0, &claim, NULL), 0);
    cleanup_free char *text = shape(claim, false);
    assert_string_equal(text, "gpu*1 nic*1 cpu*2 | cpu:distinct-numa");
    json_decref(claim);
    spec.roles[0].cpus.count = 1;
    strlist_add(&spec.roles[0].match, CLAIMS_NUMA_ATTRIBUTE);
    expect(&spec, 0, "gpu*1 nic*1 cpu*1 | gpu+nic+cpu:numa");
    spec.roles[0].gpus.count = spec.roles[0].nics.count = 0;
    assert_true(claims_wanted_by(&spec.roles[0]));
    strlist_done(&spec.roles[0].match);
    assert_int_equal(claims_spec(&spec.roles[0], CLAIMS_API_V1, 0, &claim, NULL), 0);
    json_t *request =
        json_array_get(json_object_get(json_object_get(claim, "devices"), "requests"), 0);
    json_t *capacity = json_object_get(json_object_get(request, "exactly"), "capacity");
    json_t *expected = json_pack("{s:{s:s}}", "requests", "dra.cpu/cpu", "16");
    assert_true(json_equal(capacity, expected));
    json_decref(expected);
    json_decref(claim);
    json_decref(spec.roles[0].cpus.capacity);
}

static void test_config_and_selectors(void **state)
{
    struct job_spec spec = job(1, 1, SPEC_ALIGN_REQUIRED);
    (void)state;
    strlist_add(&spec.roles[0].nics.selectors, "device.attributes[\"dra.net\"].rdma == true");
    strlist_add(&spec.roles[0].nics.selectors, "true");
    spec.roles[0].nics.config = json_pack("{s:{s:i}}", "interface", "mtu", 8896);
    spec.roles[0].nics.config_driver = "dra.net";
    spec.roles[0].gpus.tolerations =
        json_pack("[{s:s, s:s}]", "key", "a.b/c", "operator", "Exists");
    json_t *claim = NULL;
    assert_int_equal(claims_spec(&spec.roles[0], CLAIMS_API_V1BETA1, 0, &claim, NULL), 0);
    json_t *expected = json_loads(
        "{\"devices\": {\"requests\": ["
        "  {\"name\": \"gpu-0\", \"deviceClassName\": \"gpu.nvidia.com\", \"count\": 1,"
        "   \"tolerations\": [{\"key\": \"a.b/c\", \"operator\": \"Exists\"}]},"
        "  {\"name\": \"nic-0\", \"deviceClassName\": \"dranet\", \"count\": 1, \"selectors\": ["
        "    {\"cel\": {\"expression\": \"device.attributes[\\\"dra.net\\\"].rdma == true\"}},"
        "    {\"cel\": {\"expression\": \"true\"}}]}],"
        " \"constraints\": [{\"requests\": [\"gpu-0\", \"nic-0\"],"
        "   \"matchAttribute\": \"resource.kubernetes.io/pcieRoot\"}],"
        " \"config\": [{\"requests\": [\"nic-0\"], \"opaque\": {\"driver\": \"dra.net\","
        "   \"parameters\": {\"interface\": {\"mtu\": 8896}}}}]}}",
        0, NULL);
    assert_non_null(expected);
    assert_true(json_equal(claim, expected));
    json_decref(expected);
    json_decref(claim);
    json_decref(spec.roles[0].nics.config);
    json_decref(spec.roles[0].gpus.tolerations);
    strlist_done(&spec.roles[0].nics.selectors);
}

static void test_compute_domain(void **state)
{
    struct job_spec spec = job(4, 4, SPEC_ALIGN_NONE);
    json_t *domain = NULL, *template = NULL;
    (void)state;
    spec.compute_domain = json_object();
    assert_int_equal(claims_compute_domain(&spec, &domain, &template, NULL), 0);
    assert_string_equal(json_string_value(template), "job-channel");
    assert_int_equal(json_integer_value(json_object_get(domain, "numNodes")), 0);
    json_decref(domain);
    json_decref(template);
    json_decref(spec.compute_domain);

    spec.compute_domain = json_pack("{s:{s:s, s:{s:s}}}", "channel", "allocationMode", "All",
                                    "resourceClaimTemplate", "name", "mine");
    assert_int_equal(claims_compute_domain(&spec, &domain, &template, NULL), 0);
    assert_string_equal(json_string_value(template), "mine");
    json_t *channel = json_object_get(domain, "channel");
    assert_string_equal(json_string_value(json_object_get(channel, "allocationMode")), "All");
    json_decref(domain);
    json_decref(template);
    json_decref(spec.compute_domain);
}

static void test_api_names(void **state)
{
    (void)state;
    assert_int_equal(claims_api_parse("v1"), CLAIMS_API_V1);
    assert_int_equal(claims_api_parse("resource.k8s.io/v1beta2"), CLAIMS_API_V1BETA2);
    assert_int_equal(claims_api_parse("v1beta1"), CLAIMS_API_V1BETA1);
    assert_int_equal(claims_api_parse("v1alpha3"), 0);
    assert_string_equal(claims_api_version(CLAIMS_API_V1), "resource.k8s.io/v1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),           cmocka_unit_test(test_ladder),
        cmocka_unit_test(test_step_of_a_claim), cmocka_unit_test(test_aligned_in_pod),
        cmocka_unit_test(test_one_kind),        cmocka_unit_test(test_first_available),
        cmocka_unit_test(test_capacity),        cmocka_unit_test(test_cpus),
        cmocka_unit_test(test_match),           cmocka_unit_test(test_config_and_selectors),
        cmocka_unit_test(test_compute_domain),  cmocka_unit_test(test_api_names),
        cmocka_unit_test(test_no_common_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
