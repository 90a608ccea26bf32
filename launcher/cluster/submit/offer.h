/* SPDX-License-Identifier: Apache-2.0 */
/* How the agent comes into the pods of a job that is being made: by its claims where the nodes
 * offer it (jobs/manifests/agent_claim.h), as far as DeviceClasses and ResourceSlices may be read.
 * The first creator of a job decides, for all attempts: claims may outlive the attempt that they
 * were made for. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_OFFER_H
#define DRARUN_LAUNCHER_CLUSTER_OFFER_H

#include "jobs/spec/spec.h"
#include "launcher/cluster/submit/survey.h"

/* Sets cluster->agent and cluster->delivery where DRARUN_AGENT does not say it. What cannot be read
 * is no error. After cluster_discover; runs the loop. */
void offer_look(struct cluster *cluster, const struct job_spec *spec);
/* The same beside other work of the loop: false while something of what it reads is under way; */
bool offer_is_ready(const struct job_spec *spec, struct survey *survey);
/* then by what was read. */
void offer_choose(const struct survey *survey, const struct job_spec *spec);

#endif
