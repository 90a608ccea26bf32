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
    place_read(root, &place);
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

static void test_node(void **state)
{
    struct place place;
    (void)state;
    setenv("DRARUN_NODE", "gpu-node-7", 1);
    place_read(root, &place);
    assert_string_equal(place.node, "gpu-node-7");
    unsetenv("DRARUN_NODE");
    place_read(root, &place);
    assert_string_equal(place.node, "");
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nics), cmocka_unit_test(test_node)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
