/* SPDX-License-Identifier: Apache-2.0 */
/* A DraJob of which nothing may be made yet, for the verbs on a job: it was applied, and is
 * suspended, refused, or waits for a controller. Runs the loop. */
#ifndef DRARUN_LAUNCHER_CLUSTER_DRA_JOB_H
#define DRARUN_LAUNCHER_CLUSTER_DRA_JOB_H

#include <signal.h>
#include "launcher/cluster/cluster.h"

/* -ENOENT, kind DRARUN_ERR_USAGE: there is no such job, nor where DraJobs are no objects. */
int dra_job_get(struct cluster *cluster, const char *name, const char *namespace,
                json_t **ret_object, struct drarun_error *err);
/* Those of the namespace (NULL: of all), an array; empty where there are none, or they may not be
 * read. NULL without memory. */
json_t *dra_job_list(struct cluster *cluster, const char *namespace);
/* 1: it was there, and is deleted with all it owns; 0: it was not, or this user may not. */
int dra_job_delete(struct cluster *cluster, const char *name, const char *namespace,
                   struct drarun_error *err);

/* Waits until there is something to follow of the job, be it a DraJob or not: 0. 1: it has ended
 * and nothing is left of it but the DraJob; *ret_status is its exit status. Kind DRARUN_ERR_SPEC:
 * its spec was refused; -ENOENT, kind DRARUN_ERR_USAGE: there is no such job; -ETIMEDOUT.
 * timeout_ms 0: none; *stop (or NULL) ends it with -ECANCELED. */
int dra_job_await_any(struct cluster *cluster, const char *name, const char *namespace,
                      int64_t timeout_ms, const volatile sig_atomic_t *stop, int *ret_status,
                      struct drarun_error *err);
/* What was followed is gone, as err says: is it suspended, and comes again? Then as above; else err
 * stays as it is. */
int dra_job_await_again(struct cluster *cluster, const char *name, const char *namespace,
                        int64_t timeout_ms, const volatile sig_atomic_t *stop, int *ret_status,
                        struct drarun_error *err);

#endif
