/* SPDX-License-Identifier: Apache-2.0 */
/* Who may reach a job's workers (docs/design/010-claims.md). Each function gives one manifest,
 * owned by the caller, or NULL when out of memory. Pure. */
#ifndef DRARUN_JOBS_NETWORK_POLICY_H
#define DRARUN_JOBS_NETWORK_POLICY_H

#include "jobs/manifests/render.h"

/* The label of pods whose job has a policy of its own. Pods that other systems make of a job never
 * have it. */
#define NETWORK_POLICY_LABEL "drarun.dev/network-policy"
#define NETWORK_POLICY_LABEL_VALUE "job"

/* NAME-w: a job's workers are reached by its own workers; on the agent's port, and on those that
 * the template's containers declare, by everybody. */
json_t *network_policy_of_job(const struct job_spec *spec, const struct render_options *options);

/* For workers of jobs whose creator may make no policies: they are reached by workers of the
 * namespace, and on the agent's port by everybody. */
json_t *network_policy_of_namespace(const char *name, const char *namespace);

#endif
