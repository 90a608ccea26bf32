/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that is known, for programs; what is not known is null. */
#include "launcher/topo/view.h"
#include "lib/doc/value.h"
#include "lib/inspect/port_json.h"

static void set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static json_t *number_or_null(int64_t value, bool known)
{
    return known ? json_integer(value) : json_null();
}

static json_t *tri(enum topo_tri value)
{
    return value == TOPO_UNKNOWN ? json_null() : json_boolean(value == TOPO_YES);
}

static json_t *address(struct pci_addr addr)
{
    char text[PCI_ADDR_TEXT];
    pci_addr_format(addr, text);
    return json_string(text);
}

static json_t *address_of(const struct topo_host *host, size_t index)
{
    bool known = index != TOPO_NONE && !host->pci[index].place.addr_unknown;
    return known ? address(host->pci[index].place.addr) : json_null();
}

static json_t *hex_or_null(uint32_t value, int digits)
{
    char text[16];
    snprintf(text, sizeof text, "0x%0*x", digits, value);
    return value ? json_string(text) : json_null();
}

static json_t *pci_json(const struct topo_pci *pci)
{
    json_t *object = json_object(), *bridges = json_array();
    for (size_t i = 0; i < pci->place.bridge_count; i++)
        json_array_append_new(bridges, address(pci->place.bridges[i]));
    set(object, "address", pci->place.addr_unknown ? json_null() : address(pci->place.addr));
    set(object, "class", hex_or_null(pci->class_code, 6));
    set(object, "vendor", hex_or_null(pci->vendor, 4));
    set(object, "device", hex_or_null(pci->device, 4));
    set(object, "numaNode", number_or_null(pci->place.numa, pci->place.numa >= 0));
    set(object, "pcieRoot", value_of_text(pci->place.root));
    set(object, "bridges", pci->place.chain_known ? bridges : json_null());
    if (!pci->place.chain_known)
        json_decref(bridges);
    set(object, "megaTransfers", number_or_null(pci->speed_mts, pci->speed_mts > 0));
    set(object, "maxMegaTransfers", number_or_null(pci->max_speed_mts, pci->max_speed_mts > 0));
    set(object, "width", number_or_null(pci->width, pci->width > 0));
    set(object, "maxWidth", number_or_null(pci->max_width, pci->max_width > 0));
    return object;
}

static json_t *gpu_json(const struct topo_view *view, size_t index)
{
    const struct topo_gpu *gpu = &view->host->gpus[index];
    json_t *object = json_object(), *paths = json_object(), *paired = json_array();
    for (size_t n = 0; n < view->nic_count; n++)
        set(paths, view->nics[n].name, json_string(topo_path_name(view_path(view, index, n))));
    for (size_t i = 0; i < view->link_count; i++)
        if (view->links[i].gpu == index)
            json_array_append_new(paired, json_string(view->nics[view->links[i].nic].name));
    set(object, "pciBusID", address_of(view->host, gpu->pci));
    set(object, "vendor", json_string(gpu->vendor));
    set(object, "product", value_of_text(gpu->product));
    set(object, "uuid", value_of_text(gpu->uuid));
    set(object, "minor", number_or_null(gpu->minor, gpu->minor >= 0));
    set(object, "usable", tri(gpu->usable));
    set(object, "paths", paths);
    set(object, "nics", paired);
    return object;
}

static json_t *nic_json(const struct topo_view *view, const struct view_nic *nic)
{
    const struct topo_rdma *rdma = nic->rdma;
    json_t *object = json_object(), *ports = json_array();
    char reason[256];
    data_nic_reason(&nic->data, reason, sizeof reason);
    for (size_t i = 0; rdma && i < rdma->port_count; i++)
        json_array_append_new(ports, port_json(&rdma->ports[i], SIZE_MAX));
    set(object, "name", json_string(nic->name));
    set(object, "pciBusID", address_of(view->host, nic->pci));
    set(object, "rdma", json_boolean(rdma != NULL));
    set(object, "netdev", value_of_text(nic->net ? nic->net->name : NULL));
    set(object, "rateMbps", number_or_null(nic->mbps, nic->mbps > 0));
    set(object, "usable", tri(nic->usable));
    set(object, "data", json_boolean(nic->data.use == NIC_USE_DATA));
    set(object, "leftOut", value_of_text(nic->data.use == NIC_USE_DATA ? NULL : reason));
    set(object, "uverbs", value_of_text(rdma ? rdma->uverbs : NULL));
    set(object, "nodeGuid", value_of_text(rdma ? rdma->node_guid : NULL));
    set(object, "firmware", value_of_text(rdma ? rdma->firmware : NULL));
    set(object, "board", value_of_text(rdma ? rdma->board : NULL));
    set(object, "ports", ports);
    return object;
}

