/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/inspect/awaited_link.h"

#include <fcntl.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/topo/root.h"

/* The kernel shows this setting in its first network namespace alone. */
static bool is_on_host_network(int root)
{
    cleanup_close int fd = root_open(root, "proc/sys/net/core/netdev_budget", O_PATH, NULL);
    return fd >= 0;
}

static bool is_set_up(int root, const char *interface)
{
    char path[128], text[ROOT_TEXT_MAX];
    snprintf(path, sizeof path, "sys/class/net/%.60s/flags", interface);
    return root_read(root, path, text, sizeof text) > 0 && (strtoul(text, NULL, 16) & IFF_UP);
}

static bool has_interface_up(int root, const json_t *port)
{
    size_t i;
    json_t *gid;
    json_array_foreach(json_object_get(port, "gidTable"), i, gid)
    {
        const char *interface = json_string_value(json_object_get(gid, "netdev"));
        if (interface && is_set_up(root, interface))
            return true;
    }
    return false;
}

/* A card of several ports may have a cable in one of them. */
static bool is_awaited(int root, const json_t *device)
{
    size_t i;
    json_t *port;
    bool here = false;
    json_array_foreach(json_object_get(device, "ports"), i, port)
    {
        if (!json_is_false(json_object_get(port, "active")))
            return false;
        here |= has_interface_up(root, port);
    }
    return here;
}

const char *inspect_awaited_link(const json_t *document, const char *root)
{
    size_t i;
    json_t *device;
    cleanup_close int fd = open(root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || is_on_host_network(fd))
        return NULL;
    json_array_foreach(json_object_get(document, "verbs"), i, device)
    {
        if (is_awaited(fd, device))
            return json_string_value(json_object_get(device, "device"));
    }
    return NULL;
}
