/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix, as `nvidia-smi topo -m` draws it, and what follows from it. */
#include <string.h>

#include "launcher/topo/view.h"
#include "lib/base/cleanup.h"

#define COLUMN 8

static void cell(struct buf *out, const char *text)
{
    buf_printf(out, "%-*s", COLUMN, text);
}

static const struct topo_pci *pci_of(const struct topo_view *view, size_t index)
{
    return index == TOPO_NONE ? NULL : &view->host->pci[index];
}

static size_t row_pci(const struct topo_view *view, size_t row)
{
    size_t gpus = view->host->gpu_count;
    return row < gpus ? view->host->gpus[row].pci : view->nics[row - gpus].pci;
}

static void add_name(const struct topo_view *view, size_t row, struct buf *out)
{
    char name[32];
    size_t gpus = view->host->gpu_count;
    snprintf(name, sizeof name, row < gpus ? "GPU%zu" : "NIC%zu", row < gpus ? row : row - gpus);
    cell(out, name);
}

static enum topo_path between(const struct topo_view *view, size_t a, size_t b)
{
    size_t gpus = view->host->gpu_count;
    if (a == b)
        return TOPO_PATH_SELF;
    if (a < gpus && b >= gpus)
        return view_path(view, a, b - gpus);
    if (a >= gpus && b < gpus)
        return view_path(view, b, a - gpus);
    enum topo_path path = host_path(view->host, row_pci(view, a), row_pci(view, b), false);
    return path == TOPO_PATH_SELF ? TOPO_PATH_PIX : path; /* two devices of one function */
}

static const char *cpulist_of(const struct topo_host *host, int32_t numa)
{
    for (size_t i = 0; i < host->numa_count; i++)
        if ((int32_t)host->numas[i].id == numa)
            return host->numas[i].cpulist;
    return "?";
}

static size_t affinity_width(const struct topo_host *host)
{
    size_t width = strlen("CPU Affinity");
    for (size_t i = 0; i < host->numa_count; i++)
        if (strlen(host->numas[i].cpulist) > width)
            width = strlen(host->numas[i].cpulist);
    return width + 2;
}

/* CPU and NUMA affinity of a GPU's row; nvidia-smi leaves those of NICs empty. */
static void add_affinity(const struct topo_view *view, size_t row, struct buf *out)
{
    const struct topo_host *host = view->host;
    int32_t numa = host_numa_of(host, row_pci(view, row));
    if (row < host->gpu_count)
        buf_printf(out, "%-*s", (int)affinity_width(host), cpulist_of(host, numa));
    if (row < host->gpu_count && numa < 0)
        buf_add_str(out, "?");
    else if (row < host->gpu_count)
        buf_printf(out, "%d", numa);
}

static void trim_line(struct buf *out)
{
    while (out->len > 0 && out->data[out->len - 1] == ' ')
        out->data[--out->len] = '\0';
    buf_add_str(out, "\n");
}

static void add_matrix(const struct topo_view *view, struct buf *out)
{
    size_t rows = view->host->gpu_count + view->nic_count;
    cell(out, "");
    for (size_t i = 0; i < rows; i++)
        add_name(view, i, out);
    if (view->host->gpu_count > 0)
        buf_printf(out, "%-*sNUMA Affinity", (int)affinity_width(view->host), "CPU Affinity");
    trim_line(out);
    for (size_t i = 0; i < rows; i++) {
        add_name(view, i, out);
        for (size_t j = 0; j < rows; j++) {
            enum topo_path path = between(view, i, j);
            cell(out, path == TOPO_PATH_SELF ? " X" : topo_path_name(path));
        }
        add_affinity(view, i, out);
        trim_line(out);
    }
}

const char *view_path_meaning(enum topo_path path)
{
    static const char *const meaning[TOPO_PATH_COUNT] = {
        [TOPO_PATH_SELF] = "itself",
        [TOPO_PATH_PIX] = "at most one PCIe switch between",
        [TOPO_PATH_PXB] = "several PCIe switches, no host bridge",
        [TOPO_PATH_P2C] = "the chip-to-chip link to the CPU, then PCIe",
        [TOPO_PATH_ROOT] = "below one host bridge; switches not known: PIX, PXB or PHB",
        [TOPO_PATH_PHB] = "through one PCIe host bridge",
        [TOPO_PATH_NODE] = "through host bridges of one NUMA node",
        [TOPO_PATH_SYS] = "through the link between NUMA nodes",
        [TOPO_PATH_UNKNOWN] = "not known",
    };
    return meaning[path];
}

