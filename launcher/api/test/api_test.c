/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>

#include "drarun/drarun.h"
#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"

static const char job[] = "spec: {workers: 2, image: a, command: [b]}\n";

static struct drarun_spec *read_job(void)
{
    struct drarun_spec *spec = NULL;
    assert_int_equal(drarun_spec_parse("my_job.yaml", job, strlen(job), NULL, &spec, NULL, NULL),
                     0);
    return spec;
}

static void test_spec(void **state)
{
    (void)state;
    struct drarun_spec *spec = read_job(), *again = NULL;
    assert_string_equal(drarun_spec_name(spec), "my-job");
    assert_null(drarun_spec_namespace(spec));
    assert_int_equal(drarun_spec_workers(spec), 2);
    char *summary = drarun_spec_summary(spec), *json = drarun_spec_json(spec);
    assert_string_equal(summary, "job my-job, 2 workers");
    assert_int_equal(drarun_spec_parse("again", json, strlen(json), NULL, &again, NULL, NULL), 0);
    assert_string_equal(drarun_spec_name(again), "my-job");
    drarun_free(summary);
    drarun_free(json);
    drarun_spec_free(spec);
    drarun_spec_free(again);
    drarun_spec_free(NULL);
}

static void test_findings_have_places(void **state)
{
    (void)state;
    static const char text[] = "spec:\n  workers: none\n  image: a\n  command: [b]\n  nics: 3\n";
    struct drarun_spec *spec = NULL;
    struct drarun_findings *findings = NULL;
    struct drarun_error err = {0};
    assert_int_equal(drarun_spec_parse("x.yaml", text, strlen(text), NULL, &spec, &findings, &err),
                     -EINVAL);
    assert_null(spec);
    assert_int_equal(err.kind, DRARUN_ERR_SPEC);
    assert_string_equal(err.path, "spec.workers");
    assert_int_equal(err.line, 2);
    assert_int_equal(drarun_findings_count(findings), 2);
    assert_int_equal(drarun_findings_total(findings), 2);
    const struct drarun_finding *second = drarun_findings_at(findings, 1);
    assert_string_equal(second->path, "spec.nics");
    assert_int_equal(second->line, 5);
    assert_int_equal(second->column, 3);
    assert_null(drarun_findings_at(findings, 2));
    drarun_findings_free(findings);
    drarun_findings_free(NULL);
}

/* Whatever the document says: an error is a line, of characters and no parts of them. */
static void test_errors_are_lines(void **state)
{
    (void)state;
    static const char text[] =
        "spec:\n  \"work\\n\\e[31mers\": 2\n  launch: \"a\\nb\"\n"
        "  \"xé23456789012345678901234567890123456789012345678901234567890123456"
        "78901234567ééé\": 1\n";
    struct drarun_spec *spec = NULL;
    struct drarun_findings *findings = NULL;
    struct drarun_error err = {0};
    assert_int_equal(drarun_spec_parse("x", text, strlen(text), NULL, &spec, &findings, &err),
                     -EINVAL);
    assert_string_equal(err.path, "spec[\"work??[31mers\"]");
    for (size_t i = 0; i < drarun_findings_count(findings); i++) {
        const struct drarun_finding *each = drarun_findings_at(findings, i);
        json_t *is_utf8 = json_string(each->text);
        assert_non_null(is_utf8);
        json_decref(is_utf8);
        for (const char *p = each->text; *p; p++)
            assert_false(iscntrl((unsigned char)*p));
    }
    drarun_findings_free(findings);
}

/* What is no document at all has one finding too. */
static void test_no_document(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "a: [", "{\"a\": ", "a: 1\n---\nb: 1\n", "\xff"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct drarun_spec *spec = NULL;
        struct drarun_findings *findings = NULL;
        struct drarun_error err = {0};
        assert_int_equal(
            drarun_spec_parse("x", texts[i], strlen(texts[i]), NULL, &spec, &findings, &err),
            -EINVAL);
        assert_int_equal(drarun_findings_count(findings), 1);
        assert_string_equal(drarun_findings_at(findings, 0)->text, err.text);
        drarun_findings_free(findings);
    }
    struct drarun_error err = {0};
    struct drarun_spec *spec = NULL;
    assert_int_equal(drarun_spec_load("/none", NULL, &spec, NULL, &err), -ENOENT);
    assert_int_equal(err.kind, DRARUN_ERR_SPEC);
}

