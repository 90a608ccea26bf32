/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/inspect/probe_json.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/inspect/members.h"
#include "lib/inspect/port_json.h"
#include "lib/topo/default_route.h"
#include "lib/topo/root.h"

static void set_place(json_t *object, const struct topo_host *host, size_t pci)
{
    if (pci == TOPO_NONE)
        return;
    const struct pci_place *place = &host->pci[pci].place;
    char text[PCI_ADDR_TEXT];
    pci_addr_format(place->addr, text);
    member_text(object, "pci", text);
    member_text(object, "root", place->root);
    if (place->numa >= 0)
        json_object_set_new(object, "numa", json_integer(place->numa));
}

/* ---- NICs ---- */

/* Of other namespaces' GIDs a few tell that there are some; a node of many pods has hundreds. */
#define OTHERS_MAX 8u

static json_t *ibdev_json(const struct topo_host *host, const struct topo_rdma *rdma)
{
    const struct topo_netdev *netdev = host_netdev_of(host, rdma);
    json_t *object = json_object(), *ports = json_array();
    set_place(object, host, rdma->pci);
    if (netdev)
        member_text(object, "netdev", netdev->name);
    member_text(object, "uplink", host_uplink_of(host, rdma));
    if (rdma->iwarp)
        json_object_set_new(object, "iwarp", json_true());
    for (size_t i = 0; i < rdma->port_count; i++)
        json_array_append_new(ports, port_json(&rdma->ports[i], OTHERS_MAX));
    json_object_set_new(object, "ports", ports);
    return object;
}

/* A device whose verbs node is not in the pod cannot be opened: libibverbs drops it too. */
static void add_ibdevs(json_t *probe, const struct topo_host *host)
{
    json_t *ibdevs = json_object(), *visible = json_array();
    for (size_t i = 0; i < host->rdma_count; i++) {
        const struct topo_rdma *rdma = &host->rdmas[i];
        if (rdma->usable == TOPO_NO || rdma->pci == TOPO_NONE)
            continue;
        json_object_set_new(ibdevs, rdma->name, ibdev_json(host, rdma));
        json_array_append_new(visible, json_string(rdma->name));
    }
    json_object_set_new(probe, "ibdevs", ibdevs);
    json_object_set_new(probe, "visibleIbdevs", visible);
}

/* ---- GPUs ---- */

/* Of a machine with graphics beside its accelerators NVIDIA's count, else AMD's where its driver is
 * there; NULL: none that NCCL or RCCL drives. */
static const char *chosen_vendor(const struct topo_host *host, int root)
{
    bool amd = false;
    for (size_t i = 0; i < host->gpu_count; i++) {
        const struct topo_gpu *gpu = &host->gpus[i];
        if (gpu->usable != TOPO_NO && strcmp(gpu->vendor, "NVIDIA") == 0)
            return gpu->vendor;
        amd |= strcmp(gpu->vendor, "AMD") == 0;
    }
    cleanup_close int kfd = amd ? root_open(root, "dev/kfd", O_PATH, NULL) : -1;
    return kfd >= 0 ? "AMD" : NULL;
}

/* How many there are of the vendors whose GPUs are not used. */
static void add_other_gpus(json_t *probe, const struct topo_host *host)
{
    json_t *others = json_object();
    for (size_t i = 0; i < host->gpu_count; i++) {
        const char *vendor = host->gpus[i].vendor;
        if (strcmp(vendor, "NVIDIA") == 0 || strcmp(vendor, "AMD") == 0)
            continue;
        json_int_t count = json_integer_value(json_object_get(others, vendor));
        json_object_set_new(others, vendor, json_integer(count + 1));
    }
    json_object_set_new(probe, "otherGpus", others);
}

static void add_gpus(json_t *probe, const struct topo_host *host, int root)
{
    json_t *gpus = json_array();
    const char *vendor = chosen_vendor(host, root);
    for (size_t i = 0; vendor && i < host->gpu_count; i++) {
        const struct topo_gpu *gpu = &host->gpus[i];
        if (gpu->usable == TOPO_NO || strcmp(gpu->vendor, vendor) != 0)
            continue;
        json_t *object = json_object();
        set_place(object, host, gpu->pci);
        member_text(object, "uuid", gpu->uuid);
        member_text(object, "product", gpu->product);
        member_text(object, "vendor", gpu->vendor);
        member_text(object, "hip", gpu->hip);
        if (gpu->usable == TOPO_YES) /* no others but those of which it is not known */
            json_object_set_new(object, "usable", json_true());
        json_array_append_new(gpus, object);
    }
    json_object_set_new(probe, "visibleGpus", json_integer((json_int_t)json_array_size(gpus)));
    json_object_set_new(probe, "gpus", gpus);
}

