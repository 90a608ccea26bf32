/* SPDX-License-Identifier: Apache-2.0 */
/* The PodGroup of workers that wait for a node without a reason of their own: read while they do,
 * since its conditions may have one. A get, as the launcher may not list PodGroups. Loop thread
 * only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_POD_GROUP_H
#define DRARUN_LAUNCHER_CLUSTER_POD_GROUP_H

#include "jobs/gang/waiting.h"
#include "launcher/cluster/client/cluster.h"

/* Zeroed: no group is asked for. At an address that stays while it is being read. */
struct pod_group {
    char *wanted; /* whose name; NULL: nobody asks */
    char *name;   /* of the last answer; NULL: none yet */
    json_t *object;
    struct waiting_group told;
    int64_t due_ms;
    bool refused;           /* it may not be read, or is not served: nor shall we ask again */
    char *asked;            /* whose name is being read */
    struct kube_call *call; /* NULL: none is */
    bool stirred;           /* since that was asked for */
    void (*answered)(void *arg);
    void *arg;
};

/* name: that waiting_group gave, or NULL; it is copied. */
void pod_group_want(struct pod_group *group, const char *name);
/* When to read it; INT64_MAX: nobody asks, or it is being read. */
int64_t pod_group_due(const struct pod_group *group);
/* A worker has changed, so that the scheduler may just write its group too: read it soon. */
void pod_group_stir(struct pod_group *group, int64_t now_ms);
/* Begins to read it; it is not being read. An error is logged and leaves what was known. answered
 * is called when the answer has come. */
void pod_group_start(struct pod_group *group, struct cluster *cluster, const char *namespace,
                     void (*answered)(void *arg), void *arg);
bool pod_group_is_reading(const struct pod_group *group);
/* What is being read, if anything is, is not wanted: answered is not called. */
void pod_group_stop(struct pod_group *group);
/* The same, and runs the loop until it was read. */
void pod_group_look(struct pod_group *group, struct cluster *cluster, const char *namespace);
/* What was read of the wanted one; NULL: nothing. Borrowed until the loop runs. */
const struct waiting_group *pod_group_told(const struct pod_group *group);
void pod_group_done(struct pod_group *group);

#endif
