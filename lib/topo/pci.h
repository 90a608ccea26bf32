/* SPDX-License-Identifier: Apache-2.0 */
/* PCI addresses and the distance of two functions. Pure. */
#ifndef DRARUN_TOPO_PCI_H
#define DRARUN_TOPO_PCI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"

struct pci_addr {
    uint32_t domain; /* Hyper-V and VMD have ones above 16 bits */
    uint8_t bus, device, function;
};

#define PCI_ADDR_TEXT 24 /* "ffffffff:ff:1f.7" */
#define PCI_ROOT_TEXT 24 /* "pciffffffff:ff" */
#define PCI_BRIDGES_MAX 32u

/* "0000:8f:00.0", also with more domain digits, capitals, and without a domain ("8f:00.0", as lspci
 * prints): -EINVAL, naming what is expected, for anything else. */
int pci_addr_parse(const char *text, struct pci_addr *ret_addr, struct drarun_error *err);
/* As sysfs writes it: lower case, at least four domain digits. */
void pci_addr_format(struct pci_addr addr, char text[PCI_ADDR_TEXT]);
int pci_addr_compare(struct pci_addr a, struct pci_addr b);
/* Host bridge in the way of sysfs and of the DRA attribute pcieRoot: "pci0000:8c". */
bool pci_root_valid(const char *text);

/* "32.0 GT/s PCIe", "16 GT/s": mega-transfers a second; 0 for "Unknown" and all else. */
uint32_t pci_speed_parse(const char *text);

/* Where a function hangs. */
struct pci_place {
    struct pci_addr addr;
    bool addr_unknown;        /* addr tells nothing (from attributes) */
    int32_t numa;             /* -1: not known */
    char root[PCI_ROOT_TEXT]; /* "pci0000:8c"; "": not known */
    bool chain_known;         /* false: the bridges are not known (from attributes) */
    struct pci_addr *bridges; /* nearest first, up to the root port; owned */
    size_t bridge_count;
};

/* Best first; the names are those of `nvidia-smi topo -m`. */
enum topo_path {
    TOPO_PATH_UNKNOWN = 0,
    TOPO_PATH_SELF, /* the same function */
    TOPO_PATH_PIX,  /* at most one PCIe switch between */
    TOPO_PATH_PXB,  /* several switches, no host bridge */
    TOPO_PATH_P2C,  /* by the chip-to-chip link to the CPU, and PCIe below it */
    TOPO_PATH_ROOT, /* below one host bridge, switches not known: PIX, PXB or PHB */
    TOPO_PATH_PHB,  /* through one host bridge */
    TOPO_PATH_NODE, /* through host bridges of one NUMA node */
    TOPO_PATH_SYS,  /* between NUMA nodes */
};
#define TOPO_PATH_COUNT (TOPO_PATH_SYS + 1)

/* c2c: one of the two has a chip-to-chip link to its CPU, which PCI does not show: within its NUMA
 * node the path is then P2C. numa_nodes: how many the machine has; with one, an unknown node is
 * that one. Symmetric. UNKNOWN where neither bridges, root nor nodes decide. */
enum topo_path pci_path(const struct pci_place *a, const struct pci_place *b, bool c2c,
                        size_t numa_nodes);
const char *topo_path_name(enum topo_path path); /* "PIX"; "?" for unknown */

/* Whether the last PCI function in a link-free sysfs path exists: fills addr, root and bridges of
 * a place (numa -1, chain_known); 0, -ENOENT when the path has no function, -ENOMEM. Components
 * that are no addresses (virtio0, net) are passed over. */
int pci_place_from_path(const char *path, struct pci_place *ret_place, struct drarun_error *err);
void pci_place_done(struct pci_place *place);

#endif
