/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

const char options_help[] =
    "Usage: drarun-bench COLLECTIVE [OPTION...]\n"
    "\n"
    "Measures a collective over all ranks that were started with it, as nccl-tests does, with "
    "their options:\n"
    "all_reduce, all_gather, reduce_scatter, broadcast, reduce, alltoall, gather, scatter, "
    "sendrecv, hypercube.\n"
    "\n"
    "  -b, --minbytes SIZE        the smallest size (default: 32M); K, M, G are powers of 1024\n"
    "  -e, --maxbytes SIZE        the largest one (default: 32M)\n"
    "  -i, --stepbytes SIZE       from one to the next (default: 1M)\n"
    "  -f, --stepfactor N         or times this\n"
    "  -n, --iters N              calls of a measurement (default: 20)\n"
    "  -m, --agg_iters N          that count as one (default: 1)\n"
    "  -w, --warmup_iters N       before, of each size (default: 1)\n"
    "  -N, --run_cycles N         all sizes so often; 0: for ever (default: 1)\n"
    "  -c, --check N              rounds of data that are checked (default: 1)\n"
    "  -o, --op NAME              sum (default), prod, max, min, avg, mulsum, all\n"
    "  -d, --datatype NAME        float (default), int8, uint8, int32, uint32, int64, uint64, "
    "half, double, bfloat16,\n"
    "                             f8e4m3, f8e5m2, all\n"
    "  -r, --root N               or all (default: 0)\n"
    "  -a, --average N            time of 0: rank 0, 1: the mean (default), 2: the least, 3: the "
    "most of all ranks\n"
    "  -z, --blocking N           1: wait and barrier after each call, 2: wait, 3: barrier outside "
    "of the time\n"
    "  -u, --unalign N            buffers begin at element N\n"
    "  -I, --per_iter_timing N    1: also the least, most, 99th percentile and variation of single "
    "calls\n"
    "  -K, --per_iter_skip N      without the first N of them\n"
    "  -T, --timeout SECONDS      end when a measurement takes longer\n"
    "      --backend NAME         mpi\n"
    "      --min-busbw GB/S       the average below it: status 1 (without it: 0.9 of "
    "$NCCL_TESTS_MIN_BW)\n"
    "  -h, --help                 this text\n";

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
    {'y', "stream_null", "0", "there is no CUDA stream"},
    {'G', "cudagraph", "0", "there is no CUDA graph"},
    {'C', "report_cputime", "0", "a call of this backend ends when it is done: both times are one"},
    {'S', "report_timestamps", "0", "rows have no time of day in this table"},
    {'R', "local_register", "0", "there is nothing to be registered"},
    {'x', "cta_policy", NULL, "there are no CTAs"},
    {'D', "device_implementation", "0", "there is no device code"},
    {'V', "device_cta_count", "16", "there are no CTAs"},
    {'M', "memory", "0", "the memory of GPUs is not used"},
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

static int read_number(const char *option, const char *value, unsigned least, unsigned most,
                       unsigned *to, struct drarun_error *err)
{
    char *end, expected[64];
    errno = 0;
    unsigned long number = strtoul(value, &end, 10);
    snprintf(expected, sizeof expected, "a number from %u to %u", least, most);
    if (errno || end == value || *end || !isdigit((unsigned char)*value) || number < least ||
        number > most)
        return wrong(option, value, expected, err);
    *to = (unsigned)number;
    return 0;
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

enum { OPT_BACKEND = 256, OPT_MIN_BUSBW };

static const struct option table[] = {
    {"minbytes", required_argument, NULL, 'b'},
    {"maxbytes", required_argument, NULL, 'e'},
    {"stepbytes", required_argument, NULL, 'i'},
    {"stepfactor", required_argument, NULL, 'f'},
    {"iters", required_argument, NULL, 'n'},
    {"agg_iters", required_argument, NULL, 'm'},
    {"warmup_iters", required_argument, NULL, 'w'},
    {"run_cycles", required_argument, NULL, 'N'},
    {"check", required_argument, NULL, 'c'},
    {"op", required_argument, NULL, 'o'},
    {"datatype", required_argument, NULL, 'd'},
    {"root", required_argument, NULL, 'r'},
    {"average", required_argument, NULL, 'a'},
    {"blocking", required_argument, NULL, 'z'},
    {"unalign", required_argument, NULL, 'u'},
    {"per_iter_timing", required_argument, NULL, 'I'},
    {"per_iter_skip", required_argument, NULL, 'K'},
    {"timeout", required_argument, NULL, 'T'},
    {"nthreads", required_argument, NULL, 't'},
    {"ngpus", required_argument, NULL, 'g'},
    {"parallel_init", required_argument, NULL, 'p'},
    {"stream_null", required_argument, NULL, 'y'},
    {"cudagraph", required_argument, NULL, 'G'},
    {"report_cputime", required_argument, NULL, 'C'},
    {"report_timestamps", required_argument, NULL, 'S'},
    {"local_register", required_argument, NULL, 'R'},
    {"cta_policy", required_argument, NULL, 'x'},
    {"device_implementation", required_argument, NULL, 'D'},
    {"device_cta_count", required_argument, NULL, 'V'},
    {"memory", required_argument, NULL, 'M'},
    {"backend", required_argument, NULL, OPT_BACKEND},
    {"min-busbw", required_argument, NULL, OPT_MIN_BUSBW},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int of_nccl_alone(int letter, const char *value, struct drarun_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(of_nccl); i++)
        if (of_nccl[i].letter == letter)
            return of_nccl[i].same && strcmp(value, of_nccl[i].same) == 0
                       ? 0
                       : error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--%s %s: %s", of_nccl[i].name,
                                    value, of_nccl[i].why);
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "see drarun-bench --help");
}

