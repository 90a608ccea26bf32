/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes open a MIG device's instances: lines "gpu0/gi1/access 12", where 12 is
 * /dev/nvidia-caps/nvidia-cap12 (NVIDIA's MIG user guide, "Device nodes and capabilities"). Pure.
 */
#ifndef DRARUN_PLUGIN_DISCOVER_MIG_MINORS_H
#define DRARUN_PLUGIN_DISCOVER_MIG_MINORS_H

#include <stddef.h>
#include <stdint.h>

/* The numbers for the GPU of this minor, a GPU instance and a compute instance in it, in the order
 * of the text: their count. */
size_t mig_minors_parse(const char *text, int32_t gpu, int32_t gi, int32_t ci,
                        uint32_t ret_minors[2]);

#endif
