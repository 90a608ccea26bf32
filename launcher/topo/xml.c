/* SPDX-License-Identifier: Apache-2.0 */
/* The topology in the XML that NCCL reads from NCCL_TOPO_FILE (NCCL 2.30.7 src/graph/xml.cc,
 * topo.cc; docs/design/013-topology.md). What is not known is left out: NCCL then asks the machine
 * itself, while a wrong value would stay. */
#include <string.h>

#include "launcher/topo/view.h"
#include "lib/base/cleanup.h"

#define DEPTH_MAX 8u

/* A function with what stands below it. */
struct leaf {
    struct pci_addr addr; /* as NCCL calls it */
    const struct topo_pci *pci;
    size_t gpu; /* its number for NCCL; TOPO_NONE: a NIC */
    size_t nic;
    int32_t numa;
    struct pci_addr switches[DEPTH_MAX];
    size_t switch_count;
};

struct xml {
    const struct topo_view *view;
    struct leaf *leaves;
    size_t count;
    struct buf *out;
};

static void indent(struct xml *xml, size_t depth)
{
    buf_printf(xml->out, "%*s", (int)depth * 2, "");
}

/* ---- leaves ---- */

/* net_ib makes one PCI device of a card's ports and of a bus' virtual functions: device and
 * function digits become 0 (ncclIbGetPciPath). */
static struct pci_addr nccl_address(const struct view_nic *nic, struct pci_addr addr)
{
    const struct topo_port *port = view_port(nic);
    bool ib = port && port->link != TOPO_LINK_OTHER;
    if (ib)
        addr.device = addr.function = 0;
    return addr;
}

static void add_leaf(struct xml *xml, size_t pci_index, size_t gpu, size_t nic)
{
    if (pci_index == TOPO_NONE || xml->view->host->pci[pci_index].place.addr_unknown)
        return;
    const struct topo_pci *pci = &xml->view->host->pci[pci_index];
    struct leaf leaf = {pci->place.addr, pci, gpu, nic, host_numa_of(xml->view->host, pci_index),
                        {{0}},           0};
    if (nic != TOPO_NONE)
        leaf.addr = nccl_address(&xml->view->nics[nic], leaf.addr);
    leaf.switch_count = view_switches(&pci->place, leaf.switches, DEPTH_MAX);
    xml->leaves[xml->count++] = leaf;
}

static bool same_switch(const struct leaf *a, const struct leaf *b, size_t level)
{
    return level < a->switch_count && level < b->switch_count &&
           pci_addr_compare(a->switches[level], b->switches[level]) == 0;
}

/* What is below one switch is below one CPU, whatever its functions say: as NCCL sees it, that of
 * the switch at the top. */
static void agree_on_numa(struct xml *xml)
{
    const struct topo_host *host = xml->view->host;
    for (size_t i = 0; i < xml->count; i++) {
        struct leaf *leaf = &xml->leaves[i];
        if (leaf->switch_count == 0)
            continue;
        size_t top = host_find_pci(host, leaf->switches[0]);
        int32_t numa = top != TOPO_NONE ? host_numa_of(host, top) : -1;
        for (size_t k = 0; numa < 0 && k < xml->count; k++)
            if (same_switch(&xml->leaves[k], leaf, 0))
                numa = xml->leaves[k].numa;
        leaf->numa = numa;
    }
}

static int order(const void *a, const void *b)
{
    const struct leaf *x = a, *y = b;
    size_t common = x->switch_count < y->switch_count ? x->switch_count : y->switch_count;
    if (x->numa != y->numa)
        return x->numa < y->numa ? -1 : 1;
    for (size_t i = 0; i < common; i++) {
        int rc = pci_addr_compare(x->switches[i], y->switches[i]);
        if (rc != 0)
            return rc;
    }
    if (x->switch_count != y->switch_count)
        return x->switch_count < y->switch_count ? -1 : 1;
    int rc = pci_addr_compare(x->addr, y->addr);
    return rc != 0 ? rc : x->nic < y->nic ? -1 : x->nic > y->nic;
}

/* ---- elements ---- */

static void add_hex(struct xml *xml, const char *name, uint32_t value, int digits)
{
    if (value != 0)
        buf_printf(xml->out, " %s=\"0x%0*x\"", name, digits, value);
}

/* A link is as fast as its slower end; the other one is the bridge above. NCCL ends where one of
 * the attributes is missing; empty and 0, as of virtual functions of a hypervisor, are its own
 * guess. */
static void add_link(struct xml *xml, const struct topo_pci *pci)
{
    const struct topo_host *host = xml->view->host;
    uint32_t speed = pci->max_speed_mts, width = pci->max_width;
    size_t above = pci->place.bridge_count ? host_find_pci(host, pci->place.bridges[0]) : TOPO_NONE;
    if (above != TOPO_NONE && host->pci[above].max_speed_mts > 0 &&
        host->pci[above].max_speed_mts < speed)
        speed = host->pci[above].max_speed_mts;
    if (above != TOPO_NONE && host->pci[above].max_width > 0 && host->pci[above].max_width < width)
        width = host->pci[above].max_width;
    if (speed > 0)
        buf_printf(xml->out, " link_speed=\"%u.%u GT/s PCIe\"", speed / 1000, speed % 1000 / 100);
    else
        buf_add_str(xml->out, " link_speed=\"\"");
    buf_printf(xml->out, " link_width=\"%u\"", width);
}

