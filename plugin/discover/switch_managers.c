/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/switch_managers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/topo/root.h"
#include "plugin/discover/discover_private.h"

#define VENDOR_MELLANOX 0x15b3u
#define CLASS_INFINIBAND 0x0207u
#define VPD_MAX 2048u   /* that of a NIC has some hundred bytes */
#define READINGS_MAX 3u /* that fail: a function that is being reset cannot be read for a while */

static const char mark[] = "SW_MNG";

void switch_managers_done(struct switch_managers *known)
{
    strlist_done(&known->managers);
    strlist_done(&known->others);
    strlist_done(&known->failed);
}

static bool fails_for_good(struct switch_managers *known, const char *bus_id)
{
    size_t count = 0;
    strlist_add(&known->failed, bus_id);
    for (size_t i = 0; i < known->failed.count; i++)
        count += strcmp(known->failed.items[i], bus_id) == 0;
    return count >= READINGS_MAX;
}

static bool may_be(struct discovery *d, const struct topo_pci *pci, const char *bus_id)
{
    char path[128];
    struct buf real = BUF_INIT;
    if (pci->vendor != VENDOR_MELLANOX || pci->class_code >> 8 != CLASS_INFINIBAND)
        return false;
    snprintf(path, sizeof path, "sys/bus/pci/devices/%s/physfn", bus_id);
    int rc = root_resolve(d->root, path, &real, NULL);
    d->failed |= rc == -ENOMEM;
    buf_done(&real);
    return rc < 0;
}

bool discover_is_switch_manager(struct discovery *d, size_t pci)
{
    struct switch_managers *known = d->source->managers;
    char bus_id[PCI_ADDR_TEXT], path[128];
    struct buf vpd = BUF_INIT;
    pci_addr_format(d->host->pci[pci].place.addr, bus_id);
    if ((known && strlist_has(&known->others, bus_id)) || !may_be(d, &d->host->pci[pci], bus_id))
        return false;
    if (known && strlist_has(&known->managers, bus_id))
        return true;
    snprintf(path, sizeof path, "sys/bus/pci/devices/%s/vpd", bus_id);
    int rc = root_read_whole(d->root, path, VPD_MAX, &vpd);
    bool read = rc == 0 || rc == -EFBIG;
    bool found = read && vpd.len > 0 && memmem(vpd.data, vpd.len, mark, sizeof mark - 1);
    d->failed |= rc == -ENOMEM;
    if (known && (read || (rc != -ENOMEM && fails_for_good(known, bus_id))))
        strlist_add(found ? &known->managers : &known->others, bus_id);
    buf_done(&vpd);
    return found;
}
