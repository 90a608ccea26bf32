/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA devices of this machine, opened through libibverbs. Blocks as long as drivers do, and a
 * provider's fault is its caller's: call it in a process of its own. */
#ifndef DRARUN_VERBS_OPEN_NICS_H
#define DRARUN_VERBS_OPEN_NICS_H

#include <stdint.h>
#include "drarun/error.h"
#include "lib/topo/host.h"
#include "lib/verbs/nic_open.h"

struct open_nics; /* libibverbs' list of devices, and the memory that is registered */

/* memory: bytes to register on each device; 0: none. -errno: no memory, or the kernel shows no RDMA
 * devices to libibverbs at all. */
int open_nics_new(uint64_t memory, struct open_nics **ret_nics, struct drarun_error *err);
void open_nics_free(struct open_nics *nics);

/* Opens the device and tries each step; nothing stays open. What the device says of itself and of
 * its ports replaces what rdma had from sysfs, but for the GID table: libibverbs names the
 * interfaces of entries by numbers of other network namespaces, too, which sysfs does not. Rates
 * stay sysfs', since libibverbs ends at NDR. */
void open_nics_try(struct open_nics *nics, struct topo_rdma *rdma, struct nic_open *ret_open);

#endif
