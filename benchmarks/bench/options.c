/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/nearest.h"
#include "lib/base/number.h"
#include "lib/base/options.h"

#define BYTES ((size_t)32 << 20) /* -b and -e where they are not given */

/* Those of nccl-tests that say how to use NCCL and GPUs: as they are by default, and nothing else.
 */
static const struct {
    int letter;
    const char *name, *same;
    const char *why;
} of_nccl[] = {
    {'t', "nthreads", "1", "every rank is a process of its own: start more ranks"},
    {'g', "ngpus", "1", "every rank has one device: start more ranks"},
    {'p', "parallel_init", "0", "ranks are processes and start side by side anyway"},
    {'G', "cudagraph", "0", "calls are not captured into CUDA graphs"},
    {'C', "report_cputime", "0", "the time is that until the data is there"},
    {'S', "report_timestamps", "0", "rows have no time of day in this table"},
    {'x', "cta_policy", "-1", "set NCCL_CTA_POLICY instead"},
    {'D', "device_implementation", "0", "there is no device code"},
    {'V', "device_cta_count", "16", "there is no device code"},
    {'M', "memory", "0", "the use of memory is not reported"},
};

int size_parse(const char *text, size_t *ret_bytes)
{
    char *end;
    double unit = 1;
    if (!isdigit((unsigned char)text[0]) || text[1] == 'x' ||
        text[1] == 'X') /* strtod's other forms */
        return -EINVAL;
    errno = 0;
    double number = strtod(text, &end);
    switch (tolower((unsigned char)*end)) {
    case 'k':
        unit = 0x1p10;
        break;
    case 'm':
        unit = 0x1p20;
        break;
    case 'g':
        unit = 0x1p30;
        break;
    case 't':
        unit = 0x1p40;
        break;
    default:
        break;
    }
    if (unit > 1)
        end++;
    if (unit > 1 && (*end == 'B' || *end == 'b'))
        end++;
    number *= unit;
    if (errno || *end || !isfinite(number) || number >= 0x1p63)
        return -EINVAL;
    *ret_bytes = (size_t)number;
    return 0;
}

static int wrong(const char *option, const char *value, const char *expected,
                 struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s %s: expected %s", option, value, expected);
}

static int read_size(const char *option, const char *value, size_t *to, struct drarun_error *err)
{
    return size_parse(value, to) == 0 ? 0
                                      : wrong(option, value, "a size like 8, 32K, 1M or 8G", err);
}

static int read_type(const char *value, struct bench_options *o, struct drarun_error *err)
{
    enum element type;
    bool all = strcmp(value, "all") == 0;
    if (!all && element_find(value, &type) < 0)
        return wrong("-d", value,
                     "a type such as float, half, int32, bfloat16, or all (see --help)", err);
    for (unsigned i = 0; i < ELEMENTS; i++)
        o->types[i] = all || i == (unsigned)type;
    return 0;
}

static int read_op(const char *value, struct bench_options *o, struct drarun_error *err)
{
    enum reduction op;
    bool all = strcmp(value, "all") == 0;
    if (!all && reduction_find(value, &op) < 0)
        return wrong("-o", value, "sum, prod, max, min, avg, mulsum or all", err);
    for (unsigned i = 0; i < REDUCTIONS; i++)
        o->ops[i] = all || i == (unsigned)op;
    return 0;
}

static int read_busbw(const char *option, const char *value, double *to, struct drarun_error *err)
{
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end || !(number >= 0) || !isfinite(number))
        return wrong(option, value, "GB/s, as 46.5", err);
    *to = number;
    return 0;
}

/* ---- the table ---- */

#define CALL(name)                                                                                 \
    static int set_##name(void *target, const char *shown, const char *value,                      \
                          struct drarun_error *err)
#define OPTIONS ((struct bench_options *)target)

CALL(min_bytes)
{
    return read_size(shown, value, &OPTIONS->min_bytes, err);
}

CALL(max_bytes)
{
    return read_size(shown, value, &OPTIONS->max_bytes, err);
}

CALL(step_bytes)
{
    return read_size(shown, value, &OPTIONS->step_bytes, err);
}

CALL(step_factor)
{
    int64_t factor;
    int rc = number_parse(shown, value, 0, 1 << 20, &factor, err);
    OPTIONS->step_factor = rc < 0 ? OPTIONS->step_factor : (size_t)factor;
    return rc;
}

CALL(type)
{
    (void)shown;
    return read_type(value, OPTIONS, err);
}

