/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks of a pure NCCL program find each other under drarun: rank 0 makes the ncclUniqueId,
 * pmix_share_bytes gives it to all, and each would now call ncclCommInitRank. Needs neither a GPU
 * nor NCCL: without libnccl the id is 128 random bytes, and the output says so. Checked: rank 0
 * collects a digest of what each rank got. Exit status 0 when all agree. */
#include <dlfcn.h>
#include <pmix.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "pmix_share.h"

/* As in nccl.h. */
typedef struct {
    char internal[128];
} ncclUniqueId;

/* Returns where the id comes from, or NULL. */
static const char *make_id(ncclUniqueId *ret_id)
{
    void *nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    int (*get_unique_id)(ncclUniqueId *) = NULL;
    if (nccl)
        *(void **)&get_unique_id = dlsym(nccl, "ncclGetUniqueId");
    if (get_unique_id)
        return get_unique_id(ret_id) == 0 ? "ncclGetUniqueId" : NULL;
    return getrandom(ret_id, sizeof *ret_id, 0) == sizeof *ret_id ? "random bytes (no libnccl.so.2)"
                                                                  : NULL;
}

/* FNV-1a */
static uint64_t digest(const ncclUniqueId *id)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < sizeof id->internal; i++)
        hash = (hash ^ (unsigned char)id->internal[i]) * 1099511628211u;
    return hash;
}

static void fail(const pmix_proc_t *me, const char *what, pmix_status_t status)
{
    fprintf(stderr, "nccl-id: rank %u: %s: %s\n", me->rank, what, PMIx_Error_string(status));
    PMIx_Abort(1, what, NULL, 0);
    exit(1);
}

/* Rank 0 sees every rank's digest. A collective of its own for each rank is the simple way, not the
 * quick one: a real program shares one id and goes on. */
static uint32_t count_different(const pmix_proc_t *me, uint32_t ranks, uint64_t mine)
{
    uint32_t different = 0;
    for (uint32_t rank = 1; rank < ranks; rank++) {
        char name[32];
        uint64_t theirs = mine;
        snprintf(name, sizeof name, "digest-%u", rank);
        pmix_status_t status = pmix_share_bytes(me, rank, name, &theirs, sizeof theirs);
        if (status != PMIX_SUCCESS)
            fail(me, name, status);
        different += theirs != mine;
    }
    return different;
}

int main(void)
{
    pmix_proc_t me = {0};
    ncclUniqueId id = {{0}};
    uint32_t ranks = 0;
    uint16_t local_rank = 0;
    const char *source = "";
    pmix_status_t status = PMIx_Init(&me, NULL, 0);
    if (status != PMIX_SUCCESS) {
        fprintf(stderr, "nccl-id: PMIx_Init: %s; start it with: drarun -n 4 nccl-id\n",
                PMIx_Error_string(status));
        return 1;
    }
    if ((status = pmix_share_job_size(&me, &ranks)) != PMIX_SUCCESS)
        fail(&me, "job size", status);
    if ((status = pmix_share_local_rank(&me, &local_rank)) != PMIX_SUCCESS)
        fail(&me, "local rank", status);
    /* here: cudaSetDevice(local_rank) */
    if (me.rank == 0 && !(source = make_id(&id)))
        fail(&me, "ncclGetUniqueId", PMIX_ERROR);
    if ((status = pmix_share_bytes(&me, 0, "nccl-id", &id, sizeof id)) != PMIX_SUCCESS)
        fail(&me, "share the id", status);
    /* here: ncclCommInitRank(&comm, ranks, id, me.rank) */

    uint32_t different = count_different(&me, ranks, digest(&id));
    if (me.rank == 0)
        printf("nccl-id: %u ranks, id from %s: %s\n", ranks, source,
               different ? "different ranks have different ids" : "the same on every rank");
    PMIx_Finalize(NULL, 0);
    return different ? 1 : 0;
}
