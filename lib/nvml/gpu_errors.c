/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/nvml/gpu_errors.h"

#include "lib/base/cleanup.h"

static const struct {
    int counter;
    const char *name;
} link_counters[] = {
    {NVML_NVLINK_REPLAY, "replays"},
    {NVML_NVLINK_RECOVERY, "recoveries"},
    {NVML_NVLINK_CRC_DATA, "CRC errors of data"},
};

static unsigned add_links(const struct nvml_library *library, nvml_handle gpu, const char *name,
                          struct error_counts *counts)
{
    unsigned told = 0;
    for (unsigned link = 0; link < NVML_NVLINKS_MAX; link++) {
        unsigned active = 0;
        bool any = false;
        if (NVML_ASK(library, nvlink, gpu, link, &active) != NVML_OK || active != 1)
            continue;
        for (size_t i = 0; i < ARRAY_LEN(link_counters); i++) {
            unsigned long long value = 0;
            if (NVML_ASK(library, nvlink_errors, gpu, link, link_counters[i].counter, &value) !=
                NVML_OK)
                continue;
            error_counts_add(counts, value, "GPU %s NVLink %u %s", name, link,
                             link_counters[i].name);
            any = true;
        }
        told += any;
    }
    return told;
}

unsigned gpu_errors_add(const struct nvml_library *library, struct error_counts *counts,
                        unsigned *ret_links)
{
    unsigned count = 0, told = 0;
    *ret_links = 0;
    if (library->f.count(&count) != NVML_OK)
        return 0;
    for (unsigned i = 0; i < count && i < NVML_GPUS_MAX; i++) {
        nvml_handle gpu = NULL;
        struct pci_addr addr;
        char name[PCI_ADDR_TEXT];
        unsigned long long value = 0;
        if (library->f.by_index(i, &gpu) != NVML_OK || !nvml_library_address(library, gpu, &addr))
            continue;
        pci_addr_format(addr, name);
        bool ecc = NVML_ASK(library, ecc_errors, gpu, NVML_ECC_UNCORRECTED, NVML_ECC_SINCE_LOADED,
                            &value) == NVML_OK;
        if (ecc)
            error_counts_add(counts, value, "GPU %s uncorrected ECC errors", name);
        unsigned links = add_links(library, gpu, name, counts);
        told += ecc || links;
        *ret_links += links;
    }
    return told;
}
