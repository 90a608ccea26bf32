/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing a few bytes between the ranks of a job over PMIx, without MPI: what a pure NCCL program
 * needs for its ncclUniqueId. Copy these two files into your program and link with libpmix. */
#ifndef PMIX_SHARE_H
#define PMIX_SHARE_H

#include <pmix.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Gives every rank the `size` bytes that rank `root` has in `bytes`: root reads from there, the
 * others write to there. Collective over all ranks of the job, after PMIx_Init, which filled me.
 * name: the same on all ranks, another one at each call, not starting with "pmix".
 *
 * The ranks may run on any number of nodes; nothing but the launcher's PMIx server is needed. On
 * failure bytes is untouched and PMIx_Error_string() puts the result into words;
 * PMIX_ERR_BAD_PARAM when root shared another number of bytes than was expected here. */
pmix_status_t pmix_share_bytes(const pmix_proc_t *me, pmix_rank_t root, const char *name,
                               void *bytes, size_t size);

/* The number of ranks of the job, and which rank this one is on its node: for ncclCommInitRank and
 * cudaSetDevice. */
pmix_status_t pmix_share_job_size(const pmix_proc_t *me, uint32_t *ret_size);
pmix_status_t pmix_share_local_rank(const pmix_proc_t *me, uint16_t *ret_local_rank);

#ifdef __cplusplus
}
#endif
#endif
