/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/topo/host_private.h"
#include "lib/topo/rdma_text.h"

#define CLASS "sys/class/infiniband"
/* A table has 256 entries, mostly empty; those that are set have small indices and few holes. */
#define GID_GAP 24u
#define GIDS_MAX 1024u
#define PORTS_MAX 16u

static void read_gid_attributes(int attrs, struct topo_gid *gid, enum topo_link link)
{
    char name[32], text[ROOT_TEXT_MAX];
    if (attrs < 0)
        return;
    snprintf(name, sizeof name, "types/%u", gid->index);
    int len = attr_read(attrs, name, text, sizeof text);
    if (len > 0)
        gid->type = gid_type_parse(text, link);
    gid->elsewhere = len == -EINVAL;
    snprintf(name, sizeof name, "ndevs/%u", gid->index);
    if (attr_read(attrs, name, text, sizeof text) > 0 && strlen(text) < sizeof gid->netdev)
        memcpy(gid->netdev, text, strlen(text) + 1);
}

static int read_gids(struct facts_reader *r, int gids, int attrs, struct topo_port *port)
{
    uint32_t empty = 0;
    for (uint32_t index = 0; index < GIDS_MAX && empty <= GID_GAP; index++) {
        char name[16], text[64];
        uint8_t bytes[16];
        snprintf(name, sizeof name, "%u", index);
        int len = attr_read(gids, name, text, sizeof text);
        if (len == -ENOENT)
            return 0;
        if (len < 0 || !gid_parse(text, bytes) || gid_is_zero(bytes)) {
            empty++;
            continue;
        }
        empty = 0;
        struct topo_gid *gid = facts_grow(r, &port->gids, &port->gid_count, sizeof *gid);
        if (!gid)
            return -ENOMEM;
        gid->index = index;
        memcpy(gid->bytes, bytes, sizeof bytes);
        read_gid_attributes(attrs, gid, port->link);
    }
    return 0;
}

