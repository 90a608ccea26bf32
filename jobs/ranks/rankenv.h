/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of one rank beyond what the user gave: the field's variables for programs without
 * PMIx, and what MPI libraries need to accept a direct launch. Pure.
 * docs/design/005-rank-environment.md lists each variable with its reader. */
#ifndef DRARUN_JOBS_RANKENV_H
#define DRARUN_JOBS_RANKENV_H

#include <stdbool.h>
#include <stdint.h>
#include "jobs/ranks/rankmap.h"
#include "lib/base/strlist.h"

struct rankenv_job {
    const char *uid; /* the job's; never used again */
    uint32_t attempt;
    const char *master_addr; /* where rank 0 can listen */
    uint32_t master_port;
    bool pmix;            /* launch: pmix, with PMI-1 beside it; else launch: env */
    bool mpirun;          /* launch: mpirun: what it starts are the ranks, so nothing says "rank" */
    bool torchrun;        /* the program is torchrun itself: NNODES, NODE_RANK, PET_* */
    bool starts_torchrun; /* or a shell's line that has it among its words */
    bool oversubscribed;  /* more ranks than CPUs for them: a waiting rank must leave its CPU */
    const char *host;     /* of this worker */
    const char *node;     /* of Kubernetes; NULL: none */
};

/* Adds to env for the rank at place; what the user set in env already always wins, except for what
 * would make the rank another one (RANK, WORLD_SIZE, LOCAL_RANK, ...: those of an outer launcher
 * are replaced). Sets:
 *   RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK NNODES MASTER_ADDR MASTER_PORT
 *   JAX_COORDINATOR_ADDRESS (MASTER_ADDR:MASTER_PORT) JAX_NUM_PROCESSES JAX_PROCESS_ID
 *   DRARUN_JOB DRARUN_ATTEMPT DRARUN_RANK DRARUN_SIZE DRARUN_LOCAL_RANK DRARUN_LOCAL_SIZE
 *   DRARUN_WORKER DRARUN_WORKERS DRARUN_HOST
 *   with pmix: OMPI_COMM_WORLD_RANK/_SIZE/_LOCAL_RANK/_LOCAL_SIZE/_NODE_RANK (scripts read them),
 *     MPI_LOCALRANKID MPI_LOCALNRANKS, and Open MPI's defaults for a direct launch
 *     (OMPI_MCA_schizo=^orte, orte_externally_bound, hwloc_base_binding_policy,
 *     reachable=^netlink) and for hwloc (HWLOC_LIBXML_IMPORT=0), each only where the user has not
 *     set it
 *   with torchrun: NNODES, NODE_RANK, PET_NNODES, PET_NODE_RANK, PET_MASTER_ADDR, PET_MASTER_PORT,
 *     PET_RDZV_*, and no RANK/LOCAL_RANK/WORLD_SIZE (torchrun sets them itself), no JAX_*
 *   with starts_torchrun, and without pmix for every program, where each of several workers has one
 *     rank: PET_* beside the others
 * NODE_RANK and NNODES count the workers that have ranks. PMI_FD and the other PMI_* are the
 * agent's. */
void rankenv_add(struct strlist *env, const struct rankenv_job *job, const struct rankmap *map,
                 const struct rank_place *place);

/* What torch.distributed calls the place of a rank. */
enum rankenv_torch {
    RANKENV_RANK,
    RANKENV_WORLD_SIZE,
    RANKENV_LOCAL_RANK,
    RANKENV_LOCAL_WORLD_SIZE,
    RANKENV_TORCH_COUNT,
};

struct rankenv_number {
    const char *name;
    uint32_t value;
};

/* The place of a rank in these variables, of a job with so many ranks: what rankenv_add sets, and
 * what a plan says before there is a job. */
void rankenv_torch(const struct rank_place *place, uint32_t ranks,
                   struct rankenv_number ret_numbers[RANKENV_TORCH_COUNT]);

/* As env_default, and noted in DRARUN_DEFAULTS, so that a drarun that this rank starts does not
 * take the value for the user's. */
void rankenv_default(struct strlist *env, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Drops what an outer launcher (mpirun, srun, hydra, drarun itself) left in env and what would make
 * an MPI library believe that launcher started it: PMIX_*, PMI_*, OMPI_COMM_WORLD_*, SLURM_* of a
 * step, HYDRA_*, ... but never what a user sets by hand (OMPI_MCA_*, UCX_*, NCCL_*). MASTER_ADDR
 * and MASTER_PORT go only when another torchrun or drarun left them, and the defaults of an outer
 * drarun only where nobody has changed them. */
void rankenv_clean(struct strlist *env);

/* True when argv is torchrun itself: "torchrun ..." or "python -m torch.distributed.run ...", also
 * behind what starts it as it is ("env A=b torchrun ...", wrapper.h). */
bool rankenv_is_torchrun(char *const argv[]);
/* The word of argv that names torchrun, behind which its options begin; SIZE_MAX: none does. */
size_t rankenv_find_torchrun(char *const argv[]);

/* Or torchrun is a word of a shell's line ("bash -c ..."), which gets the defaults of torchrun's
 * options: they mean nothing to other programs. A script in a file is not read. */
bool rankenv_names_torchrun(char *const argv[]);

/* Or torchrun is a command, and not only a word, of a line that a shell or env reads ("env -S
 * ..."). Such a program is to be started once on each worker, as torchrun itself. */
bool rankenv_runs_torchrun(char *const argv[]);

#endif
