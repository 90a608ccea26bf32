/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/gang/gang_sums.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

int gang_sums_init(struct gang_sums *sums, uint32_t count)
{
    *sums = (struct gang_sums){.count = count,
                               .marks = calloc(count, sizeof *sums->marks),
                               .ordered = calloc(count, sizeof *sums->ordered)};
    return sums->marks && sums->ordered ? 0 : -ENOMEM;
}

void gang_sums_done(struct gang_sums *sums)
{
    free(sums->marks);
    free(sums->ordered);
    *sums = (struct gang_sums){0};
}

/* Autoscalers order more nodes later: the first order is seldom withdrawn. */
static void set_ordered(struct gang_sums *sums, uint32_t worker, int64_t at_ms)
{
    bool was_first = sums->ordered[worker] && sums->ordered[worker] == sums->ordered_ms;
    sums->ordered[worker] = at_ms;
    if (at_ms && (!sums->ordered_ms || at_ms < sums->ordered_ms))
        sums->ordered_ms = at_ms;
    if (!was_first || at_ms == sums->ordered_ms)
        return;
    sums->ordered_ms = 0;
    for (uint32_t i = 0; i < sums->count; i++)
        if (sums->ordered[i] && (!sums->ordered_ms || sums->ordered[i] < sums->ordered_ms))
            sums->ordered_ms = sums->ordered[i];
}

void gang_sums_set(struct gang_sums *sums, uint32_t worker, uint32_t marks, int64_t ordered_ms)
{
    for (uint32_t changed = sums->marks[worker] ^ marks; changed; changed &= changed - 1) {
        uint32_t mark = (uint32_t)__builtin_ctz(changed);
        if (marks & UINT32_C(1) << mark)
            sums->having[mark]++;
        else
            sums->having[mark]--;
    }
    sums->marks[worker] = marks;
    set_ordered(sums, worker, ordered_ms);
}

uint32_t gang_sums_first(const struct gang_sums *sums, enum gang_mark mark)
{
    for (uint32_t i = 0; sums->having[mark] > 0 && i < sums->count; i++)
        if (sums->marks[i] & UINT32_C(1) << mark)
            return i;
    return UINT32_MAX;
}
