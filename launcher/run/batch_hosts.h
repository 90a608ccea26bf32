/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts that a batch system has given to this job, which mpirun would use without a word. */
#ifndef DRARUN_LAUNCHER_BATCH_HOSTS_H
#define DRARUN_LAUNCHER_BATCH_HOSTS_H

#include <stdint.h>

/* How many different hosts PBS, LSF or Grid Engine name in the environment, and the variable that
 * names them; 0: none of them does, or its file cannot be read. Slurm's is one of the launchers'
 * variables (jobs/foreign/variables). */
uint32_t batch_hosts_count(const char **ret_variable);

/* The one host of Slurm's allocation, where that is not this machine: salloc starts its shell where
 * it was typed, which is often a login node. NULL: it is this machine, or there is no such
 * allocation, or there are several hosts, which SLURM_JOB_NUM_NODES tells. */
const char *batch_hosts_other(void);

#endif