static int read_port(struct facts_reader *r, struct topo_rdma *rdma, const char *path,
                     uint32_t number)
{
    char text[ROOT_TEXT_MAX];
    cleanup_close int dir = root_open(r->root, path, O_PATH | O_DIRECTORY, NULL);
    struct topo_port *port =
        dir < 0 ? NULL : facts_grow(r, &rdma->ports, &rdma->port_count, sizeof *port);
    if (!port)
        return dir < 0 ? 0 : -ENOMEM;
    port->number = number;
    if (attr_read(dir, "state", text, sizeof text) > 0)
        port->active = rdma_state_parse(text, port->state, sizeof port->state);
    if (attr_read(dir, "phys_state", text, sizeof text) > 0)
        rdma_phys_state_parse(text, port->phys_state, sizeof port->phys_state);
    if (attr_read(dir, "link_layer", text, sizeof text) > 0)
        port->link = rdma_link_parse(text);
    if (attr_read(dir, "rate", text, sizeof text) > 0) {
        port->rate_mbps = rdma_rate_parse(text);
        rdma_lanes_parse(text, &port->lanes, port->lane_speed, sizeof port->lane_speed);
    }
    attr_number(dir, "lid", &port->lid);
    cleanup_close int gids = openat(dir, "gids", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_close int attrs =
        openat(dir, "gid_attrs", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return gids < 0 ? 0 : read_gids(r, gids, attrs, port);
}

static int read_ports(struct facts_reader *r, struct topo_rdma *rdma, const char *device)
{
    char path[512];
    struct strlist names = STRLIST_INIT;
    snprintf(path, sizeof path, "%s/ports", device);
    int rc = facts_list(r, path, &names);
    for (size_t i = 0; rc == 0 && i < names.count && i < PORTS_MAX; i++) {
        char *end;
        unsigned long number = strtoul(names.items[i], &end, 10);
        if (*end != '\0' || number == 0 || number > 255)
            continue;
        snprintf(path, sizeof path, "%s/ports/%lu", device, number);
        rc = read_port(r, rdma, path, (uint32_t)number);
    }
    strlist_done(&names);
    return rc;
}

#define VERBS_CLASS "sys/class/infiniband_verbs"

/* Whether the character device is that RDMA device's; what is not known is not. */
static bool is_uverbs_of(struct facts_reader *r, const char *uverbs, const char *rdma)
{
    char path[512], text[ROOT_TEXT_MAX];
    snprintf(path, sizeof path, VERBS_CLASS "/%s/ibdev", uverbs);
    return root_read(r->root, path, text, sizeof text) > 0 && strcmp(text, rdma) == 0;
}

/* For a device without a PCI function, as of software RDMA, and where several share one. */
static int search_uverbs(struct facts_reader *r, struct topo_rdma *rdma)
{
    struct strlist names = STRLIST_INIT;
    int rc = facts_list(r, VERBS_CLASS, &names);
    for (size_t i = 0; rc == 0 && i < names.count && !rdma->uverbs[0]; i++)
        if (strncmp(names.items[i], "uverbs", 6) == 0 &&
            facts_name_ok(r, VERBS_CLASS, names.items[i]) &&
            is_uverbs_of(r, names.items[i], rdma->name))
            snprintf(rdma->uverbs, sizeof rdma->uverbs, "%s", names.items[i]);
    strlist_done(&names);
    return rc;
}

/* The kernel lists the character device in the PCI function's folder infiniband_verbs. */
static int read_uverbs(struct facts_reader *r, struct topo_rdma *rdma, const char *device)
{
    char path[512];
    struct strlist names = STRLIST_INIT;
    snprintf(path, sizeof path, "%s/device/infiniband_verbs", device);
    int rc = facts_list(r, path, &names);
    if (rc == 0 && names.count == 1 && facts_name_ok(r, path, names.items[0]))
        snprintf(rdma->uverbs, sizeof rdma->uverbs, "%s", names.items[0]);
    else if (rc == 0)
        rc = search_uverbs(r, rdma);
    if (rc == 0 && rdma->uverbs[0]) {
        snprintf(path, sizeof path, "dev/infiniband/%s", rdma->uverbs);
        cleanup_close int fd = root_open(r->root, path, O_PATH, NULL);
        rdma->usable = fd >= 0 ? TOPO_YES : TOPO_NO;
    }
    strlist_done(&names);
    return rc;
}

static int read_texts(struct facts_reader *r, struct topo_rdma *rdma, const char *device)
{
    char path[512];
    struct {
        const char *name;
        char **to;
    } files[] = {
        {"node_guid", &rdma->node_guid}, {"fw_ver", &rdma->firmware}, {"board_id", &rdma->board}};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof path, "%s/%s", device, files[i].name);
        int rc = facts_text(r, path, files[i].to);
        if (rc < 0)
            return rc;
    }
    cleanup_close int dir = root_open(r->root, device, O_PATH | O_DIRECTORY, NULL);
    char text[ROOT_TEXT_MAX];
    rdma->iwarp = dir >= 0 && attr_read(dir, "node_type", text, sizeof text) > 0 &&
                  strstr(text, "RNIC") != NULL;
    return 0;
}

static int read_device(struct facts_reader *r, const char *name)
{
    char device[128];
    struct topo_host *host = r->host;
    struct topo_rdma *rdma = facts_grow(r, &host->rdmas, &host->rdma_count, sizeof *rdma);
    if (!rdma)
        return -ENOMEM;
    snprintf(rdma->name, sizeof rdma->name, "%s", name);
    snprintf(device, sizeof device, CLASS "/%s", name);
    int rc = facts_device_pci(r, device, &rdma->pci, rdma->subfunction);
    if (rc == 0)
        rc = read_texts(r, rdma, device);
    if (rc == 0)
        rc = read_uverbs(r, rdma, device);
    return rc < 0 ? rc : read_ports(r, rdma, device);
}

/* Whether the entry leads to a directory; warns when it does not. */
static bool leads_somewhere(struct facts_reader *r, const char *name)
{
    char path[128];
    struct drarun_error own = {0};
    snprintf(path, sizeof path, CLASS "/%s", name);
    cleanup_close int fd = root_open(r->root, path, O_PATH | O_DIRECTORY, &own);
    if (fd < 0)
        facts_warn(r, "%s", own.text);
    return fd >= 0;
}

int read_rdma(struct facts_reader *r)
{
    struct strlist names = STRLIST_INIT;
    int rc = facts_list_devices(r, CLASS, &names);
    for (size_t i = 0; rc == 0 && i < names.count; i++)
        if (facts_name_ok(r, CLASS, names.items[i]) && leads_somewhere(r, names.items[i]))
            rc = read_device(r, names.items[i]);
    strlist_done(&names);
    return rc;
}
