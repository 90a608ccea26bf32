/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of jobs whose launcher was killed where it stood (`drarun run --here`): no Job makes
 * another one, so that the next run in the namespace takes it away. A job is touched only when its
 * owner is its ConfigMap, and nobody has renewed its Lease for LEASE_S by the API server's clock;
 * one that has no Lease yet may be half made, and is given REAP_YOUNG_S. After an outage of the API
 * server all Leases are that old, and those who hold them renew them within REAP_AGAIN_MS: asked
 * again then. Runs the loop. */
#ifndef DRARUN_LAUNCHER_CLUSTER_REAP_H
#define DRARUN_LAUNCHER_CLUSTER_REAP_H

#include "jobs/manifests/render.h"
#include "launcher/cluster/client/cluster.h"

#define REAP_YOUNG_S 300
#define REAP_AGAIN_MS 8000

/* create_job, which what has expired or was abandoned is not in the way of. */
int reap_create(struct cluster *cluster, const struct job_spec *spec,
                const struct render_options *options, char **ret_uid, struct drarun_error *err);

/* Of all jobs of the namespace. Best effort: who may not look is told nothing. Returns how many;
 * takes REAP_AGAIN_MS where there is one. */
size_t reap_abandoned(struct cluster *cluster, const char *namespace);

/* The same beside other work: what seems to be left, and when to ask again. */
struct reap {
    json_t *found; /* NULL: nothing */
    int64_t due_ms;
};
void reap_look(struct cluster *cluster, const char *namespace, struct reap *ret_reap);
/* When it is due: deletes the first of them, if it is left still. Returns how many. */
size_t reap_next(struct cluster *cluster, struct reap *reap);
void reap_done(struct reap *reap);

#endif
