/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to other agents, and what waits for their replies. */
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "worker/pmix/host_private.h"

void pmix_route(struct pmix_host *host, Drarun__Wire__Routed *message)
{
    message->source = host->tree->self;
    if (message->destination == host->tree->self)
        host->routed(host, message);
    else
        host->owner.route(host->owner.arg, message, false);
}

uint64_t pmix_pend(struct pmix_host *host, struct upcall *upcall)
{
    struct pending *pending = calloc(1, sizeof *pending);
    if (!pending)
        return 0;
    *pending = (struct pending){host->pending, ++host->next_id, upcall};
    host->pending = pending;
    return pending->id;
}

struct upcall *pmix_unpend(struct pmix_host *host, uint64_t id)
{
    for (struct pending **at = &host->pending; *at; at = &(*at)->next) {
        if ((*at)->id != id)
            continue;
        cleanup_free struct pending *found = *at;
        *at = found->next;
        return found->upcall;
    }
    return NULL;
}
