/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/bench/bench_job.h"
#include "launcher/bench/measured_roles.h"
#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"

/* ---- what a cluster serves ---- */

#define CLASS(name, cel)                                                                           \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"selectors\":[{\"cel\":{\"expression\":"     \
    "\"" cel "\"}}]}}"
#define SLICE(driver, node, attributes)                                                            \
    "{\"metadata\":{\"name\":\"" driver node "\"},\"spec\":{\"driver\":\"" driver                  \
    "\",\"nodeName\":\"" node "\",\"pool\":{\"name\":\"" node                                      \
    "\",\"generation\":1,\"resourceSliceCount\":1},\"devices\":[{\"name\":\"d0\",\"attributes\":"  \
    "{" attributes "}}]}}"
#define NODE(name, type, allocatable)                                                              \
    "{\"metadata\":{\"name\":\"" name                                                              \
    "\",\"labels\":{\"node.kubernetes.io/instance-type\":\"" type                                  \
    "\"}},\"status\":{\"allocatable\":{" allocatable "}}}"
#define NVIDIA CLASS("gpu.nvidia.com", "device.driver == 'gpu.nvidia.com'")
#define MIG CLASS("mig.nvidia.com", "device.driver == 'gpu.nvidia.com' && type == 'mig'")
#define DRANET CLASS("fast", "device.driver == \\\"dra.net\\\"")
#define RDMA "\"dra.net/rdma\":{\"bool\":true}"
#define SELECTOR "device.attributes[\"dra.net\"].rdma == true"

struct case_served {
    const char *classes, *slices, *nodes;
    bool gpus, nics;
    struct served_source gpu, nic;
    const char *profile;
    const char *refused; /* NULL: found */
};

static const struct case_served served_cases[] = {
    /* GPUs of the device plugin, NICs by claim: GKE's managed DraNet */
    {CLASS("mrdma.google.com", "x"),
     "",
     NODE("a", "a4-highgpu-8g", "\"nvidia.com/gpu\":\"8\""),
     true,
     true,
     {"", "nvidia.com/gpu", ""},
     {"mrdma.google.com", "", ""},
     "gke-a4",
     NULL},
    /* both by claim; the driver of a class that is installed must run somewhere */
    {NVIDIA "," MIG "," DRANET,
     SLICE("gpu.nvidia.com", "a", "") "," SLICE("dra.net", "a", RDMA),
     NODE("a", "a4-highgpu-8g", "\"cpu\":\"8\"") "," NODE("b", "e2-medium", "\"cpu\":\"8\""),
     true,
     true,
     {"gpu.nvidia.com", "", ""},
     {"fast", "", SELECTOR},
     "gke-a4",
     NULL},
    {NVIDIA,
     "",
     NODE("a", "p5", "\"nvidia.com/gpu\":8,\"vpc.amazonaws.com/efa\":32"),
     true,
     true,
     {"", "nvidia.com/gpu", ""},
     {"", "vpc.amazonaws.com/efa", ""},
     "",
     NULL},
    /* nodes of two machines: no profile is right for both */
    {NVIDIA,
     SLICE("gpu.nvidia.com", "a", "") "," SLICE("gpu.nvidia.com", "b", ""),
     NODE("a", "a4-highgpu-8g", "") "," NODE("b", "a3-ultragpu-8g", ""),
     true,
     false,
     {"gpu.nvidia.com", "", ""},
     {"", "", ""},
     "",
     NULL},
    /* a class that chooses RDMA itself, and one where no device has any */
    {CLASS("r", "device.driver == 'dra.net' && device.attributes['dra.net'].rdma"),
     SLICE("dra.net", "a", RDMA),
     "",
     false,
     true,
     {"", "", ""},
     {"r", "", ""},
     "",
     NULL},
    {DRANET, SLICE("dra.net", "a", ""), "", false, true, {"", "", ""}, {"fast", "", ""}, "", NULL},
    {CLASS("one", "device.driver == 'dra.net'") "," CLASS("two", "device.driver == 'dra.net'"),
     SLICE("dra.net", "a", RDMA),
     "",
     false,
     true,
     {"", "", ""},
     {"", "", ""},
     "",
     "the DeviceClasses one and two both serve NICs: choose one with --nic-class"},
    {NVIDIA "," MIG,
     "",
     NODE("a", "x", "\"nvidia.com/gpu\":\"0\""),
     true,
     false,
     {"", "", ""},
     {"", "", ""},
     "",
     "(classes: gpu.nvidia.com, mig.nvidia.com), and no node has nvidia.com/gpu to allocate; name "
     "what serves them with --gpu-class or --gpu-resource"},
};

