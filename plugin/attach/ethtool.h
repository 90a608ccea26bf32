/* SPDX-License-Identifier: Apache-2.0 */
/* A device's offload features and its driver's private flags, by the names that `ethtool -k` and
 * `ethtool --show-priv-flags` show; also ethtool's older names for groups of features, with the
 * patterns of its common.c (as DraNet has them). By ioctl: the same on every kernel. */
#ifndef DRARUN_ATTACH_ETHTOOL_H
#define DRARUN_ATTACH_ETHTOOL_H

#include <jansson.h>
#include "drarun/error.h"

/* What the switches {name: true or false} want, in the namespace ns (-1: the caller's). Nothing is
 * written when all is so already. Of a group the features that the device can change count, and at
 * least one must be there. Refuses unknown names, with the nearest one, and what the device keeps
 * fixed. */
int ethtool_ensure(int ns, const char *device, const json_t *features, const json_t *private_flags,
                   struct drarun_error *err);

/* How those are now that the switches would change, by their kernel names: for ethtool_ensure, to
 * undo it. New references, NULL for none. Names that the device does not have are left out. */
int ethtool_read(const char *device, const json_t *features, const json_t *private_flags,
                 json_t **ret_features, json_t **ret_private_flags, struct drarun_error *err);

#endif
