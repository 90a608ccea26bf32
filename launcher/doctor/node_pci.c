/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps functions from reaching each other without the host. Sources: Linux
 * Documentation/ABI/testing/sysfs-kernel-iommu_groups (type); PCI Express Base Specification 6.12
 * (Access Control Services); NCCL's troubleshooting guide (ACS off, IOMMU off or passed through).
 */
#include <stdio.h>
#include <string.h>

#include "launcher/doctor/node_checks.h"
#include "lib/base/cleanup.h"
#include "lib/topo/root.h"

#define CLASS_BRIDGE 0x0604u
#define CONFIG_SIZE 4096u
#define EXTENDED_AT 0x100u
#define ACS_ID 0x000du
#define ACS_CONTROL 6u
#define ACS_REDIRECT 0x000cu /* P2P request redirect, completion redirect */

static void path_of(const struct topo_pci *pci, const char *file, char *path, size_t size)
{
    char address[PCI_ADDR_TEXT];
    pci_addr_format(pci->place.addr, address);
    snprintf(path, size, "sys/bus/pci/devices/%s/%s", address, file);
}

static bool is_bridge(const struct topo_pci *pci)
{
    return pci->class_code >> 8 == CLASS_BRIDGE;
}

static size_t count_links(const struct topo_host *host, size_t pci, bool gpu, struct buf *narrow)
{
    char address[PCI_ADDR_TEXT];
    const struct topo_pci *link = pci < host->pci_count ? &host->pci[pci] : NULL;
    if (!link || !link->width || !link->max_width)
        return 0;
    pci_addr_format(link->place.addr, address);
    if (topo_pci_is_narrow(link, gpu))
        buf_printf(narrow, "%s%s %s: %u of %u lanes at %g of %g GT/s", narrow->len ? ", " : "",
                   gpu ? "GPU" : "NIC", address, link->width, link->max_width,
                   link->speed_mts / 1000.0, link->max_speed_mts / 1000.0);
    return 1;
}

void check_pcie(int root, const struct topo_host *host, struct findings *findings)
{
    struct buf narrow = BUF_INIT;
    size_t known = 0;
    (void)root;
    for (size_t i = 0; i < host->gpu_count; i++)
        known += count_links(host, host->gpus[i].pci, true, &narrow);
    for (size_t i = 0; i < host->rdma_count; i++)
        known += count_links(host, host->rdmas[i].pci, false, &narrow);
    if (narrow.len)
        findings_add(findings, "pcie", FINDING_WARNING,
                     "see LnkSta in lspci -vv -s ADDRESS; reseat the card or its riser",
                     "links are narrower than they could be: %s", narrow.data);
    else if (known == 0)
        findings_add(findings, "pcie", FINDING_OK, NULL, "no GPU or RDMA NIC tells of its link");
    else
        findings_add(findings, "pcie", FINDING_OK, NULL,
                     "all of %zu GPUs and NICs have all their lanes", known);
    buf_done(&narrow);
}

void check_iommu(int root, const struct topo_host *host, struct findings *findings)
{
    struct buf translated = BUF_INIT;
    size_t grouped = 0;
    for (size_t i = 0; i < host->pci_count; i++) {
        char path[128], type[32], address[PCI_ADDR_TEXT];
        path_of(&host->pci[i], "iommu_group/type", path, sizeof path);
        if (is_bridge(&host->pci[i]) || root_read(root, path, type, sizeof type) < 0)
            continue;
        grouped++;
        pci_addr_format(host->pci[i].place.addr, address);
        if (strncmp(type, "DMA", 3) == 0)
            buf_printf(&translated, "%s%s", translated.len ? ", " : "", address);
    }
    if (translated.len && host->gpu_count)
        findings_add(findings, "iommu", FINDING_WARNING,
                     "add iommu=pt to GRUB_CMDLINE_LINUX in /etc/default/grub, update-grub, reboot",
                     "it translates for %s: what GPUs and NICs send each other goes through the "
                     "root complex",
                     translated.data);
    else
        findings_add(findings, "iommu", FINDING_OK, NULL, "%s",
                     translated.len ? "it translates, and there is no GPU that it would slow"
                     : grouped      ? "it passes through"
                                    : "it is off, or has no group for a GPU or NIC");
    buf_done(&translated);
}

static uint32_t read_at(const struct buf *config, uint32_t at, uint32_t bytes)
{
    uint32_t value = 0;
    for (uint32_t i = bytes; i > 0; i--)
        value = value << 8 | (uint8_t)config->data[at + i - 1];
    return value;
}

/* The control word of ACS; -1: none, -2: the configuration is not all there. */
static int32_t acs_of(const struct buf *config)
{
    uint32_t at = EXTENDED_AT;
    if (config->len <= EXTENDED_AT)
        return -2;
    for (unsigned hops = 0; hops < CONFIG_SIZE / 8 && at >= EXTENDED_AT; hops++) {
        if (at + 8 > config->len)
            return -1;
        uint32_t header = read_at(config, at, 4);
        if ((header & 0xffff) == ACS_ID)
            return (int32_t)read_at(config, at + ACS_CONTROL, 2);
        at = header >> 20 & 0xffc;
    }
    return -1;
}

void check_acs(int root, const struct topo_host *host, struct findings *findings)
{
    struct buf config = BUF_INIT, redirecting = BUF_INIT;
    size_t bridges = 0, hidden = 0;
    for (size_t i = 0; host->gpu_count && i < host->pci_count; i++) {
        char path[128], address[PCI_ADDR_TEXT];
        if (!is_bridge(&host->pci[i]))
            continue;
        path_of(&host->pci[i], "config", path, sizeof path);
        int32_t acs = node_text(root, path, CONFIG_SIZE, &config) ? acs_of(&config) : -2;
        bridges++;
        hidden += acs == -2;
        pci_addr_format(host->pci[i].place.addr, address);
        if (acs > 0 && acs & ACS_REDIRECT)
            buf_printf(&redirecting, "%s%s", redirecting.len ? ", " : "", address);
    }
    if (redirecting.len)
        findings_add(
            findings, "acs", FINDING_WARNING,
            "for each: setpci -s ADDRESS ECAP_ACS+6.w=0000, after each boot; or switch ACS "
            "off in the firmware",
            "it sends what GPUs and NICs say to each other up to the root: %s", redirecting.data);
    else if (hidden)
        findings_add(findings, "acs", FINDING_UNKNOWN, "run drarun doctor --node as root",
                     "the configuration of %zu bridges cannot be read", hidden);
    else
        findings_add(findings, "acs", FINDING_OK, NULL,
                     "%zu bridges above GPUs and NICs redirect nothing", bridges);
    buf_done(&config);
    buf_done(&redirecting);
}
