/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "benchmarks/bench/place.h"
#include "lib/base/file.h"
#include "lib/topo/test/tree.h"

static char root[] = "/tmp/place-XXXXXX";

static void port(const char *nic, const char *rate)
{
    char path[256];
    snprintf(path, sizeof path, "%s/sys/class/infiniband/%s/ports/1", root, nic);
    assert_int_equal(dirs_make(path, 0755, NULL), 0);
    snprintf(path, sizeof path, "%s/sys/class/infiniband/%s/ports/1/rate", root, nic);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%s\n", rate);
    fclose(file);
}

static void check(const char *list, const char *ranks, const char *nics, double gbit)
{
    struct place place;
    if (list)
        setenv("NCCL_IB_HCA", list, 1);
    else
        unsetenv("NCCL_IB_HCA");
    if (ranks)
        setenv("DRARUN_LOCAL_SIZE", ranks, 1);
    else
        unsetenv("DRARUN_LOCAL_SIZE");
    place_read(root, "", &place);
    assert_string_equal(place.nics, nics);
    assert_true(place.nic_gbit == gbit);
}

static void test_nics(void **state)
{
    (void)state;
    check("=mlx5_0,mlx5_1:1", "8", "mlx5_0,mlx5_1", 100);
    check("=mlx5_0", "1", "mlx5_0", 400);
    check("=mlx5_0,mlx5_9", "1", "mlx5_0,mlx5_9", 0); /* of one nothing is known */
    check("=mlx5_0,odd", "1", "mlx5_0,odd", 0);
    check("=../etc", "1", "../etc", 0);
    check("=mlx5_0", NULL, "mlx5_0", 0);
    check("mlx5", "1", "", 0);
    check("^mlx5_0", "1", "", 0);
    check("", "1", "", 0);
    check(NULL, "1", "", 0);
}

/* "=mlx5_20:1,mlx5_21:1", as drarun sets it. */
static void list_nics(unsigned count, const char *port_number, char *text, size_t size)
{
    size_t length = 0;
    for (unsigned i = 0; i < count; i++) {
        const char *before = i ? "," : port_number[0] ? "=" : "";
        length += (size_t)snprintf(text + length, size - length, "%smlx5_%u%s", before, 20 + i,
                                   port_number);
        assert_true(length < size);
    }
}

static void test_many_nics(void **state)
{
    static const unsigned counts[] = {8, 16, 64};
    char list[1024], names[1024];
    (void)state;
    for (unsigned i = 0; i < 65; i++) {
        char name[24];
        snprintf(name, sizeof name, "mlx5_%u", 20 + i);
        port(name, "400 Gb/sec (4X NDR)");
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        list_nics(counts[i], ":1", list, sizeof list);
        list_nics(counts[i], "", names, sizeof names);
        check(list, "8", names, 50.0 * counts[i]);
    }
    list_nics(65, ":1", list, sizeof list); /* no room for all names */
    check(list, "8", "", 50.0 * 65);
}

static void test_node(void **state)
{
    struct place place;
    (void)state;
    setenv("DRARUN_NODE", "gpu-node-7", 1);
    place_read(root, "", &place);
    assert_string_equal(place.node, "gpu-node-7");
    unsetenv("DRARUN_NODE");
    place_read(root, "", &place);
    assert_string_equal(place.node, "");
}

#define UP "sys/devices/pci0000:8c/0000:8c:01.0/0000:8d:00.0"
#define GPU UP "/0000:8e:00.0/0000:8f:00.0"
#define NEAR UP "/0000:8e:01.0/0000:91:00.0"
#define FAR "sys/devices/pci0000:c8/0000:c8:01.0/0000:cd:00.0"

