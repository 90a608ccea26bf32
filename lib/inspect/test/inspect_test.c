/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/test/skip.h"
#include "lib/inspect/awaited_link.h"
#include "lib/inspect/inspect.h"
#include "lib/inspect/verbs_json.h"
#include "lib/topo/test/tree.h"

#define NIC "sys/devices/pci0000:8c/0000:8c:01.0/infiniband/mlx5_0"

static void make_nic(const struct tree *tree, const char *state)
{
    tree_file(tree, "sys/devices/pci0000:8c/0000:8c:01.0/class", "0x020000\n");
    tree_file(tree, "sys/devices/pci0000:8c/0000:8c:01.0/vendor", "0x15b3\n");
    tree_link(tree, "sys/bus/pci/devices/0000:8c:01.0", "../../../devices/pci0000:8c/0000:8c:01.0");
    tree_link(tree, "sys/class/infiniband/mlx5_0", "../../../" NIC);
    tree_link(tree, NIC "/device", "../../../0000:8c:01.0");
    tree_dir(tree, "sys/devices/pci0000:8c/0000:8c:01.0/infiniband_verbs/uverbs4");
    tree_file(tree, NIC "/ports/1/state", state);
    tree_file(tree, NIC "/ports/1/link_layer", "InfiniBand\n");
    tree_file(tree, NIC "/ports/1/gids/0", "fe80:0000:0000:0000:0202:c9ff:fe00:0001\n");
}

static void make_process(const struct tree *tree, const char *status)
{
    tree_file(tree, "proc/self/status", status);
    tree_file(tree, "proc/self/limits",
              "Limit                     Soft Limit           Hard Limit           Units     \n"
              "Max locked memory         8388608              8388608              bytes     \n");
    tree_file(tree, "proc/self/cgroup", "0::/\n");
    tree_file(tree, "sys/fs/cgroup/cpu.max", "150000 100000\n");
    tree_file(tree, "sys/fs/cgroup/memory.max", "max\n");
}

static json_t *look(const struct tree *tree, const struct strlist *files)
{
    struct inspect_options options = {
        .root = tree->name, .files = files, .session_dir = "/tmp", .build = "0.1", .pmix = "5.0.7"};
    struct drarun_error err = {0};
    json_t *document = NULL;
    if (inspect(&options, &document, &err) < 0)
        fail_msg("%s", err.text);
    return document;
}

static json_t *at(const json_t *document, const char *list, const char *key)
{
    return json_object_get(json_array_get(json_object_get(document, list), 0), key);
}

static json_int_t limit(const json_t *document, const char *key)
{
    return json_integer_value(json_object_get(json_object_get(document, "limits"), key));
}

static void tells_limits(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    make_process(&tree, "Name:\tx\nUid:\t0\t1000\t0\t0\nCapEff:\t0000000000004000\n");
    json_t *document = look(&tree, NULL);
    const json_t *limits = json_object_get(document, "limits");
    assert_int_equal(limit(document, "memlock"), 8388608);
    assert_int_equal(limit(document, "uid"), 1000);
    assert_int_equal(limit(document, "cpuMillis"), 1500);
    assert_int_equal(limit(document, "memory"), -1);
    assert_true(json_is_true(json_object_get(limits, "ipcLock")));
    assert_null(json_object_get(limits, "shm")); /* a captured tree's tells of this machine */
    const json_t *versions = json_object_get(document, "versions");
    assert_string_equal(json_string_value(json_object_get(versions, "pmix")), "5.0.7");
    const json_t *session = json_object_get(document, "session");
    assert_true(json_integer_value(json_object_get(session, "free")) > 0);
    json_decref(document);
    tree_drop(&tree);
}

static void tells_no_capability(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    make_process(&tree, "Name:\tx\nCapEff:\t00000000a80425fb\nUid:\t7\t7\t7\t7\n");
    json_t *document = look(&tree, NULL);
    const json_t *limits = json_object_get(document, "limits");
    assert_true(json_is_false(json_object_get(limits, "ipcLock")));
    json_decref(document);
    tree_drop(&tree);
}

#define DEFAULT_BY(name)                                                                           \
    "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "                     \
    "fe800000000000000000000000000001 00000400 00000001 00000000 00000003 " name "\n"