static int apply(int option, const char *value, struct bench_options *o, struct drarun_error *err)
{
    unsigned number = 0;
    size_t factor = 0;
    int rc;
    switch (option) {
    case 'b':
        return read_size("-b", value, &o->min_bytes, err);
    case 'e':
        return read_size("-e", value, &o->max_bytes, err);
    case 'i':
        return read_size("-i", value, &o->step_bytes, err);
    case 'f':
        rc = read_number("-f", value, 0, 1 << 20, &number, err);
        factor = number;
        o->step_factor = rc < 0 ? o->step_factor : factor;
        return rc;
    case 'n':
        return read_number("-n", value, 1, 100000000, &o->plan.iters, err);
    case 'm':
        return read_number("-m", value, 1, 1000000, &o->plan.agg, err);
    case 'w':
        return read_number("-w", value, 0, 1000000, &o->warmup, err);
    case 'N':
        return read_number("-N", value, 0, UINT_MAX, &o->cycles, err);
    case 'c':
        return read_number("-c", value, 0, 1000000, &o->plan.check, err);
    case 'o':
        return read_op(value, o, err);
    case 'd':
        return read_type(value, o, err);
    case 'r':
        rc = strcmp(value, "all") == 0 ? (o->root = -1, 1)
                                       : read_number("-r", value, 0, INT_MAX, &number, err);
        o->root = rc == 0 ? (int)number : o->root;
        return rc < 0 ? rc : 0;
    case 'a':
        rc = read_number("-a", value, 0, 3, &number, err);
        o->plan.average = rc < 0 ? o->plan.average : (enum average)number;
        return rc;
    case 'z':
        return read_number("-z", value, 0, 3, &o->plan.blocking, err);
    case 'u':
        return read_number("-u", value, 0, 1 << 20, &o->unaligned, err);
    case 'I':
        rc = read_number("-I", value, 0, 1, &number, err);
        o->plan.each = number;
        return rc;
    case 'K':
        return read_number("-K", value, 0, 100000000, &o->skip, err);
    case 'T':
        return read_number("-T", value, 0, 86400, &o->timeout_s, err);
    case OPT_BACKEND:
        o->backend = value;
        return 0;
    case OPT_MIN_BUSBW:
        return read_busbw("--min-busbw", value, &o->min_busbw, err);
    case 'h':
        o->help = true;
        return 0;
    default:
        return of_nccl_alone(option, value, err);
    }
}

static int check(const struct bench_options *o, struct drarun_error *err)
{
    if (o->min_bytes > o->max_bytes)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "-b %zu is more than -e %zu", o->min_bytes,
                          o->max_bytes);
    if (o->min_bytes < o->max_bytes && o->step_factor <= 1 && o->step_bytes == 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "-i 0 never comes to -e: give -f 2, or a step");
    if (o->skip > 0 && (!o->plan.each || o->skip >= o->plan.iters))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "-K %u: expected -I 1 with it, and more calls (-n) than that", o->skip);
    if (o->min_bytes == 0 && o->step_factor > 1)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "-b 0 with -f never grows: give -i");
    return 0;
}

int options_read(int argc, char **argv, struct bench_options *ret, struct drarun_error *err)
{
    struct bench_options o = {
        .backend = "mpi",
        .min_bytes = 32 << 20,
        .max_bytes = 32 << 20,
        .step_bytes = 1 << 20,
        .step_factor = 1,
        .warmup = 1,
        .cycles = 1,
        .plan = {.iters = 20, .agg = 1, .check = 1, .average = AVERAGE_MEAN},
        .min_busbw = -1,
    };
    const char *least = getenv("NCCL_TESTS_MIN_BW");
    int option,
        rc = least && *least ? read_busbw("NCCL_TESTS_MIN_BW", least, &o.min_busbw, err) : 0;
    o.min_busbw *= o.min_busbw > 0 ? 0.9 : 1; /* its tolerance in nccl-tests */
    o.types[ELEMENT_FLOAT] = o.ops[REDUCE_SUM] = true;
    optind = 1;
    opterr = 0;
    while (rc == 0 &&
           (option = getopt_long(argc, argv,
                                 "b:e:i:f:n:m:w:N:c:o:d:r:a:z:u:I:K:T:t:g:p:y:G:C:S:R:x:D:V:M:h",
                                 table, NULL)) != -1)
        rc = option == '?' ? error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                                        "%s: no such option, or its value is missing; see "
                                        "drarun-bench --help",
                                        argv[optind - 1])
                           : apply(option, optarg, &o, err);
    if (rc == 0 && !o.help && optind != argc - 1)
        rc = error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                        "expected one collective, like all_reduce; see drarun-bench --help");
    if (rc == 0 && !o.help && !(o.collective = collective_find(argv[optind])))
        rc = error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                        "%s: no such collective; see drarun-bench --help", argv[optind]);
    rc = rc == 0 ? check(&o, err) : rc;
    if (rc == 0)
        *ret = o;
    return rc;
}
