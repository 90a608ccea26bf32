/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/device_json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

#define STANDARD "resource.kubernetes.io/"
#define OURS "drarun.dev/"
#define DRANET "dra.net/"
#define NVIDIA "gpu.nvidia.com/"

/* ---- values ---- */

bool version_normalize(const char *text, char *ret_version, size_t size)
{
    unsigned long part[3] = {0};
    const char *p = text;
    for (size_t i = 0; i < ARRAY_LEN(part); i++) {
        char *end;
        if (!isdigit((unsigned char)*p))
            return false;
        part[i] = strtoul(p, &end, 10);
        p = end;
        if (*p == '\0' && i > 0)
            break;
        if (i < 2 && *p++ != '.')
            return false;
    }
    if (*p != '\0')
        return false;
    snprintf(ret_version, size, "%lu.%lu.%lu", part[0], part[1], part[2]);
    return true;
}

void bytes_format(uint64_t bytes, char *ret_text, size_t size)
{
    static const char *const suffixes[] = {"", "Ki", "Mi", "Gi", "Ti"};
    size_t suffix = 0;
    while (bytes > 0 && bytes % 1024 == 0 && suffix + 1 < ARRAY_LEN(suffixes)) {
        bytes /= 1024;
        suffix++;
    }
    snprintf(ret_text, size, "%llu%s", (unsigned long long)bytes, suffixes[suffix]);
}

struct writer {
    json_t *attributes, *capacity;
    bool failed;
};

static void put(struct writer *w, const char *domain, const char *key, const char *type,
                json_t *value)
{
    char name[96];
    snprintf(name, sizeof name, "%s%s", domain, key);
    w->failed |=
        !value || json_object_set_new(w->attributes, name, json_pack("{s:o}", type, value));
}

/* Absent when it is not known. */
static void put_text(struct writer *w, const char *domain, const char *key, const char *text)
{
    char value[DEVICE_TEXT_MAX + 1];
    if (!text[0])
        return;
    snprintf(value, sizeof value, "%.*s", DEVICE_TEXT_MAX, text);
    put(w, domain, key, "string", json_string(value));
}

static void put_number(struct writer *w, const char *domain, const char *key, int64_t number)
{
    put(w, domain, key, "int", json_integer(number));
}

static void put_bool(struct writer *w, const char *domain, const char *key, bool value)
{
    put(w, domain, key, "bool", json_boolean(value));
}

static void put_version(struct writer *w, const char *domain, const char *key, const char *text)
{
    char version[64];
    if (version_normalize(text, version, sizeof version))
        put(w, domain, key, "version", json_string(version));
}

static void put_capacity(struct writer *w, const char *key, const char *quantity)
{
    w->failed |= json_object_set_new(w->capacity, key, json_pack("{s:s}", "value", quantity)) < 0;
}

/* ---- the place ---- */

/* Upstream's rules: no attribute where the address has more than four digits of domain, and no NUMA
 * node where sysfs says -1. */
static void put_place(struct writer *w, const struct node_pci *pci)
{
    if (!pci->known)
        return;
    if (pci->addr.domain <= 0xffff)
        put_text(w, STANDARD, "pciBusID", pci->bus_id);
    put_text(w, STANDARD, "pcieRoot", pci->root);
    if (pci->numa >= 0)
        put_number(w, STANDARD, "numaNode", pci->numa);
    put_text(w, OURS, "pcieSwitch", pci->pcie_switch);
}

/* ---- NICs ---- */

static bool is_infiniband(const struct node_device *device)
{
    return device->rdma.link == TOPO_LINK_IB || device->netdev.arp_type == 32;
}

static const char *link_layer(const struct node_device *device)
{
    if (is_infiniband(device))
        return "InfiniBand";
    if (device->rdma.name[0] && device->rdma.link == TOPO_LINK_OTHER)
        return "EFA";
    return device->netdev.name[0] || device->rdma.link == TOPO_LINK_ETHERNET ? "Ethernet" : "";
}

static uint32_t speed_of(const struct node_device *device)
{
    return device->rdma.rate_mbps ? device->rdma.rate_mbps : device->netdev.speed_mbps;
}

