/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bench/marked.h"
#include "lib/bench/runs.h"

struct split {
    struct buf lines, rest;
    bool any;
};

static struct split split(const char *text)
{
    struct split s = {BUF_INIT, BUF_INIT, false};
    s.any = marked_split(text, strlen(text), &s.lines, &s.rest);
    return s;
}

static void holds(const char *text, bool any, const char *lines, const char *rest)
{
    struct split s = split(text);
    assert_int_equal(s.any, any);
    assert_string_equal(s.lines.data ? s.lines.data : "", lines);
    assert_string_equal(s.rest.data ? s.rest.data : "", rest);
    buf_done(&s.lines);
    buf_done(&s.rest);
}

static void test_split(void **state)
{
    (void)state;
    holds("", false, "", "");
    holds("# a\n8 9", false, "", "# a\n8 9");
    holds("a\n#drarun-bench 0.{}\nb\n", true, "{}\n", "a\nb\n");
    holds("#drarun-bench 0+{\nNCCL INFO x\n#drarun-bench 1.}\n", true, "{}\n", "NCCL INFO x\n");
    holds("#drarun-bench \n#drarun-bench x.\n#drarun-bench 7\n", false, "",
          "#drarun-bench \n#drarun-bench x.\n#drarun-bench 7\n");
}

/* What is not whole is not there. */
static void test_lost_pieces(void **state)
{
    (void)state;
    holds("#drarun-bench 0.{}\n#drarun-bench 0.{\"a\":1", true, "{}\n", "");
    holds("#drarun-bench 0+{\"a\":\n#drarun-bench 0.{}\n", true, "{}\n", "");
    holds("#drarun-bench 5.1}\n#drarun-bench 0.{}\n", true, "{}\n", "");
    holds("#drarun-bench 0+{\"a\":1\n#drarun-bench 7+2\n#drarun-bench 8.}\n", true, "", "");
    holds("#drarun-bench 0+{\"a\":1\n", true, "", "");
    holds("#drarun-bench 99999999999999999999999.}\n", false, "",
          "#drarun-bench 99999999999999999999999.}\n");
}

static void test_written_and_split(void **state)
{
    static const size_t lengths[] = {0,     1, MARKED_PIECE - 1, MARKED_PIECE, MARKED_PIECE + 1,
                                     100000};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char *text = NULL, *line = malloc(lengths[i] + 2);
        size_t size = 0, longest = 0;
        assert_non_null(line);
        for (size_t k = 0; k < lengths[i]; k++)
            line[k] = (char)('a' + k % 26);
        line[lengths[i]] = '\0';
        FILE *out = open_memstream(&text, &size);
        assert_non_null(out);
        assert_int_equal(marked_write(out, "x", line, NULL), 0);
        fclose(out);
        for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1)
            longest = (size_t)(end - at) > longest ? (size_t)(end - at) : longest;
        assert_true(longest <= MARKED_PIECE + 32);
        line[lengths[i]] = '\n';
        line[lengths[i] + 1] = '\0';
        holds(text, true, line, "");
        free(text);
        free(line);
    }
}

#define TABLE                                                                                      \
    "#  Rank  0 Group  0 Pid  7 on w-0 device  0 [mpi] memory\n"                                   \
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     "   \
    "time   algbw   busbw  #wrong\n"                                                               \
    "        1024           256     float     sum      -1    10.00    0.10    0.20       0    "    \
    "20.00    0.05    0.10       0\n"                                                              \
    "w-0:7:8 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n"                      \
    "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.15 \n#\n"
#define BEGIN                                                                                      \
    "#drarun-bench 0.{\"kind\":\"begin\",\"collective\":\"all_reduce\",\"config\":{\"devices\":["  \
    "{\"rank\":0,\"hostname\":\"w-0\",\"node\":\"node-1\"}]}}\n"
#define ROW                                                                                        \
    "#drarun-bench 0.{\"kind\":\"row\",\"size\":1024,\"out_of_place\":{\"time\":10.25,\"alg_bw\":" \
    "0.1,\"bus_bw\":0.2,\"nwrong\":0,\"per_rank_times_us\":[9.5]}}\n"

static const struct run *read_one(const char *text, struct runs *runs)
{
    struct drarun_error err = {0};
    if (runs_read(text, strlen(text), "x", runs, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(runs->count, 1);
    return runs->list[0];
}

static void test_lines_beside_their_table(void **state)
{
    struct runs runs = {0};
    (void)state;
    const struct run *run = read_one(BEGIN ROW TABLE, &runs);
    assert_string_equal(run->result.ranks[0].node, "node-1");
    assert_float_equal(run->result.rows[0].out_of_place.seconds, 10.25e-6, 1e-12);
    assert_int_equal(run->result.rows[0].out_of_place.rank_count, 1);
    assert_int_equal(run->log.net_count, 1); /* of the text */
    assert_int_equal(run->log.nets[0].count, 1);
    runs_done(&runs);
}

static void test_a_lost_line_leaves_the_table(void **state)
{
    struct runs runs = {0};
    (void)state;
    const struct run *run = read_one(BEGIN TABLE, &runs);
    assert_string_equal(run->result.ranks[0].node, "");
    assert_float_equal(run->result.rows[0].out_of_place.seconds, 10e-6, 1e-12);
    assert_int_equal(run->notes.count, 1);
    assert_string_equal(run->notes.items[0],
                        "lines of its results are missing: only its table is known");
    runs_done(&runs);
}

static void test_failure_is_of_the_text(void **state)
{
    struct runs runs = {0};
    (void)state;
    const struct run *run = read_one(BEGIN ROW TABLE "w-0: Test NCCL failure x.cu:1 'x'\n", &runs);
    assert_string_equal(run->result.failure.host, "w-0");
    assert_true(run->result.ended); /* the line with its end was lost */
    assert_float_equal(run->result.average, 0.15, 1e-9);
    runs_done(&runs);
}

static void test_lines_alone(void **state)
{
    struct runs runs = {0};
    (void)state;
    assert_string_equal(read_one(BEGIN ROW, &runs)->result.ranks[0].node, "node-1");
    runs_done(&runs);
    assert_true(runs_read("#drarun-bench 0.{\n", 18, "x", &runs, NULL) < 0);
    runs_done(&runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_lost_pieces),
        cmocka_unit_test(test_written_and_split),
        cmocka_unit_test(test_lines_beside_their_table),
        cmocka_unit_test(test_a_lost_line_leaves_the_table),
        cmocka_unit_test(test_failure_is_of_the_text),
        cmocka_unit_test(test_lines_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
