/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
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
    cleanup_close int fd = d->source->root < 0 ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", netdev->name);
    if (fd >= 0 && ioctl(fd, SIOCETHTOOL, &request) == 0 && info.driver[0])
        snprintf(netdev->kind, sizeof netdev->kind, "%.15s", info.driver);
}

/* One that does not fit is left out. */
static void join_address(char *list, size_t size, int family, const void *address, unsigned length)
{
    char text[INET6_ADDRSTRLEN];
    size_t used = strlen(list);
    if (!inet_ntop(family, address, text, sizeof text))
        return;
    int n = snprintf(list + used, size - used, "%s%s/%u", used ? "," : "", text, length);
    if (n < 0 || (size_t)n >= size - used)
        list[used] = '\0';
}

static unsigned bits_of(const uint8_t *mask, size_t size)
{
    unsigned bits = 0;
    for (size_t i = 0; i < size; i++)
        bits += (unsigned)__builtin_popcount(mask[i]);
    return bits;
}

static void add_address(const struct ifaddrs *one, struct node_netdev *netdev)
{
    const struct sockaddr *sa = one->ifa_addr, *mask = one->ifa_netmask;
    if (sa->sa_family == AF_INET && mask) {
        const struct sockaddr_in *in = (const void *)sa, *bits = (const void *)mask;
        join_address(netdev->ipv4, sizeof netdev->ipv4, AF_INET, &in->sin_addr,
                     bits_of((const uint8_t *)&bits->sin_addr, 4));
    } else if (sa->sa_family == AF_INET6 && mask) {
        const struct sockaddr_in6 *in = (const void *)sa, *bits = (const void *)mask;
        if (!IN6_IS_ADDR_LINKLOCAL(&in->sin6_addr))
            join_address(netdev->ipv6, sizeof netdev->ipv6, AF_INET6, &in->sin6_addr,
                         bits_of(bits->sin6_addr.s6_addr, 16));
    }
}

static void read_addresses(struct discovery *d, struct node_netdev *netdev)
{
    for (const struct ifaddrs *i = d->addresses; i; i = i->ifa_next)
        if (i->ifa_addr && strcmp(i->ifa_name, netdev->name) == 0)
            add_address(i, netdev);
}

bool netdev_facts_read(struct discovery *d, const struct topo_netdev *net,
                       struct node_netdev *ret_netdev)
{
    uint32_t flags = 0, carrier = 0;
    struct node_netdev netdev = {.mtu = net->mtu, .speed_mbps = net->speed_mbps, .up = net->up};
    cleanup_close int dir = open_netdev(d, net->name);
    if (dir < 0 || strlen(net->name) >= sizeof netdev.name)
        return false;
    memcpy(netdev.name, net->name, strlen(net->name) + 1);
    snprintf(netdev.mac, sizeof netdev.mac, "%s", net->mac);
    number(dir, "ifindex", 10, &netdev.ifindex);
    number(dir, "type", 10, &netdev.arp_type);
    bool set_up = number(dir, "flags", 16, &flags) && flags & 1; /* IFF_UP */
    if (set_up && number(dir, "carrier", 10, &carrier))
        netdev.carrier = carrier ? TOPO_YES : TOPO_NO;
    else if (!set_up && net->up == TOPO_NO)
        netdev.up = TOPO_UNKNOWN; /* nobody has asked it to be up */
    read_addresses(d, &netdev);
    if (net->pci == TOPO_NONE)
        read_kind(d, &netdev);
    *ret_netdev = netdev;
    return true;
}
