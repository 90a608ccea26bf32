/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "lib/bench/nccl_report.h"
#include "lib/bench/verdict.h"

enum nccl_report_verdict nccl_report_verdict(const struct nccl_report *r)
{
    const struct nccl_within *within = &r->within;
    if (r->tcp > 0)
        return r->rdma + r->unproven > 0 ? NCCL_REPORT_MIXED : NCCL_REPORT_TCP;
    if (r->unproven > 0)
        return NCCL_REPORT_UNPROVEN;
    if (r->rdma > 0)
        return r->rdma_gpu < r->rdma ? NCCL_REPORT_HOST : NCCL_REPORT_GPU;
    if (r->nvlink_hosts > 0)
        return NCCL_REPORT_NVLINK;
    return r->host_count == 1 && within->p2p + within->shm + within->net > 0 ? NCCL_REPORT_ONE_HOST
                                                                             : NCCL_REPORT_UNKNOWN;
}

/* ---- hints ---- */

static void hint_tcp(const struct nccl_report *r, struct strlist *hints)
{
    size_t before = hints->count;
    if (r->ib_disabled)
        strlist_add(hints, "NCCL_IB_DISABLE is 1: unset it");
    if (r->socket_chosen)
        strlist_add(hints, "NCCL_NET is Socket: unset it");
    if (r->no_verbs)
        strlist_add(hints, "the image has no libibverbs: install rdma-core (libibverbs1 and the "
                           "NICs' provider)");
    if (r->plugin_failed)
        strlist_add(hints, "the AWS OFI plugin found no EFA device: the pod needs its devices "
                           "(/dev/infiniband) and a libfabric with efa");
    if (r->no_device[0])
        strlist_addf(hints,
                     "NCCL found no RDMA device on %s: claim NICs for the pod (devices.nics), "
                     "which brings /dev/infiniband",
                     r->no_device);
    if (r->layers.libfabric.tcp)
        strlist_addf(hints,
                     "libfabric chose the provider %s: the pod needs RDMA devices "
                     "(/dev/infiniband) and a libfabric with efa or verbs, and FI_PROVIDER must "
                     "not forbid them",
                     r->layers.libfabric.words);
    if (hints->count == before)
        strlist_add(hints, "no line says why TCP was chosen: NCCL_DEBUG_SUBSYS=INIT,NET,ENV does");
}

static void hint_gpu(const struct nccl_report *r, struct strlist *hints)
{
    if (r->gpu_off_device > 0)
        strlist_add(hints, "NICs cannot reach GPU memory: load nvidia-peermem on the nodes, or "
                           "have a kernel and driver with DMA-BUF");
    if (r->gpu_off_far > 0)
        strlist_add(hints, "GPU and NIC are farther apart than NCCL_NET_GDR_LEVEL allows: claim "
                           "them by PCIe root (align: required)");
    if (r->gpu_off_device + r->gpu_off_far == 0)
        strlist_add(hints, "no line says why GPUDirect is off: "
                           "NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH does");
}

static void hint_unproven(const struct nccl_report *r, struct strlist *hints)
{
    const char *network = r->nets[r->unproven_net];
    if (strcasestr(network, "libfabric"))
        strlist_add(hints, "a line \"NET/OFI Selected provider is efa\" (or verbs, cxi) proves it: "
                           "NCCL_DEBUG_SUBSYS=INIT,NET has that line");
    else if (strncmp(network, "UCX", 3) == 0)
        strlist_add(hints, "UCX_LOG_LEVEL=info names UCX's transports: rc_mlx5 and its like prove "
                           "it");
    else
        strlist_addf(hints, "%s is not known to be RDMA: counters of the NICs can prove it",
                     network);
}

/* Pairs without P2P may be the best that a machine without NVLink has: only where no pair has it,
 * or a line says why, is there something to do. */
static void hint_within(const struct nccl_within *within, struct strlist *hints)
{
    struct buf why = BUF_INIT;
    if (!nccl_within_detours(within) || (within->p2p > 0 && !nccl_within_has_reason(within)))
        return;
    nccl_within_why(within, &why);
    strlist_addf(hints, "GPUs of a host do not use P2P: %s", why.data ? why.data : "");
    hints->failed = hints->failed || why.failed;
    buf_done(&why);
}

