/* SPDX-License-Identifier: Apache-2.0 */
/* Agents of pods that cannot be dialled from here: a port of the loopback for each, whose
 * connections go through the API server (pods/portforward). What passes is TLS with the job's key,
 * from end to end. Other users of this machine, who would use our credentials, are refused. Loop
 * thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_TUNNEL_H
#define DRARUN_LAUNCHER_CLUSTER_TUNNEL_H

#include <stdint.h>
#include "launcher/cluster/client/cluster.h"

struct tunnel;

#define TUNNEL_PASSAGES_MAX 256u /* connections of a tunnel; more are closed */
#define TUNNEL_EARLY_MAX 65536u  /* bytes read before the API server has opened the way */

/* namespace and pod are borrowed as long as the tunnel. *ret_port: of 127.0.0.1. */
int tunnel_new(struct cluster *cluster, const char *namespace, const char *pod, uint16_t port,
               struct tunnel **ret_tunnel, uint16_t *ret_port, struct drarun_error *err);
/* Ends its connections. NULL is fine. */
void tunnel_free(struct tunnel *tunnel);

#endif
