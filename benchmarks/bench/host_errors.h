/* SPDX-License-Identifier: Apache-2.0 */
/* What devices count as errors while it is measured: ports, interfaces, GPUs. */
#ifndef DRARUN_BENCH_HOST_ERRORS_H
#define DRARUN_BENCH_HOST_ERRORS_H

#include "benchmarks/bench/backend.h"
#include "benchmarks/bench/table.h"
#include "lib/inspect/error_counts.h"
#include "lib/nvml/library.h"

struct host_errors {
    bool looks; /* one rank of a host does */
    bool asks;  /* NVML answers */
    struct nvml_library nvml;
    char why_not[160]; /* NVML is not asked */
    struct error_counts begun;
};

/* Reads them for the first time, where this rank is the first of its host. */
void host_errors_begin(struct host_errors *errors, const struct table_rank *ranks, unsigned rank);
/* All ranks call it together, at the end; fills what rank 0 tells. */
int host_errors_end(struct host_errors *errors, const struct backend *backend,
                    const struct table_rank *ranks, unsigned count, struct result_faults *faults,
                    struct drarun_error *err);
void host_errors_done(struct host_errors *errors);

#endif
