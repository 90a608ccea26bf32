/* SPDX-License-Identifier: Apache-2.0 */
/* A container's verbs nodes, in a folder of the test's; what RDMA devices there are is the test's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/test/skip.h"
#include "plugin/attach/rdma.h"
#include "plugin/attach/verbs_nodes.h"

#define NS 77 /* a number that is handed on */
#define NODES "/dev/infiniband"
#define SPARES NODES "/.drarun-u-1"

static struct rdma_node device_node; /* of "mlx5_0" */
static int device_code;
static dev_t numbers[2]; /* of all that there are */
static int number_code;

int __wrap_rdma_verbs_node(int ns, const char *name, struct rdma_node *ret,
                           struct drarun_error *err);
int __wrap_rdma_verbs_node(int ns, const char *name, struct rdma_node *ret,
                           struct drarun_error *err)
{
    (void)err;
    assert_int_equal(ns, NS);
    assert_string_equal(name, "mlx5_0");
    *ret = device_node;
    return device_code;
}

int __wrap_rdma_verbs_numbers(int ns, dev_t *ret_numbers, int max, struct drarun_error *err);
int __wrap_rdma_verbs_numbers(int ns, dev_t *ret_numbers, int max, struct drarun_error *err)
{
    (void)err;
    assert_int_equal(ns, NS);
    assert_true(max >= 2);
    memcpy(ret_numbers, numbers, sizeof numbers);
    return number_code;
}

static char root[64];

static int set_up(void **state)
{
    char path[128];
    (void)state;
    device_node = (struct rdma_node){"uverbs3", makedev(231, 195)};
    device_code = 1;
    numbers[0] = makedev(231, 195);
    numbers[1] = makedev(231, 196);
    number_code = 2;
    snprintf(root, sizeof root, "/tmp/verbs_nodes.XXXXXX");
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof path, "%s" SPARES, root);
    return dirs_make(path, 0755, NULL);
}

static int take_down(void **state)
{
    (void)state;
    return tree_remove(AT_FDCWD, root);
}

static const char *at(const char *path)
{
    static char whole[256];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    return whole;
}

static void node(const char *path, unsigned minor)
{
    if (mknod(at(path), S_IFCHR | 0600, makedev(231, minor)) < 0)
        skip_for("needs root");
}

static bool is_there(const char *path)
{
    struct stat st;
    return lstat(at(path), &st) == 0;
}

static struct verbs_nodes opened(void)
{
    struct verbs_nodes nodes;
    struct drarun_error err = {0};
    if (verbs_nodes_open(getpid(), root, "u-1", NS, &nodes, &err) < 0)
        fail_msg("%s", err.text);
    return nodes;
}

static int ensure(struct drarun_error *err)
{
    struct verbs_nodes nodes = opened();
    int rc = verbs_nodes_ensure(&nodes, "mlx5_0", err);
    verbs_nodes_done(&nodes);
    return rc;
}

static int clear_up(struct drarun_error *err)
{
    struct verbs_nodes nodes = opened();
    int rc = verbs_nodes_clear(&nodes, err);
    verbs_nodes_done(&nodes);
    return rc;
}

static void folders_that_are_missing_are_none(void **state)
{
    struct verbs_nodes nodes = opened();
    (void)state;
    assert_true(nodes.dir >= 0 && nodes.spares >= 0);
    assert_int_equal(nodes.ns, NS);
    assert_string_equal(nodes.spares_name, ".drarun-u-1");
    verbs_nodes_done(&nodes);
    assert_int_equal(nodes.dir, -1);
    assert_int_equal(nodes.spares, -1);
    assert_int_equal(rmdir(at(SPARES)), 0);
    nodes = opened();
    assert_true(nodes.dir >= 0);
    assert_int_equal(nodes.spares, -1);
    verbs_nodes_done(&nodes);
    assert_int_equal(rmdir(at(NODES)), 0);
    nodes = opened();
    assert_int_equal(nodes.dir, -1);
    assert_int_equal(nodes.spares, -1);
    verbs_nodes_done(&nodes);
}

static void what_cannot_be_opened_is_named(void **state)
{
    struct verbs_nodes nodes = {.ns = 5};
    struct drarun_error err = {0};
    char expected[128];
    (void)state;
    assert_int_equal(verbs_nodes_open(getpid(), at("/none"), "u-1", NS, &nodes, &err), -ENOENT);
    assert_int_equal(strncmp(err.text, "the container's root: ", 22), 0);
    assert_int_equal(rmdir(at(SPARES)), 0);
    assert_int_equal(mkfifo(at(SPARES), 0600), 0);
    assert_int_equal(verbs_nodes_open(getpid(), root, "u-1", NS, &nodes, &err), -ENOTDIR);
    assert_int_equal(strncmp(err.text, "the container's /.drarun-u-1: ", 30), 0);
    assert_int_equal(nodes.ns, 5); /* untouched */
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    snprintf(expected, sizeof expected, "the container's process %d: /proc/%d/root: ", (int)pid,
             (int)pid);
    assert_int_equal(verbs_nodes_open(pid, root, "u-1", NS, &nodes, &err), -ENOENT);
    assert_int_equal(strncmp(err.text, expected, strlen(expected)), 0);
}

