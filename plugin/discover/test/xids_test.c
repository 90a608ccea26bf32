/* SPDX-License-Identifier: Apache-2.0 */
/* Xids that outlive the plugin: NVML tells each once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/topo/test/tree.h"
#include "plugin/discover/faults.h"
#include "plugin/discover/xids.h"

#define GPU "0000:00:05.0"
#define OTHER "0000:00:06.0"
#define BOOT "b1"

struct node {
    struct tree tree;
    char dir[128], repaired[128];
    struct nvml *nvml;
    struct node_devices devices;
};

static void add_gpu(struct node *node, const char *address, const char *uuid)
{
    char path[96];
    struct node_device *device = node_devices_add(&node->devices);
    assert_non_null(device);
    *device = (struct node_device){.kind = NODE_DEVICE_GPU};
    snprintf(device->pci.bus_id, sizeof device->pci.bus_id, "%s", address);
    snprintf(device->gpu.uuid, sizeof device->gpu.uuid, "%s", uuid);
    snprintf(path, sizeof path, "sys/bus/pci/devices/%s/vendor", address);
    tree_file(&node->tree, path, "0x10de\n");
}

static struct node node_new(void)
{
    struct drarun_error err = {0};
    char path[128];
    struct node node = {.tree = tree_new(), .devices = NODE_DEVICES_INIT};
    snprintf(node.dir, sizeof node.dir, "%s/xids", node.tree.name);
    snprintf(node.repaired, sizeof node.repaired, "%s/repaired", node.tree.name);
    add_gpu(&node, GPU, "GPU-a");
    add_gpu(&node, OTHER, "GPU-b");
    tree_file(&node.tree, "nvml",
              "gpu " GPU " GPU-a 0 1 0 A\ngpu " OTHER " GPU-b 1 1 0 A\n"
              "xid " GPU " 79\nxid " OTHER " 48\nxid " OTHER " 13\n");
    snprintf(path, sizeof path, "%s/nvml", node.tree.name);
    setenv("NVML_STAND_IN", path, 1);
    if (nvml_open(NVML_STAND_IN_LIBRARY, NULL, &node.nvml, &err) < 0)
        fail_msg("%s", err.text);
    return node;
}

static void node_done(struct node *node)
{
    nvml_close(node->nvml);
    node_devices_done(&node->devices);
    tree_drop(&node->tree);
}

/* What an instance that starts now knows. */
static struct xids loaded(const struct node *node, const char *boot)
{
    struct xids xids;
    xids_load(&xids, node->dir, boot);
    return xids;
}

/* An instance takes what NVML tells, and ends. */
static void take_all(struct node *node)
{
    struct xids xids = loaded(node, BOOT);
    assert_int_equal(xids.count, 0);
    assert_true(xids_take(&xids, node->nvml, node->tree.root, &node->devices));
    assert_int_equal(xids.count, 2);
}

/* A job that fails leaves errors of its programs on every GPU, among which is the one that made it
 * fail: all of them come at once. */
static void test_one_among_many(void **state)
{
    (void)state;
    struct node node = node_new();
    struct buf text = BUF_INIT;
    buf_printf(&text, "gpu " GPU " GPU-a 0 1 0 A\ngpu " OTHER " GPU-b 1 1 0 A\n");
    for (int i = 0; i < 20; i++)
        buf_printf(&text, "xid " GPU " 45\nxid " OTHER " 31\n");
    buf_printf(&text, "xid " OTHER " 48\n");
    tree_file(&node.tree, "nvml", text.data);
    buf_done(&text);
    nvml_close(node.nvml);
    assert_int_equal(nvml_open(NVML_STAND_IN_LIBRARY, NULL, &node.nvml, NULL), 0);
    struct xids xids = loaded(&node, BOOT);
    assert_true(xids_take(&xids, node.nvml, node.tree.root, &node.devices));
    assert_int_equal(xids.count, 1);
    assert_string_equal(xids.list[0].xid.bus_id, OTHER);
    assert_int_equal(xids.list[0].xid.xid, 48);
    node_done(&node);
}

static const struct known_xid *find(const struct xids *xids, const char *address)
{
    for (size_t i = 0; i < xids->count; i++)
        if (strcmp(xids->list[i].xid.bus_id, address) == 0)
            return &xids->list[i];
    fail_msg("no Xid of %s among %zu", address, xids->count);
    return NULL;
}

static void test_known_to_the_next_instance(void **state)
{
    (void)state;
    struct node node = node_new();
    take_all(&node);
    struct xids next = loaded(&node, BOOT);
    assert_int_equal(next.count, 2);
    const struct known_xid *lost = find(&next, GPU), *other = find(&next, OTHER);
    assert_int_equal(lost->xid.xid, 79);
    assert_true(lost->xid.lost);
    assert_string_equal(lost->uuid, "GPU-a");
    assert_int_not_equal(lost->function, 0);
    assert_int_equal(other->xid.xid, 48);
    assert_false(other->xid.lost);
    assert_false(xids_take(&next, node.nvml, node.tree.root, &node.devices)); /* told once */
    assert_false(xids_forget_replaced(&next, node.tree.root, &node.devices));
    assert_int_equal(next.count, 2);
    node_done(&node);
}

