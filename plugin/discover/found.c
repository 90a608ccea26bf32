/* SPDX-License-Identifier: Apache-2.0 */
/* What discovery adds to its result: devices, warnings, its error. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "plugin/discover/discover_private.h"
#include "lib/base/error.h"

int discover_nomem(struct discovery *d)
{
    return error_set(d->err, ENOMEM, "discovery: out of memory");
}

void discover_warn(struct discovery *d, const char *format, ...)
{
    char line[300];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (char *p = line; *p; p++)
        if (iscntrl((unsigned char)*p) || (unsigned char)*p > 0x7e)
            *p = '?';
    if (d->devices->warnings.count < TOPO_WARNINGS_MAX)
        strlist_add(&d->devices->warnings, line);
}

/* "pci-0000-8f-00-0" for a NIC, which is DraNet's name; "gpu-0000-8f-00-0". */
static void name_by_address(struct node_device *device)
{
    snprintf(device->name, sizeof device->name, "%s-%s",
             device->kind == NODE_DEVICE_NIC ? "pci" : "gpu", device->pci.bus_id);
    for (char *p = device->name; *p; p++)
        if (*p == ':' || *p == '.')
            *p = '-';
}

struct node_device *discover_add(struct discovery *d, enum node_device_kind kind, size_t pci)
{
    struct node_device *device = node_devices_add(d->devices);
    if (!device) {
        discover_nomem(d);
        return NULL;
    }
    device->kind = kind;
    device->rail = -1;
    pci_facts_read(d, pci, &device->pci);
    if (device->pci.known)
        name_by_address(device);
    return device;
}