static void add_legend(const struct topo_view *view, struct buf *out)
{
    bool used[TOPO_PATH_COUNT] = {false};
    size_t rows = view->host->gpu_count + view->nic_count;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < rows; j++)
            used[between(view, i, j)] = true;
    buf_add_str(out, "\nLegend:\n");
    for (size_t path = TOPO_PATH_SELF; path <= TOPO_PATH_COUNT; path++)
        if (used[path % TOPO_PATH_COUNT]) /* unknown comes last */
            buf_printf(out, "  %-5s %s\n", topo_path_name(path % TOPO_PATH_COUNT),
                       view_path_meaning(path % TOPO_PATH_COUNT));
    if (view->host->gpu_count > 1)
        buf_add_str(out, "  NVLink is not part of PCI and is not shown\n");
}

static void add_pci(const struct topo_view *view, size_t index, struct buf *out)
{
    char text[PCI_ADDR_TEXT] = "no PCI address";
    const struct topo_pci *pci = pci_of(view, index);
    if (pci && !pci->place.addr_unknown)
        pci_addr_format(pci->place.addr, text);
    buf_printf(out, "  %-14s", text);
}

static void add_ports_down(const struct view_nic *nic, struct buf *out)
{
    size_t count = nic->rdma ? nic->rdma->port_count : 0;
    for (size_t p = 0; p < count; p++) {
        const struct topo_port *port = &nic->rdma->ports[p];
        if (port->active == TOPO_NO && count == 1)
            buf_printf(out, "  port %s", port->state);
        else if (port->active == TOPO_NO)
            buf_printf(out, "  port %u %s", port->number, port->state);
    }
}

/* Without the name, which the line has. */
static void add_reason(const struct view_nic *nic, struct buf *out)
{
    char reason[256];
    data_nic_reason(&nic->data, reason, sizeof reason);
    const char *open = strchr(reason, '(');
    buf_printf(out, "  not for data %s", open ? open : "");
}

static void add_nic_legend(const struct topo_view *view, struct buf *out)
{
    buf_add_str(out, "\nNIC Legend:\n");
    for (size_t i = 0; i < view->nic_count; i++) {
        const struct view_nic *nic = &view->nics[i];
        char rate[16];
        view_rate(nic->mbps, rate);
        buf_printf(out, "  NIC%zu: %-10s", i, nic->name);
        add_pci(view, nic->pci, out);
        buf_printf(out, "  %s %s", rate, view_link_words(nic));
        if (nic->rdma && nic->net)
            buf_printf(out, "  %s", nic->net->name);
        add_ports_down(nic, out);
        if (nic->usable == TOPO_NO)
            buf_add_str(out, "  not given to this pod");
        else if (nic->data.use != NIC_USE_DATA && nic->data.use != NIC_USE_DOWN)
            add_reason(nic, out);
        buf_add_str(out, "\n");
    }
}

static bool is_linked(const struct topo_view *view, size_t gpu, size_t nic)
{
    for (size_t i = 0; i < view->link_count; i++)
        if (view->links[i].gpu == gpu && view->links[i].nic == nic)
            return true;
    return false;
}

/* The nearest ones, "NIC0, NIC1 (PIX), uses NIC0". */
static void add_nearest(const struct topo_view *view, size_t gpu, struct buf *out)
{
    enum topo_path best = TOPO_PATH_COUNT;
    for (size_t n = 0; n < view->nic_count; n++) {
        enum topo_path path = view_path(view, gpu, n);
        if (path != TOPO_PATH_UNKNOWN && path < best && view->nics[n].data.use == NIC_USE_DATA)
            best = path;
    }
    if (best == TOPO_PATH_COUNT) {
        buf_add_str(out, view->nic_count ? "  nearest NIC not known" : "  no NIC");
        return;
    }
    const char *comma = "  nearest ";
    for (size_t n = 0; n < view->nic_count; n++)
        if (view_path(view, gpu, n) == best && view->nics[n].data.use == NIC_USE_DATA) {
            buf_printf(out, "%sNIC%zu", comma, n);
            comma = ", ";
        }
    buf_printf(out, " (%s)", topo_path_name(best));
    comma = "; paired with ";
    for (size_t n = 0; n < view->nic_count; n++)
        if (is_linked(view, gpu, n)) {
            buf_printf(out, "%sNIC%zu", comma, n);
            comma = ", ";
        }
}

