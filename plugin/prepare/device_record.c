/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/device_record.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"

/* One table for both ways: where a text or a number of the struct stands. */
struct part {
    const char *key;
    size_t offset, size; /* size 0: a uint32_t, else a text of so many bytes */
};

#define TEXT(key, member)                                                                          \
    {                                                                                              \
        key, offsetof(struct node_device, member), sizeof(((struct node_device *)0)->member)       \
    }
#define NUMBER(key, member)                                                                        \
    {                                                                                              \
        key, offsetof(struct node_device, member), 0                                               \
    }

static const struct part parts[] = {
    TEXT("name", name),
    NUMBER("port", port),
    TEXT("pciRoot", pci.root),
    TEXT("pcieSwitch", pci.pcie_switch),
    TEXT("kernelDriver", pci.driver),
    TEXT("pf", pci.pf),
    NUMBER("pfDevice", pci.pf_device),
    NUMBER("pciDevice", pci.device),
    TEXT("ifName", netdev.name),
    NUMBER("arpType", netdev.arp_type),
    TEXT("kind", netdev.kind),
    TEXT("mac", netdev.mac),
    NUMBER("mtu", netdev.mtu),
    NUMBER("speedMbps", netdev.speed_mbps),
    TEXT("rdma", rdma.name),
    NUMBER("rdmaPort", rdma.port),
    NUMBER("rdmaPorts", rdma.ports),
    NUMBER("rateMbps", rdma.rate_mbps),
    TEXT("guid", rdma.guid),
    TEXT("firmware", rdma.firmware),
    TEXT("board", rdma.board),
};

static json_t *part_get(const struct node_device *device, const struct part *part)
{
    const char *at = (const char *)device + part->offset;
    uint32_t number;
    if (part->size > 0)
        return *at ? json_string(at) : NULL;
    memcpy(&number, at, sizeof number);
    return number ? json_integer(number) : NULL;
}

/* Of an RDMA device that is in a pod the host shows none. */
static bool put_nodes(const struct node_rdma *rdma, json_t *record)
{
    json_t *nodes = json_array();
    bool ok = json_object_set_new(record, "nodes", nodes) == 0;
    for (size_t i = 0; ok && i < rdma->chardev_count; i++) {
        const struct node_chardev *node = &rdma->chardevs[i];
        ok = json_array_append_new(nodes, json_pack("{s:s, s:I, s:I}", "path", node->path, "major",
                                                    (json_int_t)node->major, "minor",
                                                    (json_int_t)node->minor)) == 0;
    }
    return ok;
}

static void read_nodes(const json_t *nodes, struct node_rdma *rdma)
{
    json_t *node;
    size_t i;
    json_array_foreach(nodes, i, node)
    {
        const char *path = json_string_value(json_object_get(node, "path"));
        if (rdma->chardev_count == NODE_CHARDEVS_MAX)
            return;
        struct node_chardev *to = &rdma->chardevs[rdma->chardev_count];
        if (!path || strlen(path) >= sizeof to->path)
            continue;
        rdma->chardev_count++;
        snprintf(to->path, sizeof to->path, "%s", path);
        to->major = (uint32_t)json_integer_value(json_object_get(node, "major"));
        to->minor = (uint32_t)json_integer_value(json_object_get(node, "minor"));
    }
}

json_t *device_record(const struct node_device *device)
{
    json_t *record = json_pack("{s:i, s:i, s:i, s:i, s:i}", "link", (int)device->rdma.link, "numa",
                               (int)device->pci.numa, "sriov", (int)device->pci.sriov, "rail",
                               (int)device->rail, "vendor", (int)device->pci.vendor);
    if (record && device->pci.known)
        json_object_set_new(record, "pci", json_string(device->pci.bus_id));
    if (record && device->kind != NODE_DEVICE_NIC)
        json_object_set_new(record, "gpu",
                            json_pack("{s:b, s:i, s:i}", "mig", device->kind == NODE_DEVICE_MIG,
                                      "gi", (int)device->gpu.mig_gi, "ci",
                                      (int)device->gpu.mig_ci));
    for (size_t i = 0; record && i < ARRAY_LEN(parts); i++) {
        json_t *value = part_get(device, &parts[i]);
        if (value && json_object_set_new(record, parts[i].key, value) < 0) {
            json_decref(record);
            return NULL;
        }
    }
    if (record && device->rdma.chardev_count > 0 && !put_nodes(&device->rdma, record)) {
        json_decref(record);
        return NULL;
    }
    return record;
}

static void part_set(struct node_device *device, const struct part *part, const json_t *value)
{
    char *at = (char *)device + part->offset;
    uint32_t number = (uint32_t)json_integer_value(value);
    if (part->size == 0)
        memcpy(at, &number, sizeof number);
    else if (json_is_string(value))
        snprintf(at, part->size, "%s", json_string_value(value));
}

static void read_gpu(const json_t *gpu, struct node_device *device)
{
    device->kind = json_is_true(json_object_get(gpu, "mig")) ? NODE_DEVICE_MIG : NODE_DEVICE_GPU;
    device->gpu.minor = -1;
    device->gpu.mig_gi = (int32_t)json_integer_value(json_object_get(gpu, "gi"));
    device->gpu.mig_ci = (int32_t)json_integer_value(json_object_get(gpu, "ci"));
}

bool device_record_read(const json_t *record, struct node_device *ret_device)
{
    struct node_device device = {.kind = NODE_DEVICE_NIC, .lost = false};
    const char *pci = json_string_value(json_object_get(record, "pci"));
    if (pci && pci_addr_parse(pci, &device.pci.addr, NULL) < 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        part_set(&device, &parts[i], json_object_get(record, parts[i].key));
    if (!device.name[0])
        return false;
    device.pci.known = pci;
    if (pci)
        snprintf(device.pci.bus_id, sizeof device.pci.bus_id, "%s", pci);
    device.pci.numa = (int32_t)json_integer_value(json_object_get(record, "numa"));
    device.pci.vendor = (uint32_t)json_integer_value(json_object_get(record, "vendor"));
    device.pci.sriov = (enum node_sriov)json_integer_value(json_object_get(record, "sriov"));
    device.rdma.link = (enum topo_link)json_integer_value(json_object_get(record, "link"));
    device.rail = (int32_t)json_integer_value(json_object_get(record, "rail"));
    read_nodes(json_object_get(record, "nodes"), &device.rdma);
    if (json_object_get(record, "gpu"))
        read_gpu(json_object_get(record, "gpu"), &device);
    *ret_device = device;
    return true;
}
