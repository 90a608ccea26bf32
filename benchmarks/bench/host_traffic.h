/* SPDX-License-Identifier: Apache-2.0 */
/* What the devices of the ranks' hosts move while they are measured: whether it went by RDMA. */
#ifndef DRARUN_BENCH_HOST_TRAFFIC_H
#define DRARUN_BENCH_HOST_TRAFFIC_H

#include "benchmarks/bench/backend.h"
#include "benchmarks/bench/table.h"
#include "lib/inspect/traffic.h"

/* All ranks call it together, at the end. begun: what traffic_read told this rank at the beginning.
 * Counts each host once; not known where there is one host alone, or where no RDMA device moved
 * anything and some count nothing. */
int host_traffic(const struct backend *backend, const struct table_rank *ranks, unsigned count,
                 const struct traffic *begun, struct result_traffic *ret_traffic,
                 struct drarun_error *err);

#endif