/* "active": it carries data now. "down": it was asked to and cannot. */
static const char *link_state(const struct node_device *device)
{
    if (device->rdma.active == TOPO_YES || device->netdev.carrier == TOPO_YES)
        return "active";
    if (device->netdev.carrier == TOPO_NO || device->rdma.active == TOPO_NO)
        return "down";
    return "";
}

/* RoCE v2 before v1, and of that what other networks can reach: IPv4, then IPv6, then fe80::/10. */
static unsigned rank_of(const struct topo_gid *gid)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (gid->type != TOPO_GID_ROCE2)
        return 0;
    if (memcmp(gid->bytes, mapped, sizeof mapped) == 0)
        return 3;
    return gid->bytes[0] == 0xfe && (gid->bytes[1] & 0xc0) == 0x80 ? 1 : 2;
}

/* The GID that NCCL and UCX would choose, the first of the best. */
static const struct topo_gid *best_gid(const struct node_rdma *rdma)
{
    const struct topo_gid *best = NULL;
    for (size_t i = 0; i < rdma->gid_count; i++)
        if (!best || rank_of(&rdma->gids[i]) > rank_of(best))
            best = &rdma->gids[i];
    return best;
}

static void put_gid(struct writer *w, const struct node_rdma *rdma)
{
    char text[48] = "";
    const struct topo_gid *gid = best_gid(rdma);
    if (!gid)
        return;
    for (size_t i = 0; i < 16; i += 2) {
        size_t len = strlen(text);
        snprintf(text + len, sizeof text - len, "%s%02x%02x", i ? ":" : "", gid->bytes[i],
                 gid->bytes[i + 1]);
    }
    put_text(w, OURS, "gid", text);
    put_number(w, OURS, "gidIndex", gid->index);
}

static void put_ours(struct writer *w, const struct node_device *device)
{
    uint32_t speed = speed_of(device);
    put_text(w, OURS, "rdmaDevice", device->rdma.name);
    put_text(w, OURS, "linkLayer", link_layer(device));
    put_text(w, OURS, "linkState", link_state(device));
    put_text(w, OURS, "firmware", device->rdma.firmware);
    put_gid(w, &device->rdma);
    if (device->rail >= 0)
        put_number(w, OURS, "rail", device->rail);
    if (device->rdma.ports > 1)
        put_number(w, OURS, "port", device->rdma.port);
    if (speed > 0)
        put_number(w, OURS, "speed", speed);
}

/* The names that lspci prints, of who makes RDMA NICs and of what virtual machines show. */
static const char *vendor_name(uint32_t vendor)
{
    static const struct {
        uint32_t id;
        const char *name;
    } names[] = {
        {0x15b3, "Mellanox Technologies"},
        {0x14e4, "Broadcom Inc. and subsidiaries"},
        {0x8086, "Intel Corporation"},
        {0x1d0f, "Amazon.com, Inc."},
        {0x1ae0, "Google, Inc."},
        {0x1dd8, "AMD Pensando Systems"},
        {0x1425, "Chelsio Communications Inc"},
        {0x1af4, "Red Hat, Inc."},
        {0x1ded, "Alibaba (China) Co., Ltd."},
        {0x1414, "Microsoft Corporation"},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i].id == vendor)
            return names[i].name;
    return "";
}

static void put_dranet_netdev(struct writer *w, const struct node_netdev *net)
{
    if (!net->name[0])
        return;
    put_text(w, DRANET, "ifName", net->name);
    put_text(w, DRANET, "mac", net->mac);
    if (net->mtu > 0)
        put_number(w, DRANET, "mtu", net->mtu);
    put_text(w, DRANET, "ipv4", net->ipv4);
    put_text(w, DRANET, "ipv6", net->ipv6);
    put_text(w, DRANET, "encapsulation", net->arp_type == 32 ? "infiniband" : "ether");
    put_text(w, DRANET, "state", net->up == TOPO_YES ? "up" : "down");
    put_text(w, DRANET, "type",
             net->kind[0]          ? net->kind
             : net->arp_type == 32 ? "ipoib"
                                   : "device");
}

