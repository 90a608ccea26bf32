/* SPDX-License-Identifier: Apache-2.0 */
/* The CDI specifications that NVIDIA's container toolkit makes (nvidia-ctk cdi generate, or its
 * service): kind nvidia.com/gpu, devices named by index, UUID, or index:index for MIG. A name is only
 * believed where the device nodes behind it are the allocated GPU's and no other's: an index changes
 * with the order of the bus, and a file may be of another boot. */
#ifndef DRARUN_PLUGIN_PREPARE_NVIDIA_CDI_H
#define DRARUN_PLUGIN_PREPARE_NVIDIA_CDI_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "lib/base/buf.h"
#include "plugin/discover/node_device.h"

#define NVIDIA_CDI_KIND "nvidia.com/gpu"

/* Whether a device of a specification gives this GPU and nothing of another. Pure. */
bool nvidia_cdi_gives(const json_t *entry, const struct node_device *device);

/* The id of the GPU, "nvidia.com/gpu=GPU-...", by UUID where there is one, in /etc/cdi, /run/cdi or
 * /var/run/cdi below the host's root. False: no specification gives it, and *why, which is set where
 * there are specifications of that kind, says what is wrong with them in a clause. */
bool nvidia_cdi_find(int root, const struct node_device *device, char *ret_id, size_t size,
                     struct buf *why);

#endif
