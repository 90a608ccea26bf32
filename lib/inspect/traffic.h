/* SPDX-License-Identifier: Apache-2.0 */
/* How much data a worker's devices have moved, from the kernel's counters below a root. Sources:
 * Linux Documentation/ABI/stable/sysfs-class-infiniband (port_xmit_data counts units of four
 * bytes), the drivers' hw_counters (drivers/infiniband/hw), Documentation/ABI/testing/
 * sysfs-class-net-statistics. A device that is shared counts everybody's. */
#ifndef DRARUN_INSPECT_TRAFFIC_H
#define DRARUN_INSPECT_TRAFFIC_H

#include <stdint.h>

struct traffic { /* bytes sent and received; 0 where nothing is told */
    uint64_t rdma, net, loop;
    unsigned untold; /* ports of RDMA devices without any counter that is known */
};

/* rootfd: stands for "/", or -1 for "/" itself. */
void traffic_read(int rootfd, struct traffic *ret_traffic);

#endif
