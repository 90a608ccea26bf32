/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/topo/host.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/topo/host_private.h"

/* ---- for the parts ---- */

int facts_nomem(struct facts_reader *r)
{
    return error_set(r->err, ENOMEM, "host facts: out of memory");
}

void facts_warn(struct facts_reader *r, const char *format, ...)
{
    char line[300];
    va_list args;
    struct strlist *warnings = &r->host->warnings;
    if (warnings->count >= TOPO_WARNINGS_MAX)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (char *p = line; *p; p++)
        if (iscntrl((unsigned char)*p) || (unsigned char)*p > 0x7e)
            *p = '?';
    strlist_add(warnings, warnings->count + 1 < TOPO_WARNINGS_MAX ? line : "and more like these");
}

int facts_list(struct facts_reader *r, const char *path, struct strlist *ret_names)
{
    struct drarun_error own = {0};
    struct strlist names = STRLIST_INIT;
    int rc = root_list(r->root, path, TOPO_ENTRIES_MAX, &names, &own);
    if (rc == -ENOMEM)
        return facts_nomem(r);
    if (rc < 0 && rc != -ENOENT)
        facts_warn(r, "%s", own.text);
    *ret_names = names;
    return 0;
}

void *facts_grow(struct facts_reader *r, void *array_pointer, size_t *count, size_t size)
{
    void **array = array_pointer;
    if ((*count & (*count - 1)) == 0) { /* full at 0 and each power of two */
        void *more = realloc(*array, (*count ? *count * 2 : 1) * size);
        if (!more) {
            facts_nomem(r);
            return NULL;
        }
        *array = more;
    }
    char *item = (char *)*array + *count * size;
    memset(item, 0, size);
    (*count)++;
    return item;
}

int facts_text(struct facts_reader *r, const char *path, char **ret_text)
{
    char text[ROOT_TEXT_MAX];
    int len = root_read(r->root, path, text, sizeof text);
    char *start = text;
    if (len <= 0)
        return 0;
    while (isspace((unsigned char)*start))
        start++;
    for (char *p = start; *p; p++)
        if (iscntrl((unsigned char)*p) || (unsigned char)*p > 0x7e)
            *p = '?';
    len = (int)strnlen(start, 127);
    while (len > 0 && start[len - 1] == ' ')
        len--;
    start[len] = '\0';
    *ret_text = len > 0 ? strdup(start) : NULL;
    return len > 0 && !*ret_text ? facts_nomem(r) : 0;
}

bool facts_name_ok(struct facts_reader *r, const char *where, const char *name)
{
    size_t len = strlen(name);
    size_t good =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:@-");
    if (len > 0 && len < TOPO_NAME_MAX && good == len && strcmp(name, "..") != 0)
        return true;
    facts_warn(r, "%s: \"%.80s\" is left out: expected a name of letters, digits and _.:@-", where,
               name);
    return false;
}

bool attr_number(int dir, const char *name, uint32_t *ret_value)
{
    char text[32], *end;
    int len = attr_read(dir, name, text, sizeof text);
    if (len <= 0 || len > 10 || !isdigit((unsigned char)text[0]))
        return false;
    unsigned long long value = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
    if (*end != '\0' || value > UINT32_MAX)
        return false;
    *ret_value = (uint32_t)value;
    return true;
}

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
    return strverscmp(x->name, y->name);
}

/* Indices follow addresses, hence the order of indices is that of addresses. */
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
        read_machine, read_numa, read_pci,   read_rdma,
        read_netdevs, read_gpus, read_nodes, read_limits,
    };
    return read_host(rootfd, false, parts, ARRAY_LEN(parts), ret_host, err);
}

int host_read_devices(int rootfd, struct topo_host *ret_host, struct drarun_error *err)
{
    static const part_fn parts[] = {read_machine, read_pci, read_rdma, read_netdevs, read_gpus};
    return read_host(rootfd, true, parts, ARRAY_LEN(parts), ret_host, err);
}

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

const struct topo_netdev *host_netdev_of(const struct topo_host *host, const struct topo_rdma *rdma)
{
    for (size_t i = 0; rdma->pci != TOPO_NONE && i < host->netdev_count; i++)
        if (host->netdevs[i].pci == rdma->pci)
            return &host->netdevs[i];
    return NULL;
}

static bool has_gid_of(const struct topo_rdma *rdma, const char *netdev)
{
    for (size_t p = 0; p < rdma->port_count; p++)
        for (size_t g = 0; g < rdma->ports[p].gid_count; g++)
            if (strcmp(rdma->ports[p].gids[g].netdev, netdev) == 0)
                return true;
    return false;
}

/* The interfaces of a device are those on its function, and a bond of its ports has its GIDs. */
const char *host_uplink_of(const struct topo_host *host, const struct topo_rdma *rdma)
{
    for (size_t i = 0; i < host->netdev_count; i++) {
        const struct topo_netdev *net = &host->netdevs[i];
        bool own = (rdma->pci != TOPO_NONE && net->pci == rdma->pci) || has_gid_of(rdma, net->name);
        if (net->uplink[0] && own)
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
