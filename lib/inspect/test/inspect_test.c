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
#include "lib/inspect/inspect.h"
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

/* Needs a privileged user, as in the test bed. */
static void opens_a_real_node(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    make_nic(&tree, "1: DOWN\n");
    tree_dir(&tree, "dev/infiniband");
    if (mknodat(tree.root, "dev/infiniband/uverbs4", S_IFCHR | 0600, makedev(1, 3)) < 0) {
        tree_drop(&tree);
        skip();
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
        cmocka_unit_test(tells_limits),        cmocka_unit_test(tells_no_capability),
        cmocka_unit_test(opens_verbs_devices), cmocka_unit_test(brings_device_metadata),
        cmocka_unit_test(tells_narrow_links),  cmocka_unit_test(opens_a_real_node),
        cmocka_unit_test(never_waits),         cmocka_unit_test(looks_for_files_in_the_root),
        cmocka_unit_test(tells_an_empty_tree), cmocka_unit_test(refuses_a_missing_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
