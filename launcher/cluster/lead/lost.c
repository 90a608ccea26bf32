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
    *lost = (struct lost){.is = calloc(workers, sizeof *lost->is), .count = workers};
    return lost->is ? 0 : -ENOMEM;
}

void lost_done(struct lost *lost)
{
    free(lost->is);
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

bool lost_look(struct lost *lost, const struct pod_state *workers)
{
    cleanup_free uint32_t *fresh = calloc(lost->count, sizeof *fresh);
    uint32_t count = 0;
    bool changed = false;
    for (uint32_t i = 0; i < lost->count; i++) {
        bool is = pod_state_lost(&workers[i]) != NULL;
        if (fresh && is && !lost->is[i])
            fresh[count++] = i;
        changed |= is != lost->is[i];
        lost->is[i] = is;
    }
    while (count > 0)
        tell_first(workers, fresh, &count);
    return changed;
}
