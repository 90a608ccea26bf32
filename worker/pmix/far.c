/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/pmix/far.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "worker/pmix/host_private.h"

/* Groups that are kept after the connection's end: a fence may be meant so, or not. */
#define LEFT_MAX 32u

/* Ranks of another job that ranks here are connected with. */
struct far_group {
    struct far_group *next;
    char *nspace;
    uint32_t times; /* that they have connected, and not left; 0: no longer */
    uint32_t ranks;
    struct buf *modex; /* by rank; empty: not known */
};

static void far_free(struct far_group *far)
{
    for (uint32_t i = 0; far->modex && i < far->ranks; i++)
        buf_done(&far->modex[i]);
    free(far->modex);
    free(far->nspace);
    free(far);
}

static struct far_group **far_named(struct pmix_host *host, const char *nspace)
{
    struct far_group **at = &host->far;
    while (*at && strcmp((*at)->nspace, nspace) != 0)
        at = &(*at)->next;
    return at;
}

const struct buf *far_modex(struct pmix_host *host, const pmix_proc_t *proc)
{
    const struct far_group *far = *far_named(host, proc->nspace);
    return far && proc->rank < far->ranks && far->modex[proc->rank].len > 0
               ? &far->modex[proc->rank]
               : NULL;
}

static void remove_far(struct far_group **at)
{
    struct far_group *far = *at;
    PMIx_server_deregister_nspace(far->nspace, NULL, NULL);
    *at = far->next;
    far_free(far);
}

/* The most recent ones come first. */
void far_remove_old(struct pmix_host *host)
{
    struct far_group **at = &host->far;
    unsigned left = 0;
    while (*at)
        if ((*at)->times == 0 && left++ >= LEFT_MAX)
            remove_far(at);
        else
            at = &(*at)->next;
}

void far_leave(struct pmix_host *host, const char *nspace, bool forget)
{
    struct far_group **at = far_named(host, nspace), *far = *at;
    if (!far)
        return;
    far->times -= far->times > 0;
    if (far->times == 0 && forget)
        remove_far(at);
}

pmix_status_t far_add(struct pmix_host *host, const Drarun__Wire__FarGroup *wire)
{
    struct rankmap map = {0};
    struct drarun_error err = {0};
    struct far_group *far = *far_named(host, wire->nspace);
    if (far) {
        far->times++;
        return PMIX_SUCCESS;
    }
    if (strlen(wire->nspace) > PMIX_MAX_NSLEN || wire->n_hosts > RANKMAP_WORKERS_MAX)
        return PMIX_ERR_BAD_PARAM;
    int rc = rank_group_map(wire->blocks, wire->n_blocks, wire->apps, (uint32_t)wire->n_hosts, &map,
                            &err);
    if (rc < 0)
        return rc == -ENOMEM ? PMIX_ERR_NOMEM : PMIX_ERR_BAD_PARAM;
    far = calloc(1, sizeof *far);
    if (far) {
        *far = (struct far_group){.times = 1, .ranks = map.ranks, .nspace = strdup(wire->nspace)};
        far->modex = calloc(map.ranks, sizeof *far->modex);
    }
    rc = far && far->nspace && far->modex
             ? pmix_register_far(host, far->nspace, &map, wire->hosts, &err)
             : -ENOMEM;
    rankmap_done(&map);
    if (rc == 0) {
        far->next = host->far;
        host->far = far;
        return PMIX_SUCCESS;
    }
    if (far)
        far_free(far);
    return PMIX_ERR_NOMEM;
}

pmix_status_t far_put(struct pmix_host *host, const Drarun__Wire__FarRank *wire)
{
    struct far_group *far = *far_named(host, wire->nspace);
    if (!far)
        return PMIX_ERR_NOT_FOUND;
    if (wire->rank >= far->ranks)
        return PMIX_ERR_BAD_PARAM;
    struct buf *modex = &far->modex[wire->rank];
    buf_reset(modex);
    buf_add(modex, wire->modex.data, wire->modex.len);
    return modex->failed ? PMIX_ERR_NOMEM : PMIX_SUCCESS;
}

void far_drop(struct pmix_host *host)
{
    while (host->far) {
        struct far_group *next = host->far->next;
        far_free(host->far);
        host->far = next;
    }
}
