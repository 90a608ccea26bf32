/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a job is silent, and whether it moves over TCP what RDMA should move, judged from what
 * its workers count (docs/design/018-inspection.md, "Vitals"). Pure; the caller has the clock. */
#ifndef DRARUN_JOBS_SILENCE_H
#define DRARUN_JOBS_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

/* One worker's sums; only growth means anything. */
struct silence_counts {
    uint64_t rdma_bytes, net_bytes, loop_bytes, output_bytes, cpu_us;
};

enum silence_event {
    SILENCE_NOTHING = 0,
    SILENCE_HANGS,   /* for hang_after_ms: said once */
    SILENCE_RESUMED, /* after that, it moves again */
};

struct silence {
    struct silence_counts before, first; /* of all workers */
    int64_t moved_ms;                    /* when it last did */
    int64_t at_ms;                       /* of `before` */
    bool begun, hangs, fallen;
};

/* counts: of all workers together, at now_ms; the first call begins. hang_after_ms 0: never. What
 * the agents themselves use and say (below 2 % of a CPU, 2 KiB/s a worker) is silence too. */
enum silence_event silence_step(struct silence *silence, const struct silence_counts *counts,
                                uint32_t workers, int64_t now_ms, int64_t hang_after_ms);
/* How long it has been silent. */
int64_t silence_lasts_ms(const struct silence *silence, int64_t now_ms);

/* True once: the job has moved more than 256 MiB a worker over TCP, and less than a tenth of that
 * by RDMA. For jobs that want RDMA and run on several nodes. */
bool silence_fell_back(struct silence *silence, uint32_t workers);
/* What all workers have moved since the first call. */
uint64_t silence_net_bytes(const struct silence *silence);
uint64_t silence_rdma_bytes(const struct silence *silence);

#endif
