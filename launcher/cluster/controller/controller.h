/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun controller`: makes jobs of the DraJobs that are applied, and tells in their status what
 * becomes of them (docs/design/035-drajob-objects.md). Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_CONTROLLER_H
#define DRARUN_LAUNCHER_CLUSTER_CONTROLLER_H

#include "launcher/cluster/client/cluster.h"

#define CONTROLLER_LEASE "drarun-controller"

struct controller_options { /* all borrowed */
    const char *namespace;  /* whose DraJobs; NULL: of all */
    const char *lease_namespace;
    const char *image;     /* of agents and launchers; NULL: the default */
    const char *holder;    /* who we are, for the Lease */
    const char *heartbeat; /* file that is written while it works (heartbeat_file.h); NULL: none */
    uint16_t metrics_port; /* of GET /metrics; 0: none are served */
    int64_t site_ttl_ms;   /* of ended jobs whose spec has no time to live; 0: they stay */
};

/* Until a signal; returns the exit status, having said everything. */
int controller_run(struct cluster *cluster, const struct controller_options *options);

#endif
