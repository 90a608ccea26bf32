/* SPDX-License-Identifier: Apache-2.0 */
/* What a container needs of the host to use a GPU of NVIDIA's, as CDI edits of our own, for hosts
 * where NVIDIA's container toolkit has made none (nvidia_cdi.h): device nodes, the driver's
 * libraries and programs. Sources: NVIDIA's driver README, "Device node file permissions";
 * k8s.io/nvidia-container-toolkit pkg/nvcdi, driver-nvml.go. docs/design/023-prepare.md, "GPUs". */
#ifndef DRARUN_PLUGIN_PREPARE_GPU_FILES_H
#define DRARUN_PLUGIN_PREPARE_GPU_FILES_H

#include <jansson.h>
#include "drarun/error.h"
#include "lib/base/cleanup.h"
#include "plugin/discover/node_device.h"

struct gpu_host {
    int root;           /* the host's "/", as this process sees it */
    const char *driver; /* where below it the driver is, "/run/nvidia/driver"; NULL: looked for */
};

/* The driver's libraries and programs: the same for all of a host's GPUs. */
struct gpu_driver;

/* host is borrowed for the driver's life. -ENOENT: a library that no program can do without is
 * missing; the error says which, where it was looked for, and the cure. */
int gpu_driver_find(const struct gpu_host *host, struct gpu_driver **ret_driver,
                    struct drarun_error *err);
void gpu_driver_free(struct gpu_driver *driver);
DEFINE_CLEANUP(struct gpu_driver, gpu_driver_free)

/* Members for the edits of the device: deviceNodes, mounts, env. -ENOENT: a node is missing; the
 * error says which, and the cure. */
int gpu_files_edits(const struct gpu_driver *driver, const struct node_device *device,
                    json_t **ret_edits, struct drarun_error *err);

#endif
