/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/dra/known_class.h"

#include <stddef.h>
#include <string.h>

#include "lib/base/cleanup.h"

const struct known_class *known_class(const char *name)
{
    static const struct known_class known[] = {
        /* NVIDIA k8s-dra-driver-gpu, deployments/helm/.../deviceclass-*.yaml */
        {.name = "gpu.nvidia.com",
         .driver = "gpu.nvidia.com",
         .expression =
             "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == "
             "'gpu'"},
        {.name = "mig.nvidia.com",
         .driver = "gpu.nvidia.com",
         .expression =
             "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == "
             "'mig'"},
        {.name = "compute-domain-default-channel.nvidia.com",
         .driver = "compute-domain.nvidia.com",
         .expression = "device.driver == 'compute-domain.nvidia.com' && "
                       "device.attributes['compute-domain.nvidia.com'].type == 'channel' && "
                       "device.attributes['compute-domain.nvidia.com'].id == 0"},
        /* AMD k8s-gpu-dra-driver, helm-charts-k8s/templates/deviceclass.yaml */
        {.name = "gpu.amd.com",
         .driver = "gpu.amd.com",
         .expression = "device.driver == 'gpu.amd.com'"},
        /* DraNet's examples */
        {.name = "dranet", .driver = "dra.net", .expression = "device.driver == 'dra.net'"},
        {.name = "dranet.net", .driver = "dra.net", .expression = "device.driver == 'dra.net'"},
        {.name = "dra.net", .driver = "dra.net"},
        /* GKE's managed DraNet: llm-d's guide for GKE shows slices of this driver; of its class no
         * text is published */
        {.name = "mrdma.google.com",
         .driver = "mrdma.google.com",
         .expression = "device.driver == 'mrdma.google.com'",
         .assumed = true},
        /* dra-driver-cpu, deployment/helm/.../deviceclass.yaml */
        {.name = "dra.cpu", .driver = "dra.cpu", .expression = "device.driver == \"dra.cpu\""},
        /* ours */
        {.name = "gpu.drarun.dev",
         .driver = "gpu.drarun.dev",
         .expression = "device.driver == 'gpu.drarun.dev'"},
        {.name = "nic.drarun.dev",
         .driver = "nic.drarun.dev",
         .expression = "device.driver == 'nic.drarun.dev'"},
        {.name = "rdma.drarun.dev",
         .driver = "nic.drarun.dev",
         .expression = "device.driver == 'nic.drarun.dev'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(known[i].name, name) == 0)
            return &known[i];
    return NULL;
}