CALL(op)
{
    (void)shown;
    return read_op(value, OPTIONS, err);
}

CALL(root)
{
    int64_t root = -1; /* all, as there */
    int rc = strcmp(value, "all") == 0 || strcmp(value, "-1") == 0
                 ? 0
                 : number_parse(shown, value, 0, INT_MAX, &root, err);
    OPTIONS->root = rc < 0 ? OPTIONS->root : (int)root;
    return rc;
}

CALL(average)
{
    int64_t which;
    int rc = number_parse(shown, value, 0, 3, &which, err);
    OPTIONS->plan.average = rc < 0 ? OPTIONS->plan.average : (enum average)which;
    return rc;
}

CALL(each)
{
    int64_t which;
    int rc = number_parse(shown, value, 0, 1, &which, err);
    OPTIONS->plan.each = rc < 0 ? OPTIONS->plan.each : which;
    return rc;
}

CALL(null_stream)
{
    int64_t which;
    int rc = number_parse(shown, value, 0, 1, &which, err);
    OPTIONS->of_backend.null_stream = rc < 0 ? OPTIONS->of_backend.null_stream : which;
    return rc;
}

CALL(min_busbw)
{
    return read_busbw(shown, value, &OPTIONS->min_busbw, err);
}

/* By the name or the letter, as it was typed. */
CALL(of_nccl)
{
    (void)target;
    for (size_t i = 0; i < ARRAY_LEN(of_nccl); i++)
        if ((shown[1] == of_nccl[i].letter && !shown[2]) ||
            (shown[1] == '-' && strcmp(shown + 2, of_nccl[i].name) == 0))
            return strcmp(value, of_nccl[i].same) == 0
                       ? 0
                       : error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--%s %s: %s", of_nccl[i].name,
                                    value, of_nccl[i].why);
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s: no such option", shown);
}

#define AT(field) offsetof(struct bench_options, field)
#define SIZES "Sizes"
#define HOW "How it is measured"
#define WHAT "What"
#define RESULTS "Results"
#define OF_NCCL(name, letter)                                                                      \
    {                                                                                              \
        name, letter, NULL, "N", NULL, NULL, NULL, OPTION_CALL, 0, 0, 0, set_of_nccl, false        \
    }
#define BY(name, letter, value, group, help, set)                                                  \
    {                                                                                              \
        name, letter, NULL, value, NULL, group, help, OPTION_CALL, 0, 0, 0, set, false             \
    }
#define COUNT(name, letter, group, help, field, min, max)                                          \
    {                                                                                              \
        name, letter, NULL, "N", NULL, group, help, OPTION_COUNT, AT(field), min, max, NULL, false \
    }
#define FILE_TO(name, letter, help, field)                                                         \
    {                                                                                              \
        name, letter, NULL, "FILE", "FILE", RESULTS, help, OPTION_TEXT, AT(field), 0, 0, NULL,     \
            false                                                                                  \
    }

