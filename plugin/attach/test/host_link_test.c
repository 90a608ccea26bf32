/* SPDX-License-Identifier: Apache-2.0 */
/* A device of the kernel's, in a network namespace of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_addr.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/test/skip.h"
#include "plugin/attach/address.h"
#include "plugin/attach/host_link.h"
#include "plugin/attach/link.h"
#include "plugin/attach/sysctl.h"

static void must(int rc, const struct drarun_error *err)
{
    if (rc < 0)
        fail_msg("%s", err->text);
}

static void make_veth(struct netlink *n, const char *name, const struct hw_addr *hw)
{
    struct drarun_error err = {0};
    struct ifinfomsg head = {.ifi_family = AF_UNSPEC};
    struct nl_msg *msg =
        netlink_message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof head);
    netlink_put_text(msg, IFLA_IFNAME, name);
    netlink_put(msg, IFLA_ADDRESS, hw->bytes, hw->len);
    struct nlattr *info = nla_nest_start(msg, IFLA_LINKINFO);
    netlink_put_text(msg, IFLA_INFO_KIND, "veth");
    nla_nest_end(msg, info);
    must(netlink_do_take(n, msg, &err), &err);
}

static void device_is_read_as_it_is(void **state)
{
    (void)state;
    struct drarun_error err = {0};
    CLEANUP(netlink_done) struct netlink n = {0};
    struct link link;
    struct link_change change = LINK_CHANGE_NONE;
    struct ip_prefix addresses[2];
    struct attach_order order = {.config = NET_CONFIG_INIT};
    if (unshare(CLONE_NEWNET) < 0)
        skip_for("needs root, with a network namespace of its own");
    must(netlink_open(&n, -1, NETLINK_ROUTE, &err), &err);
    assert_true(hw_addr_parse("02:00:00:00:00:31", &order.mac));
    make_veth(&n, "nic0", &order.mac);
    assert_int_equal(link_by_name(&n, "nic0", &link, &err), 1);
    change.up = 1;
    change.mtu = 1300;
    must(link_change(&n, link.index, &change, &err), &err);
    assert_true(ip_prefix_parse("10.0.0.2/24", &addresses[0]));
    assert_true(ip_prefix_parse("fd00::2/64", &addresses[1]));
    must(addresses_ensure(&n, link.index, addresses, 2, &err), &err);
    order.config.features = json_pack("{s:b, s:b}", "tso", 0, "nothing", 1);

    must(host_link_read(&order, &err), &err);
    assert_string_equal(order.host.name, "nic0");
    assert_int_equal(order.host.mtu, 1300);
    assert_true(order.host.up);
    assert_true(hw_addr_equal(&order.host.hw, &order.mac));
    assert_int_equal(order.host.address_count, 2); /* without the link-local one */
    assert_true(order.host.gso > 0);
    assert_true(json_is_true(json_object_get(order.host.features, "tx-tcp-segmentation")));
    assert_null(json_object_get(order.host.features, "nothing"));
    assert_null(order.host.private_flags);
    must(host_link_read(&order, &err), &err);
    attach_order_done(&order);
}

/* "fd00::5/64", of which the kernel makes temporary addresses. */
static void add_template(struct netlink *n, int index, struct drarun_error *err)
{
    struct ip_prefix address;
    struct ifaddrmsg head = {
        .ifa_family = AF_INET6, .ifa_prefixlen = 64, .ifa_index = (uint32_t)index};
    assert_true(ip_prefix_parse("fd00::5/64", &address));
    struct nl_msg *msg = netlink_message(RTM_NEWADDR, NLM_F_CREATE, &head, sizeof head);
    netlink_put(msg, IFA_LOCAL, address.bytes, ip_prefix_size(&address));
    netlink_put_u32(msg, IFA_FLAGS, IFA_F_NODAD | IFA_F_MANAGETEMPADDR);
    must(netlink_do_take(n, msg, err), err);
}

