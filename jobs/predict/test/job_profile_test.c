/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments: the folder of captured machines (tests/data/fixtures). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/predict/job_profile.h"
#include "lib/base/cleanup.h"
#include "lib/doc/value.h"

static const char *fixtures;

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);
    if (!json)
        fail_msg("%s: %s", error.text, text);
    return json;
}

/* A captured machine, as a node of that name; labels: with those of the capture. */
static void add_machine(const char *machine, const char *name, bool labels, json_t *nodes,
                        json_t *slices)
{
    char path[512];
    json_error_t error;
    size_t i;
    json_t *slice;
    snprintf(path, sizeof path, "%s/%s.json", fixtures, machine);
    CLEANUP(json_decrefp) json_t *found = json_load_file(path, 0, &error);
    if (!found)
        fail_msg("%s: %s", path, error.text);
    json_t *node = json_object_get(found, "node");
    json_array_append_new(nodes, json_pack("{s:{s:s, s:O*}}", "metadata", "name", name, "labels",
                                           labels ? json_object_get(node, "labels") : NULL));
    json_array_foreach(json_object_get(found, "resourceSlices"), i, slice)
    {
        json_t *spec = json_object_get(slice, "spec");
        json_object_set_new(spec, "nodeName", json_string(name));
        json_object_set_new(json_object_get(spec, "pool"), "name", json_string(name));
        json_object_set_new(json_object_get(slice, "metadata"), "name",
                            json_sprintf("%s-%zu", name, json_array_size(slices)));
        json_array_append(slices, slice);
    }
}

#define JOB(gpus, nics, more)                                                                      \
    "{\"apiVersion\":\"drarun.dev/v1alpha1\",\"kind\":\"DraJob\",\"metadata\":{\"name\":\"j\"},"   \
    "\"spec\":{\"workers\":2,\"devices\":{" gpus "\"nics\":{\"count\":1," nics                     \
    "}},\"template\":{\"spec\":{" more                                                             \
    "\"containers\":[{\"name\":\"w\",\"image\":\"i\",\"command\":[\"c\"]}]}}}}"
#define GPU "\"gpus\":{\"count\":1,\"class\":\"gpu.nvidia.com\"},"
#define PLUGIN "\"gpus\":{\"count\":1,\"resource\":\"nvidia.com/gpu\"},"
#define NIC "\"class\":\"dranet\""
#define CHOSEN(label, value) "\"nodeSelector\":{\"" label "\":\"" value "\"},"
#define TYPE "node.kubernetes.io/instance-type"
#define PLAIN JOB(GPU, NIC, "")

struct case_found {
    const char *machines[2];
    bool labels;
    const char *job;
    const char *profile; /* of the spec afterwards */
    size_t mounts;
    const char *why; /* a part of it */
};

