/* SPDX-License-Identifier: Apache-2.0 */
/* ConfigMap NAME-status: the job's document, and its status. */
#ifndef DRARUN_LAUNCHER_CLUSTER_JOB_MAP_H
#define DRARUN_LAUNCHER_CLUSTER_JOB_MAP_H

#include "jobs/spec/k8s_name.h"
#include "jobs/spec/spec.h"
#include "launcher/cluster/client/cluster.h"

#define JOB_MAP_NAME_SIZE (K8S_LABEL_MAX + 8)
void job_map_name(const char *job, char name[JOB_MAP_NAME_SIZE]);
/* The job whose ConfigMap this is, by its name alone; false: of none. */
bool job_map_job(const json_t *map, char ret_job[JOB_MAP_NAME_SIZE]);
/* What somebody calls a job may be the name of one: -EINVAL, kind DRARUN_ERR_USAGE. */
int job_name_check(const char *job, struct drarun_error *err);

/* Says so: -ENOENT, kind DRARUN_ERR_USAGE. */
int job_map_none(const char *job, const char *namespace, struct drarun_error *err);
/* As job_map_none: there is no such job. */
int job_map_get(struct cluster *cluster, const char *job, const char *namespace, json_t **ret_map,
                struct drarun_error *err);
/* The one that this owner has: waits 60 s for it, and for an earlier job's to go. Runs the loop. */
int job_map_await(struct cluster *cluster, const char *job, const char *namespace,
                  const char *owner_uid, json_t **ret_map, struct drarun_error *err);
/* The document as the user wrote it. */
int job_map_spec(const json_t *map, struct job_spec *ret_spec, struct drarun_error *err);
/* The status document, as status_doc_parse reads it. -ENOENT: there is none yet, or an earlier
 * job's launcher that does not know yet that its job is gone has written it. */
int job_map_status(const json_t *map, json_t **ret_doc, struct drarun_error *err);

#endif