static json_t *netdev_json(const struct topo_host *host, const struct topo_netdev *net)
{
    json_t *object = json_object();
    set(object, "name", json_string(net->name));
    set(object, "pciBusID", address_of(host, net->pci));
    set(object, "mac", value_of_text(net->mac));
    set(object, "mtu", number_or_null(net->mtu, net->mtu > 0));
    set(object, "speedMbps", number_or_null(net->speed_mbps, net->speed_mbps > 0));
    set(object, "up", tri(net->up));
    return object;
}

static json_t *numas_json(const struct topo_host *host)
{
    json_t *list = json_array();
    for (size_t i = 0; i < host->numa_count; i++) {
        json_t *object = json_object();
        set(object, "id", json_integer(host->numas[i].id));
        set(object, "cpus", json_string(host->numas[i].cpulist));
        json_array_append_new(list, object);
    }
    return list;
}

/* Unlimited is null beside known: true, as JSON has no such number. */
static json_t *limits_json(const struct topo_limits *limits)
{
    bool memlock = limits->memlock_known == TOPO_YES, shm = limits->shm_mounted == TOPO_YES;
    json_t *object = json_object();
    set(object, "memlockKnown", json_boolean(memlock));
    set(object, "memlockBytes",
        number_or_null((int64_t)limits->memlock, memlock && limits->memlock <= INT64_MAX));
    set(object, "shmBytes", number_or_null((int64_t)limits->shm_bytes, shm));
    set(object, "shmInMemory", shm ? json_boolean(limits->shm_memory) : json_null());
    set(object, "cpuset", value_of_text(limits->cpuset));
    set(object, "memoryLimited", tri(limits->memory_limited));
    set(object, "memoryBytes",
        number_or_null((int64_t)limits->memory_max, limits->memory_limited == TOPO_YES));
    return object;
}

static json_t *machine_json(const struct topo_host *host)
{
    json_t *object = json_object(), *channels = json_array();
    for (size_t i = 0; i < host->imex_count; i++)
        json_array_append_new(channels, json_integer(host->imex_channels[i]));
    set(object, "name", value_of_text(host->machine));
    set(object, "kernel", value_of_text(host->kernel));
    set(object, "arch", value_of_text(host->arch));
    set(object, "cpuVendor", value_of_text(host->cpu_vendor));
    set(object, "cpuFamily", number_or_null(host->cpu_family, host->cpu_family >= 0));
    set(object, "cpuModel", number_or_null(host->cpu_model, host->cpu_model >= 0));
    set(object, "cpus", value_of_text(host->cpus));
    set(object, "nvidiaDriver", value_of_text(host->driver));
    set(object, "nvidiaOpenModules", tri(host->driver_open));
    set(object, "nvidiaNodes", json_integer((json_int_t)host->nvidia_nodes));
    set(object, "nvswitches", json_integer((json_int_t)host->nvswitch_count));
    set(object, "peermem", tri(host->peermem));
    set(object, "dmabufInferred", tri(host->dmabuf));
    set(object, "c2cInferred", tri(host->c2c));
    set(object, "rdmaCm", tri(host->rdma_cm));
    set(object, "imexChannels", channels);
    return object;
}

json_t *topo_json(const struct topo_view *view)
{
    const struct topo_host *host = view->host;
    json_t *object = json_object(), *pci = json_array(), *gpus = json_array(), *nics = json_array();
    json_t *netdevs = json_array(), *warnings = json_array();
    for (size_t i = 0; i < host->pci_count; i++)
        json_array_append_new(pci, pci_json(&host->pci[i]));
    for (size_t i = 0; i < host->gpu_count; i++)
        json_array_append_new(gpus, gpu_json(view, i));
    for (size_t i = 0; i < view->nic_count; i++)
        json_array_append_new(nics, nic_json(view, &view->nics[i]));
    for (size_t i = 0; i < host->netdev_count; i++)
        json_array_append_new(netdevs, netdev_json(host, &host->netdevs[i]));
    for (size_t i = 0; i < host->warnings.count; i++)
        json_array_append_new(warnings, json_string(host->warnings.items[i]));
    set(object, "fromAttributes", json_boolean(host->partial));
    set(object, "machine", machine_json(host));
    set(object, "numaNodes", numas_json(host));
    set(object, "gpus", gpus);
    set(object, "nics", nics);
    set(object, "netdevs", netdevs);
    set(object, "pci", pci);
    set(object, "limits", limits_json(&host->limits));
    set(object, "warnings", warnings);
    return object;
}