static json_t *array_of(const char *items)
{
    char text[4096];
    snprintf(text, sizeof text, "[%s]", items);
    json_t *array = json_loads(text, 0, NULL);
    assert_non_null(array);
    return array;
}

static void test_what_is_served(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(served_cases); i++) {
        const struct case_served *c = &served_cases[i];
        const struct served_objects objects = {array_of(c->classes), array_of(c->slices),
                                               array_of(c->nodes)};
        struct served served = {0};
        struct drarun_error err = {0};
        int rc = served_find(&objects, c->gpus, c->nics, &served, &err);
        if (rc < 0 && !c->refused)
            fail_msg("case %zu: %s", i, err.text);
        if (c->refused && (rc == 0 || !strstr(err.text, c->refused)))
            fail_msg("case %zu: expected \"%s\", got \"%s\"", i, c->refused, err.text);
        if (rc == 0) {
            assert_memory_equal(&served.gpus, &c->gpu, sizeof c->gpu);
            assert_memory_equal(&served.nics, &c->nic, sizeof c->nic);
            assert_string_equal(served.profile, c->profile);
        }
        json_decref(objects.classes);
        json_decref(objects.slices);
        json_decref(objects.nodes);
    }
}

/* ---- the job ---- */

static json_t *base_of(const char *spec)
{
    json_t *own = json_loads(spec, 0, NULL);
    assert_non_null(own);
    return json_pack("{s:s, s:s, s:{s:s}, s:o}", "apiVersion", "drarun.dev/v1alpha1", "kind",
                     "DraJob", "metadata", "name", "mine", "spec", own);
}

static json_t *at(const json_t *spec, const char *path)
{
    const json_t *value = spec;
    char copy[128], *rest = copy;
    snprintf(copy, sizeof copy, "%s", path);
    for (char *word; (word = strsep(&rest, "."));)
        value = json_is_array(value) ? json_array_get(value, strtoul(word, NULL, 10))
                                     : json_object_get(value, word);
    return unconst(value);
}

