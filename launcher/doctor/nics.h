/* SPDX-License-Identifier: Apache-2.0 */
/* drarun doctor --nics: the RDMA NICs of this machine or pod, opened by the agent's program, since
 * it has libibverbs (docs/design/038-open-nics.md). */
#ifndef DRARUN_LAUNCHER_DOCTOR_NICS_H
#define DRARUN_LAUNCHER_DOCTOR_NICS_H

#include <jansson.h>
#include "drarun/error.h"
#include "launcher/doctor/findings.h"

/* At least one finding, also where there is no NIC. ret_verbs: what the findings were made of, the
 * member `verbs` of docs/design/018-inspection.md; the caller's. Waits for the agent's program, 30
 * s at most. Errors: memory, and a machine that cannot be read. */
int nics_check(struct findings *findings, json_t **ret_verbs, struct drarun_error *err);

#endif
