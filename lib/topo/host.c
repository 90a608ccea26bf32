/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/topo/host.h"

#include <stdlib.h>
#include <string.h>

static void rdma_done(struct topo_rdma *rdma)
{
    for (size_t i = 0; i < rdma->port_count; i++)
        free(rdma->ports[i].gids);
    free(rdma->ports);
    free(rdma->node_guid);
    free(rdma->firmware);
    free(rdma->board);
}

static void devices_done(struct topo_host *host)
{
    for (size_t i = 0; i < host->pci_count; i++)
        pci_place_done(&host->pci[i].place);
    for (size_t i = 0; i < host->gpu_count; i++) {
        free(host->gpus[i].hip);
        free(host->gpus[i].product);
        free(host->gpus[i].uuid);
    }
    for (size_t i = 0; i < host->rdma_count; i++)
        rdma_done(&host->rdmas[i]);
    free(host->pci);
    free(host->gpus);
    free(host->rdmas);
    free(host->netdevs);
}

void host_done(struct topo_host *host)
{
    devices_done(host);
    for (size_t i = 0; i < host->numa_count; i++)
        free(host->numas[i].cpulist);
    free(host->numas);
    free(host->limits.cpuset);
    free(host->cpus);
    free(host->arch);
    free(host->cpu_vendor);
    free(host->machine);
    free(host->kernel);
    free(host->driver);
    free(host->imex_channels);
    strlist_done(&host->warnings);
    *host = (struct topo_host){.cpu_family = -1, .cpu_model = -1};
}

/* ---- questions ---- */

size_t host_find_pci(const struct topo_host *host, struct pci_addr addr)
{
    for (size_t i = 0; i < host->pci_count; i++)
        if (!host->pci[i].place.addr_unknown &&
            pci_addr_compare(host->pci[i].place.addr, addr) == 0)
            return i;
    return TOPO_NONE;
}

static bool on_one_function(const struct topo_netdev *net, const struct topo_rdma *rdma)
{
    return rdma->pci != TOPO_NONE && net->pci == rdma->pci &&
           strcmp(net->subfunction, rdma->subfunction) == 0;
}

const struct topo_netdev *host_netdev_of(const struct topo_host *host, const struct topo_rdma *rdma)
{
    for (size_t i = 0; i < host->netdev_count; i++)
        if (on_one_function(&host->netdevs[i], rdma) && !host->netdevs[i].representor &&
            !host->netdevs[i].partition_of[0])
            return &host->netdevs[i];
    return NULL;
}

bool host_has_gid_of(const struct topo_rdma *rdma, const char *netdev)
{
    for (size_t p = 0; p < rdma->port_count; p++)
        for (size_t g = 0; g < rdma->ports[p].gid_count; g++)
            if (strcmp(rdma->ports[p].gids[g].netdev, netdev) == 0)
                return true;
    return false;
}

/* The interfaces of a device are those on its function or sub-function, and a bond of its ports has
 * its GIDs. */
const char *host_uplink_of(const struct topo_host *host, const struct topo_rdma *rdma)
{
    for (size_t i = 0; i < host->netdev_count; i++) {
        const struct topo_netdev *net = &host->netdevs[i];
        if (net->uplink[0] && (on_one_function(net, rdma) || host_has_gid_of(rdma, net->name)))
            return net->uplink;
    }
    return NULL;
}

int32_t host_numa_of(const struct topo_host *host, size_t pci)
{
    int32_t numa = pci == TOPO_NONE ? -1 : host->pci[pci].place.numa;
    bool sole = host->numa_count == 1 && !host->partial;
    return numa < 0 && sole ? (int32_t)host->numas[0].id : numa;
}

enum topo_path host_path(const struct topo_host *host, size_t a, size_t b, bool c2c)
{
    if (a == TOPO_NONE || b == TOPO_NONE)
        return TOPO_PATH_UNKNOWN;
    return pci_path(&host->pci[a].place, &host->pci[b].place, c2c,
                    host->partial ? 0 : host->numa_count);
}

const char *topo_tri_name(enum topo_tri tri)
{
    return tri == TOPO_YES ? "yes" : tri == TOPO_NO ? "no" : "unknown";
}

const char *topo_link_name(enum topo_link link)
{
    static const char *const names[] = {"unknown", "InfiniBand", "Ethernet", "other"};
    return names[link];
}

const char *topo_gid_type_name(enum topo_gid_type type)
{
    static const char *const names[] = {"unknown", "IB", "RoCE v1", "RoCE v2"};
    return names[type];
}
