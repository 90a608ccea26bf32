/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/slowest.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/order.h"

/* A rank is named when it lies so many spreads of the others above their median. The spread is the
 * median absolute deviation, which half of the ranks may spoil before it tells; 1.4826 makes a
 * standard deviation of it where times are normal. */
#define SPREADS 8.0
#define MAD_TO_DEVIATION 1.4826
/* Few ranks say little about how times usually spread. */
#define FEW_RANKS 8u
#define FEW_EXCESS 0.20
#define PAIR_EXCESS 0.5 /* one measurement has no spread of its own: only what is plain */

/* Sorts; q from 0 to 1, the lower neighbour. */
static double quantile(double *values, size_t count, double q)
{
    qsort(values, count, sizeof *values, order_doubles);
    return values[(size_t)((double)(count - 1) * q)];
}

/* A rank's own time; 0: too few pairs. */
static double quiet_time(const double *row, size_t ranks, size_t own, double *scratch)
{
    size_t count = 0;
    for (size_t i = 0; i < ranks; i++)
        if (i != own && row[i] > 0)
            scratch[count++] = row[i];
    return count < 2 ? 0 : quantile(scratch, count, 0.25);
}

static double deviation(const double *values, size_t ranks, double median, double *scratch)
{
    size_t count = 0;
    for (size_t i = 0; i < ranks; i++)
        if (values[i] > 0)
            scratch[count++] = fabs(values[i] - median);
    return MAD_TO_DEVIATION * quantile(scratch, count, 0.5);
}

static int slower_rank(const void *a, const void *b)
{
    const struct slowest_rank *x = a, *y = b;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

static int slower_pair(const void *a, const void *b)
{
    const struct slowest_pair *x = a, *y = b;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

static void name_ranks(const double *own, size_t ranks, double *scratch, struct slowest *s)
{
    size_t count = 0;
    for (size_t i = 0; i < ranks; i++)
        if (own[i] > 0)
            scratch[count++] = own[i];
    if (count < 3)
        return;
    double usual = quantile(scratch, count, 0.5);
    double spread = deviation(own, ranks, usual, scratch);
    double excess = count < FEW_RANKS ? FEW_EXCESS : SLOWEST_EXCESS;
    for (size_t i = 0; i < ranks; i++) {
        if (own[i] <= usual * (1 + excess))
            continue;
        s->suspects++;
        if (own[i] - usual > SPREADS * spread)
            s->ranks[s->rank_count++] = (struct slowest_rank){(unsigned)i, own[i], usual};
    }
    qsort(s->ranks, s->rank_count, sizeof *s->ranks, slower_rank);
}

static bool is_named(const struct slowest *s, size_t rank)
{
    for (size_t i = 0; i < s->rank_count; i++)
        if (s->ranks[i].rank == rank)
            return true;
    return false;
}

static int name_pairs(const double *times, size_t ranks, struct slowest *s)
{
    size_t count = 0;
    cleanup_free double *rest = malloc((ranks * ranks + 1) * sizeof *rest);
    cleanup_free struct slowest_pair *found = calloc(ranks * ranks + 1, sizeof *found);
    if (!rest || !found)
        return -ENOMEM;
    for (size_t a = 0; a < ranks; a++)
        for (size_t b = a + 1; b < ranks; b++)
            if (times[a * ranks + b] > 0) {
                s->pairs_seen++;
                if (!is_named(s, a) && !is_named(s, b))
                    rest[count++] = times[a * ranks + b];
            }
    double usual = count > 2 ? quantile(rest, count, 0.5) : 0;
    for (size_t a = 0; usual > 0 && a < ranks; a++)
        for (size_t b = a + 1; b < ranks; b++)
            if (times[a * ranks + b] > usual * (1 + PAIR_EXCESS) && !is_named(s, a) &&
                !is_named(s, b))
                found[s->pair_count++] =
                    (struct slowest_pair){(unsigned)a, (unsigned)b, times[a * ranks + b], usual};
    qsort(found, s->pair_count, sizeof *found, slower_pair);
    s->pairs = TAKE_PTR(found);
    return 0;
}

int slowest_find(const double *times, size_t ranks, struct slowest *ret_slowest)
{
    struct slowest s = {.ranks = calloc(ranks + 1, sizeof *s.ranks)};
    cleanup_free double *own = malloc((ranks + 1) * sizeof *own);
    cleanup_free double *scratch = malloc((ranks + 1) * sizeof *scratch);
    int rc = s.ranks && own && scratch ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < ranks; i++)
        own[i] = quiet_time(times + i * ranks, ranks, i, scratch);
    if (rc == 0)
        name_ranks(own, ranks, scratch, &s);
    rc = rc < 0 ? rc : name_pairs(times, ranks, &s);
    if (rc < 0)
        slowest_done(&s);
    else
        *ret_slowest = s;
    return rc;
}

void slowest_done(struct slowest *s)
{
    free(TAKE_PTR(s->ranks));
    free(TAKE_PTR(s->pairs));
    *s = (struct slowest){0};
}
