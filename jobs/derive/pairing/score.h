/* SPDX-License-Identifier: Apache-2.0 */
/* How good NCCL's choice is against the NICs' speed (docs/design/011-derivation.md, "Score"). Pure.
 */
#ifndef DRARUN_JOBS_SCORE_H
#define DRARUN_JOBS_SCORE_H

#include <stdbool.h>
#include "jobs/derive/devices/devices.h"
#include "jobs/derive/nccl/nccl_topology.h"

/* 0 to 1. arm: the link between the sockets does not limit. */
double score_of(const struct devices *devices, const struct nccl_model *model,
                const struct nccl_result *result, bool arm);

#endif
