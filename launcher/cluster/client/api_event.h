/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the API: what `kubectl describe` shows of an object. Best effort: nothing waits for
 * one, and a refusal is no error. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_API_EVENT_H
#define DRARUN_LAUNCHER_CLUSTER_API_EVENT_H

#include "launcher/cluster/client/cluster.h"

struct api_event {       /* borrowed for the call */
    const json_t *about; /* an ObjectReference with apiVersion, kind, name, namespace and uid */
    const char *job;     /* with which its name begins */
    unsigned number;     /* of those that this process writes, for a name that no other has */
    const char *reason, *message;
    bool warning;
    const char *controller, *instance; /* who says so: "drarun.dev/launcher", and which one */
};

void api_event_write(struct cluster *cluster, const struct api_event *event);
/* The same, and waits for the answer: for who ends then. */
void api_event_write_last(struct cluster *cluster, const struct api_event *event);

#endif
