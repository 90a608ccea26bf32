/* SPDX-License-Identifier: Apache-2.0 */
/* Which taints a worker's pod tolerates, and what of the user's stays. */
#include "jobs/manifests/tolerations.h"

#include <jansson.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/test/quoted_json.h"

static void put(struct buf *out, const struct job_spec *spec)
{
    struct toleration list[TOLERATIONS_MAX];
    size_t count = tolerations_of(spec, &spec->roles[0], list);
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s%s=%s", i ? " " : "", list[i].key, list[i].value ? list[i].value : "*");
}

/* A job with one role of these. */
#define CHECK(expected, ...)                                                                       \
    do {                                                                                           \
        struct buf got = BUF_INIT;                                                                 \
        struct spec_role role = {__VA_ARGS__};                                                     \
        buf_add_str(&got, "");                                                                     \
        put(&got, &(struct job_spec){.roles = &role, .role_count = 1});                            \
        assert_string_equal(got.data ? got.data : "", expected);                                   \
        buf_done(&got);                                                                            \
    } while (0)

static void test_what_is_asked_for(void **state)
{
    (void)state;
    CHECK("", .workers = 2);
    CHECK("", .gpus = {.class = "gpu.nvidia.com"}); /* none of them */
    CHECK("", .nics = {.count = 8, .class = "dranet"});
    CHECK("nvidia.com/gpu=*", .gpus = {.count = 1, .class = "gpu.nvidia.com"});
    CHECK("nvidia.com/gpu=*", .gpus = {.all = true, .class = "h100-of-team-a"});
    CHECK("amd.com/gpu=*", .gpus = {.count = 8, .class = "gpu.amd.com"});
    CHECK("nvidia.com/mig-1g.10gb=*", .gpus = {.count = 1, .resource = "nvidia.com/mig-1g.10gb"});
    CHECK("nvidia.com/gpu=* rdma/hca=*", .gpus = {.count = 8, .resource = "nvidia.com/gpu"},
          .nics = {.count = 8, .resource = "rdma/hca"});
    struct buf got = BUF_INIT;
    struct spec_role none = {.workers = 2};
    const struct job_spec domain = {
        .roles = &none, .role_count = 1, .compute_domain = json_object()};
    put(&got, &domain);
    assert_string_equal(got.data, "nvidia.com/gpu=*");
    buf_done(&got);
    json_decref(domain.compute_domain);
}

static void test_of_the_machine(void **state)
{
    (void)state;
    struct drarun_error err = {0};
    struct machine machine;
    assert_int_equal(machine_builtin("gke-a4x", &machine, &err), 0);
    CHECK("nvidia.com/gpu=* kubernetes.io/arch=arm64",
          .gpus = {.count = 4, .class = "gpu.nvidia.com"}, .machine = machine);
    machine_done(&machine);
    assert_int_equal(machine_builtin("gke-a4", &machine, &err), 0);
    CHECK("nvidia.com/gpu=*", .gpus = {.count = 8, .class = "gpu.nvidia.com"}, .machine = machine);
    machine_done(&machine);
}

/* What the template tolerates already is not said twice. */
static void test_of_the_template(void **state)
{
    static const struct {
        const char *own;
        const char *added;
    } cases[] = {
        {"{}", "nvidia.com/gpu=*"},
        {"{'key': 'nvidia.com/gpu', 'operator': 'Exists'}", ""},
        {"{'key': 'nvidia.com/gpu', 'operator': 'Exists', 'effect': 'NoSchedule'}", ""},
        {"{'key': 'nvidia.com/gpu', 'operator': 'Exists', 'effect': 'NoExecute'}",
         "nvidia.com/gpu=*"},
        {"{'operator': 'Exists'}", ""},
        {"{'key': 'nvidia.com/gpu', 'value': 'present', 'effect': 'NoSchedule'}",
         "nvidia.com/gpu=*"}, /* a taint of another value would keep it away */
        {"{'key': 'other', 'operator': 'Exists'}", "nvidia.com/gpu=*"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[200];
        snprintf(text, sizeof text, "{'spec': {'tolerations': [%s]}}", cases[i].own);
        json_t *template = quoted_json(text, 0);
        CHECK(cases[i].added, .gpus = {.count = 1, .class = "gpu.nvidia.com"},
              .template = template);
        json_decref(template);
    }
}

static void test_merged(void **state)
{
    static const struct toleration more[] = {{"nvidia.com/gpu", NULL, "nodes with GPUs"},
                                             {"kubernetes.io/arch", "arm64", "Arm nodes"}};
    (void)state;
    json_t *own = json_pack("[{s:s, s:s}]", "key", "team", "operator", "Exists");
    json_t *expected = json_pack("[{s:s, s:s}, {s:s, s:s, s:s}, {s:s, s:s, s:s, s:s}]", "key",
                                 "team", "operator", "Exists", "key", "nvidia.com/gpu", "operator",
                                 "Exists", "effect", "NoSchedule", "key", "kubernetes.io/arch",
                                 "operator", "Equal", "value", "arm64", "effect", "NoSchedule");
    json_t *merged = tolerations_merge(own, more, ARRAY_LEN(more));
    assert_true(json_equal(merged, expected));
    assert_int_equal(json_array_size(own), 1); /* the caller's stays */
    json_decref(merged);
    json_decref(expected);
    json_decref(own);
}

/* Of a node that does not answer: 20 s, unless the user has said something of that. */
static void test_of_the_launcher(void **state)
{
#define SECONDS(key)                                                                               \
    "{'key': 'node.kubernetes.io/" key "', 'operator': 'Exists', 'effect': 'NoExecute', "          \
    "'tolerationSeconds': 20}"
#define GPU "{'key': 'nvidia.com/gpu', 'operator': 'Exists'}"
#define OWN                                                                                        \
    "{'key': 'node.kubernetes.io/unreachable', 'operator': 'Exists', 'effect': 'NoExecute', "      \
    "'tolerationSeconds': 90}"
    static const struct {
        const char *own, *all;
    } cases[] = {
        {"[]", "[" SECONDS("not-ready") "," SECONDS("unreachable") "]"},
        {"[" GPU "]", "[" GPU "," SECONDS("not-ready") "," SECONDS("unreachable") "]"},
        {"[" OWN "]", "[" OWN "," SECONDS("not-ready") "]"},
        {"[{'operator': 'Exists'}]", "[{'operator': 'Exists'}]"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(json_decrefp) json_t *own = quoted_json(cases[i].own, 0);
        CLEANUP(json_decrefp) json_t *all = quoted_json(cases[i].all, 0);
        CLEANUP(json_decrefp) json_t *got = tolerations_of_launcher(own);
        assert_true(json_equal(got, all));
    }
    CLEANUP(json_decrefp) json_t *none = tolerations_of_launcher(NULL);
    assert_int_equal(json_array_size(none), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_asked_for), cmocka_unit_test(test_of_the_machine),
        cmocka_unit_test(test_of_the_template),   cmocka_unit_test(test_merged),
        cmocka_unit_test(test_of_the_launcher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