/* The GPU at the address and its MIG devices, and not a NIC's, should one have the same. */
static void test_faults_of_the_gpu_alone(void **state)
{
    static const struct discover_config config = {.xid = FAULT_NO_SCHEDULE,
                                                  .lost = FAULT_NO_EXECUTE};
    (void)state;
    struct node node = node_new();
    take_all(&node);
    add_gpu(&node, GPU, "MIG-a");
    add_gpu(&node, GPU, "");
    add_gpu(&node, "0000:00:07.0", "GPU-c");
    node.devices.list[2].kind = NODE_DEVICE_MIG;
    node.devices.list[3].kind = NODE_DEVICE_NIC;
    struct xids next = loaded(&node, BOOT);
    xids_apply(&next, &config, &node.devices);
    const struct node_device *device = node.devices.list;
    const size_t faults[] = {2, 1, 2, 0, 0};
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        assert_int_equal(device[i].fault_count, faults[i]);
    assert_string_equal(device[0].faults[0].key, FAULT_XID);
    assert_string_equal(device[0].faults[0].value, "79");
    assert_false(device[0].faults[0].execute);
    assert_string_equal(device[0].faults[1].key, FAULT_LOST);
    assert_true(device[0].faults[1].execute);
    assert_string_equal(device[1].faults[0].value, "48");
    node_done(&node);
}

static void keep_error(void *arg, const struct log_line *line)
{
    if (line->level == LOG_QUIET)
        buf_add(arg, line->text, line->length);
}

static void test_of_an_earlier_boot(void **state)
{
    (void)state;
    struct node node = node_new();
    struct buf errors = BUF_INIT;
    take_all(&node);
    log_divert(keep_error, &errors);
    assert_int_equal(loaded(&node, "b2").count, 0);
    assert_int_equal(loaded(&node, BOOT).count, 0); /* the files are gone */
    log_divert(NULL, NULL);
    assert_int_equal(errors.len, 0);
    node_done(&node);
}

static void test_file_that_cannot_be_removed(void **state)
{
    (void)state;
    struct node node = node_new();
    struct buf errors = BUF_INIT;
    take_all(&node);
    struct xids next = loaded(&node, BOOT);
    unlinkat(node.tree.root, "xids/" GPU "-79.json", 0);
    tree_dir(&node.tree, "xids/" GPU "-79.json");
    tree_file(&node.tree, "repaired/" GPU, "");
    log_divert(keep_error, &errors);
    assert_true(xids_forget_repaired(&next, node.repaired));
    log_divert(NULL, NULL);
    assert_int_equal(next.count, 1);
    buf_add(&errors, "", 1);
    assert_non_null(
        strstr(errors.data, "GPU " GPU ": Xid 79 will be back when the plugin restarts: "));
    buf_done(&errors);
    node_done(&node);
}

static void test_another_gpu_at_the_address(void **state)
{
    (void)state;
    struct node node = node_new();
    take_all(&node);
    snprintf(node.devices.list[0].gpu.uuid, sizeof node.devices.list[0].gpu.uuid, "GPU-c");
    struct xids next = loaded(&node, BOOT);
    assert_true(xids_forget_replaced(&next, node.tree.root, &node.devices));
    assert_int_equal(next.count, 1);
    next = loaded(&node, BOOT);
    assert_int_equal(next.count, 1);
    find(&next, OTHER);
    node_done(&node);
}

static void test_repaired_while_no_plugin_runs(void **state)
{
    (void)state;
    struct node node = node_new();
    take_all(&node);
    tree_file(&node.tree, "repaired/" GPU, "");
    struct xids next = loaded(&node, BOOT);
    assert_true(xids_forget_repaired(&next, node.repaired));
    next = loaded(&node, BOOT);
    assert_int_equal(next.count, 1);
    find(&next, OTHER);
    node_done(&node);
}

/* NVML has told of it before the first reading, which knows its GPU. */
static void test_uuid_that_is_known_later(void **state)
{
    (void)state;
    struct node node = node_new();
    const struct node_devices none = NODE_DEVICES_INIT;
    struct xids xids = loaded(&node, BOOT);
    assert_true(xids_take(&xids, node.nvml, node.tree.root, &none));
    assert_false(xids_forget_replaced(&xids, node.tree.root, &node.devices));
    struct xids next = loaded(&node, BOOT);
    assert_string_equal(find(&next, GPU)->uuid, "GPU-a");
    node_done(&node);
}

static void test_files_that_say_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{\"version\":1}",
        "{\"version\":2,\"boot\":\"b1\",\"busID\":\"" GPU "\",\"xid\":48,\"lost\":false,"
        "\"uuid\":\"\",\"function\":0}",
        "{\"version\":1,\"boot\":\"b1\",\"busID\":\"../x\",\"xid\":48,\"lost\":false,"
        "\"uuid\":\"\",\"function\":0}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct node node = node_new();
        take_all(&node);
        tree_file(&node.tree, "xids/" GPU "-79.json", texts[i]);
        tree_file(&node.tree, "xids/" GPU "-79.json.aBcDeF", ""); /* of a write that was killed */
        struct xids next = loaded(&node, BOOT);
        assert_int_equal(next.count, 1);
        find(&next, OTHER);
        node_done(&node);
    }
}

static void test_not_kept(void **state)
{
    (void)state;
    struct node node = node_new();
    struct xids xids;
    xids_load(&xids, NULL, NULL);
    assert_true(xids_take(&xids, node.nvml, node.tree.root, &node.devices));
    assert_int_equal(xids.count, 2);
    assert_int_not_equal(access(node.dir, F_OK), 0);
    node_done(&node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_to_the_next_instance),
        cmocka_unit_test(test_one_among_many),
        cmocka_unit_test(test_faults_of_the_gpu_alone),
        cmocka_unit_test(test_of_an_earlier_boot),
        cmocka_unit_test(test_file_that_cannot_be_removed),
        cmocka_unit_test(test_another_gpu_at_the_address),
        cmocka_unit_test(test_repaired_while_no_plugin_runs),
        cmocka_unit_test(test_uuid_that_is_known_later),
        cmocka_unit_test(test_files_that_say_nothing),
        cmocka_unit_test(test_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
