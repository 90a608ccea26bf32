/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's management library, opened at run time, so that nothing of it is needed to build or to
 * start. One thread at a time; its calls may take milliseconds, and the first one seconds where
 * nothing keeps the driver awake (nvidia-persistenced). */
#ifndef DRARUN_NVML_LIBRARY_H
#define DRARUN_NVML_LIBRARY_H

#include <stdbool.h>
#include "drarun/error.h"
#include "lib/nvml/abi.h"
#include "lib/topo/pci.h"

#define NVML_LIBRARY "libnvidia-ml.so.1"
#define NVML_GPUS_MAX 256u

/* Each may be NULL but for the first group: a library of another age has not all of them. */
struct nvml_functions {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *);
    int (*by_index)(unsigned, nvml_handle *);
    int (*pci)(nvml_handle, struct nvml_pci *);

    const char *(*error_text)(int);
    int (*driver_version)(char *, unsigned);
    int (*cuda_version)(int *);
    int (*name)(nvml_handle, char *, unsigned);
    int (*uuid)(nvml_handle, char *, unsigned);
    int (*minor)(nvml_handle, unsigned *);
    int (*memory)(nvml_handle, struct nvml_memory *);
    int (*architecture)(nvml_handle, unsigned *);
    int (*compute)(nvml_handle, int *, int *);
    int (*nvlink)(nvml_handle, unsigned, unsigned *);
    int (*mig_mode)(nvml_handle, unsigned *, unsigned *);
    int (*mig_count)(nvml_handle, unsigned *);
    int (*mig_by_index)(nvml_handle, unsigned, nvml_handle *);
    int (*mig_gi)(nvml_handle, unsigned *);
    int (*mig_ci)(nvml_handle, unsigned *);
    int (*mig_attributes)(nvml_handle, struct nvml_mig_attributes *);
    int (*events_new)(nvml_event_set *);
    int (*events_add)(nvml_handle, unsigned long long, nvml_event_set);
    int (*events_wait)(nvml_event_set, struct nvml_event *, unsigned);
    int (*events_free)(nvml_event_set);
    int (*ecc_errors)(nvml_handle, int, int, unsigned long long *);
    int (*nvlink_errors)(nvml_handle, unsigned, int, unsigned long long *);
};

struct nvml_library {
    void *handle;
    bool started;
    struct nvml_functions f;
};

/* A call of an optional function: NVML_NOT_SUPPORTED where the library has it not. */
#define NVML_ASK(library, fn, ...)                                                                 \
    ((library)->f.fn ? (library)->f.fn(__VA_ARGS__) : NVML_NOT_SUPPORTED)

/* name: a file or a name for dlopen; NULL: NVML_LIBRARY. -ENOENT: there is no such library;
 * -ENODEV: the driver does not serve it (not loaded, another version). */
int nvml_library_open(const char *name, struct nvml_library *ret_library, struct drarun_error *err);
void nvml_library_close(struct nvml_library *library);

bool nvml_library_address(const struct nvml_library *library, nvml_handle gpu,
                          struct pci_addr *ret_addr);

#endif
