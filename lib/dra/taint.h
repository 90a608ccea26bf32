/* SPDX-License-Identifier: Apache-2.0 */
/* Whether taints keep a pod or a claim away. Pure. */
#ifndef DRARUN_DRA_TAINT_H
#define DRARUN_DRA_TAINT_H

#include <jansson.h>

/* The key of the first taint, of a node or of a device, with NoSchedule or NoExecute that no entry
 * of the list tolerates; NULL: none. After Toleration.ToleratesTaint of k8s.io/api and
 * DeviceToleration of resource.k8s.io. */
const char *taint_repelling(const json_t *taints, const json_t *tolerations);

#endif