/* The kernel makes none for a device without a carrier. */
static void await_carrier(const char *name)
{
    struct ifreq request = {.ifr_flags = 0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    while (ioctl(fd, SIOCGIFFLAGS, &request) == 0 && !(request.ifr_flags & IFF_RUNNING))
        usleep(1000);
    close(fd);
}

static size_t count_global(const char *name)
{
    struct ifaddrs *list = NULL;
    size_t count = 0;
    assert_int_equal(getifaddrs(&list), 0);
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        const struct sockaddr_in6 *six = (const void *)i->ifa_addr;
        count += six && strcmp(i->ifa_name, name) == 0 && six->sin6_family == AF_INET6 &&
                 !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr);
    }
    freeifaddrs(list);
    return count;
}

/* They would be given back for good each time, and be more after each pod. */
static void temporary_addresses_are_left_out(void **state)
{
    (void)state;
    struct drarun_error err = {0};
    CLEANUP(netlink_done) struct netlink n = {0};
    struct link link;
    struct link_change up = LINK_CHANGE_NONE;
    struct attach_order order = {.config = NET_CONFIG_INIT};
    if (unshare(CLONE_NEWNET) < 0)
        skip_for("needs root, with a network namespace of its own");
    must(netlink_open(&n, -1, NETLINK_ROUTE, &err), &err);
    assert_true(hw_addr_parse("02:00:00:00:00:31", &order.mac));
    make_veth(&n, "nic0", &order.mac);
    assert_int_equal(link_by_name(&n, "nic0", &link, &err), 1);
    if (sysctl_ensure_device("ipv6", "nic0", "use_tempaddr", 2, &err) < 0)
        skip_for("needs a kernel with temporary addresses of IPv6");
    up.up = 1;
    must(link_change(&n, link.peer, &up, &err), &err);
    must(link_change(&n, link.index, &up, &err), &err);
    await_carrier("nic0");
    add_template(&n, link.index, &err);
    assert_true(count_global("nic0") > 1);
    must(host_link_read(&order, &err), &err);
    assert_int_equal(order.host.address_count, 1);
    attach_order_done(&order);
}

static void missing_device_is_told(void **state)
{
    (void)state;
    struct drarun_error err = {0};
    struct attach_order order = {
        .config = NET_CONFIG_INIT, .pci = "0000:01:00.0", .device = "nic-1"};
    if (unshare(CLONE_NEWNET) < 0)
        skip_for("needs root, with a network namespace of its own");
    assert_int_equal(host_link_read(&order, &err), -ENODEV);
    assert_string_equal(err.text, "device nic-1 is not on this host");
    assert_int_equal(order.host.name[0], '\0');
}

/* As of virtio: sysfs has put it on a function, of which the kernel's list of links says nothing.
 */
static void device_without_its_function(void **state)
{
    (void)state;
    struct drarun_error err = {0};
    CLEANUP(netlink_done) struct netlink n = {0};
    struct attach_order order = {.config = NET_CONFIG_INIT,
                                 .pci = "0000:01:00.0",
                                 .parent = "0000:01:00.0",
                                 .device = "nic-1",
                                 .host.name = "nic0"};
    if (unshare(CLONE_NEWNET) < 0)
        skip_for("needs root, with a network namespace of its own");
    must(netlink_open(&n, -1, NETLINK_ROUTE, &err), &err);
    assert_true(hw_addr_parse("02:00:00:00:00:31", &order.mac));
    make_veth(&n, "nic0", &order.mac);
    must(host_link_read(&order, &err), &err);
    assert_string_equal(order.parent, "");
    assert_string_equal(order.pci, "0000:01:00.0");
    assert_true(order.host.mtu > 0);
    attach_order_done(&order);
    assert_true(hw_addr_parse("02:00:00:00:00:32", &order.mac)); /* another one of that name */
    assert_int_equal(host_link_read(&order, &err), -ENODEV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_is_read_as_it_is),
        cmocka_unit_test(temporary_addresses_are_left_out),
        cmocka_unit_test(missing_device_is_told),
        cmocka_unit_test(device_without_its_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
