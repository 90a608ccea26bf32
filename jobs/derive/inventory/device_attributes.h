/* SPDX-License-Identifier: Apache-2.0 */
/* A device's attributes by datum and domain, found in one pass over what its driver published:
 * reading a cluster's devices is what planning a large job costs. Pure. */
#ifndef DRARUN_JOBS_DEVICE_ATTRIBUTES_H
#define DRARUN_JOBS_DEVICE_ATTRIBUTES_H

#include "lib/dra/slices.h"

/* Names over the drivers' history (docs/design/011-derivation.md). */
enum attribute_name {
    ATTRIBUTE_PCI_BUS_ID,
    ATTRIBUTE_PCIE_BUS_ID,
    ATTRIBUTE_PCI_ADDRESS,
    ATTRIBUTE_PCI_ADDR,           /* AMD */
    ATTRIBUTE_PCI_ADDRESS_DOMAIN, /* dranet up to 0.5 wrote the address in four parts */
    ATTRIBUTE_PCI_ADDRESS_BUS,
    ATTRIBUTE_PCI_ADDRESS_DEVICE,
    ATTRIBUTE_PCI_ADDRESS_FUNCTION,
    ATTRIBUTE_PCIE_ROOT,
    ATTRIBUTE_NUMA_NODE,
    ATTRIBUTE_INDEX,
    ATTRIBUTE_MINOR,
    ATTRIBUTE_TYPE,
    ATTRIBUTE_UUID,
    ATTRIBUTE_PARENT_UUID,
    ATTRIBUTE_PRODUCT_NAME,
    ATTRIBUTE_ADDRESSING_MODE,
    ATTRIBUTE_RDMA,
    ATTRIBUTE_RDMA_CAPABLE,
    ATTRIBUTE_RDMA_DEVICE,
    ATTRIBUTE_IF_NAME,
    ATTRIBUTE_INTERFACE_NAME,
    ATTRIBUTE_MAC,
    ATTRIBUTE_ENCAPSULATION,
    ATTRIBUTE_COUNT,
};

/* Of one name, in this order. */
enum attribute_domain {
    DOMAIN_STANDARD, /* resource.kubernetes.io */
    DOMAIN_DRARUN,
    DOMAIN_NVIDIA,
    DOMAIN_DRANET,
    DOMAIN_DRIVER, /* the driver's own, which it may also leave out; may be one of the others */
    DOMAIN_COUNT,
};

struct device_attributes {
    const struct slice_device *slice;
    const json_t *values[ATTRIBUTE_COUNT][DOMAIN_COUNT]; /* borrowed; NULL: absent */
};

/* Attributes that we have no use for are left out. */
void device_attributes_read(const struct slice_device *slice,
                            struct device_attributes *ret_attributes);

const char *attribute_name_text(enum attribute_name name);

/* The value's text; NULL when it is absent, empty or something else. */
const char *attribute_text(const struct device_attributes *attributes, enum attribute_name name,
                           enum attribute_domain domain);

#endif
