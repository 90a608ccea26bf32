/* SPDX-License-Identifier: Apache-2.0 */
#include "drarun/job.h"

int drarun_run(struct drarun_cluster *cluster, const struct drarun_spec *spec,
               const struct drarun_submit_options *submit_options,
               const struct drarun_follow_options *follow_options, int *ret_status,
               struct drarun_error *err)
{
    struct drarun_job *job = NULL;
    int rc = drarun_job_submit(cluster, spec, submit_options, &job, err);
    if (rc < 0)
        return rc;
    rc = drarun_job_follow(job, follow_options, ret_status, err);
    drarun_job_free(job);
    return rc;
}

int drarun_run_start(struct drarun_cluster *cluster, const struct drarun_spec *spec,
                     const struct drarun_submit_options *submit_options,
                     const struct drarun_follow_options *follow_options, drarun_ended_fn ended,
                     void *arg, struct drarun_following **ret_following, struct drarun_error *err)
{
    struct drarun_job *job = NULL;
    int rc = drarun_job_submit(cluster, spec, submit_options, &job, err);
    if (rc < 0)
        return rc;
    rc = drarun_job_follow_start(job, follow_options, ended, arg, ret_following, err);
    if (rc < 0)
        drarun_job_cancel(job, NULL);
    drarun_job_free(job);
    return rc;
}
