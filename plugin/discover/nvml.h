/* SPDX-License-Identifier: Apache-2.0 */
/* What only NVIDIA's driver library knows of GPUs: memory, architecture, versions, MIG devices,
 * NVLinks, and the errors called Xid. drarun-nvml asks the library (plugin/nvml), so that a driver
 * that hangs does not hold up the plugin: each call waits for a limited time. One that gets no
 * answer logs it and ends that process; later calls start another one, and do not wait for it. One
 * that the driver keeps from being killed has no successor until it has ended.
 *
 * One thread at a time. Calls block without running the caller's loop. */
#ifndef DRARUN_PLUGIN_DISCOVER_NVML_H
#define DRARUN_PLUGIN_DISCOVER_NVML_H

#include "lib/topo/pci.h"
#include "plugin/discover/node_devices.h"

struct nvml;

struct nvml_limits { /* milliseconds */
    int64_t open;    /* for the first answer: the library may have to wake the driver */
    int64_t ask;     /* for each other one */
    int64_t again;   /* from the start of one to the next one, and no less than `open` */
};

/* 20 s (nvidia-persistenced may not run), 5 s, 60 s. */
extern const struct nvml_limits nvml_limits_default;

/* library: a file or a name for dlopen; NULL: the usual one. -ENOENT: there is no such library, or
 * no drarun-nvml; -ENODEV: the driver does not serve it (not loaded, another version). 0 also where
 * the driver does not answer in time: it may later. limits: NULL: the default. */
int nvml_open(const char *library, const struct nvml_limits *limits, struct nvml **ret_nvml,
              struct drarun_error *err);
/* The same, but 0 also for a library or a driver that is not there: a node's driver may be
 * installed later. It is tried again, which waits for nothing, while there are GPUs
 * (nvml_complete); the first time that there is one, an error is logged. -ENOENT: no drarun-nvml.
 */
int nvml_open_later(const char *library, const struct nvml_limits *limits, struct nvml **ret_nvml,
                    struct drarun_error *err);
void nvml_close(struct nvml *nvml); /* NULL is fine */

/* Completes the GPUs of the list, found by address, and adds a MIG device for each that exists;
 * a GPU in MIG mode keeps mig_mode, one that the library cannot open is closed. While the driver
 * does not answer, what it said last counts. -ENOMEM; what the library cannot tell stays unknown.
 */
int nvml_complete(struct nvml *nvml, struct node_devices *devices, struct drarun_error *err);

struct nvml_xid {
    char bus_id[PCI_ADDR_TEXT];
    uint64_t xid;
    bool lost; /* the GPU does not answer any more */
};

typedef void (*nvml_xid_fn)(const struct nvml_xid *xid, void *arg);

/* Calls fn with each error since the last call; does not wait for one. The library tells each error
 * once: what fn passes over is lost. The first call begins to listen. */
void nvml_each_xid(struct nvml *nvml, nvml_xid_fn fn, void *arg);

#endif
