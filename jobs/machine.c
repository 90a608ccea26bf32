/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/machine.h"

#include <string.h>

#include "lib/base/cleanup.h"

#define GKE_NVIDIA                                                                                 \
    {                                                                                              \
        "drarun-nvidia", "/home/kubernetes/bin/nvidia", "/usr/local/nvidia"                        \
    }
#define GKE_GIB                                                                                    \
    {                                                                                              \
        "drarun-gib", "/home/kubernetes/bin/gib", "/usr/local/gib"                                 \
    }

static const char grace[] = "its GPUs and NICs are in different PCI domains";
static const char vmbus[] = "each of its GPUs and NICs is alone in a PCI domain";

static const struct machine machines[] = {
    {.profile = "gke-a3u", .gpus = 8, .nics = 8, .mounts = {GKE_NVIDIA, GKE_GIB}},
    {.profile = "gke-a4", .gpus = 8, .nics = 8, .mounts = {GKE_NVIDIA, GKE_GIB}},
    {.profile = "gke-a4x",
     .no_root = grace,
     .gpus = 4,
     .nics = 4,
     .whole_node = true,
     .mounts = {GKE_NVIDIA, GKE_GIB}},
    {.profile = "gke-a4x-max",
     .no_root = grace,
     .gpus = 4,
     .nics = 8,
     .whole_node = true,
     .mounts = {GKE_NVIDIA}},
    {.profile = "gke-tcpxo",
     .gpus = 8,
     .nics = 8,
     .whole_node = true,
     .mounts = {GKE_NVIDIA, {"drarun-aperture", "/dev/aperture_devices", "/dev/aperture_devices"}}},
    {.profile = "azure-ndv4",
     .no_root = vmbus,
     .mounts = {{"drarun-microsoft", "/opt/microsoft", "/opt/microsoft"}}},
    {.profile = "azure-ndv5",
     .no_root = vmbus,
     .mounts = {{"drarun-microsoft", "/opt/microsoft", "/opt/microsoft"}}},
    {.profile = "azure-gb", .no_root = vmbus},
    {.profile = "oci-gb200", .no_root = grace},
    {.profile = "coreweave-gb", .no_root = grace},
    {.profile = "nebius-h100",
     .mounts = {{"drarun-topologyd", "/var/run/nvidia-topologyd", "/var/run/nvidia-topologyd"}}},
};

const struct machine *machine_find(const char *profile)
{
    for (size_t i = 0; profile && i < ARRAY_LEN(machines); i++)
        if (strcmp(machines[i].profile, profile) == 0)
            return &machines[i];
    return NULL;
}

const struct machine *machine_at(size_t i)
{
    return i < ARRAY_LEN(machines) ? &machines[i] : NULL;
}
