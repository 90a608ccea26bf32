/* SPDX-License-Identifier: Apache-2.0 */
/* A device goes into a pod and comes back: between a network namespace of each test's own and one
 * of a process of the test's. The device is an end of a pair, whose other end stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/test/skip.h"
#include "plugin/attach/address.h"
#include "plugin/attach/attach.h"
#include "plugin/attach/link.h"
#include "plugin/attach/netns.h"
#include "plugin/attach/place.h"
#include "plugin/attach/restore.h"

#define MAC "02:00:00:00:00:31"
#define LONG_MS 20000

struct world {
    bool ready;
    struct netlink host, pod;
    pid_t process; /* in the pod's namespace */
    int ns;        /* that one */
    char dir[32];
    struct attach_order order;
    struct drarun_error err;
};

static void must(int rc, const struct drarun_error *err)
{
    if (rc != 0)
        fail_msg("%s", err->text);
}

static pid_t process_in_a_namespace(void)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (unshare(CLONE_NEWNET) == 0 && write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void make_link(struct world *w, struct netlink *n, const char *name, const char *kind,
                      const char *mac, int lower)
{
    struct ifinfomsg head = {.ifi_family = AF_UNSPEC};
    struct hw_addr hw;
    struct nl_msg *msg =
        netlink_message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof head);
    assert_true(hw_addr_parse(mac, &hw));
    netlink_put_text(msg, IFLA_IFNAME, name);
    netlink_put(msg, IFLA_ADDRESS, hw.bytes, hw.len);
    if (lower)
        netlink_put_u32(msg, IFLA_LINK, (uint32_t)lower);
    struct nlattr *info = nla_nest_start(msg, IFLA_LINKINFO);
    netlink_put_text(msg, IFLA_INFO_KIND, kind);
    nla_nest_end(msg, info);
    must(netlink_do_take(n, msg, &w->err), &w->err);
}

