/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the launcher that holds a Lease may be alive. Pure. */
#ifndef DRARUN_LAUNCHER_CLUSTER_LEASE_LIFE_H
#define DRARUN_LAUNCHER_CLUSTER_LEASE_LIFE_H

#include <jansson.h>
#include <stdint.h>

/* When it last renewed the Lease, milliseconds since 1970; 0: never. The later of what it says
 * itself (spec.renewTime, by a clock that may be wrong) and of when the API server took it
 * (metadata.managedFields of manager "drarun"). */
int64_t lease_life_sign(const json_t *lease);

#endif
