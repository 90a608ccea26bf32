/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <errno.h>
#include <fcntl.h>

#include "lib/base/cleanup.h"
#include "lib/topo/root.h"
#include "plugin/discover/discover_private.h"

#define NODES_MAX 1024u /* in one class of character devices */

void chardev_add(struct discovery *d, const char *path, const char *dev, struct node_chardev *list,
                 size_t *count)
{
    char text[32];
    unsigned major = 0, minor = 0;
    struct stat st;
    int end = 0;
    if (*count >= NODE_CHARDEVS_MAX)
        return;
    bool known = dev && root_read(d->root, dev, text, sizeof text) > 0 &&
                 sscanf(text, "%u:%u%n", &major, &minor, &end) == 2 && text[end] == '\0';
    cleanup_close int fd = known ? -1 : root_open(d->root, path + 1, O_PATH, NULL);
    if (!known && (fd < 0 || fstat(fd, &st) < 0))
        return;
    if (!known && S_ISCHR(st.st_mode)) {
        major = major(st.st_rdev);
        minor = minor(st.st_rdev);
    }
    struct node_chardev *node = &list[(*count)++];
    *node = (struct node_chardev){.major = major, .minor = minor};
    snprintf(node->path, sizeof node->path, "%s", path);
}

/* Whether a character device in `folder` is the RDMA device's, and of its port if it is of one. */
static bool is_of(struct discovery *d, const char *folder, const char *node,
                  const struct node_rdma *rdma)
{
    char path[256], text[TOPO_NAME_MAX];
    snprintf(path, sizeof path, "%s/%.63s/ibdev", folder, node);
    if (root_read(d->root, path, text, sizeof text) > 0 && strcmp(text, rdma->name) != 0)
        return false;
    snprintf(path, sizeof path, "%s/%.63s/port", folder, node);
    return root_read(d->root, path, text, sizeof text) <= 0 ||
           strtoul(text, NULL, 10) == rdma->port;
}

static int add_nodes(struct discovery *d, const char *folder, struct node_rdma *rdma)
{
    struct strlist names = STRLIST_INIT;
    int rc = root_list(d->root, folder, NODES_MAX, &names, NULL);
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        char path[64], dev[256];
        const char *name = names.items[i];
        if (strlen(name) > 24 ||
            strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789") != strlen(name) ||
            !is_of(d, folder, name, rdma))
            continue;
        snprintf(path, sizeof path, "/dev/infiniband/%s", name);
        snprintf(dev, sizeof dev, "%s/%s/dev", folder, name);
        chardev_add(d, path, dev, rdma->chardevs, &rdma->chardev_count);
    }
    strlist_done(&names);
    return rc == -ENOMEM ? discover_nomem(d) : 0;
}

/* A PCI function lists its own; a software device is looked for in the class of all. */
static int read_nodes(struct discovery *d, const struct topo_rdma *rdma, struct node_rdma *out)
{
    static const char *const classes[] = {"infiniband_verbs",
                                          "infiniband_mad" /* when asked for */};
    char folder[160];
    for (size_t i = 0; i < (d->source->config->management_nodes ? 2 : 1); i++) {
        if (rdma->pci != TOPO_NONE)
            snprintf(folder, sizeof folder, "sys/class/infiniband/%s/device/%s", rdma->name,
                     classes[i]);
        else
            snprintf(folder, sizeof folder, "sys/class/%s", classes[i]);
        int rc = add_nodes(d, folder, out);
        if (rc < 0)
            return rc;
    }
    chardev_add(d, "/dev/infiniband/rdma_cm", "sys/class/misc/rdma_cm/dev", out->chardevs,
                &out->chardev_count);
    return 0;
}

static void copy_text(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text ? text : "");
}

static int read_port(struct discovery *d, const struct topo_port *port, struct node_rdma *out)
{
    out->link = port->link;
    out->active = port->active;
    out->rate_mbps = port->rate_mbps;
    snprintf(out->state, sizeof out->state, "%s", port->state);
    if (port->gid_count == 0)
        return 0;
    out->gids = malloc(port->gid_count * sizeof *out->gids);
    if (!out->gids)
        return discover_nomem(d);
    memcpy(out->gids, port->gids, port->gid_count * sizeof *out->gids);
    out->gid_count = port->gid_count;
    return 0;
}

int rdma_facts_read(struct discovery *d, const struct topo_rdma *rdma, uint32_t port,
                    struct node_rdma *ret_rdma)
{
    struct node_rdma out = {.port = port, .ports = (uint32_t)rdma->port_count};
    int rc = 0;
    snprintf(out.name, sizeof out.name, "%s", rdma->name);
    copy_text(out.guid, sizeof out.guid, rdma->node_guid);
    copy_text(out.firmware, sizeof out.firmware, rdma->firmware);
    copy_text(out.board, sizeof out.board, rdma->board);
    for (size_t i = 0; rc == 0 && i < rdma->port_count; i++)
        if (rdma->ports[i].number == port)
            rc = read_port(d, &rdma->ports[i], &out);
    *ret_rdma = out; /* the device owns its GIDs from here on, also when this fails */
    return rc < 0 ? rc : read_nodes(d, rdma, ret_rdma);
}
