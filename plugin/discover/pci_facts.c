/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/topo/root.h"
#include "plugin/discover/discover_private.h"

#define BUS "sys/bus/pci/devices/"

/* The last component of what a link of the function leads to; "" when there is none. */
static void link_name(struct discovery *d, const char *bus_id, const char *link, char *ret_name,
                      size_t size)
{
    char path[128];
    struct buf real = BUF_INIT;
    snprintf(path, sizeof path, BUS "%s/%s", bus_id, link);
    ret_name[0] = '\0';
    int rc = root_resolve(d->root, path, &real, NULL);
    d->failed |= rc == -ENOMEM;
    if (rc == 0) {
        const char *slash = strrchr(real.data, '/');
        snprintf(ret_name, size, "%s", slash ? slash + 1 : real.data);
    }
    buf_done(&real);
}

/* A link that is there leads to an existing function. */
static bool function_link(struct discovery *d, const char *bus_id, const char *link,
                          char ret_name[PCI_ADDR_TEXT])
{
    char name[64];
    struct pci_addr addr;
    link_name(d, bus_id, link, name, sizeof name);
    if (strcmp(name, link) == 0 || pci_addr_parse(name, &addr, NULL) < 0)
        return false;
    pci_addr_format(addr, ret_name);
    return true;
}

static uint32_t count_of(struct discovery *d, const char *bus_id, const char *name)
{
    char path[128], text[32];
    snprintf(path, sizeof path, BUS "%s/%s", bus_id, name);
    if (root_read(d->root, path, text, sizeof text) <= 0 ||
        strspn(text, "0123456789") != strlen(text) || strlen(text) > 6)
        return 0;
    return (uint32_t)strtoul(text, NULL, 10);
}

/* As upstream's deviceattribute.GetPCIeRootAttributeByPCIBusID: the first component behind devices/
 * of where the function lies, which must begin with pci; none for other places (Hyper-V's), and for
 * addresses whose domain has not four digits. */
static void read_root(struct discovery *d, struct node_pci *pci)
{
    static const char start[] = "sys/devices/pci";
    char path[128];
    struct buf real = BUF_INIT;
    snprintf(path, sizeof path, BUS "%s", pci->bus_id);
    int rc = pci->addr.domain <= 0xffff ? root_resolve(d->root, path, &real, NULL) : -ENOENT;
    d->failed |= rc == -ENOMEM;
    if (rc == 0 && strncmp(real.data, start, sizeof start - 1) == 0) {
        const char *root = real.data + strlen("sys/devices/"), *end = strchr(root, '/');
        const char *last = strrchr(real.data, '/');
        if (end && strcmp(last + 1, pci->bus_id) == 0 && (size_t)(end - root) < sizeof pci->root)
            snprintf(pci->root, sizeof pci->root, "%.*s", (int)(end - root), root);
    }
    buf_done(&real);
}

/* A switch shows a bridge for its downstream port and one for its upstream port, which is its own;
 * the last bridge is the root port. Some virtual machines show the upstream port alone. */
static void read_switch(const struct pci_place *place, struct node_pci *pci)
{
    if (place->bridge_count >= 2)
        pci_addr_format(place->bridges[place->bridge_count >= 3 ? 1 : 0], pci->pcie_switch);
}

static uint32_t device_of(const struct discovery *d, const char *bus_id)
{
    struct pci_addr addr;
    size_t index =
        pci_addr_parse(bus_id, &addr, NULL) == 0 ? host_find_pci(d->host, addr) : TOPO_NONE;
    return index == TOPO_NONE ? 0 : d->host->pci[index].device;
}

static void read_sriov(struct discovery *d, struct node_pci *pci)
{
    pci->vfs_max = count_of(d, pci->bus_id, "sriov_totalvfs");
    pci->vfs = count_of(d, pci->bus_id, "sriov_numvfs");
    if (function_link(d, pci->bus_id, "physfn", pci->pf)) {
        pci->sriov = NODE_SRIOV_VF;
        pci->pf_device = device_of(d, pci->pf);
    } else if (pci->vfs_max > 0)
        pci->sriov = NODE_SRIOV_PF;
}

void pci_driver_read(struct discovery *d, size_t pci, char *ret_driver, size_t size)
{
    char bus_id[PCI_ADDR_TEXT];
    pci_addr_format(d->host->pci[pci].place.addr, bus_id);
    link_name(d, bus_id, "driver", ret_driver, size);
}

void pci_facts_read(struct discovery *d, size_t index, struct node_pci *ret_pci)
{
    *ret_pci = (struct node_pci){.numa = -1};
    if (index == TOPO_NONE)
        return;
    const struct topo_pci *pci = &d->host->pci[index];
    ret_pci->known = true;
    ret_pci->addr = pci->place.addr;
    ret_pci->numa = pci->place.numa;
    ret_pci->vendor = pci->vendor;
    ret_pci->device = pci->device;
    pci_addr_format(pci->place.addr, ret_pci->bus_id);
    read_root(d, ret_pci);
    read_switch(&pci->place, ret_pci);
    read_sriov(d, ret_pci);
    pci_driver_read(d, index, ret_pci->driver, sizeof ret_pci->driver);
}

bool pci_driver_is_passthrough(const char *driver)
{
    static const char *const names[] = {"vfio-pci", "uio_pci_generic", "igb_uio",
                                        "pci-stub", "pciback",         "xen-pciback"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(driver, names[i]) == 0)
            return true;
    return strstr(driver, "vfio") !=
           NULL; /* variants of a vendor: mlx5_vfio_pci, nvgrace_gpu_vfio */
}