/* What to do about TCP, missing GPUDirect, and what the log does not say. */
static void add_hints(const struct nccl_report *r, struct strlist *hints)
{
    enum nccl_report_verdict verdict = nccl_report_verdict(r);
    if (verdict == NCCL_REPORT_UNPROVEN)
        hint_unproven(r, hints);
    if (verdict == NCCL_REPORT_TCP || verdict == NCCL_REPORT_MIXED)
        hint_tcp(r, hints);
    if (verdict == NCCL_REPORT_HOST || (verdict == NCCL_REPORT_MIXED && r->rdma_gpu < r->rdma))
        hint_gpu(r, hints);
    if (verdict == NCCL_REPORT_UNKNOWN)
        strlist_add(hints, "no line says how ranks are connected: run with NCCL_DEBUG=INFO up to "
                           "the first collective, and without NCCL_DEBUG_SUBSYS");
    hint_within(&r->within, hints);
    if (r->versions.count > 1)
        strlist_add(hints, "ranks have different versions of NCCL: use one image");
    if (r->folded > 0)
        strlist_addf(hints,
                     "Ray left out %zu lines that are alike, so that there are more connections "
                     "than these: set RAY_DEDUP_LOGS=0",
                     r->folded);
    if (r->warnings > 0)
        strlist_addf(hints, "NCCL warned %zu time%s, first:%s", r->warnings,
                     r->warnings == 1 ? "" : "s", r->warning);
}

/* ---- for people ---- */

static void join(const struct strlist *list, struct buf *out)
{
    for (size_t i = 0; i < list->count; i++)
        buf_printf(out, "%s%s", i ? ", " : "", list->items[i]);
}

static void head(const struct nccl_report *r, struct buf *out)
{
    buf_add_str(out, "NCCL ");
    if (r->versions.count > 0)
        join(&r->versions, out);
    else
        buf_add_str(out, "of unknown version");
    buf_printf(out, " on %zu host%s", r->host_count, r->host_count == 1 ? "" : "s");
    if (r->ranks > 0)
        buf_printf(out, ", up to %u ranks", r->ranks);
    if (r->networks.count > 0) {
        buf_add_str(out, ", network ");
        join(&r->networks, out);
    }
    if (r->plugins.count > 0) {
        buf_add_str(out, "\n  plugins   ");
        join(&r->plugins, out);
    }
    buf_add_str(out, "\n");
}

static void sums(const struct nccl_report *r, struct buf *out)
{
    buf_printf(out, "  between   %zu connection%s by RDMA, %zu with GPUDirect; %zu by TCP", r->rdma,
               r->rdma == 1 ? "" : "s", r->rdma_gpu, r->tcp);
    if (r->unproven > 0)
        buf_printf(out, "; %zu not proven", r->unproven);
    if (r->nvlink_hosts > 0)
        buf_printf(out, "; %zu by NVLink", r->nvlink_hosts);
    if (r->in_network > 0)
        buf_printf(out, "; reduction in the network (SHARP): %zu ends", r->in_network);
    buf_add_str(out, "\n  within    ");
    nccl_within_text(&r->within, out);
    buf_printf(out, "%s\n", r->nvls ? "; reduced in the switch (NVLS)" : "");
}

static void host_text(const struct nccl_report *r, const struct nccl_report_host *host,
                      struct buf *out)
{
    if (host->nic_count + host->p2p + host->shm == 0)
        return;
    buf_printf(out, "  host      %s: %zu P2P, %zu shared memory\n",
               host->name[0] ? host->name : "(not named)", host->p2p, host->shm);
    for (size_t i = 0; i < host->nic_count; i++) {
        const struct nccl_report_nic *nic = &host->nics[i];
        const char *device = nccl_report_device(host, nic);
        buf_printf(out, "              %s", nic->network);
        if (nic->index >= 0)
            buf_printf(out, "/%d", nic->index);
        buf_printf(out, "%s%s: %zu end%s", device[0] ? " " : "", device, nic->ends,
                   nic->ends == 1 ? "" : "s");
        if (nccl_net_kind(nic->network, &r->layers) == NCCL_NET_TCP)
            buf_add_str(out, ", TCP\n");
        else
            buf_printf(out, ", %zu with GPUDirect\n", nic->gpu);
    }
}

