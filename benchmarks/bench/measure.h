/* SPDX-License-Identifier: Apache-2.0 */
/* The timing core: how long one collective of one size takes, and whether its data was right. The
 * order of calls is nccl-tests' (src/common.cu, BenchTime), so that times mean the same. */
#ifndef DRARUN_BENCH_MEASURE_H
#define DRARUN_BENCH_MEASURE_H

#include "benchmarks/bench/collective.h"
#include "lib/base/progress.h"

enum average { AVERAGE_RANK0, AVERAGE_MEAN, AVERAGE_MIN, AVERAGE_MAX };

struct measure_plan {
    unsigned iters;  /* timed calls */
    unsigned agg;    /* calls that make one of them */
    unsigned settle; /* iterations before each measurement, paced as the timed ones */
    unsigned check;  /* rounds of data that are checked; 0: none */
    enum average average;
    unsigned blocking; /* nccl-tests' -z: 0 none, 1 wait and barrier, 2 wait after each call, 3
                          outside of the time */
    bool each;         /* time of each call too */
};

/* Memory of one run, of the backend's and of the program's. */
struct measure_memory {
    char *send, *recv; /* of the backend */
    char *wanted;      /* of the backend, as large as recv; NULL without a check */
    char *staging;     /* of the program, DATA_STAGING_BYTES */
    size_t send_bytes, recv_bytes;
};

struct measure_case {
    const struct backend *backend;
    const struct backend_world *world;
    const struct collective *collective;
    enum element type;
    enum reduction op;
    unsigned root;
    size_t bytes;                   /* as -b and -e count: of the larger buffer */
    struct progress_page *progress; /* where every call is told; NULL: nowhere */
};

struct measured {
    struct layout layout;
    double seconds;      /* of one call, over the ranks as `average` says */
    double algbw, busbw; /* GB/s, 10^9 */
    double wrong;        /* elements over all ranks; below 0: not checked */
    double *wrong_ranks; /* of each rank, in their order */
    double *ranks;       /* of one call as each rank saw it, in their order */
    double *each;        /* with plan.each: `iters` seconds, the slowest rank of each */
};

/* Bytes that send and receive buffers need for this case; unaligned: elements that both are shifted
 * by. */
void measure_needs(const struct measure_case *m, unsigned unaligned, size_t *ret_send,
                   size_t *ret_recv);
/* check: whether data will be checked, which takes a third buffer. */
int measure_memory_new(const struct measure_case *largest, unsigned unaligned, bool check,
                       struct measure_memory *ret, struct drarun_error *err);
void measure_memory_done(const struct backend *backend, struct measure_memory *memory);

/* Frees what it has. */
void measured_done(struct measured *m);

/* Calls without measuring. */
int measure_warm(const struct measure_case *m, const struct measure_memory *memory, size_t shift,
                 unsigned calls, struct drarun_error *err);
/* All ranks call it together. shift: bytes. */
int measure(const struct measure_case *m, const struct measure_plan *plan,
            const struct measure_memory *memory, size_t shift, bool in_place, struct measured *ret,
            struct drarun_error *err);

#endif