static void put_dranet(struct writer *w, const struct node_device *device)
{
    const struct node_pci *pci = &device->pci;
    put_dranet_netdev(w, &device->netdev);
    put_bool(w, DRANET, "rdma", device->rdma.name[0]);
    put_bool(w, DRANET, "virtual", !pci->known);
    put_text(w, DRANET, "rdmaDevice", device->rdma.name);
    if (!pci->known)
        return;
    put_text(w, DRANET, "pciAddress", pci->bus_id);
    put_text(w, DRANET, "pciVendor", vendor_name(pci->vendor));
    if (pci->numa >= 0)
        put_number(w, DRANET, "numaNode", pci->numa);
    put_bool(w, DRANET, "sriov", pci->vfs_max > 0);
    if (pci->vfs_max > 0)
        put_number(w, DRANET, "sriovVfs", pci->vfs);
    if (pci->sriov == NODE_SRIOV_VF)
        put_bool(w, DRANET, "isSriovVf", true);
}

static void put_nic(struct writer *w, const struct node_device *device)
{
    char text[32];
    uint32_t speed = speed_of(device);
    put_ours(w, device);
    put_dranet(w, device);
    if (speed == 0)
        return;
    if (speed % 1000 == 0)
        snprintf(text, sizeof text, "%uG", speed / 1000);
    else
        snprintf(text, sizeof text, "%uM", speed);
    put_capacity(w, OURS "bandwidth", text);
}

/* ---- GPUs ---- */

static void put_gpu(struct writer *w, const struct node_device *device)
{
    char text[32];
    const struct node_gpu *gpu = &device->gpu;
    put_text(w, NVIDIA, "type", device->kind == NODE_DEVICE_MIG ? "mig" : "gpu");
    put_text(w, NVIDIA, "uuid", gpu->uuid);
    put_text(w, NVIDIA, "parentUUID", gpu->parent_uuid);
    put_text(w, NVIDIA, "profile", gpu->mig_profile);
    put_text(w, NVIDIA, "productName", gpu->product);
    put_text(w, NVIDIA, "brand", "Nvidia");
    put_text(w, NVIDIA, "architecture", gpu->architecture);
    put_version(w, NVIDIA, "cudaComputeCapability", gpu->compute);
    put_version(w, NVIDIA, "driverVersion", gpu->driver_version);
    put_version(w, NVIDIA, "cudaDriverVersion", gpu->cuda_version);
    if (gpu->minor >= 0)
        put_number(w, OURS, "minor", gpu->minor);
    if (gpu->nvlinks > 0)
        put_number(w, OURS, "nvlinks", gpu->nvlinks);
    if (gpu->memory == 0)
        return;
    bytes_format(gpu->memory, text, sizeof text);
    put_capacity(w, NVIDIA "memory", text);
}

/* ---- the whole ---- */

static json_t *taints_of(const struct node_device *device)
{
    json_t *taints = json_array();
    for (size_t i = 0; taints && i < device->fault_count; i++) {
        const struct node_fault *fault = &device->faults[i];
        json_t *taint = json_pack("{s:s, s:s}", "key", fault->key, "effect",
                                  fault->execute ? "NoExecute" : "NoSchedule");
        if (fault->value[0] && taint)
            json_object_set_new(taint, "value", json_string(fault->value));
        if (json_array_append_new(taints, taint) < 0) {
            json_decref(taints);
            return NULL;
        }
    }
    return taints;
}

json_t *device_json(const struct node_device *device)
{
    struct writer w = {json_object(), json_object(), false};
    json_t *result = json_pack("{s:s}", "name", device->name);
    put_place(&w, &device->pci);
    if (device->kind == NODE_DEVICE_NIC)
        put_nic(&w, device);
    else
        put_gpu(&w, device);
    w.failed |= !result || json_object_set_new(result, "attributes", TAKE_PTR(w.attributes)) < 0;
    if (json_object_size(w.capacity) > 0)
        w.failed |= json_object_set_new(result, "capacity", TAKE_PTR(w.capacity)) < 0;
    if (device->fault_count > 0)
        w.failed |= json_object_set_new(result, "taints", taints_of(device)) < 0;
    json_decref(w.attributes);
    json_decref(w.capacity);
    if (w.failed)
        json_decref(TAKE_PTR(result));
    return result;
}
