/* SPDX-License-Identifier: Apache-2.0 */
/* The part of NVIDIA's management library that is used, as its ABI has it (NVML API reference, R450
 * and later: names with their version suffix never change). Declared here since no header of it may
 * be required to build. */
#ifndef DRARUN_NVML_ABI_H
#define DRARUN_NVML_ABI_H

typedef struct nvml_device_opaque *nvml_handle;
typedef struct nvml_event_set_opaque *nvml_event_set;

enum { /* nvmlReturn_t */
       NVML_OK = 0,
       NVML_NOT_SUPPORTED = 3,
       NVML_NO_PERMISSION = 4,
       NVML_NOT_FOUND = 6,
       NVML_TIMEOUT = 10,
       NVML_GPU_IS_LOST = 15,
};

enum { NVML_NVLINKS_MAX = 18, NVML_TEXT = 96 };
enum { /* of nvmlDeviceGetTotalEccErrors: nvmlMemoryErrorType_t, nvmlEccCounterType_t */
       NVML_ECC_UNCORRECTED = 1,
       NVML_ECC_SINCE_LOADED = 0,
};
enum { /* nvmlNvLinkErrorCounter_t */
       NVML_NVLINK_REPLAY = 0,
       NVML_NVLINK_RECOVERY = 1,
       NVML_NVLINK_CRC_FLIT = 2,
       NVML_NVLINK_CRC_DATA = 3,
};
#define NVML_EVENT_XID 0x8ull /* nvmlEventTypeXidCriticalError */

struct nvml_pci { /* nvmlPciInfo_t */
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};

struct nvml_memory { /* nvmlMemory_t, bytes */
    unsigned long long total, free, used;
};

struct nvml_mig_attributes { /* nvmlDeviceAttributes_t */
    unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices,
        compute_slices;
    unsigned long long memory_mib;
};

struct nvml_event { /* nvmlEventData_t */
    nvml_handle device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

#endif
