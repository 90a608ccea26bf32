/* SPDX-License-Identifier: Apache-2.0 */
/* The profile of a job that leaves it open, named before the job's objects are made: the launcher
 * and all that it makes follow the document, which says it then. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_NAME_PROFILE_H
#define DRARUN_LAUNCHER_CLUSTER_NAME_PROFILE_H

#include "jobs/spec/spec.h"
#include "launcher/cluster/submit/survey.h"

/* Writes it into the spec, whose document must be its own, and says which one it is; where nothing
 * names it, says that, and what to do. What may not be read names nothing. After cluster_discover;
 * runs the loop. -ENOMEM.
 *
 * Sets cluster->delivery to copy where the nodes that it reads cannot mount images. It reads whole
 * Nodes for devices of a device plugin alone. */
int name_profile(struct cluster *cluster, struct job_spec *spec, struct drarun_error *err);
/* The same beside other work of the loop: false while something of what it reads is under way; */
bool name_profile_is_ready(const struct job_spec *spec, struct survey *survey);
/* then by what was read. */
int name_profile_by(const struct survey *survey, struct job_spec *spec, struct drarun_error *err);

#endif