/* A process that has made the root its "/" is asked there, whatever the configuration says. */
static void process_in_its_root(void **state)
{
    int ready[2];
    char byte;
    struct verbs_nodes nodes;
    struct drarun_error err = {0};
    (void)state;
    if (geteuid() != 0)
        skip_for("needs root");
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (chroot(root) == 0 && chdir("/") == 0 && write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    int rc = verbs_nodes_open(pid, "/nonexistent", "u-1", NS, &nodes, &err);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(rc, 0);
    assert_true(nodes.dir >= 0 && nodes.spares >= 0);
    verbs_nodes_done(&nodes);
}

static void right_node_is_left(void **state)
{
    struct drarun_error err = {0};
    (void)state;
    node(NODES "/uverbs3", 195);
    node(SPARES "/uverbs3", 195);
    assert_int_equal(ensure(&err), 0);
    assert_true(is_there(SPARES "/uverbs3"));
    device_code = 0; /* the kernel does not say */
    assert_int_equal(unlink(at(NODES "/uverbs3")), 0);
    assert_int_equal(ensure(&err), 0);
    assert_false(is_there(NODES "/uverbs3"));
    device_code = -EIO;
    assert_int_equal(ensure(&err), -EIO);
}

static void spare_node_takes_its_place(void **state)
{
    struct drarun_error err = {0};
    struct stat st;
    (void)state;
    node(NODES "/uverbs3", 192); /* another one's, by now */
    node(SPARES "/uverbs3", 195);
    node(SPARES "/uverbs4", 196);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ensure(&err), 0);
        assert_int_equal(lstat(at(NODES "/uverbs3"), &st), 0);
        assert_int_equal(st.st_rdev, makedev(231, 195));
        assert_false(is_there(SPARES "/uverbs3"));
        assert_true(is_there(SPARES "/uverbs4"));
    }
}

static void wrong_number_refuses_the_container(void **state)
{
    struct drarun_error err = {0};
    (void)state;
    node(NODES "/uverbs3", 192);
    node(SPARES "/uverbs3", 192);
    assert_int_equal(ensure(&err), -ESTALE);
    assert_string_equal(err.text,
                        "RDMA device mlx5_0 is /dev/infiniband/uverbs3, number 231:195, by now, "
                        "and the container was given 231:192: delete the pod, so that its claim is "
                        "prepared again");
    assert_int_equal(unlink(at(NODES "/uverbs3")), 0);
    assert_int_equal(mkfifo(at(NODES "/uverbs3"), 0600), 0);
    assert_int_equal(ensure(&err), -ESTALE);
    assert_string_equal(err.text,
                        "RDMA device mlx5_0 is /dev/infiniband/uverbs3, number 231:195, by now, "
                        "which the container was not given: delete the pod, so that its claim is "
                        "prepared again");
    tree_remove(AT_FDCWD, at(NODES));
    assert_int_equal(ensure(&err), -ESTALE);
}

/* Spare ones, and those of numbers that no device has. */
static void what_is_left_is_removed(void **state)
{
    struct drarun_error err = {0};
    (void)state;
    node(NODES "/uverbs3", 195);
    node(NODES "/uverbs4", 196);
    node(NODES "/uverbs5", 197);
    node(NODES "/rdma_cm", 58);
    node(SPARES "/uverbs9", 201);
    assert_int_equal(mkfifo(at(NODES "/uverbs6"), 0600), 0);
    number_code = -EIO;
    assert_int_equal(clear_up(&err), -EIO);
    assert_true(is_there(SPARES "/uverbs9"));
    number_code = 2;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(clear_up(&err), 0);
        assert_true(is_there(NODES "/uverbs3") && is_there(NODES "/uverbs4"));
        assert_false(is_there(NODES "/uverbs5"));
        assert_true(is_there(NODES "/rdma_cm") && is_there(NODES "/uverbs6"));
        assert_false(is_there(SPARES));
        node(NODES "/uverbs5", 197); /* stays where nothing was spare */
        assert_int_equal(clear_up(&err), 0);
        assert_true(is_there(NODES "/uverbs5"));
        assert_int_equal(mkdir(at(SPARES), 0700), 0);
    }
    number_code = 0; /* the kernel does not say */
    assert_int_equal(clear_up(&err), 0);
    assert_true(is_there(NODES "/uverbs5"));
    assert_false(is_there(SPARES));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, take_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(folders_that_are_missing_are_none),
        CASE(what_cannot_be_opened_is_named),
        CASE(process_in_its_root),
        CASE(right_node_is_left),
        CASE(spare_node_takes_its_place),
        CASE(wrong_number_refuses_the_container),
        CASE(what_is_left_is_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
