/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/lead/request.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/manifests/pod_merge.h"
#include "lib/base/cleanup.h"

#define WORKERS_MAX 4

static const struct pod_state pods_of_gang[WORKERS_MAX] = {
    {.name = "j-w-0", .node = "n0", .ip = "10.0.0.10"},
    {.name = "j-w-1", .node = "n1", .ip = "10.0.0.11"},
    {.name = "j-w-2", .node = "n2", .ip = "fd00::12"},
    {.name = "j-w-3", .ip = "10.0.0.13"},
};

/* Fails the test with what is wrong in the job. */
static void begin(struct job_spec *spec, const char *text)
{
    struct drarun_error err = {0};
    if (spec_parse("j.yaml", text, strlen(text), spec, &err) < 0)
        fail_msg("%s\n%s", text, err.text);
}

static int build(const struct job_spec *spec, const struct pod_state *workers, const uint32_t *gpus,
                 const struct strlist *args, struct ranks *ret_ranks, struct drarun_error *err)
{
    static const uint32_t none[SPEC_ROLES_MAX];
    static const struct request_pods pods;
    const struct ranks_facts facts = {
        .spec = spec, .workers = workers, .gpus = gpus ? gpus : none, .args = args};
    return ranks_build(&facts, &pods, ret_ranks, err);
}

static void test_number_of_ranks(void **state)
{
    static const struct {
        const char *keys;
        uint32_t gpus;
        uint32_t ranks, per_worker, role_ranks;
    } rows[] = {
        {"workers: 3", 0, 3, 1, 3},
        {"workers: 3", 8, 24, 8, 24},
        {"workers: 2\nranksPerWorker: 4", 0, 8, 4, 8},
        {"workers: 2\nranksPerWorker: 4", 8, 8, 4, 8},
        /* it starts once, whatever it starts */
        {"workers: 2\nranksPerWorker: 4\nlaunch: mpirun", 8, 1, 4, 8},
        {"workers: 2\nlaunch: mpirun", 8, 1, 0, 2},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[200];
        struct job_spec spec;
        struct ranks ranks;
        struct drarun_error err = {0};
        snprintf(text, sizeof text, "image: i\ncommand: [c, -x]\n%s\n", rows[i].keys);
        begin(&spec, text);
        if (build(&spec, pods_of_gang, &rows[i].gpus, NULL, &ranks, &err) < 0)
            fail_msg("%s: %s", rows[i].keys, err.text);
        assert_int_equal(ranks.request.program_count, 1);
        const struct request_program *program = &ranks.request.programs[0];
        if (program->ranks != rows[i].ranks || ranks.request.per_worker != rows[i].per_worker ||
            ranks.role_ranks[0] != rows[i].role_ranks)
            fail_msg("%s: %u ranks, %u on a worker, %u of the role", rows[i].keys, program->ranks,
                     ranks.request.per_worker, ranks.role_ranks[0]);
        assert_int_equal(program->argc, 2);
        assert_string_equal(program->argv[1], "-x");
        assert_int_equal(ranks.request.launch_mpirun, spec.launch == SPEC_LAUNCH_MPIRUN);
        ranks_done(&ranks);
        job_spec_done(&spec);
    }
}

static void test_roles_are_programs(void **state)
{
    static const char text[] = "image: i\nroles:\n"
                               "- {name: a, workers: 1, command: [head]}\n"
                               "- {name: b, workers: 3, command: [train, -n], slots: 9}\n";
    static const uint32_t alike[] = {2, 2}, other[] = {1, 8};
    struct job_spec spec;
    struct ranks ranks;
    (void)state;
    begin(&spec, text);
    assert_int_equal(build(&spec, pods_of_gang, alike, NULL, &ranks, NULL), 0);
    assert_int_equal(ranks.request.program_count, 2);
    assert_int_equal(ranks.request.per_worker, 2);
    ranks_done(&ranks);
    assert_int_equal(build(&spec, pods_of_gang, other, NULL, &ranks, NULL), 0);
    assert_int_equal(ranks.request.per_worker, 0); /* they differ */
    const struct request_program *head = &ranks.request.programs[0],
                                 *train = &ranks.request.programs[1];
    assert_string_equal(head->argv[0], "head");
    assert_int_equal(head->ranks, 1);
    assert_int_equal(head->workers, 1);
    assert_string_equal(train->argv[0], "train");
    assert_int_equal(train->argc, 2);
    assert_int_equal(train->ranks, 24);
    assert_int_equal(train->workers, 3);
    assert_int_equal(train->slots, 9);
    assert_int_equal(ranks.role_ranks[0], 1);
    assert_int_equal(ranks.role_ranks[1], 24);
    ranks_done(&ranks);
    job_spec_done(&spec);
}

