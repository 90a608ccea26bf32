/* SPDX-License-Identifier: Apache-2.0 */
/* The session directory: what a job's agent keeps on disk while the job runs. */
#ifndef DRARUN_WORKER_SESSION_H
#define DRARUN_WORKER_SESSION_H

#include "drarun/error.h"

/* Makes the directory with mode 0700; it must not exist; its parent is not created. A name without
 * "/" goes below the first of $TMPDIR, /tmp, /dev/shm and /run where that succeeds, since an image
 * may have none of them and a root file system may be read-only. *ret_path is malloc'ed. */
int session_make(const char *name, char **ret_path, struct drarun_error *err);
/* The directory where that would be; NULL: nowhere. Static, or of the environment. */
const char *session_base(void);
/* Removes it with all below. Missing is success. Waits a little, up to three times, where the
 * machine is out of descriptors or memory: nobody comes to remove it later. */
int session_remove(const char *path);

/* Marks shm_dir, which goes with session_dir (shm_clean_dir), as this process's: until the returned
 * descriptor is closed, or the process ends. -1: it is not marked, and no sweep removes it. */
int session_mark(const char *shm_dir, const char *session_dir);
/* Removes directories in shm ("/dev/shm") that processes of our user marked, with their session
 * directories, once the process is gone: it was killed along with who would have removed them. */
void session_sweep(const char *shm);

#endif