static const struct case_found cases[] = {
    /* by the label of the instance type, by an attribute of the NICs */
    {{"a4-highgpu-8g"}, true, PLAIN, "gke-a4", 2, "node label"},
    {{"a4-highgpu-8g", "a4-highgpu-8g"}, false, PLAIN, "gke-a4", 2, "attribute gce.dra.net/mach"},
    {{"a3-ultragpu-8g"}, true, PLAIN, "gke-a3u", 2, ""},
    {{"a4x-highgpu-4g"}, true, PLAIN, "gke-a4x", 2, ""},
    {{"azure-nd96isr-h100-v5"}, true, PLAIN, "azure-ndv5", 1, ""},
    {{"oke-gb200-v3-4"}, true, PLAIN, "oci-gb200", 0, ""},
    /* a machine without rules for pods: found, and nothing is written */
    {{"aws-p4d-24xlarge"}, true, PLAIN, "auto", 0, "node label"},
    /* nothing names it */
    {{"dgx-h100"}, true, PLAIN, "auto", 0, "no label and no device of node n0 names its machine"},
    {{"dgx-h100", "a4-highgpu-8g"}, true, PLAIN, "auto", 0, "node n0"},
    /* machines differ, and nodeSelector or an affinity chooses */
    {{"a4-highgpu-8g", "a3-ultragpu-8g"},
     true,
     PLAIN,
     "auto",
     0,
     "node n0 is of gke-a4, and node n1 of gke-a3u"},
    {{"a4-highgpu-8g", "a3-ultragpu-8g"},
     true,
     JOB(GPU, NIC, CHOSEN("cloud.google.com/gke-accelerator", "nvidia-h200-141gb")),
     "gke-a3u",
     2,
     "nodeSelector: node label cloud.google.com/gke-accelerator"},
    {{"a4-highgpu-8g", "dgx-h100"},
     true,
     JOB(GPU, NIC,
         "\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"
         "\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"" TYPE
         "\",\"operator\":\"Exists\"}]}]}}},"),
     "gke-a4",
     2,
     ""},
    /* selectors choose: DraNet publishes the interfaces of nodes without RDMA, too */
    {{"a4-highgpu-8g", "small-l4-2gpu"},
     true,
     JOB(GPU, NIC ",\"selector\":\"device.attributes['dra.net'].rdma == true\"", ""),
     "gke-a4",
     2,
     ""},
    {{"a4-highgpu-8g"},
     true,
     JOB(GPU, NIC ",\"selector\":\"device.attributes['dra.net'].rdma == false && false\"", ""),
     "auto",
     0,
     "no node has such devices"},
    {{"a4-highgpu-8g"}, true, JOB(GPU, "\"class\":\"mine\"", ""), "auto", 0, "mine"},
    /* without a cluster */
    {{NULL}, true, PLAIN, "auto", 0, "the nodes are not known"},
    {{NULL}, true, JOB(GPU, NIC, CHOSEN(TYPE, "a4-highgpu-8g")), "gke-a4", 2, "nodeSelector"},
    /* GPUs of a device plugin: nodes that say nothing of it may have it */
    {{"a4-highgpu-8g"}, true, JOB(PLUGIN, NIC, ""), "gke-a4", 2, ""},
};

static void check(const struct case_found *c, size_t number, const struct profiles *profiles)
{
    CLEANUP(json_decrefp) json_t *nodes = json_array();
    CLEANUP(json_decrefp) json_t *list = json_array();
    static const char *const names[] = {"n0", "n1"};
    struct slices slices = {0};
    struct nodes_profile found;
    struct job_spec spec;
    struct drarun_error err = {0};
    size_t mounts = 0;
    for (size_t i = 0; i < 2 && c->machines[i]; i++)
        add_machine(c->machines[i], names[i], c->labels, nodes, list);
    assert_int_equal(slices_read(list, &slices, NULL), 0);
    const struct job_profile_cluster cluster = {.slices = &slices, .nodes = nodes};
    if (spec_parse("job", c->job, strlen(c->job), &spec, &err) < 0)
        fail_msg("case %zu: %s", number, err.text);
    assert_true(job_profile_is_open(&spec));
    assert_int_equal(
        job_profile_settle(&spec, profiles, c->machines[0] ? &cluster : NULL, &found, &err), 0);
    if (strcmp(spec.roles[0].nccl_profile, c->profile) != 0 || !strstr(found.why, c->why))
        fail_msg("case %zu: expected %s by \"%s\", got %s: %s", number, c->profile, c->why,
                 spec.roles[0].nccl_profile, found.why);
    const json_t *written = json_object_get(json_object_get(spec.document, "spec"), "nccl");
    assert_string_equal(value_text_or(written, "profile", "auto"), c->profile);
    while (mounts < MACHINE_MOUNTS_MAX && spec.roles[0].machine.mounts[mounts].name)
        mounts++;
    assert_int_equal(mounts, c->mounts);
    job_spec_done(&spec);
    slices_done(&slices);
}

