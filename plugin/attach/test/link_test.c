/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/test/skip.h"
#include "plugin/attach/link.h"

/* What a kernel before 5.14 says of a link: no parent. */
static struct nl_msg *answer_of(const struct link *link)
{
    struct ifinfomsg head = {.ifi_family = AF_UNSPEC, .ifi_index = link->index};
    struct nl_msg *msg = netlink_message(RTM_NEWLINK, 0, &head, sizeof head);
    netlink_put_text(msg, IFLA_IFNAME, link->name);
    netlink_put(msg, IFLA_ADDRESS, link->hw.bytes, link->hw.len);
    if (link->kind[0]) {
        struct nlattr *info = nla_nest_start(msg, IFLA_LINKINFO);
        netlink_put_text(msg, IFLA_INFO_KIND, link->kind);
        nla_nest_end(msg, info);
    }
    return msg;
}

/* The device itself, or what it sits on: the function of a virtio device. */
static void check_place(const struct link *link, const char *parent)
{
    char path[64], place[PATH_MAX], wanted[64];
    snprintf(path, sizeof path, "/sys/class/net/%s/device", link->name);
    snprintf(wanted, sizeof wanted, "/%s/", parent);
    if (!realpath(path, place))
        return; /* another namespace's sysfs */
    strncat(place, "/", sizeof place - strlen(place) - 1);
    if (!strstr(place, wanted))
        fail_msg("%s: %s in %s", link->name, parent, place);
}

/* On the interfaces of this machine that have hardware. */
static void the_driver_names_the_parent(void **state)
{
    (void)state;
    CLEANUP(netlink_done) struct netlink n = {0};
    struct if_nameindex *all = if_nameindex();
    unsigned seen = 0;
    if (netlink_open(&n, -1, NETLINK_ROUTE, NULL) < 0 || !all)
        skip_for("no netlink on this machine");
    int fd = nl_socket_get_fd(n.sock);
    for (const struct if_nameindex *i = all; i->if_index; i++) {
        struct link link, old;
        if (link_by_index(&n, (int)i->if_index, &link, NULL) != 1)
            continue;
        assert_false(link.by_driver); /* this kernel names them */
        struct nl_msg *msg = answer_of(&link);
        assert_true(link_take(nlmsg_hdr(msg), fd, &old));
        nlmsg_free(msg);
        assert_string_equal(old.name, link.name);
        assert_int_equal(old.by_driver, old.parent[0] != '\0');
        if (link.kind[0] || !link.parent[0]) /* a virtual one, or what is no device of a bus */
            assert_string_equal(old.parent, "");
        else
            check_place(&link, old.parent);
        seen += old.by_driver;
    }
    if_freenameindex(all);
    if (seen == 0)
        skip_for("no network interface with hardware on this machine");
}

static void what_fits(void **state)
{
    (void)state;
    struct hw_addr mac, other;
    assert_true(hw_addr_parse("02:00:00:00:00:01", &mac));
    assert_true(hw_addr_parse("02:00:00:00:00:02", &other));
    const struct {
        struct link link;
        struct link_wanted wanted;
        bool fits;
    } table[] = {
        {{.parent = "0000:8f:00.0", .hw = mac}, {"0000:8f:00.0", mac, {0}, "a"}, true},
        {{.parent = "0000:8f:00.1", .hw = mac}, {"0000:8f:00.0", mac, {0}, "a"}, false},
        {{.parent = "0000:8f:00.0", .hw = other}, {"0000:8f:00.0", mac, {0}, "a"}, false},
        {{.hw = mac}, {"", mac, {0}, "a"}, true},
        {{.parent = "0000:8f:00.0", .hw = mac}, {"", mac, {0}, "a"}, false},
        /* the order of a release that did not ask the driver */
        {{.parent = "0000:8f:00.0", .hw = mac, .by_driver = true}, {"", mac, {0}, "a"}, true},
        {{.parent = "0000:8f:00.0", .hw = other, .by_driver = true}, {"", mac, {0}, "a"}, false},
        {{.name = "a", .hw = other}, {"", mac, other, "a"}, true},
        {{.name = "b", .hw = other}, {"", mac, other, "a"}, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (link_fits(&table[i].link, &table[i].wanted) != table[i].fits)
            fail_msg("row %zu", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_driver_names_the_parent),
        cmocka_unit_test(what_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
