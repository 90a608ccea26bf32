/* SPDX-License-Identifier: Apache-2.0 */
/* Which boot of the node this is. What an earlier one's checkpoint says of interfaces is history:
 * no container of that boot lives, and the kernel has named and set up all devices again. */
#ifndef DRARUN_PLUGIN_PREPARE_BOOT_H
#define DRARUN_PLUGIN_PREPARE_BOOT_H

#include "drarun/error.h"

#define BOOT_ID_MAX 64

/* Source: /proc/sys/kernel/random/boot_id (random(4)), the same in every container. */
int boot_id_read(char ret_id[BOOT_ID_MAX], struct drarun_error *err);

#endif
