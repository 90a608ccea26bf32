/* SPDX-License-Identifier: Apache-2.0 */
/* One launcher at a time: the Lease NAME (coordination.k8s.io/v1), held and renewed. Loop thread
 * only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_LEASE_H
#define DRARUN_LAUNCHER_CLUSTER_LEASE_H

#include "launcher/cluster/client/cluster.h"

#define LEASE_S 60 /* of a job: without renewal it is anybody's */

struct lease;

struct lease_owner {
    /* Another one has it, it is gone, or (timed) it could not be renewed in time: this one must
     * stop. */
    void (*lost)(void *arg, const struct drarun_error *why);
    void *arg;
    const char *what; /* for messages; NULL: "the job's Lease" */
    int64_t life_s;   /* without renewal it is anybody's; 0: LEASE_S */
    bool timed;       /* lost also when its life is over, before anybody has taken it */
    bool patient;     /* waits without limit for the end of another one; else for its life */
    bool (*stopped)(void *arg); /* true ends that wait (-ECANCELED) after the call that goes on;
                                   NULL: nothing does */
};

/* Takes it, and waits for its end where a launcher that may be alive holds it: one in a pod that is
 * over is not. One that an earlier job of the name left gets our owner, or is created again once it
 * is deleted: -ETIMEDOUT, kind DRARUN_ERR_CLUSTER, if it is not. -EBUSY, kind
 * DRARUN_ERR_INFRASTRUCTURE as of a Lease that is lost: the other one goes on renewing it.
 * manifest: a Lease with the job's labels and owner, whose spec is filled in here; holder names us.
 * Runs the loop. */
int lease_take(struct cluster *cluster, const json_t *manifest, const char *holder,
               const struct lease_owner *owner, struct lease **ret_lease, struct drarun_error *err);
/* Nobody holds it any more, so that another one need not wait. Runs the loop. */
void lease_give_back(struct lease *lease);
/* Stops renewing; the Lease goes with its owner. */
void lease_free(struct lease *lease);
DEFINE_CLEANUP(struct lease, lease_free)

/* A renewal is overdue for so long that another one may hold it: this process was stopped, or its
 * machine. It is renewed or lost soon; until then its holder begins nothing. */
bool lease_is_overdue(const struct lease *lease);
/* Another one had it before, and until just now: as lease_is_held, of what we replaced. */
bool lease_was_held(const struct lease *lease, int64_t now_ms, int64_t least_ms, int64_t most_ms);
/* From 1; each launcher of the job has a higher one than those before. */
uint32_t lease_generation(const struct lease *lease);

#endif
