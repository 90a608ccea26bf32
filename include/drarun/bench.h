/* SPDX-License-Identifier: Apache-2.0 */
/* What the output of a collective benchmark is worth: of nccl-tests (text or JSON), of
 * drarun-bench, or of a job whose ranks were one of them, with all else that it wrote. */
#ifndef DRARUN_BENCH_H
#define DRARUN_BENCH_H

#include "drarun/api.h"
#include "drarun/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct drarun_bench_options {
    size_t size;           /* of this struct */
    const char *title;     /* the page's heading. NULL: Collectives */
    double min_busbw;      /* GB/s on average over the sizes; 0: none is demanded, as all here */
    double min_best_busbw; /* GB/s of the best size */
    double min_percent;    /* of the limit, of the best size */
    unsigned char require_rdma; /* 1: it must be proven, between hosts */
};
DRARUN_DEFINE_INIT(drarun_bench_options)

/* A JSON array with a verdict for each run in the text, as `drarun bench judge --output json` has
 * them: best and average bus bandwidth in GB/s, the limit, whether data was right, `failed` and
 * why. A run that is cut off has failed, and holds what was measured. Kind DRARUN_ERR_SPEC: the
 * text holds no run; DRARUN_ERR_USAGE: options that mean nothing. */
DRARUN_API int drarun_bench_verdicts(const char *text, size_t length,
                                     const struct drarun_bench_options *options, char **ret_json,
                                     struct drarun_error *err);
/* A page (HTML) about them that loads nothing else, as `drarun bench report` makes it. */
DRARUN_API int drarun_bench_report(const char *text, size_t length,
                                   const struct drarun_bench_options *options, char **ret_html,
                                   struct drarun_error *err);

#ifdef __cplusplus
}
#endif
#endif
