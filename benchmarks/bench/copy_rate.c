/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/copy_rate.h"

#include <time.h>

#define LEAST ((size_t)64 << 10)
#define MOST ((size_t)64 << 20)
#define LONG_ENOUGH_S 0.01

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static size_t room_of(const struct measure_memory *memory)
{
    return memory->send_bytes < memory->recv_bytes ? memory->send_bytes : memory->recv_bytes;
}

static int copy_once(const struct backend *backend, const struct measure_memory *memory,
                     size_t bytes, double *seconds_of_it, struct drarun_error *err)
{
    double began = seconds();
    backend->copy(memory->recv, memory->send, bytes);
    int rc = backend_finish(backend, err);
    *seconds_of_it = seconds() - began;
    return rc;
}

/* The best copy of some: what else the machine does makes the others slow. */
static int rate_of(const struct backend *backend, const struct measure_memory *memory, size_t bytes,
                   double *best, struct drarun_error *err)
{
    double took = 0, all = 0;
    int rc = copy_once(backend, memory, bytes, &took, err); /* its pages are there then */
    rc = rc < 0 ? rc : backend->barrier(err);
    while (rc == 0 && all < LONG_ENOUGH_S) {
        rc = copy_once(backend, memory, bytes, &took, err);
        all += took;
        if (took > 0 && (double)bytes / took / 1e9 > *best)
            *best = (double)bytes / took / 1e9;
    }
    return rc;
}

int copy_rate(const struct backend *backend, const struct measure_memory *memory, size_t smallest,
              double *ret_gbs, struct drarun_error *err)
{
    size_t room = room_of(memory);
    *ret_gbs = 0;
    if (room < LEAST)
        return 0;
    smallest = smallest < LEAST ? LEAST : smallest;
    int rc = rate_of(backend, memory, room < MOST ? room : MOST, ret_gbs, err);
    return rc < 0 || smallest >= room ? rc : rate_of(backend, memory, smallest, ret_gbs, err);
}
