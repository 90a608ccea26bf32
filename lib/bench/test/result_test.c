/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bench/result_json.h"

static void fill(struct result *r)
{
    result_init(r);
    snprintf(r->program, sizeof r->program, "drarun-bench 9");
    result_name_collective(r, "./build/all_reduce_perf");
    result_name_nccl(r, 22703);
    strlist_add(&r->args, "all_reduce");
    r->config = (struct result_config){.known = true, .iterations = 5, .step_factor = 2};
    struct result_rank *rank = result_add_rank(r);
    snprintf(rank->host, sizeof rank->host, "w-0");
    snprintf(rank->nic, sizeof rank->nic, "mlx5_0");
    snprintf(rank->path, sizeof rank->path, "PIX");
    snprintf(rank->kernel, sizeof rank->kernel, "6.1.0");
    snprintf(rank->driver, sizeof rank->driver, "570.1");
    rank->nic_gbit = 400;
    rank->pid = 12;
    rank->wrong = 3;
    struct result_row *row = result_add_row(r);
    row->bytes = 1024;
    row->count = 256;
    row->latency = 3e-6;
    snprintf(row->type, sizeof row->type, "float");
    snprintf(row->op, sizeof row->op, "sum");
    row->out_of_place = (struct result_half){
        .measured = true, .seconds = 1e-3, .algbw = 2, .busbw = 4, .wrong = 0, .has_spread = true};
    double calls[] = {2e-3, 1e-3};
    spread_of(calls, 2, &row->out_of_place.spread);
    row->out_of_place.ranks = calloc(2, sizeof(double));
    assert_non_null(row->out_of_place.ranks);
    row->out_of_place.ranks[1] = 0.5;
    row->out_of_place.rank_count = 2;
    r->average = 4;
    r->wrong_rows = 0;
    snprintf(r->end, sizeof r->end, "2026-11-22 07:00:00");
}

static void same(const struct result *r)
{
    const struct result_half *half = &r->rows[0].out_of_place;
    assert_string_equal(r->collective, "all_reduce");
    assert_string_equal(r->library, "NCCL 2.27.3");
    assert_int_equal(r->rank_count, 1);
    assert_string_equal(r->ranks[0].nic, "mlx5_0");
    assert_string_equal(r->ranks[0].path, "PIX");
    assert_string_equal(r->ranks[0].kernel, "6.1.0");
    assert_string_equal(r->ranks[0].driver, "570.1");
    assert_true(r->ranks[0].nic_gbit == 400 && r->ranks[0].pid == 12 && r->ranks[0].wrong == 3);
    assert_int_equal(r->row_count, 1);
    assert_int_equal(r->rows[0].bytes, 1024);
    assert_int_equal(r->rows[0].root, -1);
    assert_float_equal(r->rows[0].latency, 3e-6, 1e-12);
    assert_ptr_equal(result_latency(r), &r->rows[0]);
    assert_string_equal(r->rows[0].op, "sum");
    assert_true(half->measured && half->busbw == 4 && half->wrong == 0 && half->has_spread);
    assert_float_equal(half->spread.most, 2e-3, 1e-12);
    assert_true(half->rank_count == 2 && half->ranks[1] == 0.5);
    assert_false(r->rows[0].in_place.measured);
    assert_true(r->average == 4 && r->wrong_rows == 0 && r->ended);
    assert_true(r->config.known && r->config.step_factor == 2);
}

static void test_document_comes_back(void **state)
{
    struct result r, again;
    struct drarun_error err = {0};
    (void)state;
    fill(&r);
    json_t *json = result_json(&r);
    assert_non_null(json);
    result_init(&again);
    assert_int_equal(result_json_read(json, "x.json", 0, &again, &err), 0);
    same(&again);
    json_decref(json);
    result_done(&r);
    result_done(&again);
}

static void test_lines_come_back(void **state)
{
    struct result r, again;
    struct drarun_error err = {0};
    char *text = NULL, *rest;
    size_t size = 0;
    unsigned number = 0;
    (void)state;
    fill(&r);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    const struct result_lines to = {.out = out, .name = "x"}, nowhere = {0};
    assert_int_equal(result_line_begin(&to, &r, &err), 0);
    assert_int_equal(result_line_row(&to, &r.rows[0], &err), 0);
    assert_int_equal(result_line_end(&to, &r, &err), 0);
    assert_int_equal(result_line_end(&nowhere, &r, &err), 0);
    fclose(out);
    result_init(&again);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        json_t *json = json_loads(line, 0, NULL);
        assert_int_equal(result_json_read(json, "x", ++number, &again, &err), 0);
        json_decref(json);
    }
    assert_int_equal(number, 3);
    same(&again);
    free(text);
    result_done(&r);
    result_done(&again);
}

static void test_full_disk(void **state)
{
    struct result r;
    struct drarun_error err = {0};
    (void)state;
    fill(&r);
    FILE *out = fopen("/dev/full", "w");
    assert_non_null(out);
    const struct result_lines to = {.out = out, .name = "runs.jsonl"};
    assert_true(result_line_begin(&to, &r, &err) < 0);
    assert_string_equal(err.text,
                        "runs.jsonl: No space left on device: the results in it are not complete");
    fclose(out);
    result_done(&r);
}