static void add_paths(json_t *probe, const struct topo_host *host)
{
    json_t *paths = json_object(), *numas = json_object();
    for (size_t g = 0; g < host->gpu_count; g++) {
        char gpu[PCI_ADDR_TEXT], nic[PCI_ADDR_TEXT];
        const struct pci_place *place = &host->pci[host->gpus[g].pci].place;
        json_t *row = json_object();
        pci_addr_format(place->addr, gpu);
        for (size_t r = 0; r < host->rdma_count; r++) {
            size_t pci = host->rdmas[r].pci;
            enum topo_path path = host_path(host, host->gpus[g].pci, pci, false);
            if (pci == TOPO_NONE || path == TOPO_PATH_UNKNOWN || path == TOPO_PATH_ROOT)
                continue;
            pci_addr_format(host->pci[pci].place.addr, nic);
            member_text(row, nic, topo_path_name(path));
        }
        json_object_set_new(paths, gpu, row);
        if (place->numa >= 0)
            json_object_set_new(numas, gpu, json_integer(place->numa));
    }
    json_object_set_new(probe, "paths", paths);
    json_object_set_new(probe, "pciNuma", numas);
}

/* ---- the rest ---- */

static void add_cpus(json_t *probe, const struct topo_host *host)
{
    json_t *numas = json_object();
    for (size_t i = 0; i < host->numa_count; i++) {
        char key[16];
        snprintf(key, sizeof key, "%u", host->numas[i].id);
        if (host->numas[i].id < 64)
            member_text(numas, key, host->numas[i].cpulist);
    }
    json_object_set_new(probe, "numaCpus", numas);
    member_text(probe, "cpuset", host->limits.cpuset);
}

/* Mirrors NCCL's constants (src/graph/topo.h) for the CPUs that it tells apart. */
static void add_inter_socket(json_t *probe, const struct topo_host *host)
{
    double gbs = 10;
    if (host->arch && strcmp(host->arch, "arm64") == 0)
        gbs = 6;
    else if (host->cpu_vendor && strcmp(host->cpu_vendor, "AuthenticAMD") == 0)
        gbs = 16;
    else if (host->cpu_family == 6 && host->cpu_model >= 0xCF)
        gbs = 40;
    else if (host->cpu_family == 6 && host->cpu_model >= 0x8F)
        gbs = 22;
    json_object_set_new(probe, "interSocketGBs", json_real(gbs));
}

#define USUAL_INTERFACE "eth0" /* what is taken for it where nothing is told */

static bool has_netdev(const struct topo_host *host, const char *name)
{
    for (size_t i = 0; i < host->netdev_count; i++)
        if (strcmp(host->netdevs[i].name, name) == 0)
            return true;
    return false;
}

/* The interface by which the pod, or a host, is reached: that of its default route. Routers give a
 * host's NICs one each with IPv6, all with the same metric. */
static void add_pod_interface(json_t *probe, const struct topo_host *host, int root)
{
    struct strlist names = STRLIST_INIT;
    if (default_routes_read(root, false, &names, NULL) == 0 && names.count == 0)
        default_routes_read(root, true, &names, NULL);
    if (names.count == 1 || (names.count > 1 && !has_netdev(host, USUAL_INTERFACE)))
        member_text(probe, "podInterface", names.items[0]);
    strlist_done(&names);
}

static void add_imex_channels(json_t *probe, const struct topo_host *host)
{
    json_t *channels = json_array();
    for (size_t i = 0; i < host->imex_count; i++)
        json_array_append_new(channels, json_integer(host->imex_channels[i]));
    json_object_set_new(probe, "imexChannels", channels);
}

static void add_files(json_t *probe, int root, const struct strlist *paths)
{
    json_t *files = json_object();
    for (size_t i = 0; i < paths->count; i++) {
        cleanup_close int fd = root_open(root, paths->items[i], O_PATH, NULL);
        json_object_set_new(files, paths->items[i], json_boolean(fd >= 0));
    }
    json_object_set_new(probe, "files", files);
}

json_t *probe_json(const struct topo_host *host, int root, const struct strlist *files)
{
    json_t *probe = json_object(), *gdr = json_object();
    add_ibdevs(probe, host);
    add_gpus(probe, host, root);
    add_other_gpus(probe, host);
    add_paths(probe, host);
    add_cpus(probe, host);
    add_inter_socket(probe, host);
    add_imex_channels(probe, host);
    add_pod_interface(probe, host, root);
    add_files(probe, root, files);
    member_tri(gdr, "peermem", host->peermem);
    member_tri(gdr, "dmabuf", host->dmabuf);
    json_object_set_new(probe, "gdr", gdr);
    if (host->nvswitch_count > 0)
        json_object_set_new(probe, "nvlink", json_true());
    return probe;
}
