/* SPDX-License-Identifier: Apache-2.0 */
/* What a claim's status.devices says about our devices: that they are prepared, and by which name,
 * addresses and RDMA device the pod has them (KEP-4817). */
#ifndef DRARUN_PLUGIN_PREPARE_CLAIM_STATUS_H
#define DRARUN_PLUGIN_PREPARE_CLAIM_STATUS_H

#include <jansson.h>
#include "lib/kube/object.h"
#include "plugin/prepare/checkpoint.h"

/* networkData of a NIC as its order has it; NULL for one without an interface. A new reference. */
json_t *claim_status_network(const json_t *order);

/* Begins to write it, as the driver: kube_call_start for fn, arg, ret_call and err. The API server
 * refuses it (422, "field is immutable") for a claim whose opaque parameters were not written as
 * kubectl does, compact and with sorted keys: docs/design/010-claims.md. */
int claim_status_write(struct kube_client *client, const struct kube_resource *claims,
                       const struct checkpoint *checkpoint, kube_call_fn fn, void *arg,
                       struct kube_call **ret_call, struct drarun_error *err);

#endif