static void refused(const char *text, const char *says)
{
    struct result r;
    struct drarun_error err = {0};
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    result_init(&r);
    assert_true(result_json_read(json, "x.json", 0, &r, &err) < 0);
    assert_string_equal(err.text, says);
    json_decref(json);
    result_done(&r);
}

static void test_refused(void **state)
{
    (void)state;
    refused("[]", "x.json: the document: expected an object");
    refused("{}", "x.json: results: expected it, as nccl-tests -J and drarun-bench write it");
    refused("{\"results\": [{\"size\": 8, \"in_place\": {\"bus_bw\": \"fast\"}}]}",
            "x.json: results[0].in_place.bus_bw: expected a number that is not negative");
    refused("{\"results\": [{\"size\": 8}, {}]}",
            "x.json: results[1].size: expected a whole number that is not negative");
    refused("{\"results\": [], \"config\": {\"devices\": [{\"hostname\": 5}]}}",
            "x.json: config.devices[0].hostname: expected a text");
    refused("{\"results\": [{\"size\": 8, \"in_place\": {\"bus_bw\": 1.7e308}}]}",
            "x.json: results[0].in_place.bus_bw: expected a number of at most 1e30");
    refused(
        "{\"results\": [{\"size\": 8, \"in_place\": {\"per_rank_times_us\": [1, 1e31]}}]}",
        "x.json: results[0].in_place.per_rank_times_us: expected a list of numbers from 0 to 1e30");
}

/* A file's words do not get beyond their line, or to a terminal as more than text. */
static void test_clean(void **state)
{
    struct result r;
    struct drarun_error err = {0};
    json_t *json = json_loads("{\"results\": [], \"collective\": \"a\\n  <b>\\u001b[31m\", "
                              "\"library\": \"\\u001b[31m\"}",
                              0, NULL);
    (void)state;
    assert_non_null(json);
    result_init(&r);
    assert_int_equal(result_json_read(json, "x", 0, &r, &err), 0);
    result_clean(&r);
    assert_string_equal(r.collective, "a?  <b>?[31m");
    assert_string_equal(r.library, "?[31m");
    json_decref(json);
    result_done(&r);
}

static void test_not_measured_is_no_number(void **state)
{
    struct result r;
    const struct result_row *row = NULL;
    struct drarun_error err = {0};
    json_t *json = json_loads(
        "{\"results\": [{\"size\": 8, \"out_of_place\": {\"time\": \"nan\", \"alg_bw\": 0, "
        "\"bus_bw\": \"nan\", \"nwrong\": null}, \"in_place\": null}]}",
        0, NULL);
    (void)state;
    result_init(&r);
    assert_int_equal(result_json_read(json, "x", 0, &r, &err), 0);
    assert_null(result_peak(&r, &row));
    assert_null(result_latency(&r));
    assert_true(result_average(&r) < 0 && result_wrong(&r) < 0 && !r.ended);
    json_decref(json);
    result_done(&r);
}

static void test_environment(void **state)
{
    static const struct {
        const char *assignment;
        bool allowed;
    } cases[] = {
        {"NCCL_IB_HCA=mlx5", true},
        {"UCX_TLS=rc", true},
        {"OMPI_MCA_btl=tcp", true},
        {"CUDA_VISIBLE_DEVICES=0", true},
        {"NCCL_COMM_ID=10.0.0.1:1", false},
        {"NCCL_TOPO_FILE=/home/x", false},
        {"NCCL_MY_TOKEN=abc", false},
        {"OMPI_MCA_orte_precondition_transports=ab", false},
        {"AWS_SECRET_ACCESS_KEY=x", false},
        {"XNCCL_A=1", false},
        {"NCCL_X=http://u:p@h/", false},
        {"", false},
        {"OMPI_MCA_btl_sm_backing_directory=/dev/shm/x", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (result_env_allowed(cases[i].assignment) != cases[i].allowed)
            fail_msg("%s", cases[i].assignment);
}

static void expect_named(const struct result *r, size_t most, size_t count, const char *last)
{
    struct strlist ranks = STRLIST_INIT;
    result_wrong_ranks(r, most, &ranks);
    assert_int_equal(ranks.count, count);
    assert_string_equal(ranks.items[count - 1], last);
    strlist_done(&ranks);
}

static void test_ranks_with_wrong_data(void **state)
{
    struct result r;
    (void)state;
    result_init(&r);
    for (unsigned i = 0; i < 9; i++) {
        struct result_rank *rank = result_add_rank(&r);
        assert_non_null(rank);
        rank->rank = i;
        rank->wrong = i + 1;
        snprintf(rank->host, sizeof rank->host, "a");
        snprintf(rank->model, sizeof rank->model, "mpi");
    }
    expect_named(&r, 7, 8, "2 more ranks");
    expect_named(&r, 8, 9, "1 more rank");
    expect_named(&r, 9, 9, "rank 8 on a (mpi): 9 elements");
    expect_named(&r, SIZE_MAX, 9, "rank 8 on a (mpi): 9 elements");
    result_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_document_comes_back),
        cmocka_unit_test(test_lines_come_back),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_not_measured_is_no_number),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_ranks_with_wrong_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
