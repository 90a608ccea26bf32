/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/known_class.h"

#include <stddef.h>
#include <string.h>

#include "lib/base/cleanup.h"

const struct known_class *known_class(const char *name)
{
    static const struct known_class known[] = {
        /* NVIDIA k8s-dra-driver-gpu, deployments/helm/.../deviceclass-*.yaml */
        {"gpu.nvidia.com", "gpu.nvidia.com",
         "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"},
        {"mig.nvidia.com", "gpu.nvidia.com",
         "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"},
        {"compute-domain-default-channel.nvidia.com", "compute-domain.nvidia.com",
         "device.driver == 'compute-domain.nvidia.com' && "
         "device.attributes['compute-domain.nvidia.com'].type == 'channel' && "
         "device.attributes['compute-domain.nvidia.com'].id == 0"},
        /* DraNet's examples */
        {"dranet", "dra.net", "device.driver == 'dra.net'"},
        {"dranet.net", "dra.net", "device.driver == 'dra.net'"},
        {"dra.net", "dra.net", NULL},
        /* GKE's managed DraNet: what its class selects is published nowhere */
        {"mrdma.google.com", "mrdma.google.com", NULL},
        /* ours */
        {"gpu.drarun.dev", "gpu.drarun.dev", "device.driver == 'gpu.drarun.dev'"},
        {"nic.drarun.dev", "nic.drarun.dev", "device.driver == 'nic.drarun.dev'"},
        {"rdma.drarun.dev", "nic.drarun.dev", "device.driver == 'nic.drarun.dev'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(known[i].name, name) == 0)
            return &known[i];
    return NULL;
}
