/* SPDX-License-Identifier: Apache-2.0 */
#include "benchmarks/bench/place.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/topo/host.h"
#include "lib/topo/rdma_text.h"

/* Of one port; 0: not known. */
static double port_gbit(const char *root, const char *nic, unsigned port)
{
    char path[PATH_MAX], text[64] = "";
    if (strchr(nic, '/') || nic[0] == '.')
        return 0;
    snprintf(path, sizeof path, "%s/sys/class/infiniband/%s/ports/%u/rate", root, nic, port);
    cleanup_file FILE *file = fopen(path, "re");
    if (!file || !fgets(text, sizeof text, file))
        return 0;
    text[strcspn(text, "\n")] = '\0';
    return rdma_rate_parse(text) / 1000.0;
}

/* sum: of all ports; below 0: of one nothing is known. */
static void add_names(const char *list, struct place *to, double *ret_sum, const char *root)
{
    cleanup_free char *names = list && list[0] == '=' ? strdup(list + 1) : NULL;
    char *rest = NULL;
    size_t length = 0;
    *ret_sum = 0;
    if (!names)
        return;
    for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        char *colon = strchr(name, ':');
        unsigned port = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 1;
        if (colon)
            *colon = '\0';
        double gbit = port_gbit(root, name, port);
        *ret_sum = gbit > 0 && *ret_sum >= 0 ? *ret_sum + gbit : -1;
        if (length < sizeof to->nics)
            length += (size_t)snprintf(to->nics + length, sizeof to->nics - length, "%s%s",
                                       length ? "," : "", name);
    }
    if (length >= sizeof to->nics)
        to->nics[0] = '\0'; /* the nearest one may be among the others */
}

/* "=mlx5_0,mlx5_1:1" names devices and their ports; without "=" those are prefixes, with "^" what
 * is left out: then nobody but NCCL knows. How fast an interface is, is not asked: virtual ones
 * have a speed too. */
static void read_nics(const char *root, struct place *to)
{
    double sum;
    const char *ranks = getenv("DRARUN_LOCAL_SIZE"), *rdma = getenv("NCCL_IB_HCA");
    unsigned long share = ranks ? strtoul(ranks, NULL, 10) : 0;
    add_names(rdma && *rdma ? rdma : getenv("NCCL_SOCKET_IFNAME"), to, &sum, root);
    if (sum > 0 && share > 0)
        to->nic_gbit = sum / (double)share;
}

/* ---- the machine ---- */

static bool is_one_of(const char *name, const char *list)
{
    size_t length = strlen(name);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || !at[length]))
            return true;
    return false;
}

struct nearest {
    enum topo_path path;
    const char *name; /* NULL: none, or several */
};

static void look_at(const struct topo_host *host, size_t gpu, const char *name, size_t pci,
                    struct nearest *nearest)
{
    enum topo_path path = host_path(host, gpu, pci, host->c2c == TOPO_YES);
    if (path == TOPO_PATH_UNKNOWN)
        return;
    if (nearest->path == TOPO_PATH_UNKNOWN || path < nearest->path)
        *nearest = (struct nearest){path, name};
    else if (path == nearest->path)
        nearest->name = NULL;
}

static struct nearest nearest_nic(const struct topo_host *host, const char *gpu, const char *nics)
{
    struct pci_addr address;
    struct nearest nearest = {0};
    size_t at = pci_addr_parse(gpu, &address, NULL) < 0 ? TOPO_NONE : host_find_pci(host, address);
    for (size_t i = 0; at != TOPO_NONE && i < host->rdma_count; i++)
        if (is_one_of(host->rdmas[i].name, nics))
            look_at(host, at, host->rdmas[i].name, host->rdmas[i].pci, &nearest);
    for (size_t i = 0; at != TOPO_NONE && i < host->netdev_count; i++)
        if (is_one_of(host->netdevs[i].name, nics))
            look_at(host, at, host->netdevs[i].name, host->netdevs[i].pci, &nearest);
    return nearest;
}

static int numa_of(const struct topo_host *host, const char *gpu)
{
    struct pci_addr address;
    size_t at = pci_addr_parse(gpu, &address, NULL) < 0 ? TOPO_NONE : host_find_pci(host, address);
    return at == TOPO_NONE ? -1 : (int)host_numa_of(host, at);
}

static void read_machine(const char *root, const char *gpu, struct place *to)
{
    struct topo_host host;
    cleanup_close int rootfd = *root ? open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if ((*root && rootfd < 0) || host_read_devices(rootfd, &host, NULL) < 0)
        return;
    struct nearest nearest = nearest_nic(&host, gpu, to->nics);
    to->numa = numa_of(&host, gpu);
    if (nearest.path != TOPO_PATH_UNKNOWN)
        snprintf(to->path, sizeof to->path, "%s", topo_path_name(nearest.path));
    if (nearest.name)
        snprintf(to->nearest, sizeof to->nearest, "%.23s", nearest.name);
    else if (to->nics[0] && !strchr(to->nics, ','))
        snprintf(to->nearest, sizeof to->nearest, "%.23s", to->nics); /* there is no other one */
    snprintf(to->kernel, sizeof to->kernel, "%s", host.kernel ? host.kernel : "");
    snprintf(to->driver, sizeof to->driver, "%s", host.driver ? host.driver : "");
    host_done(&host);
}

void place_read(const char *root, const char *gpu, struct place *ret_place)
{
    struct place place = {.numa = -1};
    const char *node = getenv("DRARUN_NODE");
    snprintf(place.node, sizeof place.node, "%s", node ? node : "");
    read_nics(root, &place);
    read_machine(root, gpu, &place);
    *ret_place = place;
}
