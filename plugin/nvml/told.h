/* SPDX-License-Identifier: Apache-2.0 */
/* What NVIDIA's library tells of GPUs, as JSON. Its calls may take milliseconds, the first one
 * seconds where nothing keeps the driver awake (nvidia-persistenced), and all of them may never
 * return when a GPU or the driver hangs. What the library cannot tell is left out. */
#ifndef DRARUN_PLUGIN_NVML_TOLD_H
#define DRARUN_PLUGIN_NVML_TOLD_H

#include <jansson.h>
#include "lib/nvml/library.h"

struct told_gpu {
    nvml_handle handle;
    struct pci_addr addr; /* which the library may not say any more once the GPU is lost */
};

struct told {
    struct nvml_library lib;
    nvml_event_set events;               /* NULL: nobody listens yet */
    bool deaf;                           /* the library cannot tell of errors */
    struct told_gpu gpus[NVML_GPUS_MAX]; /* to which `events` listens */
    size_t gpu_count;
};

/* A list of {busID, driverVersion, cudaVersion, compute, architecture, product, uuid, minor, memory
 * (bytes), nvlinks, mig (its mode), migs: [{gi, ci, uuid, profile, memory}]}; one that the library
 * counts and cannot open is an empty object, since nothing says which it is. NULL: the driver does
 * not even count them, which is not to have none. */
json_t *told_gpus(struct told *told);
/* A list of {busID, xid}: errors since the last call; does not wait. The first call begins to
 * listen. A GPU that the library calls lost without an event has Xid 79, which stands for that. */
json_t *told_xids(struct told *told);
void told_done(struct told *told);

#endif
