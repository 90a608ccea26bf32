/* SPDX-License-Identifier: Apache-2.0 */
/* AMD's GPUs as ROCm counts them: in the order of the KFD's nodes, whatever their addresses are,
 * and only those whose render node can be opened. A GPU that is partitioned has several nodes. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/topo/host_private.h"

#define NODES "sys/class/kfd/kfd/topology/nodes"

/* "location_id 33536" among the node's lines. */
static bool property(const char *text, const char *name, uint64_t *ret_value)
{
    size_t length = strlen(name);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, name, length) == 0 && line[length] == ' ')
            return sscanf(line + length, " %" SCNu64, ret_value) == 1;
    return false;
}

/* In a container without the directory nothing is known of render nodes. */
static bool is_given(struct facts_reader *r, const char *text)
{
    char path[48];
    uint64_t minor = 0;
    cleanup_close int all = root_open(r->root, "dev/dri", O_PATH, NULL);
    if (all < 0 || !property(text, "drm_render_minor", &minor) || minor == 0)
        return true;
    snprintf(path, sizeof path, "dev/dri/renderD%" PRIu64, minor);
    cleanup_close int fd = root_open(r->root, path, O_PATH, NULL);
    return fd >= 0;
}

/* location: bus, device and function, as PCI numbers them. */
static struct topo_gpu *find_gpu(struct topo_host *host, uint64_t domain, uint64_t location)
{
    struct pci_addr addr = {.domain = (uint32_t)domain,
                            .bus = (uint8_t)(location >> 8),
                            .device = (uint8_t)(location >> 3 & 0x1f),
                            .function = (uint8_t)(location & 7)};
    for (size_t i = 0; i < host->gpu_count; i++)
        if (strcmp(host->gpus[i].vendor, "AMD") == 0 &&
            pci_addr_compare(host->pci[host->gpus[i].pci].place.addr, addr) == 0)
            return &host->gpus[i];
    return NULL;
}

static int add_ordinal(struct facts_reader *r, struct topo_gpu *gpu, unsigned ordinal)
{
    char *text = NULL;
    if (asprintf(&text, "%s%s%u", gpu->hip ? gpu->hip : "", gpu->hip ? "," : "", ordinal) < 0)
        return facts_nomem(r);
    free(gpu->hip);
    gpu->hip = text;
    gpu->usable = TOPO_YES;
    return 0;
}

/* CPUs are nodes too, without SIMD units. */
int read_kfd(struct facts_reader *r)
{
    struct strlist names = STRLIST_INIT;
    struct topo_host *host = r->host;
    unsigned ordinal = 0;
    bool has_nodes = false;
    int rc = facts_list(r, NODES, &names);
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        char path[128], text[ROOT_TEXT_MAX];
        uint64_t simds = 0, domain = 0, location = 0;
        snprintf(path, sizeof path, NODES "/%s/properties", names.items[i]);
        if (root_read(r->root, path, text, sizeof text) <= 0)
            continue; /* the container was not given it */
        has_nodes = true;
        property(text, "domain", &domain); /* kernels before 5.7 have none */
        if (!property(text, "simd_count", &simds) || simds == 0 ||
            !property(text, "location_id", &location) || !is_given(r, text))
            continue;
        struct topo_gpu *gpu = find_gpu(host, domain, location);
        rc = gpu ? add_ordinal(r, gpu, ordinal) : 0;
        ordinal++;
    }
    for (size_t i = 0; has_nodes && i < host->gpu_count; i++)
        if (strcmp(host->gpus[i].vendor, "AMD") == 0 && !host->gpus[i].hip)
            host->gpus[i].usable = TOPO_NO;
    strlist_done(&names);
    return rc;
}