static void test_render_options(void **state)
{
    (void)state;
    struct drarun_spec *spec = read_job();
    struct drarun_error err = {0};
    char *text = NULL;
    struct drarun_render_options options = drarun_render_options_init();
    assert_int_equal(drarun_render(spec, NULL, &text, &err), 0);
    assert_non_null(strstr(text, "\nkind: Job\n"));
    drarun_free(TAKE_PTR(text));
    options.format = "xml";
    assert_int_equal(drarun_render(spec, &options, &text, &err), -EINVAL);
    assert_int_equal(err.kind, DRARUN_ERR_USAGE);
    assert_string_equal(err.text, "format: expected yaml or json, got \"xml\"");
    assert_null(text);
    drarun_spec_free(spec);
}

static void keep_line(const char *line, void *arg)
{
    *(char **)arg = strdup(line);
}

static void test_render_for_another_system(void **state)
{
    (void)state;
    struct drarun_spec *spec = read_job();
    struct drarun_error err = {0};
    char *text = NULL, *line = NULL;
    struct drarun_render_options options = drarun_render_options_init();
    options.as = "raycluster";
    options.note = keep_line;
    options.note_arg = &line;
    assert_int_equal(drarun_render(spec, &options, &text, &err), 0);
    assert_non_null(strstr(text, "\nkind: RayCluster\n"));
    assert_memory_equal(line, "LEFT_OUT: spec.command: ", 24);
    drarun_free(TAKE_PTR(text));
    free(line);
    options.here = 1;
    assert_int_equal(drarun_render(spec, &options, &text, &err), -EINVAL);
    assert_non_null(strstr(err.text, "here: not for a raycluster"));
    options.as = NULL;
    options.head = "worker";
    assert_int_equal(drarun_render(spec, &options, &text, &err), -EINVAL);
    assert_non_null(strstr(err.text, "head: for a raycluster or a rayjob alone"));
    options.as = "slurm";
    assert_int_equal(drarun_render(spec, &options, &text, &err), -EINVAL);
    assert_string_equal(err.text, "as: expected raycluster, rayjob or trainjob, got \"slurm\"");
    assert_null(text);
    drarun_spec_free(spec);
}

static int render_roles(const struct drarun_spec *spec, struct drarun_error *err)
{
    char *text = NULL;
    struct drarun_render_options options = drarun_render_options_init();
    options.as = "raycluster";
    return drarun_render(spec, &options, &text, err);
}

static int render_xml(const struct drarun_spec *spec, struct drarun_error *err)
{
    char *text = NULL;
    struct drarun_render_options options = drarun_render_options_init();
    options.format = "xml";
    return drarun_render(spec, &options, &text, err);
}

static int start_roles(const struct drarun_spec *spec, struct drarun_error *err)
{
    struct drarun_local *local = NULL;
    struct drarun_local_options options = drarun_local_options_init();
    options.spec = spec;
    options.ranks = 2;
    return drarun_local_start(NULL, &options, &local, err);
}

static int start_nothing(const struct drarun_spec *spec, struct drarun_error *err)
{
    struct drarun_local *local = NULL;
    (void)spec;
    return drarun_local_start(NULL, NULL, &local, err);
}

static int plan_nowhere(const struct drarun_spec *spec, struct drarun_error *err)
{
    static const char *const files[] = {"/nowhere.json", NULL};
    struct drarun_plan *plan = NULL;
    struct drarun_plan_options options = drarun_plan_options_init();
    options.slices = files;
    return drarun_plan_build(spec, &options, &plan, err);
}

/* The code of a failure is the same for a caller who wants no words. */
static void test_failures_without_words(void **state)
{
    (void)state;
    static int (*const calls[])(const struct drarun_spec *, struct drarun_error *) = {
        render_roles, render_xml, start_roles, start_nothing, plan_nowhere};
    static const char text[] = "spec: {image: a, world: own, roles: [{name: head, command: [b]}, "
                               "{name: tail, command: [b]}]}\n";
    struct drarun_spec *spec = NULL;
    assert_int_equal(drarun_spec_parse("x", text, strlen(text), NULL, &spec, NULL, NULL), 0);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct drarun_error err = {0};
        int code = calls[i](spec, &err);
        assert_true(code < 0 && code == -err.code && err.text[0]);
        assert_int_equal(calls[i](spec, NULL), code);
    }
    drarun_spec_free(spec);
}

