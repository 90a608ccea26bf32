/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/topo/cpus.h"

/* ---- lists ---- */

static const struct {
    const char *text, *says; /* as it is formatted again, or what the error shows */
    int rc;
} lists[] = {
    {"0", "0", 0},
    {"0-3\n", "0-3", 0},
    {"0-3,8", "0-3,8", 0},
    {"8,0-3,2", "0-3,8", 0},
    {"0,1", "0-1", 0},
    {"", "", 0},
    {"\n", "", 0},
    {"8191", "8191", 0},
    {"0-8191", "0-8191", 0},
    {"8192", "\"8192\"", -EINVAL},
    {"99999999999999999999", "\"99999999999999999999\"", -EINVAL},
    {"0-", "\"0-\"", -EINVAL},
    {"3-1", "\"3-1\"", -EINVAL},
    {"0,,1", "\"\"", -EINVAL},
    {",", "\"\"", -EINVAL},
    {"1,", "\"\"", -EINVAL},
    {"0,x,1", "\"x\"", -EINVAL},
    {"-1", "\"-1\"", -EINVAL},
    {"+1", "\"+1\"", -EINVAL},
    {"1 ", "\"1 \"", -EINVAL},
    {"1\n\n", "\"1\"", -EINVAL},
    {"0-1-2", "\"0-1-2\"", -EINVAL},
};

static void parses_lists(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        cleanup_free uint32_t *ids = NULL;
        size_t count = 0;
        struct drarun_error err = {0};
        struct buf text = BUF_INIT;
        int rc = cpulist_parse(lists[i].text, &ids, &count, &err);
        if (rc != lists[i].rc)
            fail_msg("\"%s\": %d", lists[i].text, rc);
        buf_add_str(&text, "");
        cpulist_format(ids, count, &text);
        if (rc == 0)
            assert_string_equal(text.data, lists[i].says);
        else
            assert_non_null(strstr(err.text, lists[i].says));
        buf_done(&text);
    }
}

/* ---- sysfs trees ---- */

struct file {
    const char *path, *text;
};

#define CPU "sys/devices/system/cpu/"
#define NODE "sys/devices/system/node/"
#define SIBLINGS "/topology/thread_siblings_list"

static void make_directories(int root, char *path)
{
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdirat(root, path, 0755);
        *slash = '/';
    }
}