static const struct option_spec list[] = {
    BY("minbytes", 'b', "SIZE", SIZES, "the smallest (32M); K, M, G are powers of 1024",
       set_min_bytes),
    BY("maxbytes", 'e', "SIZE", SIZES, "the largest (32M)", set_max_bytes),
    BY("stepbytes", 'i', "SIZE", SIZES, "from one to the next (1M)", set_step_bytes),
    BY("stepfactor", 'f', "N", SIZES, "or times this", set_step_factor),
    BY("datatype", 'd', "NAME", WHAT,
       "float (the default), int8, uint8, int32, uint32, int64, uint64, half, double,\nbfloat16, "
       "f8e4m3, f8e5m2, all",
       set_type),
    BY("op", 'o', "NAME", WHAT, "sum (the default), prod, max, min, avg, mulsum, all", set_op),
    BY("root", 'r', "N", WHAT, "a rank, or all (0)", set_root),
    COUNT("unalign", 'u', WHAT, "buffers begin at element N", unaligned, 0, 1 << 20),
    {"backend", 0, NULL, "NAME", NULL, WHAT, "what moves the data: mpi, nccl (default: mpi)",
     OPTION_TEXT, AT(backend), 0, 0, NULL, false},
    COUNT("iters", 'n', HOW, "calls of a measurement (20)", plan.iters, 1, 100000000),
    COUNT("agg_iters", 'm', HOW, "that count as one (1)", plan.agg, 1, 1000000),
    COUNT("warmup_iters", 'w', HOW, "before, of each size (1)", warmup, 0, 1000000),
    COUNT("settle", 0, HOW,
          "and before each measurement, paced as those, besides the\none call of nccl-tests (0)",
          plan.settle, 0, 1000000),
    COUNT("run_cycles", 'N', HOW, "all sizes so often; 0: without end (1)", cycles, 0, UINT_MAX),
    COUNT("check", 'c', HOW, "rounds of data that are checked (1)", plan.check, 0, 1000000),
    BY("average", 'a', "N", HOW,
       "time of 0: rank 0, 1: the mean (the default), 2: the least, 3: the most of all ranks",
       set_average),
    COUNT("blocking", 'z', HOW,
          "1: wait and barrier after each call, 2: wait, 3: barrier outside of the time",
          plan.blocking, 0, 3),
    BY("per_iter_timing", 'I', "N", HOW,
       "1: also the least, most, 99th percentile and variation of single calls", set_each),
    COUNT("per_iter_skip", 'K', HOW, "without the first N of them", skip, 0, 100000000),
    {"latency", 0, NULL, NULL, NULL, HOW,
     "each call by itself, behind a barrier: the median of each size, and percentiles\n"
     "(-I 1 -z 3; -b 8 -e 64K -f 2 -n 1000 -w 100 unless they are given)",
     OPTION_FLAG, AT(latency), 0, 0, NULL, false},
    BY("stream_null", 'y', "N", HOW, "1: NCCL on CUDA's stream 0", set_null_stream),
    COUNT("local_register", 'R', HOW, "1: buffers are registered with NCCL, 2: symmetrically",
          of_backend.registers, 0, 2),
    COUNT("timeout", 'T', HOW, "seconds: end when a measurement takes longer", timeout_s, 0, 86400),
    FILE_TO("output_file", 'J', "as JSON, nccl-tests' keys and more; FILE.0, ... when it is there",
            json_file),
    FILE_TO("json-lines", 0, "a line as soon as a size is measured: whole lines after any end",
            lines_file),
    FILE_TO("csv", 0, "as comma-separated values, a line for each half of a row", csv_file),
    BY("min-busbw", 0, "GB/S", RESULTS,
       "the average below it: status 1 (without it: 0.9 of $NCCL_TESTS_MIN_BW)", set_min_busbw),
    {"pairs", 0, NULL, NULL, NULL, RESULTS,
     "measure all pairs of ranks too, and name who is slow; always below --min-busbw", OPTION_FLAG,
     AT(pairs), 0, 0, NULL, false},
    {"help", 'h', NULL, NULL, NULL, RESULTS, "this text", OPTION_FLAG, AT(help), 0, 0, NULL, false},
    OF_NCCL("nthreads", 't'),
    OF_NCCL("ngpus", 'g'),
    OF_NCCL("parallel_init", 'p'),
    OF_NCCL("cudagraph", 'G'),
    OF_NCCL("report_cputime", 'C'),
    OF_NCCL("report_timestamps", 'S'),
    OF_NCCL("cta_policy", 'x'),
    OF_NCCL("device_implementation", 'D'),
    OF_NCCL("device_cta_count", 'V'),
    OF_NCCL("memory", 'M'),
};
const struct option_table bench_option_table = {list, ARRAY_LEN(list)};

void options_print_help(FILE *out)
{
    struct buf text = BUF_INIT;
    options_help(&bench_option_table, &text);
    fprintf(out,
            "Usage: drarun-bench COLLECTIVE [OPTION...]\n\n"
            "Measures a collective over all ranks that were started with it, as nccl-tests does, "
            "with their options:\n"
            "all_reduce, all_gather, reduce_scatter, broadcast, reduce, alltoall, gather, scatter, "
            "sendrecv, hypercube, alltoallv, barrier.\n%s",
            text.data ? text.data : "");
    buf_done(&text);
}

static int check(const struct bench_options *o, struct drarun_error *err)
{
    if (o->min_bytes > o->max_bytes)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "-b %zu is more than -e %zu%s",
                          o->min_bytes, o->max_bytes,
                          o->min_bytes == BYTES || o->max_bytes == BYTES
                              ? "; without the option, each is 32M"
                              : "");
    if (o->min_bytes < o->max_bytes && o->step_factor <= 1 && o->step_bytes == 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "-i 0 never comes to -e: give -f 2, or a step");
    if (o->latency && (!o->plan.each || o->plan.blocking != 3 || o->plan.agg != 1))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--latency: it is -I 1 -z 3 -m 1, and takes no other of these");
    if (o->skip > 0 && (!o->plan.each || o->skip >= o->plan.iters))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "-K %u: expected -I 1 with it, and more calls (-n) than that", o->skip);
    if (o->min_bytes == 0 && o->max_bytes > 0 && o->step_factor > 1)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "-b 0 with -f never grows: give -i");
    return 0;
}

