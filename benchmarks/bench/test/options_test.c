/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "benchmarks/bench/options.h"
#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"

static int read_words(struct bench_options *o, struct drarun_error *err, const char *words)
{
    char text[200], *argv[32] = {unconst("drarun-bench")}, *rest = text;
    int argc = 1;
    snprintf(text, sizeof text, "%s", words);
    for (char *word; (word = strsep(&rest, " "));)
        argv[argc++] = word;
    return options_read(argc, argv, o, err);
}

static void test_sizes(void **state)
{
    static const struct {
        const char *text;
        size_t bytes;
    } good[] = {{"0", 0},
                {"8", 8},
                {"1K", 1024},
                {"1k", 1024},
                {"32M", 32u << 20},
                {"1.5G", 1610612736},
                {"8GB", (size_t)8 << 30},
                {"1T", (size_t)1 << 40}};
    static const char *const bad[] = {"",    "-1",  "x",        "1X",  "1KK",
                                      "nan", "inf", "9999999T", "1 K", "0x10K"};
    size_t bytes;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(size_parse(good[i].text, &bytes), 0);
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(size_parse(bad[i], &bytes), -EINVAL);
}

static void test_all_together(void **state)
{
    struct bench_options o;
    struct drarun_error err = {0};
    (void)state;
    assert_int_equal(read_words(&o, &err,
                                "all_reduce_perf -b 1K -e 8M -f 2 -n 5 -w 3 -m 2 -c 0 -o all -d "
                                "half -a 3 -z 2 -g 1 -G 0"),
                     0);
    assert_ptr_equal(o.collective, &collective_all_reduce);
    assert_int_equal(o.min_bytes, 1024);
    assert_int_equal(o.max_bytes, 8 << 20);
    assert_int_equal(o.step_factor, 2);
    assert_int_equal(o.plan.iters, 5);
    assert_int_equal(o.warmup, 3);
    assert_int_equal(o.plan.agg, 2);
    assert_int_equal(o.plan.check, 0);
    assert_int_equal(o.plan.average, AVERAGE_MAX);
    assert_true(o.types[ELEMENT_HALF] && !o.types[ELEMENT_FLOAT] && o.ops[REDUCE_PROD] &&
                o.ops[REDUCE_AVG]);
}

static void test_refused(void **state)
{
    static const struct {
        const char *words, *says;
    } bad[] = {
        {"all_reduce -b 8M -e 1K", "-b 8388608 is more than -e 1024"},
        {"all_reduce -e 1K", "is more than -e 1024; without the option, each is 32M"},
        {"all_reduce -b 0 -e 8 -f 2", "never grows"},
        {"all_reduce -b 1 -e 8 -i 0", "never comes to"},
        {"all_reduce -b -1", "expected a size"},
        {"all_reduce -d float16", "expected a type"},
        {"all_reduce -o xor", "expected sum"},
        {"all_reduce -n 0", "-n: expected 1 to"},
        {"all_reduce -a 4", "-a: expected 0 to 3"},
        {"all_reduce -t 2", "start more ranks"},
        {"all_reduce -G 1", "not captured into CUDA graphs"},
        {"all_reduce -D 1", "no device code"},
        {"all_reduce -Q", "unknown option -Q"},
        {"all_reduce -b", "-b needs a value"},
        {"all_reduces", "all_reduces: no such collective; did you mean all_reduce?"},
        {"AllReduce", "did you mean all_reduce?"},
        {"all-to-all", "did you mean alltoall?"},
        {"everything", "everything: no such collective; expected one of all_reduce all_gather"},
        {"all_reduce all_gather", "expected one collective"},
        {"all_reduce -n 1x", "expected a whole number"},
        {"all_reduce --itres 5", "did you mean --iters"},
        {"all_reduce --min-busbw nan", "expected GB/s"},
        {"all_reduce -K 2", "expected -I 1"},
        {"all_reduce -I 1 -n 3 -K 3", "more calls"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct bench_options o;
        struct drarun_error err = {0};
        assert_true(read_words(&o, &err, bad[i].words) < 0);
        assert_non_null(strstr(err.text, bad[i].says));
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
    }
}

static void test_environment_that_is_not_known(void **state)
{
    struct bench_options o;
    struct drarun_error err = {0};
    (void)state;
    setenv("NCCL_TESTS_SPLIT", "MOD 2", 1);
    assert_true(read_words(&o, &err, "all_reduce") < 0);
    assert_non_null(strstr(err.text, "NCCL_TESTS_SPLIT"));
    unsetenv("NCCL_TESTS_SPLIT");
    assert_int_equal(read_words(&o, &err, "all_reduce"), 0);
}

static void test_least_bandwidth_by_environment(void **state)
{
    struct bench_options o;
    struct drarun_error err = {0};
    (void)state;
    setenv("NCCL_TESTS_MIN_BW", "46.5", 1);
    assert_int_equal(read_words(&o, &err, "all_gather"), 0);
    assert_true(o.min_busbw == 46.5 * 0.9); /* nccl-tests' tolerance */
    unsetenv("NCCL_TESTS_MIN_BW");
    assert_int_equal(read_words(&o, &err, "all_gather"), 0);
    assert_true(o.min_busbw < 0);
}

static void test_latency(void **state)
{
    struct bench_options o;
    struct drarun_error err = {0};
    (void)state;
    assert_int_equal(read_words(&o, &err, "all_reduce --latency"), 0);
    assert_true(o.latency && o.plan.each && o.plan.blocking == 3);
    assert_true(o.min_bytes == 8 && o.max_bytes == 64 << 10 && o.step_factor == 2);
    assert_true(o.plan.iters == 1000 && o.warmup == 100);
    assert_int_equal(read_words(&o, &err, "-n 7 all_reduce -e 1K --latency -w 2 -K 3"), 0);
    assert_true(o.min_bytes == 8 && o.max_bytes == 1024 && o.plan.iters == 7 && o.warmup == 2);
    assert_int_equal(o.skip, 3);
    static const char *const bad[] = {"all_reduce --latency -I 0", "all_reduce -z 1 --latency",
                                      "all_reduce --latency -m 2"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_true(read_words(&o, &err, bad[i]) < 0);
        assert_string_equal(err.text,
                            "--latency: it is -I 1 -z 3 -m 1, and takes no other of these");
    }
    assert_int_equal(read_words(&o, &err, "all_reduce"), 0);
    assert_true(!o.latency && !o.plan.each && o.plan.blocking == 0 && o.plan.iters == 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_all_together),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_environment_that_is_not_known),
        cmocka_unit_test(test_least_bandwidth_by_environment),
        cmocka_unit_test(test_latency),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