/* interface: its configuration after the name; others: what comes after the interface's. */
static void order_is(struct world *w, const char *interface, const char *others)
{
    static const char format[] =
        "{\"version\":1,\"claim\":{\"namespace\":\"ns\",\"name\":\"c\",\"uid\":\"u-1\"},"
        "\"device\":\"nic-0\",\"mac\":\"" MAC "\",\"host\":{\"name\":\"nic0\",\"mtu\":1500,"
        "\"up\":true,\"addresses\":[\"10.1.0.2/24\"],\"hardwareAddr\":\"" MAC "\"},"
        "\"config\":{\"interface\":{\"name\":\"net1\"%s}%s}}";
    char text[2048];
    attach_order_done(&w->order);
    snprintf(text, sizeof text, format, interface, others);
    must(attach_order_parse("order", text, strlen(text), &w->order, &w->err), &w->err);
    snprintf(w->order.path, sizeof w->order.path, "%s/u-1.nic-0.json", w->dir);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    *state = w;
    if (unshare(CLONE_NEWNET) < 0)
        return 0;
    snprintf(w->dir, sizeof w->dir, "/tmp/attach_test.XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    w->process = process_in_a_namespace();
    must(netns_of(w->process, &w->ns, &w->err), &w->err);
    must(netlink_open(&w->host, -1, NETLINK_ROUTE, &w->err), &w->err);
    must(netlink_open(&w->pod, w->ns, NETLINK_ROUTE, &w->err), &w->err);
    make_link(w, &w->host, "nic0", "veth", MAC, 0);
    order_is(w, "", "");
    w->ready = true;
    return 0;
}

static void end_process(struct world *w)
{
    if (w->process > 0) {
        kill(w->process, SIGKILL);
        waitpid(w->process, NULL, 0);
    }
    w->process = 0;
    close_fd(&w->ns);
    netlink_done(&w->pod);
}

static int take_down(void **state)
{
    struct world *w = *state;
    if (w->ready) {
        end_process(w);
        netlink_done(&w->host);
        attach_order_done(&w->order);
        tree_remove(AT_FDCWD, w->dir);
    }
    free(w);
    return 0;
}

static struct world *world_of(void **state)
{
    struct world *w = *state;
    if (!w->ready)
        skip_for("needs root, with a network namespace of its own");
    return w;
}

/* ---- what is where ---- */

static struct link link_in(struct world *w, struct netlink *n, const char *name)
{
    struct link link;
    int rc = link_by_name(n, name, &link, &w->err);
    if (rc != 1)
        fail_msg("no %s: %d", name, rc);
    return link;
}

static bool is_in(struct world *w, struct netlink *n, const char *name)
{
    struct link link;
    int rc = link_by_name(n, name, &link, &w->err);
    assert_true(rc >= 0);
    return rc > 0;
}

static void has_addresses(struct world *w, struct netlink *n, const char *name,
                          const char *expected)
{
    struct ip_prefix *list = NULL;
    size_t count = 0;
    char text[IP_PREFIX_TEXT], all[256] = "";
    must(addresses_read(n, link_in(w, n, name).index, &list, &count, &w->err), &w->err);
    for (size_t i = 0; i < count; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "",
                 ip_prefix_text(&list[i], text));
    free(list);
    assert_string_equal(all, expected);
}

static void has_hw(const struct link *link, const char *expected)
{
    char text[HW_ADDR_TEXT];
    assert_string_equal(hw_addr_text(&link->hw, text), expected);
}

/* A file of /proc as the pod has it. */
static void read_in_pod(struct world *w, const char *path, char *text, size_t size)
{
    int back = -1;
    must(netns_enter(w->ns, &back, &w->err), &w->err);
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : 0;
    netns_leave(back);
    text[n > 0 ? n : 0] = '\0';
}

static int setting(struct world *w, const char *name)
{
    char path[128], text[32];
    snprintf(path, sizeof path, "/proc/sys/net/%s", name);
    read_in_pod(w, path, text, sizeof text);
    assert_true(text[0]);
    return atoi(text);
}

static int attach(struct world *w)
{
    return attach_device(&w->order, w->ns, 0, &w->err);
}

static void attached(struct world *w)
{
    must(attach(w), &w->err);
}

static enum restore_outcome restored(struct world *w)
{
    enum restore_outcome outcome = 0;
    must(attach_restore(&w->order, 0, &outcome, &w->err), &w->err);
    return outcome;
}

/* As the order has it. */
static void check_host(struct world *w)
{
    struct link link = link_in(w, &w->host, "nic0");
    assert_false(is_in(w, &w->pod, "net1"));
    assert_false(is_in(w, &w->pod, "nic0"));
    assert_int_equal(link.mtu, 1500);
    assert_true(link.up);
    has_hw(&link, MAC);
    has_addresses(w, &w->host, "nic0", "10.1.0.2/24");
}

static void change(struct world *w, struct netlink *n, const char *name, struct link_change change)
{
    must(link_change(n, link_in(w, n, name).index, &change, &w->err), &w->err);
}

/* ---- attaching ---- */

#define WHOLE                                                                                      \
    ",\"addresses\":[\"10.0.0.2/24\",\"fd00::2/64\"],\"mtu\":1400,"                                \
    "\"hardwareAddr\":\"02:00:00:00:00:99\",\"gsoMaxSize\":40000,\"groMaxSize\":40001"
#define ROUTES                                                                                     \
    ",\"routes\":[{\"destination\":\"10.9.0.0/16\",\"gateway\":\"10.0.0.7\"}],"                    \
    "\"neighbors\":[{\"destination\":\"10.0.0.8\",\"hardwareAddr\":\"02:00:00:00:00:08\"}]"

static void check_whole(struct world *w)
{
    char text[4096];
    struct link link = link_in(w, &w->pod, "net1");
    assert_false(is_in(w, &w->host, "nic0"));
    assert_int_equal(link.mtu, 1400);
    assert_int_equal(link.gso, 40000);
    assert_int_equal(link.gro, 40001);
    assert_true(link.up);
    has_hw(&link, "02:00:00:00:00:99");
    has_addresses(w, &w->pod, "net1", "10.0.0.2/24 fd00::2/64");
    read_in_pod(w, "/proc/thread-self/net/route", text, sizeof text);
    assert_non_null(strstr(text, "net1\t0000090A\t0700000A\t")); /* in network order */
    read_in_pod(w, "/proc/thread-self/net/arp", text, sizeof text);
    assert_non_null(strstr(text, "10.0.0.8 "));
    assert_non_null(strstr(text, "02:00:00:00:00:08"));
}

static void device_is_as_the_order_says(void **state)
{
    struct world *w = world_of(state);
    struct place place;
    order_is(w, WHOLE, ROUTES);
    for (int i = 0; i < 2; i++) { /* another container of the pod finds all done */
        attached(w);
        check_whole(w);
    }
    place_load(&w->order, &place);
    assert_int_equal(place.index, link_in(w, &w->pod, "net1").index);
    assert_int_equal(place.peer, link_in(w, &w->host, "veth0").index);
    assert_string_equal(place.kind, "veth");
    assert_true(place.inode != 0);
    tree_remove(AT_FDCWD, w->dir); /* as of an earlier release, which noted no place */
    assert_int_equal(mkdir(w->dir, 0700), 0);
    attached(w);
    place_load(&w->order, &place);
    assert_int_equal(place.index, link_in(w, &w->pod, "net1").index);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(restored(w), RESTORE_DONE);
        check_host(w);
    }
}