/* By the default route; of several the usual one, else the first: one that is there. */
static void tells_the_pods_interface(void **state)
{
    static const struct {
        const char *netdevs[3], *routes, *name;
    } rows[] = {
        {{"eth0", "net1"}, DEFAULT_BY("net1"), "net1"},
        {{"eth0", "net1"}, DEFAULT_BY("net1") DEFAULT_BY("eth0"), NULL}, /* eth0 */
        {{"ens3", "ens4"}, DEFAULT_BY("ens3") DEFAULT_BY("ens4"), "ens3"},
        {{"ens3"}, "", NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tree tree = tree_new();
        char path[128];
        for (size_t n = 0; n < ARRAY_LEN(rows[i].netdevs) && rows[i].netdevs[n]; n++) {
            snprintf(path, sizeof path, "sys/class/net/%s/mtu", rows[i].netdevs[n]);
            tree_file(&tree, path, "1500\n");
        }
        tree_file(&tree, "proc/net/ipv6_route", rows[i].routes);
        json_t *document = look(&tree, NULL);
        const json_t *probe = json_object_get(document, "probe");
        const char *name = json_string_value(json_object_get(probe, "podInterface"));
        assert_string_equal(name ? name : "", rows[i].name ? rows[i].name : "");
        json_decref(document);
        tree_drop(&tree);
    }
}

static void opens_verbs_devices(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    make_nic(&tree, "4: ACTIVE\n");
    tree_file(&tree, "dev/infiniband/uverbs4", "");
    json_t *document = look(&tree, NULL);
    assert_string_equal(json_string_value(at(document, "verbs", "path")),
                        "/dev/infiniband/uverbs4");
    assert_true(json_is_false(at(document, "verbs", "opens"))); /* a file is no device */
    assert_string_equal(json_string_value(at(document, "verbs", "why")), "No such device");
    const json_t *port = json_array_get(at(document, "verbs", "ports"), 0);
    assert_true(json_is_true(json_object_get(port, "active")));
    assert_int_equal(json_integer_value(json_object_get(port, "gids")), 1);
    json_decref(document);
    tree_drop(&tree);
}

/* A pod does not know its claims' names: all files come along, and what cannot be one says why. */
static void brings_device_metadata(void **state)
{
    (void)state;
    static const char folder[] = "var/run/kubernetes.io/dra-device-attributes/";
    struct tree tree = tree_new();
    char path[256];
    snprintf(path, sizeof path, "%sresourceclaims/nics/nic/d-metadata.json", folder);
    tree_file(&tree, path, "{\"kind\": \"\303\244\"}");
    snprintf(path, sizeof path, "%sresourceclaimtemplates/t/nic/d-metadata.json", folder);
    tree_file(&tree, path, "\377");
    snprintf(path, sizeof path, "%sresourceclaims/nics/nic/other.json", folder);
    tree_file(&tree, path, "{}");
    json_t *document = look(&tree, NULL);
    json_t *probe = json_object_get(document, "probe");
    json_t *files = json_object_get(probe, "metadataFiles");
    assert_int_equal(json_object_size(files), 1);
    assert_string_equal(
        json_string_value(json_object_get(files, "resourceclaims/nics/nic/d-metadata.json")),
        "{\"kind\": \"\303\244\"}");
    json_t *errors = json_object_get(probe, "metadataErrors");
    assert_int_equal(json_array_size(errors), 1);
    snprintf(path, sizeof path, "/%sresourceclaimtemplates/t/nic/d-metadata.json: no UTF-8 text",
             folder);
    assert_string_equal(json_string_value(json_array_get(errors, 0)), path);
    json_decref(document);
    tree_drop(&tree);
}

static void tells_narrow_links(void **state)
{
    (void)state;
    static const char nic[] = "sys/devices/pci0000:8c/0000:8c:01.0";
    static const struct {
        const char *width, *speed;
        size_t found;
    } cases[] = {
        {"16", "32.0 GT/s PCIe", 0}, {"8", "32.0 GT/s PCIe", 1}, {"16", "16.0 GT/s PCIe", 1}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct tree tree = tree_new();
        char path[128];
        make_nic(&tree, "4: ACTIVE\n");
        tree_file(&tree, "dev/infiniband/uverbs4", "");
        snprintf(path, sizeof path, "%s/current_link_width", nic);
        tree_file(&tree, path, cases[i].width);
        snprintf(path, sizeof path, "%s/max_link_width", nic);
        tree_file(&tree, path, "16");
        snprintf(path, sizeof path, "%s/current_link_speed", nic);
        tree_file(&tree, path, cases[i].speed);
        snprintf(path, sizeof path, "%s/max_link_speed", nic);
        tree_file(&tree, path, "32.0 GT/s PCIe");
        json_t *document = look(&tree, NULL);
        assert_int_equal(json_array_size(json_object_get(document, "narrow")), cases[i].found);
        if (cases[i].found)
            assert_string_equal(json_string_value(at(document, "narrow", "pci")), "0000:8c:01.0");
        json_decref(document);
        tree_drop(&tree);
    }
}

/* What a device told that was opened, and what it did not come to. */
static void tells_what_opening_gave(void **state)
{
    (void)state;
    struct topo_gid gids[] = {{.index = 1, .bytes = {0xfe, 0x80}, .elsewhere = true},
                              {.index = 3,
                               .bytes = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 7},
                               .type = TOPO_GID_ROCE2,
                               .netdev = "net1"}};
    struct topo_port port = {.number = 1,
                             .active = TOPO_YES,
                             .state = "ACTIVE",
                             .phys_state = "LinkUp",
                             .link = TOPO_LINK_ETHERNET,
                             .rate_mbps = 400000,
                             .lanes = 4,
                             .lane_speed = "NDR",
                             .mtu = 4096,
                             .gids = gids,
                             .gid_count = 2};
    struct topo_rdma rdma = {.name = "mlx5_0",
                             .uverbs = "uverbs7",
                             .limits = {.qps = 131072, .mr_bytes = UINT64_MAX},
                             .ports = &port,
                             .port_count = 1};
    struct nic_open open = {.step = {[NIC_STEP_OPEN] = {.done = NIC_DONE_YES},
                                     [NIC_STEP_QUERY] = {.done = NIC_DONE_YES},
                                     [NIC_STEP_CQ] = {.done = NIC_DONE_YES},
                                     [NIC_STEP_QP] = {.why = "no provider"},
                                     [NIC_STEP_MEMORY] = {NIC_DONE_NO, ENOMEM, "no memory"}}};
    json_t *told = verbs_json(&rdma, -1, &open);
    json_t *expected = json_loads(
        "{\"device\": \"mlx5_0\", \"path\": \"/dev/infiniband/uverbs7\", \"opens\": true, "
        "\"steps\": "
        "{\"open\": {\"done\": true}, \"query\": {\"done\": true}, \"cq\": {\"done\": true}, "
        "\"qp\": "
        "{\"done\": null, \"why\": \"no provider\"}, \"memory\": {\"done\": false, \"code\": 12, "
        "\"why\": \"no memory\"}}, \"limits\": {\"qps\": 131072, \"mrBytes\": "
        "9223372036854775807}, "
        "\"ports\": [{\"number\": 1, \"state\": \"ACTIVE\", \"active\": true, \"physState\": "
        "\"LinkUp\", \"linkLayer\": \"Ethernet\", \"rateMbps\": 400000, \"lanes\": 4, "
        "\"laneSpeed\": "
        "\"NDR\", \"mtu\": 4096, \"gids\": 2, \"gidsElsewhere\": 1, \"gidTable\": [{\"index\": 1, "
        "\"address\": \"fe80::\", \"type\": null, \"netdev\": null}, {\"index\": 3, \"address\": "
        "\"10.0.0.7\", \"type\": \"RoCE v2\", \"netdev\": \"net1\"}]}]}",
        0, NULL);
    assert_non_null(expected);
    if (!json_equal(told, expected))
        fail_msg("%s", json_dumps(told, 0));
    json_decref(expected);
    json_decref(told);
}

