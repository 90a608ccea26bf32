/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/meeting.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int one_pair(const struct measure_case *m, const struct transfer *t, unsigned calls,
                    unsigned partner, double *ret_least, struct drarun_error *err)
{
    double least = 0;
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i <= calls; i++) {
        double begin = now();
        rc = m->backend->sendrecv(t, partner, partner, err);
        rc = rc < 0 ? rc : backend_finish(m->backend, err);
        double took = now() - begin;
        if (i > 0 && (least <= 0 || took < least)) /* the first one connects */
            least = took;
    }
    if (rc == 0)
        *ret_least = least;
    return rc;
}

/* Fills this rank's row. */
static int one_pass(const struct meeting *meeting, const struct measure_case *m,
                    const struct measure_memory *memory, const struct probe_plan *plan, double *row,
                    struct drarun_error *err)
{
    unsigned all = meeting->rounds, rounds = plan->rounds < all ? plan->rounds : all;
    size_t bytes = plan->bytes < memory->recv_bytes ? plan->bytes : memory->recv_bytes;
    const struct transfer t = {memory->send, memory->recv, bytes, ELEMENT_INT8, REDUCE_SUM, 0};
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < rounds; i++) {
        unsigned round = (unsigned)((uint64_t)i * all / rounds);
        unsigned partner = meeting->partner(meeting->arg, m->world->rank, round);
        if (m->progress)
            progress_step(m->progress, false, meeting->what);
        rc = m->backend->barrier(err);
        if (rc == 0 && partner != m->world->rank)
            rc = one_pair(m, &t, plan->calls, partner, &row[partner], err);
    }
    return rc;
}

/* Both measured the same exchange, each with its own beginning. */
static void make_symmetric(unsigned count, double *times)
{
    for (unsigned a = 0; a < count; a++)
        for (unsigned b = a + 1; b < count; b++) {
            double x = times[a * count + b], y = times[b * count + a];
            times[a * count + b] = times[b * count + a] = x < y ? x : y;
        }
}

static void take_least(double *row, const double *again, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (again[i] > 0 && (row[i] <= 0 || again[i] < row[i]))
            row[i] = again[i];
}

/* How many rank 0 suspects, on all ranks. */
static int judge(const struct meeting *meeting, const struct measure_case *m, const double *row,
                 double *times, double *ret_suspects, struct drarun_error *err)
{
    unsigned count = m->world->ranks;
    size_t suspects = 0;
    int rc = m->backend->share(row, times, count * sizeof *row, err);
    if (rc == 0 && m->world->rank == 0) {
        make_symmetric(count, times);
        rc = meeting->judge(meeting->to, times, &suspects, err);
    }
    *ret_suspects = (double)suspects;
    return rc < 0 ? rc : m->backend->agree(ret_suspects, 1, AGREE_MAX, err);
}

int meeting_hold(const struct meeting *meeting, const struct measure_case *m,
                 const struct measure_memory *memory, const struct probe_plan *plan,
                 struct drarun_error *err)
{
    unsigned count = m->world->ranks;
    double suspects = 1;
    cleanup_free double *row = calloc(count, sizeof *row);
    cleanup_free double *again = calloc(count, sizeof *again);
    cleanup_free double *times = calloc((size_t)count * count, sizeof *times);
    int rc = row && again && times ? 0 : error_set(err, ENOMEM, "out of memory");
    for (unsigned pass = 0; rc == 0 && suspects > 0 && pass < plan->passes; pass++) {
        rc = one_pass(meeting, m, memory, plan, again, err);
        take_least(row, again, count);
        rc = rc < 0 ? rc : judge(meeting, m, row, times, &suspects, err);
    }
    return rc;
}