static void settings_are_the_pods(void **state)
{
    struct world *w = world_of(state);
    attached(w); /* nothing is asked for */
    assert_int_equal(setting(w, "ipv4/conf/net1/arp_ignore"), 0);
    assert_int_equal(setting(w, "ipv4/conf/net1/arp_announce"), 0);
    assert_int_equal(setting(w, "ipv4/conf/net1/forwarding"), 0);
    order_is(w,
             ",\"addresses\":[\"10.0.0.2/24\"],\"arpIgnore\":1,\"arpAnnounce\":2,"
             "\"forwarding\":true",
             "");
    attached(w);
    assert_int_equal(setting(w, "ipv4/conf/net1/arp_ignore"), 1);
    assert_int_equal(setting(w, "ipv4/conf/net1/arp_announce"), 2);
    assert_int_equal(setting(w, "ipv4/conf/net1/forwarding"), 1);
    assert_int_equal(setting(w, "ipv6/conf/net1/forwarding"), 1);
    assert_int_equal(setting(w, "ipv4/conf/all/forwarding"), 0);
    order_is(w, ",\"arpIgnore\":0,\"arpAnnounce\":0", ""); /* which is not to say nothing */
    attached(w);
    assert_int_equal(setting(w, "ipv4/conf/net1/arp_ignore"), 0);
    assert_int_equal(setting(w, "ipv4/conf/net1/arp_announce"), 0);
    assert_int_equal(setting(w, "ipv4/conf/net1/forwarding"), 1);
}

static void repeated_it_repairs(void **state)
{
    struct world *w = world_of(state);
    struct link_change other = LINK_CHANGE_NONE;
    order_is(w, WHOLE, ROUTES);
    attached(w);
    other.name = "net7";
    other.mtu = 1300;
    other.up = 0;
    other.gso = 30000;
    other.gro = 30001;
    assert_true(hw_addr_parse("02:00:00:00:00:98", &other.hw));
    change(w, &w->pod, "net1", other);
    attached(w);
    check_whole(w);
    assert_false(is_in(w, &w->pod, "net7"));
    for (int i = 0; i < 2; i++) { /* alone, and of one that is up */
        struct link_change one = LINK_CHANGE_NONE;
        if (i == 0)
            one.name = "net7";
        else
            one.mtu = 1300;
        change(w, &w->pod, "net1", one);
        attached(w);
        check_whole(w);
    }
}

static void host_network_is_refused(void **state)
{
    struct world *w = world_of(state);
    cleanup_close int own = -1;
    must(netns_own(&own, &w->err), &w->err);
    assert_int_equal(attach_device(&w->order, own, 0, &w->err), -EINVAL);
    assert_string_equal(w->err.text,
                        "the container is on the host's network (hostNetwork: true), where nic0 "
                        "cannot be its own: leave hostNetwork away, or the claim");
    w->order.host.name[0] = '\0'; /* an RDMA device alone is the host's to use */
    must(attach_device(&w->order, own, 0, &w->err), &w->err);
    assert_true(is_in(w, &w->host, "nic0"));
}

static void missing_device_is_named(void **state)
{
    struct world *w = world_of(state);
    struct hw_addr other;
    assert_true(hw_addr_parse("02:00:00:00:00:32", &other));
    w->order.mac = other;
    assert_int_equal(attach(w), -ENODEV);
    assert_string_equal(w->err.text, "nic0 (02:00:00:00:00:32) is neither on the host nor in the "
                                     "container, after waiting for it");
    snprintf(w->order.pci, sizeof w->order.pci, "0000:8f:00.0");
    assert_int_equal(attach(w), -ENODEV);
    assert_string_equal(w->err.text, "nic0 (0000:8f:00.0) is neither on the host nor in the "
                                     "container, after waiting for it");
}

