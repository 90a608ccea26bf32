/* SPDX-License-Identifier: Apache-2.0 */
/* A port of an RDMA device as JSON, of one shape in `drarun topo` and in probes
 * (jobs/derive/inventory/probe.h reads it): number, state, linkLayer, rateMbps, gids [index,
 * address, type, netdev]. null: not known. */
#ifndef DRARUN_INSPECT_PORT_JSON_H
#define DRARUN_INSPECT_PORT_JSON_H

#include <jansson.h>
#include "lib/topo/host.h"

/* Of GIDs without a type, which are of other network namespaces, at most others_max. NULL: out of
 * memory. */
json_t *port_json(const struct topo_port *port, size_t others_max);

/* Its GIDs alone, in the same way. */
json_t *gids_json(const struct topo_port *port, size_t others_max);

#endif
