/* SPDX-License-Identifier: Apache-2.0 */
/* Agents that are kept for one job after another (docs/design/032-allocation.md): a folder that
 * only its owner may enter says where they are, and the variable DRARUN_ALLOC where the folder is.
 */
#ifndef DRARUN_LAUNCHER_ALLOC_H
#define DRARUN_LAUNCHER_ALLOC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "drarun/error.h"
#include "launcher/job/request.h"

#define ALLOC_VARIABLE "DRARUN_ALLOC"

struct alloc;

/* Starts the agents on this machine and writes the folder. */
struct alloc *alloc_new(uint32_t workers, struct drarun_error *err);
/* Ends the agents, within seconds, and removes the folder. NULL is fine. */
void alloc_free(struct alloc *alloc);
const char *alloc_folder(const struct alloc *alloc); /* borrowed */
/* A child of ours has ended: which of the agents it was, or -1. */
int64_t alloc_reaped(struct alloc *alloc, pid_t pid);

/* The job runs on the agents of that folder (NULL: of the variable, if it is set) unless it says
 * others. *ret_turn: the job's right to run there until it is closed, as folder_enter has it;
 * untouched where there is no allocation. */
int alloc_use(struct job_request *request, int *ret_turn, struct drarun_error *err);
/* Those agents are in pods: TLS, as request_is_remote will say. */
bool alloc_is_of_pods(const struct job_request *request);

#endif