static void device_that_is_used_stays(void **state)
{
    struct world *w = world_of(state);
    struct link_change join = LINK_CHANGE_NONE;
    make_link(w, &w->host, "bridge0", "bridge", "02:00:00:00:00:41", 0);
    join.master = link_in(w, &w->host, "bridge0").index;
    change(w, &w->host, "nic0", join);
    assert_int_equal(attach(w), -EBUSY);
    assert_string_equal(w->err.text, "nic0 is in use on the host: it belongs to another device");
    assert_true(is_in(w, &w->host, "nic0"));
}

static void name_that_the_pod_has_is_refused(void **state)
{
    struct world *w = world_of(state);
    make_link(w, &w->pod, "net1", "veth", "02:00:00:00:00:41", 0);
    assert_int_equal(attach(w), -EEXIST);
    assert_string_equal(w->err.text, "the container has another device called net1 already");
    assert_true(is_in(w, &w->host, "nic0"));
}

/* What fails after the move leaves the device on the host, as it was there. */
static void failed_attempt_is_undone(void **state)
{
    static const struct {
        const char *interface, *others;
        int code;
        const char *finding; /* which it begins with */
    } rows[] = {
        {",\"mtu\":65536", "", EINVAL, "move nic0 into the container as net1: Invalid argument"},
        {",\"addresses\":[\"10.0.0.2/24\"]",
         ",\"routes\":[{\"destination\":\"10.9.0.0/16\",\"gateway\":\"10.99.0.7\"}]", ENETUNREACH,
         "route 10.9.0.0/16 via 10.99.0.7: Network is unreachable"},
        {"", ",\"ethtool\":{\"features\":{\"loopback\":true}}", EINVAL,
         "the device keeps \"loopback\" fixed at off"},
    };
    struct world *w = world_of(state);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        order_is(w, rows[i].interface, rows[i].others);
        assert_int_equal(attach(w), -rows[i].code);
        if (strncmp(w->err.text, rows[i].finding, strlen(rows[i].finding)) != 0 ||
            strstr(w->err.text, "half attached"))
            fail_msg("%s", w->err.text);
        check_host(w);
    }
}

static void half_attached_device_is_told(void **state)
{
    struct world *w = world_of(state);
    order_is(w, ",\"mtu\":65536", "");
    w->order.host.mtu = 65536; /* nor can it be taken back */
    assert_int_equal(attach(w), -EINVAL);
    assert_non_null(strstr(w->err.text, "; and it is left half attached: set nic0 as it was: "));
}

/* ---- restoring ---- */

static void virtual_device_ends_with_its_pod(void **state)
{
    struct world *w = world_of(state);
    int64_t until = clock_ms() + LONG_MS;
    attached(w);
    end_process(w);
    while (is_in(w, &w->host, "veth0") && clock_ms() < until)
        usleep(1000);
    assert_int_equal(restored(w), RESTORE_GONE);
}

static void name_that_the_host_has_meanwhile(void **state)
{
    struct world *w = world_of(state);
    enum restore_outcome outcome = 0;
    struct link_change away = LINK_CHANGE_NONE;
    attached(w);
    make_link(w, &w->host, "nic0", "veth", "02:00:00:00:00:41", 0);
    assert_int_equal(attach_restore(&w->order, 0, &outcome, &w->err), -EEXIST);
    assert_string_equal(w->err.text,
                        "cannot come back from a pod as nic0: the host has another nic0");
    assert_int_equal(outcome, 0);
    assert_true(is_in(w, &w->pod, "net1"));
    away.name = "nic9";
    change(w, &w->host, "nic0", away);
    assert_int_equal(restored(w), RESTORE_DONE);
    check_host(w);
}

/* Of two that have each other's name the first gives its own up, so that the next call succeeds. */
static void device_under_another_name(void **state)
{
    struct world *w = world_of(state);
    enum restore_outcome outcome = 0;
    struct link_change name = LINK_CHANGE_NONE;
    name.name = "nic1";
    name.up = 1;
    change(w, &w->host, "nic0", name);
    make_link(w, &w->host, "nic0", "veth", "02:00:00:00:00:41", 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(attach_restore(&w->order, 0, &outcome, &w->err), -EEXIST);
        assert_string_equal(w->err.text, "cannot be called nic0 again: the host has another nic0");
        assert_false(is_in(w, &w->host, "nic1"));
        has_hw(&(struct link){.hw = link_in(w, &w->host, "drarun0").hw}, MAC);
        assert_false(is_in(w, &w->host, "drarun1"));
    }
    name.name = "nic1";
    change(w, &w->host, "nic0", name);
    assert_int_equal(restored(w), RESTORE_DONE);
    check_host(w);
}

