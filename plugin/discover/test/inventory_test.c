/* SPDX-License-Identifier: Apache-2.0 */
/* The inventory of a network namespace of its own, in which interfaces come and go. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/test/skip.h"
#include "lib/base/unconst.h"
#include "plugin/discover/inventory.h"

#define NEWS_MS 8000 /* well below the period, which is half a minute */

struct watcher {
    struct event_base *base;
    struct discover_config config;
    struct inventory *inventory;
    unsigned told;
    const char *held;
};

static void ip(const char *a, const char *b, const char *c, const char *d, const char *e,
               const char *f, const char *g, const char *h)
{
    const char *argv[] = {"ip", a, b, c, d, e, f, g, h, NULL};
    pid_t pid;
    int status = -1;
    assert_int_equal(posix_spawnp(&pid, "ip", NULL, NULL, unconst(argv), environ), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void on_changed(const struct node_devices *devices, void *arg)
{
    struct watcher *w = arg;
    (void)devices;
    w->told++;
    event_base_loopbreak(w->base);
}

static bool is_held(const char *driver, const char *name, void *arg)
{
    const struct watcher *w = arg;
    (void)driver;
    return w->held && strcmp(name, w->held) == 0;
}

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    event_base_loopbreak(arg);
}

/* Runs the loop until the inventory has told once more. */
static void wait_told(struct watcher *w)
{
    unsigned before = w->told;
    const struct timeval limit = timeval_from_ms(NEWS_MS);
    struct event *timer = evtimer_new(w->base, on_limit, w->base);
    assert_non_null(timer);
    evtimer_add(timer, &limit);
    event_base_dispatch(w->base);
    event_free(timer);
    if (w->told == before)
        fail_msg("no news within %d ms", NEWS_MS);
}

static int isolate(void **state)
{
    (void)state;
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("sysfs", "/sys", "sysfs", 0, NULL) < 0)
        return errno == EPERM ? 0 : -1;
    return 0;
}

static bool is_isolated(void)
{
    return access("/sys/class/net/lo", F_OK) == 0 && access("/sys/class/net/eth0", F_OK) != 0 &&
           geteuid() == 0;
}

static void watch(struct watcher *w)
{
    struct drarun_error err = {0};
    *w = (struct watcher){.base = event_base_new()};
    discover_config_default(&w->config);
    strlist_add(&w->config.virtual_prefixes, "rail");
    const struct inventory_options options = {.base = w->base,
                                              .source = {.root = -1, .config = &w->config},
                                              .held = is_held,
                                              .changed = on_changed,
                                              .arg = w};
    if (inventory_new(&options, &w->inventory, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(w->told, 0);
    wait_told(w);
}

static void watch_done(struct watcher *w)
{
    inventory_free(w->inventory);
    discover_config_done(&w->config);
    event_base_free(w->base);
}

static const struct node_device *device(const struct watcher *w, const char *name)
{
    return node_devices_find(inventory_devices(w->inventory), NODE_DRIVER_NIC, name);
}

static void test_comes_and_goes(void **state)
{
    (void)state;
    struct watcher w;
    if (!is_isolated())
        skip_for("needs root, with namespaces of its own");
    watch(&w);
    assert_null(device(&w, "rail0"));
    ip("link", "add", "rail0", "type", "veth", "peer", "name", "far0");
    wait_told(&w);
    assert_non_null(device(&w, "rail0"));
    assert_string_equal(device(&w, "rail0")->netdev.kind, "veth");
    assert_int_equal(device(&w, "rail0")->fault_count, 0); /* nobody has set it up yet */
    ip("link", "set", "rail0", "up", NULL, NULL, NULL, NULL);
    wait_told(&w);
    assert_int_equal(device(&w, "rail0")->fault_count, 1); /* its peer is down */
    ip("link", "set", "far0", "up", NULL, NULL, NULL, NULL);
    while (device(&w, "rail0")->fault_count > 0)
        wait_told(&w);
    ip("link", "delete", "rail0", NULL, NULL, NULL, NULL, NULL);
    wait_told(&w);
    assert_null(device(&w, "rail0"));
    watch_done(&w);
}

/* In a pod nothing of a veth is here; the pod's claim keeps it published. */
static void test_held(void **state)
{
    (void)state;
    struct watcher w;
    struct drarun_error err = {0};
    if (!is_isolated())
        skip_for("needs root, with namespaces of its own");
    ip("link", "add", "rail1", "type", "veth", "peer", "name", "far1");
    watch(&w);
    w.held = "rail1";
    ip("link", "delete", "rail1", NULL, NULL, NULL, NULL, NULL);
    assert_int_equal(inventory_rescan(w.inventory, &err), 0);
    assert_non_null(device(&w, "rail1"));
    assert_true(device(&w, "rail1")->away);
    w.held = NULL;
    assert_int_equal(inventory_rescan(w.inventory, &err), 0);
    assert_null(device(&w, "rail1"));
    watch_done(&w);
}

/* The plugin starts while the device is in a pod: its checkpoint knows what it was. */
static void test_known_before(void **state)
{
    (void)state;
    struct watcher w;
    struct drarun_error err = {0};
    struct node_device known = {.kind = NODE_DEVICE_NIC, .name = "rail2", .pci.numa = -1};
    snprintf(known.netdev.name, sizeof known.netdev.name, "rail2");
    if (!is_isolated())
        skip_for("needs root, with namespaces of its own");
    watch(&w);
    w.held = "rail2";
    assert_int_equal(inventory_know(w.inventory, &known, &err), 0);
    assert_int_equal(inventory_rescan(w.inventory, &err), 0);
    assert_non_null(device(&w, "rail2"));
    assert_true(device(&w, "rail2")->away);
    watch_done(&w);
}

/* What a claim has of a GPU, and this machine does not show any more, is not forgotten. */
static void test_known_gpu(void **state)
{
    (void)state;
    struct watcher w;
    struct drarun_error err = {0};
    struct node_device known = {
        .kind = NODE_DEVICE_MIG, .name = "gpu-part", .pci.known = true, .pci.numa = -1};
    known.pci.addr = (struct pci_addr){.domain = 0xfffe, .bus = 0xff};
    if (!is_isolated())
        skip_for("needs root, with namespaces of its own");
    watch(&w);
    w.held = "gpu-part";
    assert_int_equal(inventory_know(w.inventory, &known, &err), 0);
    assert_int_equal(inventory_rescan(w.inventory, &err), 0);
    const struct node_device *found =
        node_devices_find(inventory_devices(w.inventory), NODE_DRIVER_GPU, "gpu-part");
    assert_non_null(found);
    assert_true(found->held && found->lost);
    assert_int_equal(found->fault_count, 1);
    watch_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comes_and_goes),
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_known_before),
        cmocka_unit_test(test_known_gpu),
    };
    return cmocka_run_group_tests(tests, isolate, NULL);
}
