/* SPDX-License-Identifier: Apache-2.0 */
/* drarun exec, in the pod: a command with a rank's environment, folder and CPUs, to look at it
 * where it runs. Needs /proc. */
#ifndef DRARUN_WORKER_BESIDE_H
#define DRARUN_WORKER_BESIDE_H

#include <stdint.h>
#include "drarun/error.h"

/* Replaces this process by argv (NULL-terminated; sh when it is empty). Variables by which a
 * program joins the job (PMIX_*, PMI_*) are left out, as two processes would be one rank. Returns
 * only on failure: -errno, of kind usage where the rank is not to be seen, else as a shell says it.
 */
int beside_exec(uint32_t rank, char *const argv[], struct drarun_error *err);

#endif