static void function(const struct tree *tree, const char *path, const char *class_code,
                     const char *numa)
{
    char name[256], target[256];
    snprintf(name, sizeof name, "%s/class", path);
    tree_file(tree, name, class_code);
    snprintf(name, sizeof name, "%s/vendor", path);
    tree_file(tree, name, "0x10de\n");
    snprintf(name, sizeof name, "%s/numa_node", path);
    tree_file(tree, name, numa);
    snprintf(name, sizeof name, "sys/bus/pci/devices/%s", strrchr(path, '/') + 1);
    snprintf(target, sizeof target, "../../../../%s", path);
    tree_link(tree, name, target);
}

static void nic(const struct tree *tree, const char *path, const char *name)
{
    char place[256], target[256];
    function(tree, path, "0x020000\n", strcmp(path, FAR) == 0 ? "1\n" : "0\n");
    snprintf(place, sizeof place, "%s/infiniband/%s/ports/1/rate", path, name);
    tree_file(tree, place, "400 Gb/sec (4X NDR)\n");
    snprintf(place, sizeof place, "%s/infiniband/%s/device", path, name);
    snprintf(target, sizeof target, "../../../%s", strrchr(path, '/') + 1);
    tree_link(tree, place, target);
    snprintf(place, sizeof place, "sys/class/infiniband/%s", name);
    snprintf(target, sizeof target, "../../../%s/infiniband/%s", path, name);
    tree_link(tree, place, target);
}

static void check_path(const struct tree *tree, const char *list, const char *gpu, const char *path,
                       const char *nearest)
{
    struct place place;
    setenv("NCCL_IB_HCA", list, 1);
    place_read(tree->name, gpu, &place);
    assert_string_equal(place.path, path);
    assert_string_equal(place.nearest, nearest);
    unsetenv("NCCL_IB_HCA");
}

static void test_alignment(void **state)
{
    struct tree tree = tree_new();
    (void)state;
    function(&tree, GPU, "0x030200\n", "0\n");
    nic(&tree, NEAR, "mlx5_1");
    nic(&tree, FAR, "mlx5_10");
    tree_dir(&tree, "sys/devices/system/node/node0");
    tree_dir(&tree, "sys/devices/system/node/node1");
    check_path(&tree, "=mlx5_1", "0000:8F:00.0", "PIX", "mlx5_1");
    check_path(&tree, "=mlx5_10:1", "0000:8f:00.0", "SYS", "mlx5_10");
    check_path(&tree, "=mlx5_10,mlx5_1", "0000:8f:00.0", "PIX", "mlx5_1");
    check_path(&tree, "=mlx5_", "0000:8f:00.0", "", "mlx5_");
    check_path(&tree, "mlx5", "0000:8f:00.0", "", "");
    check_path(&tree, "=mlx5_1", "0000:8f:00.1", "", "mlx5_1");
    check_path(&tree, "=mlx5_1,mlx5_10", "", "", "");
    check_path(&tree, "=mlx5_1", "", "", "mlx5_1");
    check_path(&tree, "=mlx5_1", "memory", "", "mlx5_1");
    tree_drop(&tree);
}

static void test_machine(void **state)
{
    struct tree tree = tree_new();
    struct place place;
    (void)state;
    tree_file(&tree, "proc/sys/kernel/osrelease", "6.1.0-18-cloud\n");
    tree_file(&tree, "proc/driver/nvidia/version",
              "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release\n");
    setenv("NCCL_SOCKET_IFNAME", "=net1,net2", 1);
    place_read(tree.name, "", &place);
    unsetenv("NCCL_SOCKET_IFNAME");
    assert_string_equal(place.kernel, "6.1.0-18-cloud");
    assert_string_equal(place.driver, "570.86.15");
    assert_string_equal(place.nics, "net1,net2");
    assert_true(place.nic_gbit == 0);
    tree_drop(&tree);
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(root))
        return -1;
    port("mlx5_0", "400 Gb/sec (4X NDR)");
    port("mlx5_1", "400 Gb/sec (4X NDR)");
    port("odd", "fast");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return tree_remove(AT_FDCWD, root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nics), cmocka_unit_test(test_many_nics), cmocka_unit_test(test_node),
        cmocka_unit_test(test_alignment), cmocka_unit_test(test_machine)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
