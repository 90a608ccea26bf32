/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/cleanup.h"
#include "plugin/attach/order.h"

static const char whole[] =
    "{\"version\":1,\"claim\":{\"namespace\":\"ns\",\"name\":\"c\",\"uid\":\"u-1\"},\"device\":"
    "\"nic-0\","
    "\"pci\":\"0000:8f:00.0\",\"mac\":\"02:00:00:00:00:01\",\"rdma\":\"mlx5_0\","
    "\"host\":{\"name\":\"eth1\",\"mtu\":1500,\"up\":true,\"addresses\":[\"10.0.0.3/24\"],"
    "\"hardwareAddr\":\"02:00:00:00:00:02\",\"gsoMaxSize\":65536,\"groMaxSize\":65536,"
    "\"gsoIPv4MaxSize\":65536,\"groIPv4MaxSize\":65536,\"features\":{\"tso\":true},"
    "\"privateFlags\":{\"x\":false}},\"config\":{\"interface\":{\"name\":\"net1\",\"mtu\":9000}}}";

static void written_as_it_was_read(void **state)
{
    (void)state;
    struct attach_order order = {0};
    struct drarun_error err = {0};
    if (attach_order_parse("order", whole, sizeof whole - 1, &order, &err) < 0)
        fail_msg("%s", err.text);
    json_t *json = attach_order_json(&order);
    char *text = json_dumps(json, JSON_COMPACT);
    assert_string_equal(text, whole);
    free(text);
    json_decref(json);
    attach_order_done(&order);
}

static void parent_is_the_function_unless_said(void **state)
{
    (void)state;
    static const char *const parents[] = {NULL, "virtio0", ""};
    for (size_t i = 0; i < ARRAY_LEN(parents); i++) {
        struct attach_order order = {0};
        struct drarun_error err = {0};
        json_t *document = json_loads(whole, 0, NULL), *again;
        if (parents[i])
            json_object_set_new(document, "parent", json_string(parents[i]));
        char *text = json_dumps(document, 0);
        if (attach_order_parse("order", text, strlen(text), &order, &err) < 0)
            fail_msg("%s", err.text);
        assert_string_equal(order.parent, parents[i] ? parents[i] : "0000:8f:00.0");
        assert_string_equal(order.pci, "0000:8f:00.0");
        again = attach_order_json(&order);
        assert_true(json_equal(again, document));
        free(text);
        json_decref(again);
        json_decref(document);
        attach_order_done(&order);
    }
}

