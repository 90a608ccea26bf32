/* SPDX-License-Identifier: Apache-2.0 */
/* What only NVIDIA's driver library knows of GPUs: memory, architecture, versions, MIG devices,
 * NVLinks, and the errors called Xid. The library is opened at run time, so that the plugin runs on
 * nodes without it. One thread at a time; its calls may take milliseconds, and the first one
 * seconds where nothing keeps the driver awake (nvidia-persistenced). */
#ifndef DRARUN_PLUGIN_DISCOVER_NVML_H
#define DRARUN_PLUGIN_DISCOVER_NVML_H

#include "lib/nvml/library.h"
#include "plugin/discover/node_devices.h"

struct nvml;

/* As nvml_library_open. */
int nvml_open(const char *library, struct nvml **ret_nvml, struct drarun_error *err);
void nvml_close(struct nvml *nvml); /* NULL is fine */

/* Completes the GPUs of the list, found by address, and adds a MIG device for each that exists;
 * a GPU in MIG mode keeps mig_mode. -ENOMEM; what the library cannot tell stays unknown. */
int nvml_complete(struct nvml *nvml, struct node_devices *devices, struct drarun_error *err);

struct nvml_xid {
    char bus_id[PCI_ADDR_TEXT];
    uint64_t xid;
    bool lost; /* the GPU does not answer any more */
};

/* Errors since the last call, at most max; does not wait. The count, or 0 where the library cannot
 * tell. The first call begins to listen. */
size_t nvml_xids(struct nvml *nvml, struct nvml_xid *ret_xids, size_t max);

#endif