static void open_pci(struct xml *xml, size_t depth, struct pci_addr addr,
                     const struct topo_pci *pci)
{
    char text[PCI_ADDR_TEXT];
    pci_addr_format(addr, text);
    indent(xml, depth);
    buf_printf(xml->out, "<pci busid=\"%s\"", text);
    if (pci) {
        add_hex(xml, "class", pci->class_code, 6);
        add_hex(xml, "vendor", pci->vendor, 4);
        add_hex(xml, "device", pci->device, 4);
        add_hex(xml, "subsystem_vendor", pci->subsystem_vendor, 4);
        add_hex(xml, "subsystem_device", pci->subsystem_device, 4);
        add_link(xml, pci);
    } else {
        buf_add_str(xml->out, " class=\"0x060400\" link_speed=\"\" link_width=\"0\"");
    }
    buf_add_str(xml->out, ">\n");
}

static void close_pci(struct xml *xml, size_t depth)
{
    indent(xml, depth);
    buf_add_str(xml->out, "</pci>\n");
}

static void add_net(struct xml *xml, size_t depth, size_t nic_index)
{
    const struct view_nic *nic = &xml->view->nics[nic_index];
    const struct topo_port *port = view_port(nic);
    indent(xml, depth);
    buf_printf(xml->out, "<net name=\"%s\" dev=\"%zu\"", nic->name, nic_index);
    if (nic->mbps > 0)
        buf_printf(xml->out, " speed=\"%u\"", nic->mbps);
    if (port)
        buf_printf(xml->out, " port=\"%u\"", port->number);
    buf_add_str(xml->out, "/>\n");
}

/* All leaves of one address: the ports of a card. Returns how many. */
static size_t add_device(struct xml *xml, size_t depth, size_t first)
{
    const struct leaf *leaf = &xml->leaves[first];
    size_t end = first;
    open_pci(xml, depth, leaf->addr, leaf->pci);
    if (leaf->gpu != TOPO_NONE) {
        indent(xml, depth + 1);
        buf_printf(xml->out, "<gpu dev=\"%zu\"/>\n", leaf->gpu);
        end = first + 1;
    } else {
        indent(xml, depth + 1);
        buf_add_str(xml->out, "<nic>\n");
        for (; end < xml->count && pci_addr_compare(xml->leaves[end].addr, leaf->addr) == 0; end++)
            add_net(xml, depth + 2, xml->leaves[end].nic);
        indent(xml, depth + 1);
        buf_add_str(xml->out, "</nic>\n");
    }
    close_pci(xml, depth);
    return end - first;
}

/* Closes the switches that the next leaf is not below, opens its own. */
static void change_switches(struct xml *xml, const struct leaf *from, const struct leaf *to)
{
    const struct topo_host *host = xml->view->host;
    size_t common = 0;
    while (from && to && same_switch(from, to, common))
        common++;
    for (size_t i = from ? from->switch_count : 0; i > common; i--)
        close_pci(xml, i + 1);
    for (size_t i = common; to && i < to->switch_count; i++) {
        size_t index = host_find_pci(host, to->switches[i]);
        open_pci(xml, i + 2, to->switches[i], index == TOPO_NONE ? NULL : &host->pci[index]);
    }
}

static void open_cpu(struct xml *xml, int32_t numa)
{
    const struct topo_host *host = xml->view->host;
    buf_printf(xml->out, "  <cpu numaid=\"%d\"", numa);
    if (host->arch)
        buf_printf(xml->out, " arch=\"%s\"", host->arch);
    if (host->cpu_vendor)
        buf_printf(xml->out, " vendor=\"%s\"", host->cpu_vendor);
    if (host->cpu_family >= 0)
        buf_printf(xml->out, " familyid=\"%d\"", host->cpu_family);
    if (host->cpu_model >= 0)
        buf_printf(xml->out, " modelid=\"%d\"", host->cpu_model);
    buf_add_str(xml->out, ">\n");
}

static void add_cpus(struct xml *xml)
{
    const struct leaf *last = NULL;
    for (size_t i = 0; i < xml->count;) {
        const struct leaf *leaf = &xml->leaves[i];
        bool new_cpu = !last || last->numa != leaf->numa;
        if (last && new_cpu) {
            change_switches(xml, last, NULL);
            buf_add_str(xml->out, "  </cpu>\n");
        }
        if (new_cpu)
            open_cpu(xml, leaf->numa);
        change_switches(xml, new_cpu ? NULL : last, leaf);
        i += add_device(xml, leaf->switch_count + 2, i);
        last = leaf;
    }
    if (last) {
        change_switches(xml, last, NULL);
        buf_add_str(xml->out, "  </cpu>\n");
    }
}

void topo_nccl_xml(const struct topo_view *view, struct buf *out)
{
    size_t most = view->host->gpu_count + view->nic_count + 1;
    cleanup_free struct leaf *leaves = calloc(most, sizeof *leaves);
    struct xml xml = {view, leaves, 0, out};
    if (!leaves) {
        out->failed = true;
        return;
    }
    /* NCCL numbers what a process can open, which is the GPUs that were given to this pod */
    for (size_t i = 0, dev = 0; i < view->host->gpu_count; i++)
        if (view->host->gpus[i].usable != TOPO_NO)
            add_leaf(&xml, view->host->gpus[i].pci, dev++, TOPO_NONE);
    for (size_t i = 0; i < view->nic_count; i++)
        if (view->nics[i].usable != TOPO_NO)
            add_leaf(&xml, view->nics[i].pci, TOPO_NONE, i);
    agree_on_numa(&xml);
    qsort(leaves, xml.count, sizeof *leaves, order);
    buf_add_str(out, "<system version=\"1\">\n");
    add_cpus(&xml);
    buf_add_str(out, "</system>\n");
}