static void orders_are_strict(void **state)
{
    (void)state;
#define CLAIM "\"claim\":{\"namespace\":\"s\",\"name\":\"n\",\"uid\":\"u\"}"
#define HEAD "{\"version\":1," CLAIM ",\"device\":\"d\","
#define HOST "\"host\":{\"name\":\"e\",\"mtu\":1},"
#define NAMED "\"config\":{\"interface\":{\"name\":\"n\"}}}"
    static const struct {
        const char *text, *finding;
    } table[] = {
        {HEAD HOST "\"pci\":\"0000:01:00.0\"," NAMED, NULL},
        {HEAD HOST "\"pci\":\"10000:01:00.0\"," NAMED, NULL},
        {HEAD HOST "\"mac\":\"02:00:00:00:00:01\"," NAMED, NULL},
        {HEAD HOST "\"pci\":\"0000:01:00.0\",\"parent\":\"virtio0\"," NAMED, NULL},
        {HEAD HOST "\"pci\":\"0000:01:00.0\",\"parent\":\"\"," NAMED, "or \"mac\" for a virtual"},
        {HEAD HOST "\"pci\":\"0000:01:00.0\",\"parent\":\"a/b\"," NAMED,
         "parent: expected letters"},
        {HEAD "\"rdma\":\"mlx5_0\"}", NULL},
        {"{\"version\":1,\"device\":\"d\",\"rdma\":\"r\"}", "an order needs \"claim\""},
        {"", "expected one order, got 0"},
        {"{} {}", "expected one order, got 2"},
        {"[]", "expected a mapping"},
        {"{\"version\":2," CLAIM ",\"device\":\"d\"}", "version: this program reads version 1"},
        {"{" CLAIM ",\"device\":\"d\"}", "an order needs \"version\""},
        {HEAD "\"rdma\":\"r\",\"x\":1}", "x: unknown key"},
        {HEAD "\"config\":{}}", "an order needs \"host.name\" or \"rdma\""},
        {HEAD HOST NAMED, "an order needs \"pci\", or \"mac\""},
        {HEAD HOST "\"pci\":\"0000:01:00.0\",\"config\":{}}", "needs \"config.interface.name\""},
        {HEAD "\"host\":{\"name\":\"e\"},\"pci\":\"0000:01:00.0\"," NAMED, "needs \"host.mtu\""},
        {HEAD HOST "\"pci\":\"01:00.0\"," NAMED, "pci: expected a PCI address"},
        {HEAD HOST "\"pci\":\"0000:01:00.8\"," NAMED, "pci: expected a PCI address"},
        {HEAD HOST "\"pci\":\"../../etc/pass\"," NAMED, "pci: expected a PCI address"},
        {HEAD HOST "\"mac\":\"x\"," NAMED, "mac: expected a hardware address"},
        {HEAD "\"rdma\":\"../x\"}", "rdma: expected letters"},
        {"{\"version\":1," CLAIM ",\"device\":\"a\\nb\"}", "device: expected letters"},
        {"{\"version\":1,\"claim\":{\"uid\":\"a/"
         "b\",\"namespace\":\"s\",\"name\":\"n\"},\"device\":\"b\"}",
         "claim.uid: expected letters"},
        {HEAD HOST
         "\"pci\":\"0000:01:00.0\",\"config\":{\"interface\":{\"name\":\"n\",\"mtu\":5}}}",
         "config.interface.mtu"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct attach_order order = {0};
        struct drarun_error err = {0};
        int rc = attach_order_parse("o", table[i].text, strlen(table[i].text), &order, &err);
        if ((rc < 0) != (table[i].finding != NULL))
            fail_msg("%s: %d: %s", table[i].text, rc, err.text);
        if (table[i].finding && !strstr(err.text, table[i].finding))
            fail_msg("%s: %s", table[i].text, err.text);
        attach_order_done(&order);
    }
}

static void put(int dir, const char *name, const char *text, mode_t mode)
{
    cleanup_close int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
}

static void load_fails(int dir, const char *name, int code, const char *part)
{
    struct attach_order order = {0};
    struct drarun_error err = {0};
    assert_int_equal(attach_order_load(dir, name, &order, &err), -code);
    if (!strstr(err.text, part))
        fail_msg("%s: \"%s\" lacks \"%s\"", name, err.text, part);
}

static void files_of_others_are_refused(void **state)
{
    (void)state;
    char path[] = "/tmp/drarun-order-XXXXXX";
    assert_non_null(mkdtemp(path));
    cleanup_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct attach_order order = {0};
    struct drarun_error err = {0};
    put(dir, "good", whole, 0600);
    if (attach_order_load(dir, "good", &order, &err) < 0)
        fail_msg("%s", err.text);
    attach_order_done(&order);
    put(dir, "group", whole, 0620);
    put(dir, "all", whole, 0602);
    put(dir, "cut", "{\"version\":", 0600);
    assert_int_equal(symlinkat("good", dir, "link"), 0);
    assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
    load_fails(dir, "group", EPERM, "group: others may write it (mode 620)");
    load_fails(dir, "all", EPERM, "others may write it");
    load_fails(dir, "cut", EINVAL, "cut:1:");
    load_fails(dir, "link", ELOOP, "is a link");
    load_fails(dir, "fifo", EINVAL, "expected a regular file");
    load_fails(dir, ".", EINVAL, "expected a regular file");
    load_fails(dir, "none", ENOENT, "none: No such file");
    put(dir, "large", "x", 0600);
    cleanup_close int fd = openat(dir, "large", O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, ATTACH_ORDER_SIZE_MAX + 1), 0);
    load_fails(dir, "large", EFBIG, "larger than 262144 bytes");
    if (geteuid() == 0) {
        assert_int_equal(fchownat(dir, "good", 65534, 65534, 0), 0);
        load_fails(dir, "good", EPERM, "belongs to user 65534, expected user 0");
    }
    static const char *const names[] = {"good", "group", "all", "cut", "link", "fifo", "large"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unlinkat(dir, names[i], 0);
    assert_int_equal(rmdir(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_as_it_was_read),
        cmocka_unit_test(parent_is_the_function_unless_said),
        cmocka_unit_test(orders_are_strict),
        cmocka_unit_test(files_of_others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
