/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/lead/lost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/ranks/worker_ranges.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/log.h"

#define RANGES_MAX 16

int lost_init(struct lost *lost, uint32_t workers)
{
    *lost = (struct lost){.is = calloc(workers, sizeof *lost->is),
                          .count = workers,
                          .fresh = calloc(workers, sizeof *lost->fresh)};
    return lost->is && lost->fresh ? 0 : -ENOMEM;
}

void lost_done(struct lost *lost)
{
    free(lost->is);
    free(lost->fresh);
    *lost = (struct lost){0};
}

/* Those of the list, which it loses, that are lost for the reason of the first. */
static void tell_first(const struct pod_state *workers, uint32_t *list, uint32_t *count)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    cleanup_free uint32_t *alike = calloc(*count, sizeof *alike);
    const char *why = pod_state_lost(&workers[list[0]]);
    uint32_t found = 0, left = 0;
    for (uint32_t i = 0; alike && i < *count; i++) {
        if (strcmp(pod_state_lost(&workers[list[i]]), why) == 0)
            alike[found++] = list[i];
        else
            list[left++] = list[i];
    }
    *count = left;
    if (alike)
        worker_ranges(alike, found, RANGES_MAX, &text);
    if (!alike || text.failed)
        log_error("out of memory: more workers are lost than are named");
    else
        log_note("worker%s %s %s lost: %s", found > 1 ? "s" : "", text.data,
                 found > 1 ? "are" : "is", why);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void lost_look(struct lost *lost, uint32_t worker, const struct pod_state *state)
{
    bool is = pod_state_lost(state) != NULL;
    if (is == lost->is[worker])
        return;
    lost->is[worker] = is;
    lost->changed = true;
    if (is)
        lost->fresh[lost->fresh_count++] = worker;
}

bool lost_tell(struct lost *lost, const struct pod_state *workers)
{
    bool changed = lost->changed;
    qsort(lost->fresh, lost->fresh_count, sizeof *lost->fresh, by_number);
    while (lost->fresh_count > 0)
        tell_first(workers, lost->fresh, &lost->fresh_count);
    lost->changed = false;
    return changed;
}
