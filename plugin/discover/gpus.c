/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/topo/root.h"
#include "plugin/discover/discover_private.h"
#include "plugin/discover/faults.h"
#include "plugin/discover/mig_minors.h"
#include "plugin/discover/nvml.h"

/* The driver lists the instances that 32 GPUs could have, in some 100 KiB. */
#define MIG_MINORS_SIZE ((size_t)1 << 20)

static void copy_text(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text ? text : "");
}

/* What every CUDA program opens besides the GPU's own node (NVIDIA's driver README, chapter
 * "Device node file permissions"). */
static void read_nodes(struct discovery *d, struct node_device *device)
{
    static const char *const shared[] = {"/dev/nvidiactl", "/dev/nvidia-uvm",
                                         "/dev/nvidia-uvm-tools"};
    char path[64];
    if (device->gpu.minor < 0)
        return;
    snprintf(path, sizeof path, "/dev/nvidia%d", device->gpu.minor);
    chardev_add(d, path, NULL, device->chardevs, &device->chardev_count);
    for (size_t i = 0; i < ARRAY_LEN(shared); i++)
        chardev_add(d, shared[i], NULL, device->chardevs, &device->chardev_count);
}

/* Where no driver is bound a GPU serves nobody, or a virtual machine. A captured tree may show no
 * drivers; there the driver's procfs tells. */
static bool is_driven(const struct topo_gpu *gpu, const char *driver)
{
    return (driver[0] && !pci_driver_is_passthrough(driver)) || (!driver[0] && gpu->minor >= 0);
}

static int add_gpu(struct discovery *d, const struct topo_gpu *gpu)
{
    char driver[32];
    pci_driver_read(d, gpu->pci, driver, sizeof driver);
    if (strcmp(gpu->vendor, "NVIDIA") != 0 || !is_driven(gpu, driver))
        return 0;
    struct node_device *device = discover_add(d, NODE_DEVICE_GPU, gpu->pci);
    if (!device)
        return -ENOMEM;
    device->gpu.minor = gpu->minor;
    device->gpu.mig_gi = device->gpu.mig_ci = -1;
    copy_text(device->gpu.vendor, sizeof device->gpu.vendor, gpu->vendor);
    copy_text(device->gpu.uuid, sizeof device->gpu.uuid, gpu->uuid);
    copy_text(device->gpu.product, sizeof device->gpu.product, gpu->product);
    copy_text(device->gpu.driver_version, sizeof device->gpu.driver_version, d->host->driver);
    read_nodes(d, device);
    return 0;
}

static void read_mig_nodes(struct discovery *d, struct node_device *device)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    char path[64];
    uint32_t minors[2];
    const struct node_gpu *gpu = &device->gpu;
    int rc = root_read_whole(d->root, "proc/driver/nvidia-caps/mig-minors", MIG_MINORS_SIZE, &text);
    d->failed = d->failed || text.failed;
    if (rc < 0)
        return;
    size_t count = mig_minors_parse(text.data, gpu->minor, gpu->mig_gi, gpu->mig_ci, minors);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "/dev/nvidia-caps/nvidia-cap%u", minors[i]);
        size_t before = device->chardev_count;
        chardev_add(d, path, NULL, device->chardevs, &device->chardev_count);
        if (device->chardev_count > before || before >= NODE_CHARDEVS_MAX)
            continue;
        struct node_chardev *node = &device->chardevs[device->chardev_count++];
        *node = (struct node_chardev){0}; /* in a pod's own /dev it is not there */
        snprintf(node->path, sizeof node->path, "%s", path);
    }
}

/* Whether the driver shows GPU instances of it; without NVML nothing else says that MIG is on. */
static bool has_instances(struct discovery *d, const struct node_gpu *gpu)
{
    char path[64];
    struct strlist names = STRLIST_INIT;
    bool found = false;
    snprintf(path, sizeof path, "proc/driver/nvidia/capabilities/gpu%d/mig", gpu->minor);
    if (gpu->minor >= 0)
        root_list(d->root, path, 64, &names, NULL);
    for (size_t i = 0; i < names.count; i++)
        found = found || (strncmp(names.items[i], "gi", 2) == 0 &&
                          strspn(names.items[i] + 2, "0123456789") > 0);
    strlist_done(&names);
    return found;
}

/* A program that opens the whole GPU would get one of its instances, which are others' to use. */
static void withhold_divided(struct discovery *d)
{
    for (size_t i = d->devices->count; i-- > 0;) {
        const struct node_device *device = &d->devices->list[i];
        if (device->kind != NODE_DEVICE_GPU || !has_instances(d, &device->gpu))
            continue;
        discover_warn(d,
                      "%s is not published: it is divided into MIG instances, and NVML, which "
                      "describes them, does not answer",
                      device->pci.bus_id);
        node_devices_remove(d->devices, i);
    }
}

static int complete(struct discovery *d)
{
    size_t first = d->devices->count;
    int rc = nvml_complete(d->source->nvml, d->devices, d->err);
    for (size_t i = first; rc == 0 && i < d->devices->count; i++)
        read_mig_nodes(d, &d->devices->list[i]);
    for (size_t i = 0; rc == 0 && i < first; i++)
        if (d->devices->list[i].gpu.closed)
            fault_add(&d->devices->list[i], d->source->config->lost, FAULT_LOST, "",
                      "NVIDIA's library cannot open it");
    for (size_t i = d->devices->count; rc == 0 && i-- > 0;)
        if (d->devices->list[i].gpu.mig_mode) /* its MIG devices are offered in its place */
            node_devices_remove(d->devices, i);
    return rc;
}

int discover_gpus(struct discovery *d)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < d->host->gpu_count; i++)
        rc = add_gpu(d, &d->host->gpus[i]);
    if (rc == 0 && d->source->nvml)
        rc = complete(d);
    if (rc == 0)
        withhold_divided(d);
    return rc;
}
