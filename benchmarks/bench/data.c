/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/data.h"

#include <string.h>

#define SET_BYTES ((size_t)64 << 10)

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The first `unit` of `bytes` are there: repeats them, twice as much each time. */
static void repeat(const struct data *d, char *to, size_t unit, size_t bytes)
{
    for (size_t done = unit, n; done < bytes; done += n) {
        n = least(done, bytes - done);
        d->backend->copy(to + done, to, n);
    }
}

void data_set(const struct data *d, int byte, size_t bytes, void *to)
{
    size_t unit = least(bytes, SET_BYTES);
    memset(d->staging, byte, unit);
    d->backend->put(to, d->staging, unit);
    repeat(d, to, unit, bytes);
}

/* rank: whose data, or NULL for what all of them reduce to. */
static void make(const struct data *d, const struct pattern *p, const unsigned *rank, size_t first,
                 size_t count, char *to)
{
    size_t size = element_size(p->type), period = pattern_period(p),
           fits = DATA_STAGING_BYTES / size;
    for (size_t done = 0, n; done < count; done += n) {
        n = least(least(count - done, period), fits);
        if (rank)
            pattern_fill(p, *rank, first + done, n, d->staging);
        else
            pattern_reduced(p, first + done, n, d->staging);
        d->backend->put(to + done * size, d->staging, n * size);
        if (n == period) {
            repeat(d, to, n * size, count * size);
            return;
        }
    }
}

void data_fill(const struct data *d, const struct pattern *p, unsigned rank, size_t first,
               size_t count, void *to)
{
    make(d, p, &rank, first, count, to);
}

void data_reduced(const struct data *d, const struct pattern *p, size_t first, size_t count,
                  void *to)
{
    make(d, p, NULL, first, count, to);
}

size_t data_wrong(const struct data *d, const struct pattern *p, const void *got, const void *want,
                  size_t count)
{
    const struct backend *backend = d->backend;
    size_t size = element_size(p->type), half = DATA_STAGING_BYTES / 2, wrong = 0;
    if (count == 0 || (backend->same && backend->same(got, want, count * size)))
        return 0;
    for (size_t done = 0, n; done < count; done += n) {
        n = least(count - done, half / size);
        backend->get(d->staging, (const char *)got + done * size, n * size);
        backend->get(d->staging + half, (const char *)want + done * size, n * size);
        wrong += pattern_wrong(p->type, pattern_tolerance(p), d->staging, d->staging + half, n);
    }
    return wrong;
}
