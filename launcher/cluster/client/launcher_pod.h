/* SPDX-License-Identifier: Apache-2.0 */
/* The pods of a launcher Job among those of a job. */
#ifndef DRARUN_LAUNCHER_CLUSTER_LAUNCHER_POD_H
#define DRARUN_LAUNCHER_CLUSTER_LAUNCHER_POD_H

#include "lib/base/buf.h"
#include "lib/kube/watch.h"

/* By its labels: no worker's. */
bool launcher_pod_is_one(const json_t *pod);
/* The API server makes the name of a Job's pod: the Job's and five characters. */
bool launcher_pod_is_called(const char *job, const char *name);
/* Its container has been started, or has ended. */
bool launcher_pod_has_begun(const json_t *pod);
/* The state of its container: {"waiting"}, {"running"} or {"terminated"}; NULL: not known. */
const json_t *launcher_pod_state(const json_t *pod);

/* Of the Job of that uid (NULL: any): one whose container has begun, else one that is about to
 * start, and not about to be deleted; NULL: there is none. */
const json_t *launcher_pod_find(const struct kube_watch *pods, const char *uid);
/* One that is about to start, also beside one whose container has begun; NULL: there is none. */
const json_t *launcher_pod_coming(const struct kube_watch *pods, const char *uid);

/* How the last of the launchers of that Job has ended, as the pods' own status says: "pod job-x2k8f
 * ended with status 70: TEXT", "pod job-x2k8f: OOMKilled". Adds nothing where none has. list: a
 * PodList. */
void launcher_pod_add_end(const json_t *list, const char *uid, struct buf *out);

#endif
