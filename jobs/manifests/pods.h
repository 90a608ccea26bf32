/* SPDX-License-Identifier: Apache-2.0 */
/* Worker pods from the spec's PodTemplateSpec (docs/design/010-claims.md, "Merge rules"): the
 * user's fields stay as they are, ours are added beside them, and where both want the same the job
 * is refused with the field's path. Pure; callers own what they get. Errors have kind
 * DRARUN_ERR_SPEC. */
#ifndef DRARUN_JOBS_PODS_H
#define DRARUN_JOBS_PODS_H

#include "jobs/manifests/render.h"

#define PODS_JOB_TTL_S 2 /* of a worker Job that has ended: long enough to see how */

/* The Pod NAME-w-WORKER, which uses the claim of the same name. */
int pods_worker(const struct job_spec *spec, const struct render_options *options, uint32_t worker,
                json_t **ret_pod, struct drarun_error *err);

/* The Indexed Job NAME-w, whose pods use claims made from the template of the same name. */
int pods_indexed_job(const struct job_spec *spec, const struct render_options *options,
                     json_t **ret_job, struct drarun_error *err);

#endif
