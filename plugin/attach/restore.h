/* SPDX-License-Identifier: Apache-2.0 */
/* Taking a device back: as the order says that it was on the host, wherever it is now. Repeated, it
 * changes nothing. */
#ifndef DRARUN_ATTACH_RESTORE_H
#define DRARUN_ATTACH_RESTORE_H

#include "plugin/attach/order.h"

#define RESTORE_EXIT_GONE 3 /* the program's exit status for RESTORE_GONE */

enum restore_outcome {
    RESTORE_DONE = 1,
    RESTORE_GONE, /* nothing is left to take back: a virtual device that ended with its namespace, a
                     PCI function that was unplugged or has no driver */
};

/* Waits until a time of clock_ms() for what returns from a namespace that has died; from one that
 * lives it is pulled out. -EEXIST: another device has its name on the host; it has given up its
 * own, so once the other one is restored, a second call succeeds. */
int attach_restore(const struct attach_order *order, int64_t until_ms,
                   enum restore_outcome *ret_outcome, struct drarun_error *err);

/* The network device alone, out of ns, where an attempt to attach it ended. */
int attach_take_back(const struct attach_order *order, int ns, struct drarun_error *err);

#endif