/* Several collectives side by side in one run: the figures would be of something else. */
static int check_environment(struct drarun_error *err)
{
    if (!getenv("NCCL_TESTS_SPLIT") && !getenv("NCCL_TESTS_SPLIT_MASK"))
        return 0;
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                      "NCCL_TESTS_SPLIT and NCCL_TESTS_SPLIT_MASK are not known here: unset them, "
                      "and start a job for each part");
}

static int no_collective(struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                      "expected one collective, like all_reduce; see drarun-bench --help");
}

/* "allreduce", "AllReduce" and "all-reduce" are names elsewhere. */
static int unknown_collective(const char *name, struct drarun_error *err)
{
    static const char names[] = "all_reduce all_gather reduce_scatter broadcast reduce alltoall "
                                "gather scatter sendrecv hypercube alltoallv barrier";
    char lower[NEAREST_WORD_MAX] = "", near[NEAREST_WORD_MAX];
    unsigned int edits = 0;
    for (size_t i = 0; name[i] && i + 1 < sizeof lower; i++)
        lower[i] = (char)tolower((unsigned char)name[i]);
    if (nearest_within(lower, names, 2, near, sizeof near, &edits))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s: no such collective; did you mean %s?",
                          name, near);
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s: no such collective; expected one of %s",
                      name, names);
}

static int read_words(int argc, char **argv, struct bench_options *o, const char **ret_name,
                      struct drarun_error *err)
{
    const char *name = NULL;
    int rc = 0;
    for (int at = 1; rc == 0 && at < argc; at++) {
        int used = options_parse(&bench_option_table, argc - at, argv + at, false, o, err);
        at += used < 0 ? 0 : used;
        rc = used < 0 ? used : 0;
        if (rc == 0 && at < argc && name)
            rc = no_collective(err);
        else if (rc == 0 && at < argc)
            name = argv[at];
    }
    *ret_name = name;
    return rc;
}

static void use_latency(struct bench_options *o)
{
    o->min_bytes = 8;
    o->max_bytes = 64 << 10;
    o->step_factor = 2;
    o->warmup = 100;
    o->plan.iters = 1000;
    o->plan.each = true;
    o->plan.blocking = 3;
}

int options_read(int argc, char **argv, struct bench_options *ret, struct drarun_error *err)
{
    struct bench_options o = {
        .min_bytes = BYTES,
        .max_bytes = BYTES,
        .step_bytes = 1 << 20,
        .step_factor = 1,
        .warmup = 1,
        .cycles = 1,
        .plan = {.iters = 20, .agg = 1, .check = 1, .average = AVERAGE_MEAN},
        .min_busbw = -1,
    };
    const char *least = getenv("NCCL_TESTS_MIN_BW"), *name = NULL;
    int rc = least && *least ? read_busbw("NCCL_TESTS_MIN_BW", least, &o.min_busbw, err) : 0;
    o.min_busbw *= o.min_busbw > 0 ? 0.9 : 1; /* its tolerance in nccl-tests */
    o.types[ELEMENT_FLOAT] = o.ops[REDUCE_SUM] = true;
    struct bench_options usual = o;
    rc = rc < 0 ? rc : read_words(argc, argv, &o, &name, err);
    if (rc == 0 && o.latency) { /* other values where none is given */
        o = usual;
        use_latency(&o);
        rc = read_words(argc, argv, &o, &name, err);
    }
    o.backend_given = o.backend != NULL;
    o.backend = o.backend ? o.backend : "mpi";
    if (rc == 0 && !o.help && !name)
        rc = no_collective(err);
    if (rc == 0 && !o.help && !(o.collective = collective_find(name)))
        rc = unknown_collective(name, err);
    if (o.collective && o.collective->bare)
        o.min_bytes = o.max_bytes = 0;
    rc = rc == 0 && !o.help ? check_environment(err) : rc;
    rc = rc == 0 ? check(&o, err) : rc;
    if (rc == 0)
        *ret = o;
    return rc;
}
