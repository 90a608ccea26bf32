/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "worker/host/conf_files.h"

struct image {
    char root[64];
    struct strlist env, found;
};

static int setup(void **state)
{
    struct image *image = calloc(1, sizeof *image);
    *state = image;
    if (!image)
        return -1;
    snprintf(image->root, sizeof image->root, "/tmp/conf_files_test.XXXXXX");
    return mkdtemp(image->root) ? 0 : -1;
}

static int teardown(void **state)
{
    struct image *image = *state;
    strlist_done(&image->env);
    strlist_done(&image->found);
    tree_remove(AT_FDCWD, image->root);
    free(image);
    return 0;
}

static void path_of(const struct image *image, const char *name, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", image->root, name);
    assert_int_equal(dirs_make_parents(path, 0755, NULL), 0);
}

static void write_file(const struct image *image, const char *name, const char *text)
{
    char path[256];
    path_of(image, name, path, sizeof path);
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0644, NULL), 0);
}

static const char *value(struct image *image, const char *name)
{
    strlist_done(&image->found);
    conf_files_read(&image->env, &image->found);
    assert_false(image->found.failed);
    return env_get(&image->found, name);
}

/* As the images of Horovod write it. */
static void test_the_file_beside_a_path(void **state)
{
    struct image *image = *state;
    write_file(image, "usr/local/etc/openmpi-mca-params.conf",
               "# btl_tcp_if_exclude = eth9\n\nhwloc_base_binding_policy = none\n"
               "  btl_tcp_if_exclude\t=  lo,docker0 \r\nno value\n= nothing\nlast=1");
    assert_null(value(image, "OMPI_MCA_btl_tcp_if_exclude"));
    env_setf(&image->env, "PATH", "bin:/nowhere/bin:%s/usr/local/bin:", image->root);
    assert_string_equal(value(image, "OMPI_MCA_btl_tcp_if_exclude"), "lo,docker0");
    assert_string_equal(value(image, "OMPI_MCA_hwloc_base_binding_policy"), "none");
    assert_string_equal(value(image, "OMPI_MCA_last"), "1");
}

static void test_home_and_prefix(void **state)
{
    struct image *image = *state;
    write_file(image, "home/.openmpi/mca-params.conf", "a = home\n");
    write_file(image, "opt/etc/openmpi-mca-params.conf", "b = prefix\n");
    env_setf(&image->env, "HOME", "%s/home", image->root);
    env_setf(&image->env, "OPAL_PREFIX", "%s/opt", image->root);
    assert_string_equal(value(image, "OMPI_MCA_a"), "home");
    assert_string_equal(value(image, "OMPI_MCA_b"), "prefix");
}

/* "NAME=VALUE" as NCCL reads it, for NCCL alone: what is set first stays, env before the files. */
static void test_nccls_file(void **state)
{
    struct image *image = *state;
    write_file(image, "home/.nccl.conf",
               "#NCCL_IB_HCA=mlx5_9\nNCCL_NET_PLUGIN=spcx\r\nNCCL_NET_PLUGIN=none\nNCCL_ALGO\n"
               " NCCL_PROTO=LL\nOMPI_MCA_a=1\nNCCL_DEBUG=INFO\nNCCL_COLLNET_ENABLE=1");
    env_setf(&image->env, "HOME", "%s/home", image->root);
    env_set(&image->env, "NCCL_DEBUG", "WARN");
    assert_string_equal(value(image, "NCCL_NET_PLUGIN"), "spcx");
    assert_string_equal(value(image, "NCCL_COLLNET_ENABLE"), "1");
    assert_null(value(image, "NCCL_IB_HCA"));
    assert_null(value(image, "NCCL_ALGO"));
    assert_null(value(image, "NCCL_PROTO"));
    assert_null(value(image, "NCCL_DEBUG"));
    assert_null(value(image, "OMPI_MCA_a"));
}

static void test_another_file_of_nccl(void **state)
{
    struct image *image = *state;
    write_file(image, "home/.nccl.conf", "NCCL_NET_PLUGIN=home\n");
    write_file(image, "other.conf", "NCCL_COLLNET_ENABLE=1\n");
    env_setf(&image->env, "HOME", "%s/home", image->root);
    env_set(&image->env, "NCCL_CONF_FILE", "");
    assert_string_equal(value(image, "NCCL_NET_PLUGIN"), "home");
    env_setf(&image->env, "NCCL_CONF_FILE", "%s/other.conf", image->root);
    assert_string_equal(value(image, "NCCL_COLLNET_ENABLE"), "1");
    assert_null(value(image, "NCCL_NET_PLUGIN"));
}

static void test_a_pipe_and_a_large_file(void **state)
{
    struct image *image = *state;
    char path[256], large[70000];
    path_of(image, "home/.openmpi/mca-params.conf", path, sizeof path);
    assert_int_equal(mkfifo(path, 0644), 0);
    memset(large, '#', sizeof large - 1);
    memcpy(large, "c = 1\n", 6);
    large[sizeof large - 1] = '\0';
    write_file(image, "opt/etc/openmpi-mca-params.conf", large);
    env_setf(&image->env, "HOME", "%s/home", image->root);
    env_setf(&image->env, "OPAL_PREFIX", "%s/opt", image->root);
    assert_string_equal(value(image, "OMPI_MCA_c"), "1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_file_beside_a_path, setup, teardown),
        cmocka_unit_test_setup_teardown(test_home_and_prefix, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nccls_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_file_of_nccl, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_pipe_and_a_large_file, setup, teardown),
    };
    return cmocka_run_group_tests_name("conf_files", tests, NULL, NULL);
}
