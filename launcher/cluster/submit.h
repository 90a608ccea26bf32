/* SPDX-License-Identifier: Apache-2.0 */
/* A job handed to the cluster: its objects are made, the launcher Job first, and it is left to
 * that. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_SUBMIT_H
#define DRARUN_LAUNCHER_CLUSTER_SUBMIT_H

#include "jobs/spec.h"
#include "launcher/cluster/cluster.h"

/* Room for the name of a job's Secret, which no other has. */
#define SUBMIT_SECRET_SIZE 80

/* "NAME-key-1a2b3c4d". */
int submit_name_secret(const char *job, char name[SUBMIT_SECRET_SIZE], struct drarun_error *err);

/* image: of agent and launcher; NULL: the default. What a namespace needs once is made where it is
 * missing and we may. *ret_uid is the launcher Job's, which the caller frees. Errors as
 * create_job's. */
int submit_job(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
               const char *image, char **ret_uid, struct drarun_error *err);

#endif
