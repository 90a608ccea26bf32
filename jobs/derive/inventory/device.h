/* SPDX-License-Identifier: Apache-2.0 */
/* One DRA device in a form that knows no driver: what it is and where it sits. Read from the
 * attributes that the drivers have published over their history (docs/design/011-derivation.md),
 * never from the device's name. Pure. */
#ifndef DRARUN_JOBS_DEVICE_H
#define DRARUN_JOBS_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/dra/slices.h"

enum device_kind {
    DEVICE_OTHER = 1,
    DEVICE_GPU,
    DEVICE_MIG,
    DEVICE_NIC,
    DEVICE_CHANNEL, /* an IMEX channel of a compute domain */
};

#define PCI_NONE UINT64_MAX

struct device {
    const struct slice_device *slice; /* NULL: seen in the pod, not in a slice */
    enum device_kind kind;
    const char *name; /* texts are borrowed from the slice */
    uint64_t pci;     /* domain << 16 | bus << 8 | device << 3 | function; PCI_NONE */
    const char *root; /* pcieRoot, as pci0000:8c; NULL */
    int32_t numa;     /* -1 unknown */
    int32_t index;    /* a GPU's index or minor, -1 unknown */
    const char *uuid, *parent, *product;
    const char *vendor; /* of a GPU: NVIDIA, AMD, Intel; NULL: not known */
    bool ats;           /* addressingMode ATS: GPU and CPU share memory over a chip-to-chip link */
    bool rdma;          /* a NIC that does RDMA */
    const char *ibdev;  /* rdmaDevice */
    const char *ifname; /* on the host */
    const char *pod_name; /* its interface in the pod, from the claim's status */
    bool addressed;       /* that has an IP address */
    bool encap_ib;        /* encapsulation infiniband */
    uint32_t port;        /* of an RDMA device with several, which it is; 0: all of them */
    bool has_rail;        /* its driver numbers the rails of its node */
    uint32_t rail;
};

/* -EINVAL when attributes contradict each other or are malformed; the text names device and key. */
int device_read(const struct slice_device *slice, struct device *ret_device,
                struct drarun_error *err);

/* Takes from other what device does not know. */
void device_fill(struct device *device, const struct device *other);

/* "0000:8f:00.0" or "8f:00.0"; PCI_NONE when it is something else. */
uint64_t pci_parse(const char *text);
/* At least 14 bytes. */
void pci_format(uint64_t pci, char *text, size_t size);

#endif