static void verdict_line(const struct nccl_report *r, struct buf *out)
{
    char words[128];
    buf_add_str(out, "  verdict   ");
    switch (nccl_report_verdict(r)) {
    case NCCL_REPORT_GPU:
        buf_printf(out, "RDMA with GPUDirect, %zu of %zu connections\n", r->rdma_gpu, r->rdma);
        break;
    case NCCL_REPORT_HOST:
        buf_printf(out, "RDMA, but %zu of %zu connections go without GPUDirect\n",
                   r->rdma - r->rdma_gpu, r->rdma);
        break;
    case NCCL_REPORT_MIXED:
        buf_printf(out, "TCP on %zu of %zu connections\n", r->tcp, r->tcp + r->rdma + r->unproven);
        break;
    case NCCL_REPORT_UNPROVEN:
        nccl_net_words(r->nets[r->unproven_net], &r->layers, words, sizeof words);
        buf_printf(out, "RDMA is not proven: %zu of %zu connections go over %s\n", r->unproven,
                   r->unproven + r->rdma, words);
        break;
    case NCCL_REPORT_TCP:
        buf_printf(out, "TCP: none of %zu connections uses RDMA\n", r->tcp);
        break;
    case NCCL_REPORT_NVLINK:
        buf_add_str(out, "NVLink between hosts: no network is used\n");
        break;
    case NCCL_REPORT_ONE_HOST:
        buf_add_str(out, r->within.net > 0 ? "one host, whose GPUs are connected by the network\n"
                                           : "one host: no network is used\n");
        break;
    case NCCL_REPORT_UNKNOWN:
        buf_add_str(out, "not known: no line says how hosts are connected\n");
        break;
    }
}

/* ---- demands ---- */

static void demand_bandwidth(const char *option, double least, struct strlist *failures)
{
    if (least >= 0)
        strlist_addf(failures,
                     "%s %g: NCCL's log has no bandwidth, and no table of a benchmark is beside it",
                     option, least);
}

static void demand_rdma(const struct nccl_report *r, struct strlist *failures)
{
    char words[128];
    enum nccl_report_verdict verdict = nccl_report_verdict(r);
    if (verdict == NCCL_REPORT_TCP) {
        strlist_add(failures, "RDMA is not used");
    } else if (verdict == NCCL_REPORT_MIXED) {
        strlist_addf(failures, "RDMA is not used by %zu of %zu connections", r->tcp,
                     r->tcp + r->rdma + r->unproven);
    } else if (verdict == NCCL_REPORT_UNPROVEN) {
        nccl_net_words(r->nets[r->unproven_net], &r->layers, words, sizeof words);
        strlist_addf(failures, "RDMA is not proven: %zu connections go over %s", r->unproven,
                     words);
    } else if (verdict == NCCL_REPORT_UNKNOWN) {
        strlist_add(failures, "RDMA is not proven: run with NCCL_DEBUG=INFO");
    }
}

void nccl_report_demand(const struct nccl_report *r, const struct verdict_demands *demands,
                        struct strlist *failures)
{
    demand_bandwidth("--min-busbw", demands->min_busbw, failures);
    demand_bandwidth("--min-best-busbw", demands->min_best_busbw, failures);
    demand_bandwidth("--min-percent", demands->min_percent, failures);
    if (demands->require_rdma)
        demand_rdma(r, failures);
}

/* ---- text ---- */

