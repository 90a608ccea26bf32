/* SPDX-License-Identifier: Apache-2.0 */
/* What a command line asks of a verdict: what the results ran on, and what is demanded of them. */
#ifndef DRARUN_LAUNCHER_BENCH_ASKED_H
#define DRARUN_LAUNCHER_BENCH_ASKED_H

#include "launcher/bench/machine.h"

struct bench_asked {
    struct bench_machine machine; /* first, for its options */
    struct verdict_demands demands;
};

#define BENCH_ASKED_INIT                                                                           \
    {                                                                                              \
        .demands = VERDICT_NO_DEMANDS                                                              \
    }

int bench_asked_min_busbw(void *target, const char *shown, const char *value,
                          struct drarun_error *err);
int bench_asked_min_best(void *target, const char *shown, const char *value,
                         struct drarun_error *err);
int bench_asked_min_percent(void *target, const char *shown, const char *value,
                            struct drarun_error *err);

/* Entries of an option table; the target begins with a struct bench_asked. --min-busbw is
 * drarun-bench's own where it measures, and of the same meaning. */
#define BENCH_ASKED_GROUP "Requirements: status 1 if one is not met"
#define BENCH_ASKED_MIN_BUSBW                                                                      \
    {                                                                                              \
        .name = "min-busbw", .value = "GB/S", .group = BENCH_ASKED_GROUP, .kind = OPTION_CALL,     \
        .set = bench_asked_min_busbw, .help = "minimum average bus bandwidth over the sizes"       \
    }
#define BENCH_ASKED_OPTIONS                                                                        \
    {.name = "min-best-busbw",                                                                     \
     .value = "GB/S",                                                                              \
     .group = BENCH_ASKED_GROUP,                                                                   \
     .kind = OPTION_CALL,                                                                          \
     .set = bench_asked_min_best,                                                                  \
     .help = "minimum bus bandwidth of the best size"},                                            \
        {.name = "min-percent",                                                                    \
         .value = "P",                                                                             \
         .group = BENCH_ASKED_GROUP,                                                               \
         .kind = OPTION_CALL,                                                                      \
         .set = bench_asked_min_percent,                                                           \
         .help = "the same, as a percentage of the limit"},                                        \
    {                                                                                              \
        .name = "require-rdma", .group = BENCH_ASKED_GROUP, .kind = OPTION_FLAG,                   \
        .offset = offsetof(struct bench_asked, demands.require_rdma),                              \
        .help = "hosts must provably be connected by RDMA or NVLink"                               \
    }

#endif