static void test_where_agents_listen(void **state)
{
    struct job_spec spec;
    struct ranks ranks;
    char address[64];
    (void)state;
    begin(&spec, "image: i\ncommand: [c]\nworkers: 4\ndevices: {gpus: {count: 1}}\n");
    assert_int_equal(build(&spec, pods_of_gang, NULL, NULL, &ranks, NULL), 0);
    const struct request_pods *pods = ranks.request.pods;
    assert_int_equal(pods->workers, 4);
    for (uint32_t i = 0; i < 4; i++) {
        snprintf(address, sizeof address, i == 2 ? "[%s]:%u" : "%s:%u", pods_of_gang[i].ip,
                 pod_merge_agent_port(&spec, i));
        assert_string_equal(pods->addresses[i], address);
        assert_string_equal(pods->pods[i], pods_of_gang[i].name);
        assert_string_equal(pods->nodes[i], i == 3 ? "?" : pods_of_gang[i].node);
        assert_string_equal(pods->claims[i], pods_of_gang[i].name);
    }
    assert_false(pods->on_host);
    assert_true(pods->open_nics);
    ranks_done(&ranks);
    job_spec_done(&spec);
}

/* Those of the command line in place of the spec's. */
static void test_arguments(void **state)
{
    struct strlist args = STRLIST_INIT;
    struct job_spec spec;
    struct ranks ranks;
    (void)state;
    begin(&spec, "image: i\ncommand: [c]\nargs: [of, the, spec]\n");
    assert_int_equal(build(&spec, pods_of_gang, NULL, &args, &ranks, NULL), 0);
    assert_int_equal(ranks.request.programs[0].argc, 4);
    ranks_done(&ranks);
    strlist_add(&args, "mine");
    assert_int_equal(build(&spec, pods_of_gang, NULL, &args, &ranks, NULL), 0);
    assert_int_equal(ranks.request.programs[0].argc, 2);
    assert_string_equal(ranks.request.programs[0].argv[1], "mine");
    ranks_done(&ranks);
    strlist_done(&args);
    job_spec_done(&spec);
}

static void test_settings_of_the_spec(void **state)
{
    static const char text[] =
        "image: i\ncommand: [c]\nlaunch: env\nbind: core\nreportBindings: true\n"
        "preflight: {fabric: off}\nonHang: fail\nhangAfter: 7s\n"
        "timeouts: {start: 90s, total: 1h, agent: 30s, signal: SIGUSR2, signalBefore: 5m}\n";
    struct job_spec spec;
    struct ranks ranks;
    (void)state;
    begin(&spec, text);
    assert_int_equal(build(&spec, pods_of_gang, NULL, NULL, &ranks, NULL), 0);
    const struct job_request *r = &ranks.request;
    assert_true(r->launch_env && !r->launch_mpirun && r->report_bindings && !r->own_worlds);
    assert_string_equal(r->bind, "core");
    assert_int_equal(r->hang_after_ms, 7000);
    assert_int_equal(r->start_timeout_ms, 90000);
    assert_int_equal(r->agent_timeout_ms, 30000);
    assert_int_equal(r->warn_signo, SIGUSR2);
    assert_int_equal(r->warn_before_ms, 300000);
    assert_null(r->pods->claims); /* it claims nothing */
    assert_false(r->pods->open_nics);
    ranks_done(&ranks);
    job_spec_done(&spec);
    begin(&spec, "image: i\ncommand: [c]\nhangAfter: 7s\n"); /* which is reported alone */
    assert_int_equal(build(&spec, pods_of_gang, NULL, NULL, &ranks, NULL), 0);
    assert_int_equal(ranks.request.hang_after_ms, 0);
    ranks_done(&ranks);
    job_spec_done(&spec);
}

static void test_pod_without_an_address(void **state)
{
    static const struct pod_state workers[] = {{.name = "j-w-0", .node = "n", .ip = "10.0.0.1"},
                                               {.name = "j-w-1", .node = "n"}};
    struct drarun_error err = {0};
    struct job_spec spec;
    struct ranks ranks;
    (void)state;
    begin(&spec, "image: i\ncommand: [c]\nworkers: 2\n");
    assert_int_equal(build(&spec, workers, NULL, NULL, &ranks, &err), -EINVAL);
    assert_string_equal(err.text, "worker 1: pod j-w-1 runs without an IP address");
    assert_int_equal(err.kind, DRARUN_ERR_INFRASTRUCTURE);
    job_spec_done(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_number_of_ranks),      cmocka_unit_test(test_roles_are_programs),
        cmocka_unit_test(test_where_agents_listen),  cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_settings_of_the_spec), cmocka_unit_test(test_pod_without_an_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
