/* SPDX-License-Identifier: Apache-2.0 */
/* NICs and RDMA devices. Sources: rdma-system(8) and ib_core's parameter netns_mode; NVIDIA's
 * GPUDirect RDMA documentation (nvidia-peermem, DMA-BUF); RoCE carries 4096 bytes of payload in
 * frames of at least 4200. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "launcher/doctor/node_checks.h"
#include "lib/base/cleanup.h"
#include "lib/inspect/error_counts.h"
#include "lib/topo/root.h"

#define ROCE_MTU_MIN 4200u

static size_t count_ports(const struct topo_host *host, struct buf *down)
{
    size_t ports = 0;
    for (size_t i = 0; i < host->rdma_count; i++)
        for (size_t k = 0; k < host->rdmas[i].port_count; k++) {
            const struct topo_port *port = &host->rdmas[i].ports[k];
            ports++;
            if (port->active == TOPO_NO)
                buf_printf(down, "%s%s port %" PRIu32 " (%s)", down->len ? ", " : "",
                           host->rdmas[i].name, port->number, port->state);
        }
    return ports;
}

void check_links(int root, const struct topo_host *host, struct findings *findings)
{
    struct buf down = BUF_INIT;
    (void)root;
    size_t ports = count_ports(host, &down);
    if (ports == 0)
        findings_add(findings, "links", FINDING_OK, NULL, "there is no RDMA device");
    else if (down.len == 0)
        findings_add(findings, "links", FINDING_OK, NULL, "no RDMA port of %zu is down", ports);
    else
        findings_add(findings, "links", FINDING_WARNING,
                     "ip link set dev NAME up; if it stays down: cable, switch port, and for "
                     "InfiniBand the subnet manager",
                     "down: %s, of %zu RDMA ports", down.data, ports);
    buf_done(&down);
}

void check_port_errors(int root, const struct topo_host *host, struct findings *findings)
{
    CLEANUP(error_counts_done) struct error_counts counts = {0};
    CLEANUP(buf_done) struct buf bad = BUF_INIT;
    error_counts_of_ports(root, &counts);
    for (size_t i = 0; i < counts.count; i++)
        if (counts.list[i].value)
            buf_printf(&bad, "%s%s %" PRIu64, bad.len ? ", " : "", counts.list[i].name,
                       counts.list[i].value);
    if (bad.len)
        findings_add(
            findings, "port-errors", FINDING_WARNING,
            "if they grow: clean or change the cable or its module; perfquery -R sets them back",
            "since the driver was loaded: %s", bad.data);
    else
        findings_add(findings, "port-errors", FINDING_OK, NULL, "%s",
                     host->rdma_count ? "no RDMA port has counted an error"
                                      : "there is no RDMA device");
}

void check_mtu(int root, const struct topo_host *host, struct findings *findings)
{
    struct buf small = BUF_INIT;
    size_t count = 0;
    (void)root;
    for (size_t i = 0; i < host->rdma_count; i++) {
        const struct topo_netdev *netdev = host_netdev_of(host, &host->rdmas[i]);
        const struct topo_rdma *rdma = &host->rdmas[i];
        if (!netdev || !netdev->mtu || !rdma->port_count ||
            rdma->ports[0].link != TOPO_LINK_ETHERNET)
            continue;
        count++;
        if (netdev->mtu < ROCE_MTU_MIN)
            buf_printf(&small, "%s%s %" PRIu32, small.len ? ", " : "", netdev->name, netdev->mtu);
    }
    if (small.len)
        findings_add(findings, "mtu", FINDING_WARNING,
                     "ip link set dev NAME mtu 9000, on the switches too; in a claim: "
                     "interface: {mtu: 9000}",
                     "RoCE sends small packets below an MTU of %u: %s", ROCE_MTU_MIN, small.data);
    else if (count == 0)
        findings_add(findings, "mtu", FINDING_OK, NULL, "there is no RoCE interface");
    else
        findings_add(findings, "mtu", FINDING_OK, NULL, "%zu RoCE interfaces have %u or more",
                     count, ROCE_MTU_MIN);
    buf_done(&small);
}

void check_netns_mode(int root, const struct topo_host *host, struct findings *findings)
{
    char mode[8];
    if (root_read(root, "sys/module/ib_core/parameters/netns_mode", mode, sizeof mode) < 0)
        findings_add(findings, "rdma-netns", host->rdma_count ? FINDING_UNKNOWN : FINDING_OK, NULL,
                     host->rdma_count ? "ib_core does not tell its netns_mode"
                                      : "there is no RDMA device");
    else if (mode[0] == 'N' || mode[0] == '0')
        findings_add(findings, "rdma-netns", FINDING_OK, NULL,
                     "exclusive: a pod sees its own RDMA devices alone");
    else
        findings_add(findings, "rdma-netns", FINDING_WARNING,
                     "echo options ib_core netns_mode=0 >/etc/modprobe.d/ib_core.conf, and reboot",
                     "shared: each pod sees the names and counters of all RDMA devices, and opens "
                     "those that it claimed");
}

static bool has_nvidia(const struct topo_host *host)
{
    for (size_t i = 0; i < host->gpu_count; i++)
        if (strcmp(host->gpus[i].vendor, "NVIDIA") == 0)
            return true;
    return false;
}

void check_gpudirect(int root, const struct topo_host *host, struct findings *findings)
{
    (void)root;
    if (!has_nvidia(host) || host->rdma_count == 0)
        findings_add(findings, "gpudirect", FINDING_OK, NULL,
                     "there are not both NVIDIA GPUs and RDMA devices");
    else if (host->dmabuf == TOPO_YES)
        findings_add(findings, "gpudirect", FINDING_OK, NULL,
                     "DMA-BUF: NVIDIA's open kernel modules");
    else if (host->peermem == TOPO_YES)
        findings_add(findings, "gpudirect", FINDING_OK, NULL, "nvidia_peermem is loaded");
    else if (host->peermem == TOPO_NO || host->dmabuf == TOPO_NO)
        findings_add(findings, "gpudirect", FINDING_FAILED,
                     "modprobe nvidia-peermem (and echo nvidia-peermem "
                     ">/etc/modules-load.d/nvidia-peermem.conf), or install NVIDIA's open kernel "
                     "modules",
                     "neither nvidia_peermem nor NVIDIA's open kernel modules: data of GPUs goes "
                     "through the host's memory");
    else
        findings_add(findings, "gpudirect", FINDING_UNKNOWN, NULL,
                     "the loaded kernel modules cannot be read");
}
