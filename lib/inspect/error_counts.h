/* SPDX-License-Identifier: Apache-2.0 */
/* What devices have counted that tells of a bad cable, module, port or chip, to be compared before
 * and after some work. Sources: Linux Documentation/ABI/stable/sysfs-class-infiniband (counters of
 * a port), Documentation/ABI/testing/sysfs-class-net-statistics. A device that is shared counts
 * everybody's. */
#ifndef DRARUN_INSPECT_ERROR_COUNTS_H
#define DRARUN_INSPECT_ERROR_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/strlist.h"

struct error_counter {
    char name[112]; /* "mlx5_0 port 1 symbol_error" */
    uint64_t value;
};

struct error_counts {
    struct error_counter *list;
    size_t count, cap;
    bool failed; /* without memory: it is incomplete */
};

void error_counts_done(struct error_counts *counts);
void error_counts_add(struct error_counts *counts, uint64_t value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Add the counters of all RDMA ports, of all network interfaces but the loopback, and say how many
 * of those told something. root stands for "/". */
unsigned error_counts_of_ports(int root, struct error_counts *counts);
unsigned error_counts_of_interfaces(int root, struct error_counts *counts);

/* Adds "mlx5_0 port 1 symbol_error +3" for each that is higher than it was; one that was set back
 * counts from there, and one that is new from its first value. */
void error_counts_rose(const struct error_counts *begun, const struct error_counts *now,
                       struct strlist *ret_rose);

#endif
