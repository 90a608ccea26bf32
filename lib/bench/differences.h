/* SPDX-License-Identifier: Apache-2.0 */
/* What else differs between two runs: library, devices and how far they are from their NICs, nodes,
 * each rank's own GPU and NIC, environment, how it was measured, who was slow, and of jobs what was
 * asked for and what they got. Pure. */
#ifndef DRARUN_LIB_BENCH_DIFFERENCES_H
#define DRARUN_LIB_BENCH_DIFFERENCES_H

#include "lib/bench/result.h"

#define DIFFERENCES_RANKS_MAX 4u /* whose own devices are said */
#define DIFFERENCES_SPEC_MAX 20u /* of the jobs' specs that are said one by one */

/* Appends sentences: "library: NCCL 2.26.2, then NCCL 2.27.3", "spec.devices.align: required, then
 * none". What only one of them knows is said as "not known" of the other one. */
void differences_add(const struct result *a, const struct result *b, struct strlist *list);

#endif
