/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/topo/host_private.h"

/* ---- order ---- */

static size_t remapped(size_t index, const size_t *map)
{
    return index == TOPO_NONE ? TOPO_NONE : map[index];
}

struct sorted {
    struct topo_pci pci;
    size_t old;
};

/* Those without an address come last, as they came. */
static int by_address(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    const struct pci_place *p = &x->pci.place, *q = &y->pci.place;
    int rc = p->addr_unknown - q->addr_unknown;
    if (rc == 0 && !p->addr_unknown)
        rc = pci_addr_compare(p->addr, q->addr);
    return rc ? rc : x->old < y->old ? -1 : x->old > y->old;
}

/* Where each function went when they were sorted. */
static size_t *sort_pci(struct topo_host *host)
{
    cleanup_free struct sorted *sorted = calloc(host->pci_count + 1, sizeof *sorted);
    size_t *map = sorted ? calloc(host->pci_count + 1, sizeof *map) : NULL;
    for (size_t i = 0; map && i < host->pci_count; i++)
        sorted[i] = (struct sorted){host->pci[i], i};
    if (map)
        qsort(sorted, host->pci_count, sizeof *sorted, by_address);
    for (size_t i = 0; map && i < host->pci_count; i++) {
        host->pci[i] = sorted[i].pci;
        map[sorted[i].old] = i;
    }
    return map;
}

static int gpu_order(const void *a, const void *b)
{
    const struct topo_gpu *x = a, *y = b;
    return x->pci < y->pci ? -1 : x->pci > y->pci;
}

static int rdma_order(const void *a, const void *b)
{
    const struct topo_rdma *x = a, *y = b;
    if (x->pci != y->pci)
        return x->pci < y->pci ? -1 : 1; /* TOPO_NONE is the largest */
    if (!x->subfunction[0] != !y->subfunction[0])
        return x->subfunction[0] ? 1 : -1; /* the function's own first */
    return strverscmp(x->name, y->name);
}

/* Indices follow addresses, so both have the same order. */
int host_arrange(struct topo_host *host, struct drarun_error *err)
{
    cleanup_free size_t *map = sort_pci(host);
    if (!map)
        return error_set(err, ENOMEM, "host facts: out of memory");
    for (size_t i = 0; i < host->gpu_count; i++)
        host->gpus[i].pci = remapped(host->gpus[i].pci, map);
    for (size_t i = 0; i < host->rdma_count; i++)
        host->rdmas[i].pci = remapped(host->rdmas[i].pci, map);
    for (size_t i = 0; i < host->netdev_count; i++)
        host->netdevs[i].pci = remapped(host->netdevs[i].pci, map);
    if (host->gpu_count > 1)
        qsort(host->gpus, host->gpu_count, sizeof *host->gpus, gpu_order);
    if (host->rdma_count > 1)
        qsort(host->rdmas, host->rdma_count, sizeof *host->rdmas, rdma_order);
    return 0;
}

/* ---- the whole ---- */

typedef int (*part_fn)(struct facts_reader *);

static int read_parts(struct facts_reader *r, const part_fn *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int rc = parts[i](r);
        if (rc < 0)
            return rc;
    }
    return r->host->warnings.failed ? facts_nomem(r) : host_arrange(r->host, r->err);
}

static int read_host(int rootfd, bool devices_alone, const part_fn *parts, size_t count,
                     struct topo_host *ret_host, struct drarun_error *err)
{
    cleanup_close int slash = -1;
    if (rootfd < 0) {
        rootfd = slash = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (slash < 0)
            return error_set(err, errno, "open /: %s", strerror(errno));
    }
    struct topo_host host = {.cpu_family = -1, .cpu_model = -1};
    struct facts_reader reader = {
        .root = rootfd, .devices_alone = devices_alone, .host = &host, .err = err};
    int rc = read_parts(&reader, parts, count);
    if (rc < 0)
        host_done(&host);
    else
        *ret_host = host;
    return rc;
}

int host_read(int rootfd, struct topo_host *ret_host, struct drarun_error *err)
{
    static const part_fn parts[] = {
        read_machine,    read_numa, read_pci,   read_rdma,   read_netdevs,
        read_gid_owners, read_gpus, read_nodes, read_limits,
    };
    return read_host(rootfd, false, parts, ARRAY_LEN(parts), ret_host, err);
}

int host_read_devices(int rootfd, struct topo_host *ret_host, struct drarun_error *err)
{
    static const part_fn parts[] = {read_machine, read_pci, read_rdma, read_netdevs, read_gpus};
    return read_host(rootfd, true, parts, ARRAY_LEN(parts), ret_host, err);
}
