/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a job's launcher still renews its Lease, by the API server's clock, and whether its node
 * answers (docs/design/015-cluster.md, "A launcher that is silent"). Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_LAUNCHER_SILENCE_H
#define DRARUN_LAUNCHER_CLUSTER_LAUNCHER_SILENCE_H

#include "launcher/cluster/client/cluster.h"
#include "lib/base/buf.h"

/* A renewal is due every 12 s; one whose answer is lost is tried again 11 s later (lease.c). */
#define LAUNCHER_SILENT_MS 25000
/* For its renewal, after an outage of the API server that hid its life. */
#define LAUNCHER_OVER_MS 10000

struct launcher_silence { /* zeroed: there is none */
    char *holder;         /* its pod, or HOST_PID of run --here */
    char *node;           /* NULL: not known */
    int64_t renewed_ms;   /* its last renewal, by the API server's clock */
    int64_t silent_ms;    /* since then */
    int64_t life_ms;      /* of the Lease: after that it leads nothing */
    bool lost;            /* its node does not answer */
    bool deleting;        /* its pod is being deleted: a node that answers again ends it */
};

void launcher_silence_done(struct launcher_silence *silence);

/* False: the Lease is renewed, or nobody holds it; silent_ms says how long ago it was renewed. */
bool launcher_silence_of_lease(const json_t *lease, int64_t now_ms,
                               struct launcher_silence *ret_silence);
/* Its holder is a pod, and no process of run --here. */
bool launcher_silence_has_pod(const struct launcher_silence *silence);
/* What its holder's pod says of the node; NULL: there is none. */
void launcher_silence_add_pod(struct launcher_silence *silence, const json_t *pod);

/* The node controller says so: any pod of that node. */
bool launcher_silence_has_lost_node(const json_t *pod);

/* "launcher a-x2k8f on n1 has not renewed its Lease for 31 s: its node does not answer" */
void launcher_silence_text(const struct launcher_silence *silence, struct buf *out);
/* {"launcher", "node", "seconds", "text"}; NULL without memory. */
json_t *launcher_silence_json(const struct launcher_silence *silence);

/* Of a Lease that was read: asks for the pod of its holder, too. The same answer; what cannot be
 * read is not known. Runs the loop. */
bool launcher_silence_look_at(struct cluster *cluster, const json_t *lease,
                              struct launcher_silence *ret_silence);
/* Reads the job's Lease first. */
bool launcher_silence_look(struct cluster *cluster, const char *job, const char *namespace,
                           struct launcher_silence *ret_silence);

#endif
