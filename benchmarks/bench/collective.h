/* SPDX-License-Identifier: Apache-2.0 */
/* A collective: how its buffers lie, what it moves, what must come out. Sizes, offsets and
 * bandwidths are those of nccl-tests 2.19 (src/NAME.cu, doc/PERFORMANCE.md). */
#ifndef DRARUN_BENCH_COLLECTIVE_H
#define DRARUN_BENCH_COLLECTIVE_H

#include "benchmarks/bench/backend.h"
#include "benchmarks/bench/data.h"
#include "benchmarks/bench/pattern.h"

/* In elements. In place, sending begins in the receive buffer at send_offset times the rank, or
 * receiving in the send buffer at recv_offset times the rank. */
struct layout {
    size_t send, recv;
    size_t count; /* what the call is given */
    size_t send_offset, recv_offset;
};

struct check { /* one rank's part */
    struct data data;
    struct pattern pattern;
    unsigned rank, ranks, root;
    struct layout layout;
};

struct collective {
    const char *name; /* "all_reduce" */
    bool reduces;     /* has an operation */
    bool rooted;      /* has a root */
    bool in_place;    /* can be checked there */
    bool apart;       /* has no form in place: the call is measured twice as it is */
    bool bare;        /* moves nothing: one row of 0 bytes */
    void (*layout)(size_t count, size_t size, unsigned ranks, struct layout *ret_layout);
    /* Bytes that algbw counts, and busbw's factor of it. */
    double (*bytes)(size_t count, size_t size, unsigned ranks);
    double (*factor)(unsigned ranks);
    /* Why this number of ranks does not do, or NULL; the call itself may be absent: any. */
    const char *(*refuses)(unsigned ranks);
    /* This rank's data to send, layout.send elements; and what it must have received: both in the
     * backend's memory. Before, both buffers are zero. Returns how many elements of it are to be
     * looked at. */
    void (*fill)(const struct check *c, void *send);
    size_t (*expected)(const struct check *c, void *recv);
    int (*run)(const struct backend *b, const struct backend_world *world, const struct transfer *t,
               struct drarun_error *err);
};

extern const struct collective collective_all_reduce, collective_all_gather,
    collective_reduce_scatter, collective_broadcast, collective_reduce, collective_alltoall,
    collective_gather, collective_scatter, collective_sendrecv, collective_hypercube,
    collective_alltoallv, collective_barrier;

/* By its name, or nccl-tests' program (all_reduce_perf); NULL. */
const struct collective *collective_find(const char *name);

/* What several share: collective_shape.c. */
void layout_even(size_t count, size_t size, unsigned ranks, struct layout *ret);
void layout_gathered(size_t count, size_t size, unsigned ranks, struct layout *ret);
void layout_scattered(size_t count, size_t size, unsigned ranks, struct layout *ret);
size_t layout_part(size_t count, size_t size, unsigned ranks);  /* multiples of 16 bytes */
double bytes_once(size_t count, size_t size, unsigned ranks);   /* count */
double bytes_of_all(size_t count, size_t size, unsigned ranks); /* count of each rank */
double factor_one(unsigned ranks);
double factor_others(unsigned ranks);              /* (n-1)/n */
void fill_own(const struct check *c, void *send);  /* each rank its own data */
void fill_root(const struct check *c, void *send); /* the root alone */
/* A part of each rank, which begins at this place of that rank's data. */
size_t expected_parts(const struct check *c, size_t first, void *recv);

#endif
