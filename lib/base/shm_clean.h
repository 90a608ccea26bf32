/* SPDX-License-Identifier: Apache-2.0 */
/* Shared-memory segments that killed ranks could not remove themselves. */
#ifndef DRARUN_BASE_SHM_CLEAN_H
#define DRARUN_BASE_SHM_CLEAN_H

#include <stddef.h>

struct shm_clean;

/* The directory in /dev/shm that goes with a session directory, and below one that is in /dev/shm
 * itself: MPI libraries that let us choose put their segments there, so that they can be removed
 * without a search, and those of two agents of a machine are not taken for each other's. */
void shm_clean_dir(const char *session_dir, char *path, size_t size);

/* Marks the moment from which segments are this job's, by noting those that are there now. NULL
 * when /dev/shm cannot be read or without memory; the others accept NULL. */
struct shm_clean *shm_clean_begin(void);
/* The same for another directory. */
struct shm_clean *shm_clean_begin_in(const char *dir);
/* Unlinks files in /dev/shm that MPI libraries of this job left: owned by our effective uid,
 * created since shm_clean_begin, of a known name (Open MPI vader_segment.* and sm_segment.*, MPICH
 * mpich_shar_tmpXXXXXX, Intel MPI Intel_MPI_XXXXXX, UCX ucx_shm_*, NCCL nccl-XXXXXX, ...), and
 * neither open in nor mapped by any process, in whatever container it may be: the kernel is asked
 * for an exclusive lease. Where it gives none, the file stays. Called when a job has ended out of
 * order. Returns how many.
 */
int shm_clean_run(struct shm_clean *shm);
void shm_clean_free(struct shm_clean *shm);

#endif