static void of_captured_machines(void **state)
{
    (void)state;
    struct profiles profiles;
    assert_int_equal(profiles_builtin(&profiles, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check(&cases[i], i, &profiles);
    profiles_done(&profiles);
}

/* A node without the device plugin's resource does not count. */
static void by_allocatable_devices(void **state)
{
    (void)state;
    static const char job[] = JOB(PLUGIN, "\"resource\":\"rdma/nics\"", "");
    CLEANUP(json_decrefp)
    json_t *nodes = parse(
        "[{\"metadata\":{\"name\":\"a\",\"labels\":{\"" TYPE "\":\"a4-highgpu-8g\"}},\"status\":{"
        "\"allocatable\":{\"nvidia.com/gpu\":\"8\",\"rdma/nics\":\"8\"}}},"
        "{\"metadata\":{\"name\":\"b\",\"labels\":{\"" TYPE "\":\"a3-ultragpu-8g\"}},\"status\":{"
        "\"allocatable\":{\"nvidia.com/gpu\":\"8\",\"rdma/nics\":\"0\"}}},"
        "{\"metadata\":{\"name\":\"c\"},\"status\":{\"allocatable\":{\"cpu\":\"8\"}}}]");
    struct profiles profiles;
    struct slices slices = {0};
    struct nodes_profile found;
    struct job_spec spec;
    assert_int_equal(profiles_builtin(&profiles, NULL), 0);
    const struct job_profile_cluster cluster = {.slices = &slices, .nodes = nodes};
    assert_int_equal(spec_parse("job", job, strlen(job), &spec, NULL), 0);
    assert_int_equal(job_profile_settle(&spec, &profiles, &cluster, &found, NULL), 0);
    assert_string_equal(spec.roles[0].nccl_profile, "gke-a4");
    job_spec_done(&spec);
    profiles_done(&profiles);
}

/* GPUs of an extended resource that no plugin has: where devices of its class are. */
static void by_devices_of_a_class(void **state)
{
    static const char job[] = JOB(PLUGIN, NIC, "");
    static const struct {
        unsigned minor;
        const char *profile;
    } rows[] = {{35, "auto"}, {36, "gke-a4"}};
    (void)state;
    CLEANUP(json_decrefp)
    json_t *classes = parse("[{\"metadata\":{\"name\":\"gpu.nvidia.com\"},\"spec\":{"
                            "\"extendedResourceName\":\"nvidia.com/gpu\",\"selectors\":[{\"cel\":{"
                            "\"expression\":\"device.driver == 'gpu.nvidia.com'\"}}]}}]");
    CLEANUP(json_decrefp) json_t *nodes = json_array();
    CLEANUP(json_decrefp) json_t *list = json_array();
    struct profiles profiles;
    struct slices slices = {0};
    size_t i;
    json_t *node;
    assert_int_equal(profiles_builtin(&profiles, NULL), 0);
    add_machine("a4-highgpu-8g", "n0", true, nodes, list);
    json_array_foreach(nodes, i, node)
        json_object_set_new(node, "status", json_pack("{s:{s:s}}", "allocatable", "cpu", "8"));
    assert_int_equal(slices_read(list, &slices, NULL), 0);
    for (size_t r = 0; r < ARRAY_LEN(rows); r++) {
        const struct job_profile_cluster cluster = {
            .slices = &slices, .nodes = nodes, .classes = classes, .minor = rows[r].minor};
        struct job_spec spec;
        assert_int_equal(spec_parse("job", job, strlen(job), &spec, NULL), 0);
        assert_int_equal(job_profile_settle(&spec, &profiles, &cluster, NULL, NULL), 0);
        assert_string_equal(spec.roles[0].nccl_profile, rows[r].profile);
        job_spec_done(&spec);
    }
    slices_done(&slices);
    profiles_done(&profiles);
}

/* What the user says stays, and where no NIC is asked for nothing is mounted. */
static void jobs_that_are_not_open(void **state)
{
    (void)state;
    static const char *const jobs[] = {
        "{\"image\":\"i\",\"command\":[\"c\"],\"devices\":{\"gpus\":{\"count\":8,\"class\":"
        "\"gpu.nvidia.com\"}}}",
        "{\"image\":\"i\",\"command\":[\"c\"],\"devices\":{\"nics\":{\"count\":8,\"class\":"
        "\"dranet\"}},\"nccl\":{\"profile\":\"socket\"}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        struct job_spec spec;
        assert_int_equal(spec_parse("job", jobs[i], strlen(jobs[i]), &spec, NULL), 0);
        assert_false(job_profile_is_open(&spec));
        job_spec_done(&spec);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_captured_machines),
        cmocka_unit_test(by_allocatable_devices),
        cmocka_unit_test(by_devices_of_a_class),
        cmocka_unit_test(jobs_that_are_not_open),
    };
    assert_true(argc == 2);
    fixtures = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
