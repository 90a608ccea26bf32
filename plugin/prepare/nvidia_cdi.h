/* SPDX-License-Identifier: Apache-2.0 */
/* The CDI specifications that NVIDIA's container toolkit makes (nvidia-ctk cdi generate, or its
 * service): kind nvidia.com/gpu, devices named by index, UUID, or index:index for MIG. A name is
 * only believed where the device nodes behind it are the allocated GPU's and no other's: an index
 * changes with the order of the bus, and a file may be of another boot. */
#ifndef DRARUN_PLUGIN_PREPARE_NVIDIA_CDI_H
#define DRARUN_PLUGIN_PREPARE_NVIDIA_CDI_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/doc/doc.h"
#include "plugin/discover/node_device.h"

#define NVIDIA_CDI_KIND "nvidia.com/gpu"

struct nvidia_cdi;

/* Reads those in /etc/cdi, /run/cdi and /var/run/cdi below the host's root; what is none, or cannot
 * be read, is passed over, as runtimes do. NULL: out of memory. */
struct nvidia_cdi *nvidia_cdi_read(int root);
/* Of one document, taken, where it is of that kind; NULL: it is not, or out of memory. */
struct nvidia_cdi *nvidia_cdi_take(struct doc *doc);
void nvidia_cdi_free(struct nvidia_cdi *cdi);
DEFINE_CLEANUP(struct nvidia_cdi, nvidia_cdi_free)

/* The id of the GPU, "nvidia.com/gpu=GPU-...", by UUID where there is one. False: none gives it,
 * and why, "" where there are no specifications of that kind, says in a clause what is wrong with
 * them. */
bool nvidia_cdi_find(const struct nvidia_cdi *cdi, const struct node_device *device, char *ret_id,
                     size_t size, struct buf *why);

#endif