/* A caller that was compiled with an older or a newer header. */
static void test_size_of_options(void **state)
{
    (void)state;
    struct drarun_spec *spec = read_job();
    struct drarun_error err = {0};
    char *text = NULL;
    struct {
        struct drarun_render_options known;
        void *later;
    } newer = {drarun_render_options_init(), NULL};
    newer.known.size = sizeof newer;
    newer.known.format = "json";
    assert_int_equal(drarun_render(spec, &newer.known, &text, &err), 0);
    assert_true(text[0] == '{');
    drarun_free(TAKE_PTR(text));
    newer.later = &newer;
    assert_int_equal(drarun_render(spec, &newer.known, &text, &err), -E2BIG);
    assert_int_equal(err.kind, DRARUN_ERR_USAGE);

    struct drarun_render_options older = drarun_render_options_init();
    older.size = offsetof(struct drarun_render_options, format) + sizeof older.format;
    older.format = "json";
    older.api = "v9"; /* not the older caller's: rubbish behind its struct */
    assert_int_equal(drarun_render(spec, &older, &text, &err), 0);
    assert_true(text[0] == '{');
    drarun_free(TAKE_PTR(text));
    older.size = 0;
    assert_int_equal(drarun_render(spec, &older, &text, &err), -EINVAL);
    drarun_spec_free(spec);
}

static void test_plan(void **state)
{
    (void)state;
    static const char slice[] =
        "{\"kind\": \"ResourceSlice\", \"metadata\": {\"name\": \"s\"}, \"spec\": {\"driver\": "
        "\"d\", \"nodeName\": \"n\", \"pool\": {\"name\": \"n\", \"generation\": 1, "
        "\"resourceSliceCount\": 1}, \"devices\": []}}";
    struct drarun_spec *spec = NULL;
    struct drarun_plan *plan = NULL;
    struct drarun_error err = {0};
    static const char text[] = "spec: {workers: 2, image: a, command: [b], devices: {gpus: {count: "
                               "1, class: gpu.nvidia.com}}}";
    assert_int_equal(drarun_spec_parse("x", text, strlen(text), NULL, &spec, NULL, &err), 0);
    struct drarun_plan_options options = drarun_plan_options_init();
    options.objects = slice;
    options.workers = 3;
    assert_int_equal(drarun_plan_build(spec, &options, &plan, &err), 0);
    drarun_spec_free(spec); /* the plan has its own */
    assert_int_equal(drarun_plan_verdict(plan, &err), -ENOSPC);
    assert_int_equal(err.kind, DRARUN_ERR_CAPACITY);
    char *shown = drarun_plan_text(plan, 1), *json = drarun_plan_json(plan, 1);
    assert_non_null(strstr(shown, "3 workers"));
    assert_true(json[0] == '{');
    drarun_free(shown);
    drarun_free(json);
    char *svg = NULL;
    assert_int_equal(drarun_plan_svg(plan, 0, &svg, &err), -ENOSPC);
    assert_int_equal(drarun_plan_svg(plan, 3, &svg, &err), -EINVAL);
    assert_int_equal(err.kind, DRARUN_ERR_USAGE);
    assert_null(svg);
    drarun_plan_free(plan);
}

/* ---- environment ---- */

static char root[] = "/tmp/drarun-api-XXXXXX";

static int make_root(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    return rmdir(root);
}

static void test_env_of_an_empty_machine(void **state)
{
    (void)state;
    struct drarun_env_options options = drarun_env_options_init();
    struct drarun_error err = {0};
    struct drarun_env *env = NULL;
    options.root = root;
    assert_int_equal(drarun_env_derive(&options, &env, &err), -EINVAL);
    assert_int_equal(err.kind, DRARUN_ERR_SPEC);
    assert_non_null(strstr(err.text, "NO_RDMA_NIC"));
    assert_null(env);
    char *interface = strdup("net7");
    options.network = "any";
    options.pod_interface = interface;
    assert_int_equal(drarun_env_derive(&options, &env, &err), 0);
    memset(interface, 'x', strlen(interface)); /* options are the caller's again */
    free(interface);
    assert_string_equal(drarun_env_value(env, "NCCL_SOCKET_IFNAME"), "=net7");
    assert_null(drarun_env_value(env, "NONE"));
    assert_null(drarun_env_at(env, drarun_env_count(env)));
    static const char *const formats[] = {"sh", "json", "docker", "nccl.conf"};
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        char *text = drarun_env_text(env, formats[i], 1);
        assert_non_null(strstr(text, "NCCL_SOCKET_IFNAME"));
        drarun_free(text);
    }
    assert_null(drarun_env_text(env, "xml", 0));
    drarun_env_free(env);
    options.network = "some";
    assert_int_equal(drarun_env_derive(&options, &env, &err), -EINVAL);
    assert_int_equal(err.kind, DRARUN_ERR_USAGE);
}

