/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/manifests/limits.h"
#include "jobs/profiles/profiles.h"
#include "lib/base/cleanup.h"

/* Of the spec that is made last. */
static struct spec_role role;

static struct job_spec job(void)
{
    role = (struct spec_role){
        .workers = 11,
        .gpus = {.count = 8, .class = "gpu.nvidia.com"},
        .nics = {.count = 8, .class = "dranet"},
        .align = SPEC_ALIGN_PREFERRED,
        .nccl_profile = "auto",
    };
    return (struct job_spec){.name = "job", .workers = 11, .roles = &role, .role_count = 1};
}

/* expected: a part of the error; NULL: accepted. */
static void expect(const struct job_spec *spec, const char *expected)
{
    struct drarun_error err = {0};
    int rc = limits_check(spec, &err);
    if (!expected) {
        assert_string_equal(err.text, "");
        assert_int_equal(rc, 0);
        return;
    }
    assert_true(rc < 0);
    assert_int_equal(err.kind, DRARUN_ERR_SPEC);
    if (!strstr(err.text, expected))
        fail_msg("\"%s\" lacks \"%s\"", err.text, expected);
}

static void test_names(void **state)
{
    struct job_spec spec = job();
    char name[80];
    (void)state;
    expect(&spec, NULL);
    static const char *const bad[] = {"", "Job", "-a", "a-", "a.b", "a b", "\xc3\xa4"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        spec.name = bad[i];
        expect(&spec, "metadata.name: expected");
    }
    memset(name, 'a', sizeof name);
    spec.name = name;
    name[55] = '\0';
    expect(&spec, NULL);
    name[55] = 'a';
    name[56] = '\0';
    expect(&spec, "metadata.name: 56 bytes: expected at most 55, because derived names, such as "
                  "NAME-channel, have at most 63");
    spec = job();
    spec.namespace = "A";
    expect(&spec, "metadata.namespace");
    spec.namespace = "team";
    spec.queue = "no queue";
    expect(&spec, "spec.queue");
}