static void host_settings_come_back(void **state)
{
    struct world *w = world_of(state);
    struct link_change other = LINK_CHANGE_NONE;
    w->order.host.gso = 50000;
    w->order.host.gro = 50001;
    other.mtu = 1300;
    other.gso = 30000;
    other.gro = 30001;
    change(w, &w->host, "nic0", other);
    assert_int_equal(restored(w), RESTORE_DONE);
    check_host(w);
    assert_int_equal(link_in(w, &w->host, "nic0").gso, 50000);
    assert_int_equal(link_in(w, &w->host, "nic0").gro, 50001);
    w->order.host.up = false;
    w->order.host.gso = w->order.host.gro = 0; /* not known, left alone */
    assert_int_equal(restored(w), RESTORE_DONE);
    assert_false(link_in(w, &w->host, "nic0").up);
    assert_int_equal(link_in(w, &w->host, "nic0").gso, 50000);
}

/* A pod's macvlan would share the device with the next pod. One of the host's stays. */
static void what_a_pod_put_on_it_is_taken_off(void **state)
{
    struct world *w = world_of(state);
    attached(w);
    make_link(w, &w->pod, "upper0", "macvlan", "02:00:00:00:00:51",
              link_in(w, &w->pod, "net1").index);
    make_link(w, &w->pod, "upper1", "macvlan", "02:00:00:00:00:52",
              link_in(w, &w->pod, "net1").index);
    make_link(w, &w->pod, "pods", "veth", "02:00:00:00:00:53", 0);
    make_link(w, &w->pod, "pods0", "macvlan", "02:00:00:00:00:54",
              link_in(w, &w->pod, "pods").index);
    assert_int_equal(restored(w), RESTORE_DONE);
    check_host(w);
    assert_false(is_in(w, &w->pod, "upper0"));
    assert_false(is_in(w, &w->pod, "upper1"));
    assert_true(is_in(w, &w->pod, "pods") && is_in(w, &w->pod, "pods0"));
}

/* Whose lower device stays on the host. */
static void macvlan_goes_and_comes_back(void **state)
{
    struct world *w = world_of(state);
    struct link_change name = LINK_CHANGE_NONE;
    name.name = "lower";
    assert_true(hw_addr_parse("02:00:00:00:00:41", &name.hw));
    change(w, &w->host, "nic0", name);
    make_link(w, &w->host, "nic0", "macvlan", MAC, link_in(w, &w->host, "lower").index);
    order_is(w, WHOLE, "");
    attached(w);
    assert_string_equal(link_in(w, &w->pod, "net1").kind, "macvlan");
    change(w, &w->host, "lower", (struct link_change){.master = -1, .ns = -1, .up = 1});
    assert_int_equal(restored(w), RESTORE_DONE);
    check_host(w);
}

/* With it on the host the pod would hold a cable into the host's network. */
static void device_of_the_pods_own_stays_there(void **state)
{
    struct world *w = world_of(state);
    struct link_change away = LINK_CHANGE_NONE, other = LINK_CHANGE_NONE;
    attached(w);
    cleanup_close int own = -1;
    must(netns_own(&own, &w->err), &w->err);
    away.name = "away0";
    away.ns = own;
    change(w, &w->pod, "net1", away); /* somebody has taken it back and given it another address */
    assert_true(hw_addr_parse("02:00:00:00:00:61", &other.hw));
    change(w, &w->host, "away0", other);
    make_link(w, &w->pod, "net1", "veth", MAC, 0);
    assert_int_equal(restored(w), RESTORE_GONE);
    assert_true(is_in(w, &w->pod, "net1"));
}

static void device_in_another_namespace_is_not_looked_for(void **state)
{
    struct world *w = world_of(state);
    struct place place;
    attached(w);
    place_load(&w->order, &place);
    place.cookie++; /* a namespace of the same number, later */
    must(place_save(&w->order, &place, &w->err), &w->err);
    assert_int_equal(restored(w), RESTORE_GONE);
    assert_true(is_in(w, &w->pod, "net1"));
    place.cookie--;
    must(place_save(&w->order, &place, &w->err), &w->err);
    assert_int_equal(restored(w), RESTORE_DONE);
    check_host(w);
}

