/* SPDX-License-Identifier: Apache-2.0 */
/* What a run is worth: its best bus bandwidth as per cent of the limit, whether its data was right,
 * whether RDMA was used, what others saw, and what is wrong with it. Pure. */
#ifndef DRARUN_LIB_BENCH_VERDICT_H
#define DRARUN_LIB_BENCH_VERDICT_H

#include "lib/base/buf.h"
#include "lib/bench/limit.h"

struct verdict_demands {
    double min_busbw;      /* GB/s on average over the sizes; below 0: none, as all here */
    double min_best_busbw; /* GB/s of the best size */
    double min_percent;    /* of the limit, of the best size */
    bool require_rdma;     /* it must be proven, between hosts */
};

#define VERDICT_NO_DEMANDS                                                                         \
    {                                                                                              \
        .min_busbw = -1, .min_best_busbw = -1, .min_percent = -1                                   \
    }

enum verdict_data { VERDICT_DATA_UNKNOWN, VERDICT_DATA_RIGHT, VERDICT_DATA_WRONG };
enum verdict_rdma {
    VERDICT_RDMA_ONE_HOST, /* there is nothing to prove */
    VERDICT_RDMA_UNKNOWN,  /* no line says it, or a network that is not known to be RDMA */
    VERDICT_RDMA_GPU,      /* with GPUDirect on every connection */
    VERDICT_RDMA_HOST,     /* at least one goes through the memory of the host */
    VERDICT_RDMA_NVLINK,
    VERDICT_RDMA_COUNTED, /* by the NICs' counters */
    VERDICT_RDMA_NONE,    /* TCP */
};

enum verdict_standing { /* to what others saw */
                        VERDICT_STANDING_UNKNOWN,
                        VERDICT_BELOW,
                        VERDICT_WITHIN,
                        VERDICT_ABOVE,
};

struct verdict {
    const struct run *run;        /* borrowed, as what follows */
    const struct result_row *row; /* of the best; NULL: no figure counts */
    const struct result_half *best;
    double average; /* below 0 */
    struct limit limit;
    double percent; /* of the limit; below 0 */
    enum verdict_data data;
    double wrong; /* elements, or rows where only those were counted */
    enum verdict_rdma rdma;
    struct nccl_log_sums sums; /* between hosts */
    struct nccl_within within; /* hosts */
    bool rdma_counted;         /* the counters say so, not NCCL's log */
    const struct known_machine *machine;
    const struct known_seen *seen;
    double seen_busbw;       /* ours at the same size; below 0 */
    struct strlist findings; /* sentences, the worst first */
    struct strlist failures; /* why the status is 1 */
};

void verdict_make(const struct run *run, const struct known_machine *machine,
                  const struct limit_given *given, const struct verdict_demands *demands,
                  struct verdict *ret_verdict);
void verdict_done(struct verdict *v);

enum verdict_standing verdict_standing(const struct verdict *v);

/* Some lines for people. */
void verdict_text(const struct verdict *v, struct buf *out);
/* The same, and the result that it is about; a new reference; NULL without memory. */
json_t *verdict_json(const struct verdict *v);

#endif