/* Why the device did not speak for itself is said, and its facts are sysfs'. */
static void marks_what_is_inferred(void **state)
{
    (void)state;
    struct topo_rdma rdma = {.name = "mlx5_0", .uverbs = "uverbs7"};
    struct nic_open open = {.step = {{NIC_DONE_NO, EACCES, "Permission denied"}}};
    json_t *told = verbs_json(&rdma, -1, &open);
    assert_true(json_is_false(json_object_get(told, "opens")));
    assert_string_equal(json_string_value(json_object_get(told, "why")), "Permission denied");
    assert_string_equal(json_string_value(json_object_get(told, "inferred")), "Permission denied");
    json_decref(told);
}

/* Of three devices one was told of whole, one by half a line, one not at all. */
static void takes_what_a_process_told(void **state)
{
    (void)state;
    static const char lines[] = "{\"device\": \"b\", \"steps\": {}}\nno JSON\n{\"device\": \"a\"}";
    json_t *verbs = json_loads("[{\"device\": \"a\", \"opens\": true}, {\"device\": \"b\"}, "
                               "{\"device\": \"c\", \"inferred\": \"it was not opened\"}]",
                               0, NULL);
    json_t *expected = json_loads(
        "[{\"device\": \"a\", \"opens\": true, \"inferred\": \"it hung\"}, {\"device\": \"b\", "
        "\"steps\": {}}, {\"device\": \"c\", \"inferred\": \"it hung\"}]",
        0, NULL);
    assert_int_equal(verbs_take(verbs, lines, strlen(lines), "it hung"), 0);
    if (!json_equal(verbs, expected))
        fail_msg("%s", json_dumps(verbs, 0));
    json_decref(expected);
    json_decref(verbs);
}