static void test_env_of_no_such_machine(void **state)
{
    (void)state;
    struct drarun_env_options options = drarun_env_options_init();
    struct drarun_error err = {0};
    struct drarun_env *env = NULL;
    options.root = "/nowhere/at/all";
    assert_int_equal(drarun_env_derive(&options, &env, &err), -ENOENT);
    assert_int_equal(err.kind, DRARUN_ERR_SPEC);
    assert_non_null(strstr(err.text, "/nowhere/at/all: No such file"));
    assert_null(env);
}

static void *derive_often(void *arg)
{
    (void)arg;
    struct drarun_env_options options = drarun_env_options_init();
    options.root = root;
    options.network = "any";
    for (int i = 0; i < 20; i++) {
        struct drarun_env *env = NULL;
        struct drarun_spec *spec = NULL;
        if (drarun_env_derive(&options, &env, NULL) < 0 ||
            drarun_spec_parse("x", job, strlen(job), NULL, &spec, NULL, NULL) < 0)
            return unconst("a thread failed");
        drarun_env_free(env);
        drarun_spec_free(spec);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, derive_often, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

static void test_errors(void **state)
{
    (void)state;
    assert_string_equal(drarun_error_kind_name(DRARUN_ERR_CAPACITY), "capacity");
    assert_string_equal(drarun_error_kind_name(99), "unknown");
    assert_int_equal(drarun_exit_status(DRARUN_ERR_SPEC), 65);
    assert_string_equal(drarun_version(), DRARUN_VERSION);
    drarun_free(NULL);
}

static void test_results_of_benchmarks(void **state)
{
    (void)state;
    static const char text[] =
        "# Collective test starting: all_reduce_perf\n"
        "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  "
        "#wrong\n"
        "1048576  262144  float  sum  -1  10.00  100.0  150.0  0  10.00  100.0  170.0  0\n"
        "# Avg bus bandwidth : 160\n";
    struct drarun_bench_options options = drarun_bench_options_init();
    struct drarun_error err = {0};
    char *json = NULL, *page = NULL;
    options.min_busbw = 161;
    assert_int_equal(drarun_bench_verdicts(text, strlen(text), &options, &json, &err), 0);
    assert_non_null(strstr(json, "\"failed\": true"));
    assert_int_equal(drarun_bench_report(text, strlen(text), NULL, &page, NULL), 0);
    assert_non_null(strstr(page, "all_reduce"));
    drarun_free(page);
    drarun_free(TAKE_PTR(json));
    assert_int_equal(drarun_bench_verdicts("x\n", 2, NULL, &json, &err), -EINVAL);
    assert_int_equal(err.kind, DRARUN_ERR_SPEC);
    options.min_percent = -1;
    assert_int_equal(drarun_bench_verdicts(text, strlen(text), &options, &json, &err), -EINVAL);
    assert_int_equal(err.kind, DRARUN_ERR_USAGE);
    assert_null(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec),
        cmocka_unit_test(test_findings_have_places),
        cmocka_unit_test(test_errors_are_lines),
        cmocka_unit_test(test_no_document),
        cmocka_unit_test(test_render_options),
        cmocka_unit_test(test_render_for_another_system),
        cmocka_unit_test(test_failures_without_words),
        cmocka_unit_test(test_size_of_options),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_results_of_benchmarks),
        cmocka_unit_test_setup_teardown(test_env_of_an_empty_machine, make_root, NULL),
        cmocka_unit_test(test_env_of_no_such_machine),
        cmocka_unit_test_setup_teardown(test_threads, NULL, remove_root),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