static int make_tree(const struct file *files, char *name)
{
    assert_non_null(mkdtemp(name));
    int root = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(root >= 0);
    for (; files->path; files++) {
        char path[128];
        snprintf(path, sizeof path, "%s", files->path);
        make_directories(root, path);
        cleanup_close int fd = openat(root, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        assert_int_equal(fd_write_all(fd, files->text, strlen(files->text)), 0);
    }
    return root;
}

/* Two sockets of two NUMA nodes with two cores of two threads each; siblings are 8 apart, and
 * CPU 5 is offline, which leaves CPU 13 alone on its core. Node 4 has memory only. */
static const struct file two_sockets[] = {
    {CPU "online", "0-4,6-15\n"},
    {CPU "cpu0" SIBLINGS, "0,8\n"},
    {CPU "cpu8" SIBLINGS, "0,8\n"},
    {CPU "cpu1" SIBLINGS, "1,9\n"},
    {CPU "cpu9" SIBLINGS, "1,9\n"},
    {CPU "cpu2" SIBLINGS, "2,10\n"},
    {CPU "cpu10" SIBLINGS, "2,10\n"},
    {CPU "cpu3" SIBLINGS, "3,11\n"},
    {CPU "cpu11" SIBLINGS, "3,11\n"},
    {CPU "cpu4" SIBLINGS, "4,12\n"},
    {CPU "cpu12" SIBLINGS, "4,12\n"},
    {CPU "cpu13" SIBLINGS, "13\n"},
    {CPU "cpu6" SIBLINGS, "6,14\n"},
    {CPU "cpu14" SIBLINGS, "6,14\n"},
    {CPU "cpu7" SIBLINGS, "7,15\n"},
    {CPU "cpu15" SIBLINGS, "7,15\n"},
    {NODE "online", "0-4\n"},
    {NODE "node0/cpulist", "0-1,8-9\n"},
    {NODE "node1/cpulist", "2-3,10-11\n"},
    {NODE "node2/cpulist", "4,12-13\n"},
    {NODE "node3/cpulist", "6-7,14-15\n"},
    {NODE "node4/cpulist", "\n"},
    {NULL, NULL},
};

/* Ids with gaps, nodes 0 and 8 as on POWER, and neighbours by node rather than by id. */
static const struct file gaps[] = {
    {CPU "online", "3,40-41,200\n"},
    {CPU "cpu3" SIBLINGS, "3\n"},
    {CPU "cpu40" SIBLINGS, "40-41\n"},
    {CPU "cpu41" SIBLINGS, "40-41\n"},
    {CPU "cpu200" SIBLINGS, "200\n"},
    {NODE "online", "0,8\n"},
    {NODE "node0/cpulist", "40-41\n"},
    {NODE "node8/cpulist", "3,200\n"},
    {NULL, NULL},
};

static const struct file no_numa[] = {{CPU "online", "0-1\n"}, {NULL, NULL}};
static const struct file no_node_files[] = {
    {CPU "online", "0-1\n"}, {NODE "online", "0-1\n"}, {NULL, NULL}};
static const struct file empty_tree[] = {{"sys/devices/other", ""}, {NULL, NULL}};
static const struct file bad_online[] = {{CPU "online", "all of them\n"}, {NULL, NULL}};
static const struct file none_online[] = {{CPU "online", "\n"}, {NULL, NULL}};
static const struct file bad_siblings[] = {{CPU "online", "0\n"},
                                           {CPU "cpu0" SIBLINGS, "\x7f"
                                                                 "ELF"},
                                           {NULL, NULL}};
static const struct file bad_node[] = {
    {CPU "online", "0\n"}, {NODE "online", "0\n"}, {NODE "node0/cpulist", "0-\n"}, {NULL, NULL}};

/* "NUMA:core=ids ..." */
static void show(const struct cpus *cpus, struct buf *out)
{
    for (size_t i = 0; i < cpus->count; i++) {
        const struct cpu *cpu = &cpus->list[i];
        bool same = i > 0 && cpu[-1].core == cpu->core;
        if (same)
            buf_printf(out, ",%u", cpu->id);
        else
            buf_printf(out, "%s%u:%u=%u", i ? " " : "", cpu->numa, cpu->core, cpu->id);
    }
}

static const struct {
    const struct file *files;
    const char *allowed; /* NULL: all */
    const char *shown, *error;
    int rc;
    size_t cores;
} trees[] = {
    {two_sockets, NULL, "0:0=0,8 0:1=1,9 1:2=2,10 1:3=3,11 2:4=4,12 2:5=13 3:6=6,14 3:7=7,15", NULL,
     0, 8},
    {two_sockets, "1-2,10,13,5", "0:0=1 1:1=2,10 2:2=13", NULL, 0, 3},
    {two_sockets, "6-7", "3:0=6 3:1=7", NULL, 0, 2},
    {two_sockets, "5", NULL, "no usable CPU among 15 online ones", -ENOENT, 0},
    {gaps, NULL, "0:0=40,41 8:1=3 8:2=200", NULL, 0, 3},
    {no_numa, NULL, "0:0=0 0:1=1", NULL, 0, 2},
    {no_node_files, NULL, "0:0=0 0:1=1", NULL, 0, 2},
    {empty_tree, NULL, NULL, "cpu/online", -ENOENT, 0},
    {empty_tree, "1,5-6", "0:0=1 0:1=5 0:2=6", NULL, 0, 3},
    {bad_online, NULL, NULL, "cpu/online: \"all of them\"", -EINVAL, 0},
    {none_online, NULL, NULL, "no usable CPU among 0", -ENOENT, 0},
    {bad_siblings, NULL, NULL, "cpu0/topology/thread_siblings_list: ", -EINVAL, 0},
    {bad_node, NULL, NULL, "node0/cpulist: \"0-\"", -EINVAL, 0},
};

static void make_mask(const char *list, cpu_set_t *mask)
{
    cleanup_free uint32_t *ids = NULL;
    size_t count = 0;
    assert_int_equal(cpulist_parse(list, &ids, &count, NULL), 0);
    CPU_ZERO(mask);
    for (size_t i = 0; i < count; i++)
        CPU_SET(ids[i], mask);
}

static void reads_trees(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
        char name[] = "/tmp/cpus_test.XXXXXX";
        cleanup_close int root = make_tree(trees[i].files, name);
        struct cpus cpus = {0};
        struct drarun_error err = {0};
        struct buf shown = BUF_INIT;
        cpu_set_t mask;
        if (trees[i].allowed)
            make_mask(trees[i].allowed, &mask);
        int rc = cpus_read(root, trees[i].allowed ? &mask : NULL, sizeof mask, &cpus, &err);
        assert_int_equal(tree_remove(AT_FDCWD, name), 0);
        if (rc != trees[i].rc)
            fail_msg("tree %zu: %d, %s", i, rc, err.text);
        show(&cpus, &shown);
        if (rc == 0) {
            assert_string_equal(shown.data, trees[i].shown);
            assert_int_equal(err.code, 0);
        } else {
            assert_non_null(strstr(err.text, trees[i].error));
        }
        assert_int_equal(cpus.cores, trees[i].cores);
        buf_done(&shown);
        cpus_done(&cpus);
    }
}

static void reads_this_machine(void **state)
{
    (void)state;
    struct cpus cpus = {0};
    struct drarun_error err = {0};
    if (cpus_read(-1, NULL, 0, &cpus, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(cpus.count >= cpus.cores && cpus.cores >= 1);
    cpus_done(&cpus);
}

static void knows_those_of_a_process(void **state)
{
    (void)state;
    CLEANUP(buf_done) struct buf own = BUF_INIT;
    CLEANUP(buf_done) struct buf bound = BUF_INIT;
    CLEANUP(buf_done) struct buf none = BUF_INIT;
    char first[16], byte;
    cpu_set_t set;
    int ready[2];
    assert_int_equal(cpulist_of_process(0, &own), 0);
    snprintf(first, sizeof first, "%u", (unsigned)strtoul(own.data, NULL, 10));
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        CPU_ZERO(&set);
        CPU_SET(strtoul(first, NULL, 10), &set);
        ssize_t n = sched_setaffinity(0, sizeof set, &set) == 0 ? write(ready[1], "x", 1) : -1;
        if (n == 1)
            pause();
        _exit(1);
    }
    assert_true(pid > 0);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    assert_int_equal(cpulist_of_process(pid, &bound), 0);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_string_equal(bound.data, first);
    assert_int_equal(cpulist_of_process(pid, &none), 0);
    assert_int_equal(none.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_lists),
        cmocka_unit_test(reads_trees),
        cmocka_unit_test(reads_this_machine),
        cmocka_unit_test(knows_those_of_a_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
