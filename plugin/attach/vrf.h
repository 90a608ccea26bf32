/* SPDX-License-Identifier: Apache-2.0 */
/* A VRF in a pod's namespace that its devices share by name; made for the first of them. */
#ifndef DRARUN_ATTACH_VRF_H
#define DRARUN_ATTACH_VRF_H

#include "plugin/attach/link.h"

/* Makes the VRF where it is not, brings it up and gives its index. Refuses a device of that name
 * that is no VRF, or one of another table. */
int vrf_ensure(struct netlink *n, const char *name, uint32_t table, int *ret_index,
               struct drarun_error *err);

#endif