/* A link trained below what the card can do is a slow job that nothing else reports. */
static void add_degraded(const struct topo_pci *pci, struct buf *out)
{
    if (pci->width > 0 && pci->width < pci->max_width)
        buf_printf(out, "; PCIe link x%u of x%u", pci->width, pci->max_width);
}

static void add_gpus(const struct topo_view *view, struct buf *out)
{
    const struct topo_host *host = view->host;
    buf_add_str(out, "\nGPUs:\n");
    for (size_t i = 0; i < host->gpu_count; i++) {
        const struct topo_gpu *gpu = &host->gpus[i];
        buf_printf(out, "  GPU%zu:", i);
        add_pci(view, gpu->pci, out);
        buf_printf(out, "  %s", view_gpu_name(gpu));
        if (gpu->usable == TOPO_NO)
            buf_add_str(out, "  not given to this pod");
        else
            add_nearest(view, i, out);
        if (gpu->pci != TOPO_NONE)
            add_degraded(&host->pci[gpu->pci], out);
        buf_add_str(out, "\n");
    }
}

static void add_count(size_t count, const char *what, struct buf *out)
{
    buf_printf(out, "%zu %s%s", count, what, count == 1 ? "" : "s");
}

void view_summary(const struct topo_view *view, struct buf *out)
{
    const struct topo_host *host = view->host;
    if (host->gpu_count + view->nic_count == 0) {
        buf_add_str(out, "no GPU and no RDMA NIC here");
    } else {
        add_count(host->gpu_count, "GPU", out);
        buf_add_str(out, ", ");
        add_count(view->nic_count,
                  host->rdma_count || !view->nic_count ? "NIC" : "NIC without RDMA", out);
    }
    if (host->nvswitch_count > 0) {
        buf_add_str(out, ", ");
        add_count(host->nvswitch_count, "NVLink switch device", out);
    }
    if (host->machine)
        buf_printf(out, "; %s", host->machine);
}

static void add_numas(const struct topo_host *host, struct buf *out)
{
    if (host->cpus)
        buf_printf(out, "CPUs %s\n", host->cpus);
    else
        buf_add_str(out, "CPUs not known\n");
    for (size_t i = 0; i < host->numa_count; i++)
        buf_printf(out, "NUMA node %u: CPUs %s\n", host->numas[i].id,
                   host->numas[i].cpulist[0] ? host->numas[i].cpulist : "none");
}

static void add_amount(const char *what, uint64_t bytes, struct buf *out)
{
    if (bytes == UINT64_MAX)
        buf_printf(out, "%s unlimited", what);
    else if (bytes >= 1u << 30)
        buf_printf(out, "%s %.1f GiB", what, (double)bytes / (1u << 30));
    else
        buf_printf(out, "%s %.0f KiB", what, (double)bytes / 1024);
}

/* What RDMA and NCCL need of a pod besides devices. */
static void add_limits(const struct topo_host *host, struct buf *out)
{
    const struct topo_limits *limits = &host->limits;
    if (limits->memlock_known == TOPO_YES)
        add_amount("locked memory", limits->memlock, out);
    else
        buf_add_str(out, "locked memory not known");
    if (limits->shm_mounted == TOPO_YES)
        add_amount(limits->shm_memory ? "; /dev/shm" : "; /dev/shm (not in memory)",
                   limits->shm_bytes, out);
    else
        buf_add_str(out, "; /dev/shm not known");
    buf_add_str(out, "\n");
    if (host->gpu_count > 0)
        buf_printf(out, "NVIDIA driver %s; GPUDirect RDMA: peer memory %s, DMA-BUF %s (inferred)\n",
                   host->driver ? host->driver : "not known", topo_tri_name(host->peermem),
                   topo_tri_name(host->dmabuf));
    if (host->imex_count > 0) {
        add_count(host->imex_count, "IMEX channel", out);
        buf_add_str(out, "\n");
    }
}

void topo_text(const struct topo_view *view, struct buf *out)
{
    view_summary(view, out);
    buf_add_str(out, "\n");
    if (view->host->partial) {
        buf_add_str(out,
                    "from attributes: link rates, switches, CPUs and limits are not in them\n");
    } else {
        add_numas(view->host, out);
        add_limits(view->host, out);
    }
    if (view->host->gpu_count + view->nic_count == 0)
        return;
    buf_add_str(out, "\n");
    add_matrix(view, out);
    add_legend(view, out);
    if (view->nic_count > 0)
        add_nic_legend(view, out);
    if (view->host->gpu_count > 0)
        add_gpus(view, out);
}
