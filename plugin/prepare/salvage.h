/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices a claim may have whose checkpoint cannot be read: what its CDI specification, its
 * orders and what is left of the checkpoint's text name. A container that holds a device was
 * started from that specification, so that no device is missed while it is there; where it is
 * damaged too, nothing is known. After a reboot specification and orders are gone, and so are the
 * containers. */
#ifndef DRARUN_PLUGIN_PREPARE_SALVAGE_H
#define DRARUN_PLUGIN_PREPARE_SALVAGE_H

#include "drarun/error.h"
#include "lib/base/strlist.h"

struct salvage_place { /* borrowed */
    const char *driver, *uid;
    const char *dir; /* of checkpoints */
    const char *orders_dir, *cdi_dir;
};

/* Adds each device once. -EUCLEAN: the specification is there and cannot be read, so that it may
 * have others too. */
int salvage_devices(const struct salvage_place *place, struct strlist *devices,
                    struct drarun_error *err);

#endif