static void test_labels(void **state)
{
    static const struct {
        const char *key, *value, *error;
    } cases[] = {
        {"team", "a", NULL},
        {"example.com/team", "", NULL},
        {"team", "two words", "metadata.labels[\"team\"]: \"two words\" is no label's value"},
        {"a/b/c", "x", "is no key"},
        {"-team", "x", "is no key"},
        {"drarun.dev/job", "x", "are set by drarun"},
        {"team", "1234567890123456789012345678901234567890123456789012345678901234", "at most 63"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct job_spec spec = job();
        spec.labels = json_pack("{s:s}", cases[i].key, cases[i].value);
        expect(&spec, cases[i].error);
        json_decref(spec.labels);
    }
    struct job_spec spec = job();
    spec.annotations = json_pack("{s:s}", "note", "two words, and more");
    expect(&spec, NULL);
    json_object_set_new(spec.annotations, "kueue.x-k8s.io/job-min-parallelism", json_string("1"));
    expect(&spec, NULL);
    spec.queue = "q";
    expect(&spec, "metadata.annotations[\"kueue.x-k8s.io/job-min-parallelism\"]: Kueue would start "
                  "fewer workers");
    json_decref(spec.annotations);
    spec = job();
    spec.annotations = json_pack("{s:s}", "a/b/c", "x");
    expect(&spec, "metadata.annotations: \"a/b/c\" is no key: expected [PREFIX/]NAME");
    json_decref(spec.annotations);
    char *text = calloc(1, LIMIT_ANNOTATIONS);
    assert_non_null(text);
    memset(text, 'a', LIMIT_ANNOTATIONS - 1);
    spec.annotations = json_pack("{s:s}", "k", text);
    expect(&spec, NULL);
    json_object_set_new(spec.annotations, "l", json_string(""));
    expect(&spec, "metadata.annotations: 262145 bytes; at most 262144");
    json_decref(spec.annotations);
    free(text);
}

static void test_counts(void **state)
{
    struct job_spec spec = job();
    (void)state;
    spec.roles[0].gpus.count = spec.roles[0].nics.count = 16;
    expect(&spec, NULL);
    spec.roles[0].cpus = (struct spec_devices){.count = 2, .class = "dra.cpu"};
    expect(&spec, "spec.devices: 16 GPUs and 16 NICs with groups of CPUs are 34 devices");
    spec.roles[0].cpus = (struct spec_devices){0};
    spec.roles[0].nics.count = 17;
    expect(&spec, "spec.devices: 16 GPUs and 17 NICs are 33 devices; a worker's claim holds 32");
    spec.roles[0].gpus.class = NULL; /* the device plugin's do not count */
    spec.roles[0].gpus.resource = "nvidia.com/gpu";
    expect(&spec, NULL);
    spec.roles[0].nics.count = 33;
    expect(&spec, "spec.devices.nics.count: 33 devices");
    spec.roles[0].nics.count = 1;
    spec.roles[0].gpus.resource = "gpus";
    expect(&spec, "spec.devices.gpus.resource: expected an extended resource, as nvidia.com/gpu");
    spec.roles[0].gpus.resource = "a/b/c";
    expect(&spec, "spec.devices.gpus.resource: expected an extended resource, as nvidia.com/gpu");
    spec.roles[0].gpus = (struct spec_devices){.count = 1, .class = "No_Class"};
    expect(&spec, "spec.devices.gpus.class: \"No_Class\" is no name of a DeviceClass");
}

static void test_constraints(void **state)
{
    struct job_spec spec = job();
    (void)state;
    for (int i = 0; i < 24; i++)
        strlist_add(&spec.roles[0].gpus.match, "gpu.nvidia.com/partition4");
    expect(&spec, NULL);
    strlist_add(&spec.roles[0].gpus.match, "gpu.nvidia.com/partition4");
    expect(&spec, "33 constraints");
    strlist_done(&spec.roles[0].gpus.match);
    strlist_add(&spec.roles[0].gpus.match, "partition4");
    expect(&spec, "spec.devices.gpus.match[0]: expected DOMAIN/ATTRIBUTE");
    strlist_done(&spec.roles[0].gpus.match);
}

static void test_expressions(void **state)
{
    struct job_spec spec = job();
    char *expression = malloc(LIMIT_CEL_BYTES + 2);
    (void)state;
    assert_non_null(expression);
    memset(expression, ' ', LIMIT_CEL_BYTES + 1);
    expression[LIMIT_CEL_BYTES + 1] = '\0';
    strlist_add(&spec.roles[0].nics.selectors, expression + 1);
    expect(&spec, NULL);
    strlist_add(&spec.roles[0].nics.selectors, expression);
    expect(&spec, "spec.devices.nics.selectors[1]: 10241 bytes");
    strlist_done(&spec.roles[0].nics.selectors);
    free(expression);
    for (int i = 0; i < 33; i++)
        strlist_add(&spec.roles[0].nics.selectors, "true");
    expect(&spec, "spec.devices.nics: 33 selectors; a request takes 32");
    strlist_done(&spec.roles[0].nics.selectors);
    for (int i = 0; i < 32; i++)
        strlist_add(&spec.roles[0].nics.selectors, "true");
    expect(&spec, NULL);
    spec.roles[0].nics.capacity = json_object(); /* which is one more */
    expect(&spec, "33 selectors with those of all and of capacity");
    json_decref(spec.roles[0].nics.capacity);
    strlist_done(&spec.roles[0].nics.selectors);
}

static void test_config(void **state)
{
    struct job_spec spec = job();
    (void)state;
    spec.roles[0].nics.config = json_object();
    expect(&spec, "spec.devices.nics.config: needs the name of the driver");
    spec.roles[0].nics.config_driver = "dra.net";
    expect(&spec, NULL);
    char *text = calloc(1, LIMIT_OPAQUE_BYTES + 1);
    assert_non_null(text);
    memset(text, 'a', LIMIT_OPAQUE_BYTES);
    json_object_set_new(spec.roles[0].nics.config, "x", json_string(text));
    expect(&spec, "a driver's configuration takes 10240");
    free(text);
    json_decref(spec.roles[0].nics.config);
}

/* By the table that derivation reads. */
static void test_machines(void **state)
{
    struct job_spec spec = job();
    (void)state;
    assert_int_equal(machine_builtin("azure-ndv5", &spec.roles[0].machine, NULL), 0);
    expect(&spec, NULL);
    spec.roles[0].align = SPEC_ALIGN_REQUIRED;
    expect(&spec, NULL);
    machine_done(&spec.roles[0].machine);
    spec = job();
    assert_int_equal(machine_builtin("gke-a4x", &spec.roles[0].machine, NULL), 0);
    expect(&spec, "spec.devices.nics.count: 8; gke-a4x hands out its 4 NICs");
    spec.roles[0].nics.count = 4;
    expect(&spec, NULL);
    spec.roles[0].nics.all = true;
    expect(&spec, NULL);
    machine_done(&spec.roles[0].machine);
}

static void test_a_sites_machine(void **state)
{
    struct job_spec spec = job();
    struct profiles profiles;
    json_t *site = json_loads(
        "{\"profiles\": [{\"name\": \"ours\", \"variables\": [], \"machine\": {\"gpus\": 4, "
        "\"nics\": 2, \"wholeNode\": true, \"noRoot\": \"its switches are virtual\", \"mounts\": "
        "[{\"name\": \"lib\", \"host\": \"/opt/a\", \"pod\": \"/opt/b\"}]}}]}",
        0, NULL);
    (void)state;
    assert_int_equal(profiles_load(site, &profiles, NULL), 0);
    spec.roles[0].nccl_profile = "ours";
    assert_int_equal(spec_use_profiles(&spec, &profiles, NULL), 0);
    profiles_done(&profiles);
    json_decref(site);
    expect(&spec, "spec.devices.nics.count: 8; ours hands out its 2 NICs");
    assert_string_equal(spec.roles[0].machine.no_root, "its switches are virtual");
    assert_string_equal(spec.roles[0].machine.mounts[0].host, "/opt/a");
    assert_null(spec.roles[0].machine.mounts[1].name);
    machine_done(&spec.roles[0].machine);
    assert_int_equal(machine_builtin("auto", &spec.roles[0].machine, NULL), 0);
    assert_null(spec.roles[0].machine.profile);
    assert_int_equal(machine_builtin("no such", &spec.roles[0].machine, NULL), 0);
    assert_null(spec.roles[0].machine.profile);
}

static void test_document(void **state)
{
    struct job_spec spec = job();
    char *text = calloc(1, LIMIT_DOCUMENT + 1);
    (void)state;
    assert_non_null(text);
    memset(text, 'a', LIMIT_DOCUMENT - strlen("{\"x\":\"\"}"));
    spec.document = json_pack("{s:s}", "x", text);
    expect(&spec, NULL);
    json_decref(spec.document);
    text[strlen(text)] = 'a';
    spec.document = json_pack("{s:s}", "x", text);
    expect(&spec, "the document takes 524289 bytes as JSON");
    json_decref(spec.document);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),       cmocka_unit_test(test_labels),
        cmocka_unit_test(test_counts),      cmocka_unit_test(test_constraints),
        cmocka_unit_test(test_expressions), cmocka_unit_test(test_config),
        cmocka_unit_test(test_machines),    cmocka_unit_test(test_a_sites_machine),
        cmocka_unit_test(test_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