static void hardware_that_does_not_come_back_is_told(void **state)
{
    struct world *w = world_of(state);
    enum restore_outcome outcome = 0;
    snprintf(w->order.parent, sizeof w->order.parent, "virtio99");
    assert_int_equal(attach_restore(&w->order, 0, &outcome, &w->err), -ENODEV);
    assert_string_equal(w->err.text,
                        "nic0 (virtio99) has not come back to the host within 0.0 s and is not in "
                        "the network namespace that it was put into");
    /* a function without a driver has no device */
    snprintf(w->order.pci, sizeof w->order.pci, "ffff:ff:1f.7");
    int rc = attach_restore(&w->order, 0, &outcome, &w->err);
    if (access("/sys/bus/pci/devices", X_OK) == 0) {
        assert_int_equal(rc, 0);
        assert_int_equal(outcome, RESTORE_GONE);
    } else {
        assert_int_equal(rc, -ENODEV);
    }
}

static void device_is_taken_back_from_one_namespace(void **state)
{
    struct world *w = world_of(state);
    order_is(w, WHOLE, ROUTES);
    attached(w);
    for (int i = 0; i < 2; i++) {
        must(attach_take_back(&w->order, w->ns, &w->err), &w->err);
        check_host(w);
    }
    must(link_delete(&w->host, link_in(w, &w->host, "nic0").index, &w->err), &w->err);
    assert_int_equal(attach_take_back(&w->order, w->ns, &w->err), -ENODEV);
    assert_string_equal(w->err.text, "nic0 is not on the host");
}

/* ---- namespaces ---- */

struct walk {
    const struct world *w;
    unsigned pods, calls;
    int stop;
};

static int on_namespace(int ns, void *arg, struct drarun_error *err)
{
    struct walk *walk = arg;
    (void)err;
    walk->pods += netns_same(ns, walk->w->ns);
    walk->calls++;
    return walk->stop;
}

static void each_namespace_is_visited_once(void **state)
{
    struct world *w = world_of(state);
    struct walk walk = {.w = w};
    cleanup_close int own = -1, again = -1;
    pid_t second = process_in_a_namespace();
    must(netns_each_other(on_namespace, &walk, &w->err), &w->err);
    assert_int_equal(walk.pods, 1);
    assert_true(walk.calls >= 2); /* beside the machine's own */
    walk = (struct walk){.w = w, .stop = 7};
    assert_int_equal(netns_each_other(on_namespace, &walk, &w->err), 7);
    assert_int_equal(walk.calls, 1);
    kill(second, SIGKILL);
    waitpid(second, NULL, 0);
    must(netns_own(&own, &w->err), &w->err);
    must(netns_of(getpid(), &again, &w->err), &w->err);
    assert_true(netns_same(own, again));
    assert_false(netns_same(own, w->ns));
    assert_false(netns_same(own, -1));
    assert_false(netns_same(-1, own));
}

static void process_that_has_ended_has_none(void **state)
{
    struct world *w = world_of(state);
    char expected[128];
    int ns = -1, pid = (int)w->process;
    end_process(w);
    snprintf(expected, sizeof expected,
             "the container's process %d: /proc/%d/ns/net: No such file or directory", pid, pid);
    assert_int_equal(netns_of(pid, &ns, &w->err), -ENOENT);
    assert_string_equal(w->err.text, expected);
    assert_int_equal(ns, -1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, take_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(device_is_as_the_order_says),
        CASE(settings_are_the_pods),
        CASE(repeated_it_repairs),
        CASE(host_network_is_refused),
        CASE(missing_device_is_named),
        CASE(device_that_is_used_stays),
        CASE(name_that_the_pod_has_is_refused),
        CASE(failed_attempt_is_undone),
        CASE(half_attached_device_is_told),
        CASE(virtual_device_ends_with_its_pod),
        CASE(name_that_the_host_has_meanwhile),
        CASE(device_under_another_name),
        CASE(host_settings_come_back),
        CASE(what_a_pod_put_on_it_is_taken_off),
        CASE(macvlan_goes_and_comes_back),
        CASE(device_of_the_pods_own_stays_there),
        CASE(device_in_another_namespace_is_not_looked_for),
        CASE(hardware_that_does_not_come_back_is_told),
        CASE(device_is_taken_back_from_one_namespace),
        CASE(each_namespace_is_visited_once),
        CASE(process_that_has_ended_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
