/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/slices/table.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS 9u
#define CELL 64u

static void cell(char *to, const char *text)
{
    snprintf(to, CELL, "%s", text[0] ? text : "-");
}

static void nic_cells(const struct node_device *device, char cells[COLUMNS][CELL])
{
    uint32_t mbps = device->rdma.rate_mbps ? device->rdma.rate_mbps : device->netdev.speed_mbps;
    cell(cells[5], device->netdev.name);
    cell(cells[6], device->rdma.name);
    cell(cells[7], "");
    if (mbps > 0)
        snprintf(cells[7], CELL, "%g Gb/s", mbps / 1000.0);
}

static void gpu_cells(const struct node_device *device, char cells[COLUMNS][CELL])
{
    snprintf(cells[5], CELL, "%.60s", device->gpu.product[0] ? device->gpu.product : "-");
    cell(cells[6], device->gpu.uuid);
    cell(cells[7], "");
    if (device->gpu.memory > 0)
        snprintf(cells[7], CELL, "%llu MiB", (unsigned long long)(device->gpu.memory >> 20));
}

static void row(const struct node_device *device, char cells[COLUMNS][CELL])
{
    cell(cells[0], device->name);
    cell(cells[1], node_device_kind_name(device->kind));
    cell(cells[2], device->pci.root);
    cell(cells[3], device->pci.pcie_switch);
    cell(cells[4], "");
    if (device->pci.numa >= 0)
        snprintf(cells[4], CELL, "%d", device->pci.numa);
    (device->kind == NODE_DEVICE_NIC ? nic_cells : gpu_cells)(device, cells);
    snprintf(cells[8], CELL, "%.63s", device->fault_count ? device->faults[0].text : "ok");
}

static void widen(size_t widths[COLUMNS], char cells[COLUMNS][CELL])
{
    for (size_t i = 0; i < COLUMNS; i++)
        if (strlen(cells[i]) > widths[i])
            widths[i] = strlen(cells[i]);
}

static void print(const size_t widths[COLUMNS], char cells[COLUMNS][CELL], struct buf *out)
{
    for (size_t i = 0; i + 1 < COLUMNS; i++)
        buf_printf(out, "%-*s  ", (int)widths[i], cells[i]);
    buf_printf(out, "%s\n", cells[COLUMNS - 1]);
}

void devices_table(const struct node_devices *devices, struct buf *out)
{
    char head[COLUMNS][CELL] = {"NAME",      "KIND",         "PCIEROOT",
                                "SWITCH",    "NUMA",         "INTERFACE/PRODUCT",
                                "RDMA/UUID", "SPEED/MEMORY", "STATE"};
    char cells[COLUMNS][CELL];
    size_t widths[COLUMNS] = {0};
    widen(widths, head);
    for (size_t i = 0; i < devices->count; i++) {
        row(&devices->list[i], cells);
        widen(widths, cells);
    }
    print(widths, head, out);
    for (size_t i = 0; i < devices->count; i++) {
        row(&devices->list[i], cells);
        print(widths, cells, out);
    }
}