static void expect(const json_t *job, const char *path, const char *expected)
{
    json_t *found = at(json_object_get(job, "spec"), path);
    cleanup_free char *text = found ? json_dumps(found, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    assert_string_equal(text ? text : "(missing)", expected);
}

#define WORDS "\"/.drarun/bin/drarun-bench\",\"all_reduce\",\"-b\",\"8\""
#define CONTAINER "template.spec.containers.0."

static struct bench_choice choice_of(const char *image)
{
    struct bench_choice choice = {.hang_after = "4s", .image = image};
    static const char *const words[] = {"drarun-bench", "all_reduce", "-b", "8", "-J", "kept"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        strlist_add(&choice.words, words[i]);
    return choice;
}

/* `drarun bench all_reduce --workers 2 --gpus 8 --nics 8 --image I` on GKE. */
static void test_image_is_enough(void **state)
{
    (void)state;
    CLEANUP(bench_choice_done) struct bench_choice choice = choice_of("nvcr.io/x");
    struct served served = {
        {"", "nvidia.com/gpu", ""}, {"mrdma.google.com", "", ""}, "gke-a4", "label"};
    struct drarun_error err = {0};
    choice.workers = 2;
    choice.gpus = choice.nics = 8;
    CLEANUP(json_decrefp) json_t *base = base_of("{}");
    assert_true(bench_job_seeks_gpus(&choice, base) && bench_job_seeks_nics(&choice, base));
    assert_true(bench_job_seeks_profile(&choice, base));
    CLEANUP(json_decrefp) json_t *job = bench_job_spec(&choice, base, &served, &err);
    assert_non_null(job);
    expect(job, "devices",
           "{\"gpus\":{\"count\":8,\"resource\":\"nvidia.com/gpu\"},"
           "\"nics\":{\"count\":8,\"class\":\"mrdma.google.com\"}}");
    expect(job, "nccl.profile", "\"gke-a4\"");
    expect(job, "workers", "2");
    expect(job, "ranksPerWorker", "8");
    expect(job, "network", "\"any\"");
    expect(job, CONTAINER "image", "\"nvcr.io/x\"");
    expect(job, CONTAINER "command", "[" WORDS ",\"--backend\",\"nccl\"]");
    expect(job, CONTAINER "env", "[{\"name\":\"DRARUN_BENCH_MARKED\",\"value\":\"1\"}]");
}

/* What the file says stays, but for the program, and what options say instead. */
static void test_of_a_file(void **state)
{
    (void)state;
    CLEANUP(bench_choice_done) struct bench_choice choice = choice_of(NULL);
    const struct served none = {0};
    struct drarun_error err = {0};
    choice.job = "job.yaml";
    choice.gpus = 4;
    choice.nic_resource = "rdma/hca";
    choice.profile = "oci-roce";
    choice.backend_given = true;
    choice.program = "drarun-bench";
    strlist_add(&choice.env, "A=$(X)2"); /* no reference */
    strlist_add(&choice.tolerations, "pool=gpu:NoSchedule");
    strlist_add(&choice.tolerations, "spot");
    strlist_add(&choice.tolerations, "odd=:NoExecute");
    CLEANUP(json_decrefp)
    json_t *base = base_of(
        "{\"workers\":3,\"launch\":\"mpirun\",\"slots\":2,\"oversubscribe\":true,\"success\":"
        "\"rank0\",\"network\":\"rdma\",\"devices\":{\"gpus\":{"
        "\"count\":8,\"class\":\"g\",\"selector\":\"s\"},\"nics\":{\"count\":2,\"class\":\"n\"}},"
        "\"nccl\":{\"profile\":\"auto\",\"env\":{\"X\":\"1\"}},\"template\":{\"spec\":{"
        "\"hostNetwork\":true,\"tolerations\":[{\"key\":\"own\"}],\"containers\":[{\"image\":\"i\","
        "\"command\":[\"mpirun\"],\"args\":[\"x\"],\"env\":[{\"name\":\"A\",\"value\":\"1\"},"
        "{\"name\":\"B\",\"value\":\"1\"}]},{\"name\":\"side\"}]}}}");
    assert_false(bench_job_seeks_gpus(&choice, base) || bench_job_seeks_nics(&choice, base));
    const char *role = "x";
    assert_int_equal(bench_job_nics(&choice, base, &role), 2);
    assert_null(role);
    CLEANUP(json_decrefp) json_t *job = bench_job_spec(&choice, base, &none, &err);
    assert_non_null(job);
    expect(job, "workers", "3");
    expect(job, "launch", "(missing)");
    expect(job, "slots", "(missing)");
    expect(job, "oversubscribe", "(missing)");
    expect(job, "success", "(missing)"); /* else wrong data of rank 1 would end with 0 */
    expect(job, "network", "\"rdma\"");
    expect(job, "devices.gpus", "{\"count\":4,\"class\":\"g\",\"selector\":\"s\"}");
    expect(job, "devices.nics", "{\"count\":2,\"resource\":\"rdma/hca\"}");
    expect(job, "nccl", "{\"profile\":\"oci-roce\",\"env\":{\"X\":\"1\"}}");
    expect(job, "template.spec.tolerations",
           "[{\"key\":\"own\"},"
           "{\"key\":\"pool\",\"operator\":\"Equal\",\"value\":\"gpu\",\"effect\":\"NoSchedule\"},"
           "{\"key\":\"spot\",\"operator\":\"Exists\"},"
           "{\"key\":\"odd\",\"operator\":\"Equal\",\"value\":\"\",\"effect\":\"NoExecute\"}]");
    expect(job, "template.spec.hostNetwork", "true");
    expect(job, "template.spec.containers.1", "{\"name\":\"side\"}");
    expect(job, CONTAINER "image", "\"i\"");
    expect(job, CONTAINER "command", "[\"drarun-bench\",\"all_reduce\",\"-b\",\"8\"]");
    expect(job, CONTAINER "args", "(missing)");
    expect(job, CONTAINER "env",
           "[{\"name\":\"B\",\"value\":\"1\"},{\"name\":\"A\",\"value\":\"$$(X)2\"},"
           "{\"name\":\"DRARUN_BENCH_MARKED\",\"value\":\"1\"}]");
    /* drawn when it is read: of two that start together each has its own */
    assert_null(json_object_get(json_object_get(job, "metadata"), "name"));
    assert_string_equal(value_text(json_object_get(job, "metadata"), "generateName"), "bench-");
    assert_int_equal(json_integer_value(at(base, "spec.devices.gpus.count")), 8); /* as it was */
}

static void test_short_form(void **state)
{
    (void)state;
    CLEANUP(bench_choice_done) struct bench_choice choice = choice_of("other");
    const struct served none = {0};
    struct drarun_error err = {0};
    choice.job = "job.yaml";
    choice.name = "nightly";
    CLEANUP(json_decrefp) json_t *base = base_of("{\"image\":\"i\",\"command\":[\"c\"]}");
    CLEANUP(json_decrefp) json_t *job = bench_job_spec(&choice, base, &none, &err);
    assert_non_null(job);
    expect(job, "image", "(missing)");
    expect(job, "command", "(missing)");
    expect(job, CONTAINER "name", "\"worker\"");
    expect(job, CONTAINER "image", "\"other\"");
    expect(job, CONTAINER "command", "[" WORDS "]"); /* no GPUs: MPI */
    expect(job, "devices", "(missing)");
    assert_string_equal(value_text(json_object_get(job, "metadata"), "name"), "nightly");
}

static void test_what_is_refused(void **state)
{
    (void)state;
    CLEANUP(bench_choice_done) struct bench_choice choice = choice_of("i");
    struct drarun_error err = {0};
    assert_int_equal(bench_job_check(&choice, &err), 0);
    choice.gpu_class = "c";
    choice.gpu_resource = "r";
    assert_int_equal(bench_job_check(&choice, &err), -EINVAL);
    assert_int_equal(err.kind, DRARUN_ERR_USAGE);
    assert_non_null(strstr(err.text, "by a class or by a resource"));
}

/* ---- roles ---- */

#define DEVICES(gpus, nics)                                                                        \
    "{gpus: {count: " gpus ", class: g}, nics: {count: " nics ", class: net}}"
#define ROLES                                                                                      \
    "image: i\ncommand: [c]\nworkers: 2\nsuccess: head\nnccl: {profile: oci-roce}\n"               \
    "env: {A: '1'}\nroles:\n- {name: head, workers: 1}\n"                                          \
    "- {name: train, args: [x], devices: " DEVICES(                                                \
        "8", "8") "}\n"                                                                            \
                  "- {name: serve, workers: 3, image: j, env: {B: '1'}, devices: " DEVICES(        \
                      "4", "2") "}\n"

/* The document of these roles; NULL with the error's text in `said`. */
static json_t *taken(const char *text, const char *role, const char *world, char said[512])
{
    struct job_spec spec;
    struct drarun_error err = {0};
    if (spec_parse("job", text, strlen(text), &spec, &err) < 0)
        fail_msg("%s", err.text);
    if (world) /* refused by this release's parser: what a later one may take is held here too */
        json_object_set_new(json_object_get(spec.document, "spec"), "world", json_string(world));
    json_t *document = measured_roles_take(&spec, role, &err);
    job_spec_done(&spec);
    snprintf(said, 512, "%s", err.text);
    return document;
}

/* What was made is a job that the parser takes. */
static void check_job(const json_t *job)
{
    struct job_spec spec;
    struct drarun_error err = {0};
    cleanup_free char *text = json_dumps(job, 0);
    if (spec_parse("made", text, strlen(text), &spec, &err) < 0)
        fail_msg("%s: %s", err.text, text);
    job_spec_done(&spec);
}

/* Those with devices, each with the keys that it took over from the top. */
static void test_roles_with_devices(void **state)
{
    char said[512];
    const char *role = NULL;
    (void)state;
    CLEANUP(bench_choice_done) struct bench_choice choice = choice_of("other");
    const struct served none = {0};
    struct drarun_error err = {0};
    choice.job = "job.yaml";
    CLEANUP(json_decrefp) json_t *base = taken(ROLES, NULL, NULL, said);
    assert_non_null(base);
    assert_int_equal(bench_job_nics(&choice, base, &role), 2);
    assert_string_equal(role, "serve");
    CLEANUP(json_decrefp) json_t *job = bench_job_spec(&choice, base, &none, &err);
    assert_non_null(job);
    check_job(job);
    assert_int_equal(json_array_size(at(json_object_get(job, "spec"), "roles")), 2);
    expect(job, "success", "(missing)");
    expect(job, "workers", "(missing)");
    expect(job, "network", "\"any\"");
    expect(job, "onHang", "\"fail\"");
    expect(job, "roles.0.name", "\"train\"");
    expect(job, "roles.0.workers", "2");
    expect(job, "roles.1.workers", "3");
    expect(job, "roles.0.nccl", "{\"profile\":\"oci-roce\"}");
    for (int r = 0; r < 2; r++) {
        char path[64];
        snprintf(path, sizeof path, "roles.%d." CONTAINER "command", r);
        expect(job, path, "[" WORDS ",\"--backend\",\"nccl\"]");
        snprintf(path, sizeof path, "roles.%d." CONTAINER "image", r);
        expect(job, path, "\"other\"");
        snprintf(path, sizeof path, "roles.%d." CONTAINER "args", r);
        expect(job, path, "(missing)");
    }
    expect(job, "roles.0." CONTAINER "env",
           "[{\"name\":\"A\",\"value\":\"1\"},{\"name\":\"DRARUN_BENCH_MARKED\",\"value\":\"1\"}]");
    expect(job, "roles.1." CONTAINER "env",
           "[{\"name\":\"B\",\"value\":\"1\"},{\"name\":\"DRARUN_BENCH_MARKED\",\"value\":\"1\"}]");
}

/* A role alone is a job without roles: options speak of its workers. */
static void test_one_role(void **state)
{
    char said[512];
    const char *role = "x";
    (void)state;
    CLEANUP(bench_choice_done) struct bench_choice choice = choice_of(NULL);
    const struct served none = {0};
    struct drarun_error err = {0};
    choice.job = "job.yaml";
    choice.workers = 5;
    choice.nics = 1;
    CLEANUP(json_decrefp) json_t *base = taken(ROLES, "serve", "own", said);
    assert_non_null(base);
    assert_int_equal(bench_job_nics(&choice, base, &role), 1);
    assert_null(role);
    CLEANUP(json_decrefp) json_t *job = bench_job_spec(&choice, base, &none, &err);
    assert_non_null(job);
    check_job(job);
    expect(job, "roles", "(missing)");
    expect(job, "name", "(missing)");
    expect(job, "world", "(missing)");
    expect(job, "workers", "5");
    expect(job, "devices.gpus", "{\"count\":4,\"class\":\"g\"}");
    expect(job, "devices.nics", "{\"count\":1,\"class\":\"net\"}");
    expect(job, "nccl.profile", "\"oci-roce\"");
    expect(job, CONTAINER "image", "\"j\"");
    CLEANUP(json_decrefp) json_t *head = taken(ROLES, "head", NULL, said);
    assert_non_null(head);
    expect(head, "devices", "(missing)");
    expect(head, "nccl", "(missing)"); /* the top's is for roles with devices */
    expect(head, "workers", "1");
    check_job(head);
}

/* No role asks for devices: all are measured. Which claims there are stays the whole job's. */
static void test_roles_without_devices(void **state)
{
    static const char plain[] =
        "image: i\ncommand: [c]\nroles:\n- {name: a}\n- {name: b, workers: 2}\n";
    static const char claims[] = "image: i\ncommand: [c]\ndevices: {claims: direct}\nroles:\n"
                                 "- {name: a}\n- {name: b, devices: " DEVICES(
                                     "1", "1") "}\n"
                                               "- {name: c, devices: " DEVICES("1", "2") "}\n";
    static const char gpus[] = "{\"count\":1,\"class\":\"g\"}";
    char said[512];
    (void)state;
    CLEANUP(json_decrefp) json_t *all = taken(plain, NULL, NULL, said);
    assert_int_equal(json_array_size(measured_roles_of(all)), 2);
    check_job(all);
    CLEANUP(json_decrefp) json_t *some = taken(claims, NULL, NULL, said);
    assert_int_equal(json_array_size(measured_roles_of(some)), 2);
    expect(some, "devices", "{\"claims\":\"direct\"}");
    check_job(some);
    CLEANUP(json_decrefp) json_t *one = taken(claims, "b", NULL, said);
    expect(one, "devices.claims", "\"direct\"");
    expect(one, "devices.gpus", gpus);
    check_job(one);
}

static void test_refused_roles(void **state)
{
    static const struct {
        const char *text, *role, *world, *said;
    } cases[] = {
        {ROLES, "work", NULL, "--role work: no such role; job has head, train, serve"},
        {"image: i\ncommand: [c]\n", "a", NULL, "--role a: job has no roles: leave it out"},
        {ROLES, NULL, "own",
         "spec.world: the roles train, serve each have a world of their own, and a measurement is "
         "of one: choose one of them with --role NAME"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char said[512];
        json_t *document = taken(cases[i].text, cases[i].role, cases[i].world, said);
        if (document || strcmp(said, cases[i].said) != 0)
            fail_msg("case %zu: %s", i, document ? "taken" : said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_served),  cmocka_unit_test(test_image_is_enough),
        cmocka_unit_test(test_of_a_file),       cmocka_unit_test(test_short_form),
        cmocka_unit_test(test_what_is_refused), cmocka_unit_test(test_roles_with_devices),
        cmocka_unit_test(test_one_role),        cmocka_unit_test(test_roles_without_devices),
        cmocka_unit_test(test_refused_roles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