void nccl_report_text(const struct nccl_report *r, const struct strlist *failures, struct buf *out)
{
    struct strlist hints = STRLIST_INIT;
    add_hints(r, &hints);
    head(r, out);
    sums(r, out);
    for (size_t i = 0; i < r->host_count; i++)
        host_text(r, &r->hosts[i], out);
    verdict_line(r, out);
    for (size_t i = 0; i < hints.count; i++)
        buf_printf(out, "  %s      %s\n", i ? "    " : "hint", hints.items[i]);
    for (size_t i = 0; i < failures->count; i++)
        buf_printf(out, "  %s    %s\n", i ? "      " : "FAILED", failures->items[i]);
    out->failed = out->failed || hints.failed;
    strlist_done(&hints);
}

/* ---- for programs ---- */

static json_t *texts(const struct strlist *list)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < list->count; i++)
        if (json_array_append_new(array, json_string(list->items[i])) < 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static json_t *nic_json(const struct nccl_report_host *host, const struct nccl_report_nic *nic)
{
    const char *device = nccl_report_device(host, nic);
    return json_pack("{s:s, s:o*, s:s*, s:I, s:I}", "network", nic->network, "index",
                     nic->index >= 0 ? json_integer(nic->index) : NULL, "device",
                     device[0] ? device : NULL, "ends", (json_int_t)nic->ends, "gpudirect",
                     (json_int_t)nic->gpu);
}

static json_t *host_json(const struct nccl_report_host *host)
{
    json_t *nics = json_array();
    int rc = nics ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < host->nic_count; i++)
        rc = json_array_append_new(nics, nic_json(host, &host->nics[i]));
    if (rc < 0) {
        json_decref(nics);
        return NULL;
    }
    return json_pack("{s:s*, s:I, s:I, s:o}", "host", host->name[0] ? host->name : NULL, "p2p",
                     (json_int_t)host->p2p, "shm", (json_int_t)host->shm, "nics", nics);
}

json_t *nccl_report_json(const struct nccl_report *r, const struct strlist *failures)
{
    static const char *const words[] = {
        [NCCL_REPORT_UNKNOWN] = "not known", [NCCL_REPORT_ONE_HOST] = "one host",
        [NCCL_REPORT_NVLINK] = "nvlink",     [NCCL_REPORT_TCP] = "tcp",
        [NCCL_REPORT_MIXED] = "mixed",       [NCCL_REPORT_HOST] = "rdma",
        [NCCL_REPORT_GPU] = "gpudirect",     [NCCL_REPORT_UNPROVEN] = "not proven",
    };
    struct strlist hints = STRLIST_INIT;
    json_t *hosts = json_array();
    int rc = hosts ? 0 : -1;
    add_hints(r, &hints);
    for (size_t i = 0; rc == 0 && i < r->host_count; i++)
        rc = json_array_append_new(hosts, host_json(&r->hosts[i]));
    json_t *o =
        rc < 0 ? NULL
               : json_pack("{s:s, s:o, s:o, s:o, s:o*, s:{s:I, s:I, s:I, s:I, s:I, s:I, "
                           "s:I, s:I, s:I}, s:b, s:I, s:O, s:s, s:o, s:b, s:o}",
                           "kind", "nccl-log", "versions", texts(&r->versions), "networks",
                           texts(&r->networks), "plugins", texts(&r->plugins), "ranks",
                           r->ranks ? json_integer(r->ranks) : NULL, "connections", "rdma",
                           (json_int_t)r->rdma, "gpudirect", (json_int_t)r->rdma_gpu, "tcp",
                           (json_int_t)r->tcp, "unproven", (json_int_t)r->unproven, "p2p",
                           (json_int_t)r->within.p2p, "shm", (json_int_t)r->within.shm, "net",
                           (json_int_t)r->within.net, "nvlinkHosts", (json_int_t)r->nvlink_hosts,
                           "inNetwork", (json_int_t)r->in_network, "nvls", r->nvls, "linesLeftOut",
                           (json_int_t)r->folded, "hosts", hosts, "verdict",
                           words[nccl_report_verdict(r)], "hints", texts(&hints), "failed",
                           failures->count > 0, "failures", texts(failures));
    json_decref(hosts);
    strlist_done(&hints);
    return o;
}
