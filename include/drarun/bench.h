/* SPDX-License-Identifier: Apache-2.0 */
/* Judges the output of a collective benchmark: nccl-tests (text or JSON), drarun-bench, or a job
 * that ran one of them, along with everything else that the job wrote. */
#ifndef DRARUN_BENCH_H
#define DRARUN_BENCH_H

#include "drarun/api.h"
#include "drarun/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct drarun_bench_options {
    size_t size;       /* of this struct */
    const char *title; /* the page's heading. NULL: Collectives */
    double min_busbw;  /* GB/s, the average over all sizes. 0, as for the next two: no minimum */
    double min_best_busbw;      /* GB/s at the best size */
    double min_percent;         /* percentage of the limit at the best size */
    unsigned char require_rdma; /* 1: RDMA between hosts must be proven */
};
DRARUN_DEFINE_INIT(drarun_bench_options)

/* Returns a JSON array with a verdict for each run in the text, as `drarun bench judge --output
 * json` prints them: best and average bus bandwidth in GB/s, the limit, whether the data was
 * correct, `failed` and the reason. A truncated run counts as failed, and its verdict holds what
 * was measured. Kind DRARUN_ERR_SPEC: the text contains no run; DRARUN_ERR_USAGE: invalid
 * options. */
DRARUN_API int drarun_bench_verdicts(const char *text, size_t length,
                                     const struct drarun_bench_options *options, char **ret_json,
                                     struct drarun_error *err);
/* Returns a self-contained HTML page about the runs, as `drarun bench report` writes it. */
DRARUN_API int drarun_bench_report(const char *text, size_t length,
                                   const struct drarun_bench_options *options, char **ret_html,
                                   struct drarun_error *err);

#ifdef __cplusplus
}
#endif
#endif
