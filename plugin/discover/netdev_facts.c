/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/base/cleanup.h"
#include "lib/topo/root.h"
#include "plugin/discover/discover_private.h"

#define CLASS "sys/class/net/"

static bool number(int dir, const char *name, int base, uint32_t *ret_value)
{
    char text[32], *end;
    if (attr_read(dir, name, text, sizeof text) <= 0)
        return false;
    unsigned long value = strtoul(text, &end, base);
    if (*end != '\0' || value > UINT32_MAX)
        return false;
    *ret_value = (uint32_t)value;
    return true;
}

static int open_netdev(struct discovery *d, const char *name)
{
    char path[sizeof CLASS + TOPO_NAME_MAX];
    snprintf(path, sizeof path, CLASS "%s", name);
    return root_open(d->root, path, O_PATH | O_DIRECTORY, NULL);
}

/* sysfs does not tell a veth from a dummy; the kernel does, by the name of the driver. */
static void read_kind(struct discovery *d, struct node_netdev *netdev)
{
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
    struct ifreq request = {.ifr_data = (char *)&info};
    snprintf(netdev->kind, sizeof netdev->kind, "virtual");
    cleanup_close int fd =
        d->source->root < 0 ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", netdev->name);
    if (fd >= 0 && ioctl(fd, SIOCETHTOOL, &request) == 0 && info.driver[0])
        snprintf(netdev->kind, sizeof netdev->kind, "%.15s", info.driver);
}

bool netdev_facts_read(struct discovery *d, const struct topo_netdev *net,
                       struct node_netdev *ret_netdev)
{
    uint32_t flags = 0, carrier = 0;
    struct node_netdev netdev = {.mtu = net->mtu, .speed_mbps = net->speed_mbps, .up = net->up};
    cleanup_close int dir = open_netdev(d, net->name);
    if (dir < 0 || strlen(net->name) >= sizeof netdev.name)
        return false;
    snprintf(netdev.name, sizeof netdev.name, "%s", net->name);
    snprintf(netdev.mac, sizeof netdev.mac, "%s", net->mac);
    number(dir, "ifindex", 10, &netdev.ifindex);
    number(dir, "type", 10, &netdev.arp_type);
    bool set_up = number(dir, "flags", 16, &flags) && flags & 1; /* IFF_UP */
    if (set_up && number(dir, "carrier", 10, &carrier))
        netdev.carrier = carrier ? TOPO_YES : TOPO_NO;
    else if (!set_up && net->up == TOPO_NO)
        netdev.up = TOPO_UNKNOWN; /* nobody has asked it to be up */
    if (net->pci == TOPO_NONE)
        read_kind(d, &netdev);
    *ret_netdev = netdev;
    return true;
}

/* "pf0vf3", "c1pf0sf2", "pf0": what devlink calls the ports of an embedded switch; "p0" is the
 * wire's own (Documentation/networking/devlink/devlink-port.rst). */
bool netdev_is_representor(struct discovery *d, const char *name)
{
    char text[64];
    unsigned controller = 0, pf = 0;
    int end = 0;
    cleanup_close int dir = open_netdev(d, name);
    if (dir < 0 || attr_read(dir, "phys_port_name", text, sizeof text) <= 0)
        return false;
    const char *rest = text;
    if (sscanf(rest, "c%u%n", &controller, &end) == 1)
        rest += end;
    return sscanf(rest, "pf%u", &pf) == 1;
}