/* Needs a privileged user, as in the test bed. */
static void opens_a_real_node(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    make_nic(&tree, "1: DOWN\n");
    tree_dir(&tree, "dev/infiniband");
    if (mknodat(tree.root, "dev/infiniband/uverbs4", S_IFCHR | 0600, makedev(1, 3)) < 0) {
        tree_drop(&tree);
        skip_for("needs root, to make a device node");
    }
    json_t *document = look(&tree, NULL);
    const char *why = json_string_value(at(document, "verbs", "why"));
    if (!json_is_true(at(document, "verbs", "opens")))
        assert_non_null(why); /* /tmp may be mounted nodev: then it says so */
    const json_t *port = json_array_get(at(document, "verbs", "ports"), 0);
    assert_true(json_is_false(json_object_get(port, "active")));
    assert_string_equal(json_string_value(json_object_get(port, "state")), "DOWN");
    json_decref(document);
    tree_drop(&tree);
}

/* A port may come up whose interface is set up here; not on the host's network, where spare ports
 * have no cable. */
static void tells_which_link_may_come_up(void **state)
{
    (void)state;
    static const struct {
        const char *state, *flags;
        bool host, awaited;
    } cases[] = {{"1: DOWN\n", "0x1003\n", false, true},
                 {"1: DOWN\n", "0x1002\n", false, false},
                 {"1: DOWN\n", NULL, false, false},
                 {"1: DOWN\n", "0x1003\n", true, false},
                 {"4: ACTIVE\n", "0x1003\n", false, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct tree tree = tree_new();
        make_nic(&tree, cases[i].state);
        tree_file(&tree, "dev/infiniband/uverbs4", "");
        tree_file(&tree, NIC "/ports/1/link_layer", "Ethernet\n");
        tree_file(&tree, NIC "/ports/1/gid_attrs/types/0", "RoCE v2\n");
        tree_file(&tree, NIC "/ports/1/gid_attrs/ndevs/0", "net1\n");
        if (cases[i].flags)
            tree_file(&tree, "sys/class/net/net1/flags", cases[i].flags);
        if (cases[i].host)
            tree_file(&tree, "proc/sys/net/core/netdev_budget", "300\n");
        json_t *document = look(&tree, NULL);
        const char *device = inspect_awaited_link(document, tree.name);
        if ((device != NULL) != cases[i].awaited)
            fail_msg("case %zu: %s", i, device ? device : "none");
        if (device)
            assert_string_equal(device, "mlx5_0");
        json_decref(document);
        tree_drop(&tree);
    }
}

/* A FIFO where a device should be must not make us wait for its other end. */
static void never_waits(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    make_nic(&tree, "4: ACTIVE\n");
    tree_dir(&tree, "dev/infiniband");
    assert_int_equal(mkfifoat(tree.root, "dev/infiniband/uverbs4", 0600), 0);
    json_t *document = look(&tree, NULL);
    assert_true(json_is_false(at(document, "verbs", "opens")));
    json_decref(document);
    tree_drop(&tree);
}

/* Sysfs shows those of the whole node. */
static void tells_which_gpus_were_given(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    make_process(&tree, "Name:\tx\n");
    tree_file(&tree, "sys/devices/pci0000:8c/0000:8f:00.0/class", "0x030200\n");
    tree_file(&tree, "sys/devices/pci0000:8c/0000:8f:00.0/vendor", "0x10de\n");
    tree_link(&tree, "sys/bus/pci/devices/0000:8f:00.0",
              "../../../devices/pci0000:8c/0000:8f:00.0");
    CLEANUP(json_decrefp) json_t *none = look(&tree, NULL);
    const json_t *gpu = at(json_object_get(none, "probe"), "gpus", "pci");
    assert_string_equal(json_string_value(gpu), "0000:8f:00.0");
    assert_null(at(json_object_get(none, "probe"), "gpus", "usable"));
    tree_file(&tree, "proc/driver/nvidia/gpus/0000:8f:00.0/information", "Device Minor: \t 3\n");
    CLEANUP(json_decrefp) json_t *others = look(&tree, NULL);
    assert_int_equal(json_array_size(json_object_get(json_object_get(others, "probe"), "gpus")), 0);
    tree_file(&tree, "dev/nvidia3", "");
    CLEANUP(json_decrefp) json_t *ours = look(&tree, NULL);
    assert_true(json_is_true(at(json_object_get(ours, "probe"), "gpus", "usable")));
    tree_drop(&tree);
}

static void looks_for_files_in_the_root(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    struct strlist files = STRLIST_INIT;
    strlist_add(&files, "/opt/lib/libnccl-net.so");
    strlist_add(&files, "/etc/passwd"); /* there is one here, and none in the tree */
    strlist_add(&files, "/opt/away");
    tree_file(&tree, "opt/lib/libnccl-net.so", "");
    tree_link(&tree, "opt/away", "/etc/hostname");
    json_t *document = look(&tree, &files);
    const json_t *found = json_object_get(json_object_get(document, "probe"), "files");
    assert_true(json_is_true(json_object_get(found, "/opt/lib/libnccl-net.so")));
    assert_true(json_is_false(json_object_get(found, "/etc/passwd")));
    assert_true(json_is_false(json_object_get(found, "/opt/away")));
    json_decref(document);
    strlist_done(&files);
    tree_drop(&tree);
}

static void tells_an_empty_tree(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    json_t *document = look(&tree, NULL);
    assert_int_equal(json_array_size(json_object_get(document, "verbs")), 0);
    assert_int_equal(json_object_size(json_object_get(document, "limits")), 0);
    json_decref(document);
    tree_drop(&tree);
}

static void refuses_a_missing_root(void **state)
{
    (void)state;
    struct inspect_options options = {.root = "/nowhere"};
    struct drarun_error err = {0};
    json_t *document = NULL;
    assert_int_equal(inspect(&options, &document, &err), -ENOENT);
    assert_string_equal(err.text, "/nowhere: No such file or directory");
    assert_null(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_limits),
        cmocka_unit_test(tells_no_capability),
        cmocka_unit_test(tells_the_pods_interface),
        cmocka_unit_test(opens_verbs_devices),
        cmocka_unit_test(brings_device_metadata),
        cmocka_unit_test(tells_narrow_links),
        cmocka_unit_test(tells_what_opening_gave),
        cmocka_unit_test(marks_what_is_inferred),
        cmocka_unit_test(takes_what_a_process_told),
        cmocka_unit_test(opens_a_real_node),
        cmocka_unit_test(tells_which_link_may_come_up),
        cmocka_unit_test(never_waits),
        cmocka_unit_test(tells_which_gpus_were_given),
        cmocka_unit_test(looks_for_files_in_the_root),
        cmocka_unit_test(tells_an_empty_tree),
        cmocka_unit_test(refuses_a_missing_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
