/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>

#include "lib/base/cleanup.h"
#include "lib/topo/root.h"
#include "lib/topo/test/tree.h"

static void resolves_links_inside(void **state)
{
    (void)state;
    static const struct {
        const char *path, *says;
        int rc;
    } cases[] = {
        {"", ".", 0},
        {"/", ".", 0},
        {"a/b/file", "a/b/file", 0},
        {"//a/./b//file", "a/b/file", 0},
        {"relative/file", "a/b/file", 0},
        {"absolute/file", "a/b/file", 0},
        {"above/a/b/file", "a/b/file", 0},
        {"../../../a", "a", 0},
        {"chain/file", "a/b/file", 0},
        {"passwd", NULL, -ENOENT},
        {"dangling", NULL, -ENOENT},
        {"loop", NULL, -ELOOP},
        {"loop/x", NULL, -ELOOP},
        {"a/b/file/x", NULL, -ENOTDIR},
    };
    struct tree tree = tree_new();
    tree_file(&tree, "a/b/file", "text\n");
    tree_link(&tree, "relative", "a/../a/b");
    tree_link(&tree, "absolute", "/a/b");
    tree_link(&tree, "above", "../../../../../..");
    tree_link(&tree, "chain", "x/1");
    tree_link(&tree, "x/1", "2");
    tree_link(&tree, "x/2", "../relative");
    tree_link(&tree, "passwd", "/etc/passwd");
    tree_link(&tree, "dangling", "nowhere");
    tree_link(&tree, "loop", "x/loop");
    tree_link(&tree, "x/loop", "../loop");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf path = BUF_INIT;
        struct drarun_error err = {0};
        int rc = root_resolve(tree.root, cases[i].path, &path, &err);
        if (rc != cases[i].rc)
            fail_msg("\"%s\": %d %s", cases[i].path, rc, err.text);
        if (rc == 0)
            assert_string_equal(path.data, cases[i].says);
        buf_done(&path);
    }
    tree_drop(&tree);
}

static void refuses_paths_too_long(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    char long_target[4000];
    memset(long_target, 'a', sizeof long_target - 1);
    for (size_t i = 100; i < sizeof long_target; i += 100)
        long_target[i] = '/';
    long_target[sizeof long_target - 1] = '\0';
    tree_link(&tree, "long", long_target);
    char path[4096];
    memset(path, 'b', sizeof path);
    memcpy(path, "long/", 5);
    path[500] = '\0';
    struct buf out = BUF_INIT;
    assert_int_equal(root_resolve(tree.root, path, &out, NULL), -ENAMETOOLONG);
    path[500] = 'b';
    path[4095] = '\0';
    assert_true(root_resolve(tree.root, path, &out, NULL) < 0);
    buf_done(&out);
    tree_drop(&tree);
}

static void reads_regular_files_only(void **state)
{
    (void)state;
    char text[8];
    struct tree tree = tree_new();
    tree_file(&tree, "file", "text\n\n");
    tree_file(&tree, "large", "0123456789");
    tree_file(&tree, "empty", "");
    tree_link(&tree, "link", "file");
    assert_int_equal(mkfifoat(tree.root, "pipe", 0644), 0);
    assert_int_equal(attr_read(tree.root, "file", text, sizeof text), 4);
    assert_string_equal(text, "text");
    assert_int_equal(attr_read(tree.root, "large", text, sizeof text), 7);
    assert_int_equal(attr_read(tree.root, "empty", text, sizeof text), 0);
    assert_int_equal(attr_read(tree.root, "link", text, sizeof text), -ELOOP);
    assert_int_equal(root_read(tree.root, "link", text, sizeof text), 4);
    assert_int_equal(attr_read(tree.root, "pipe", text, sizeof text),
                     -EINVAL); /* and doesn't block */
    assert_int_equal(attr_read(tree.root, "none", text, sizeof text), -ENOENT);
    tree_drop(&tree);
}

/* procfs gives a page of lines by a read: this process has many mappings, and its stack comes after
 * them. */
static void reads_tables_to_their_end(void **state)
{
    (void)state;
    const size_t pages = 400, page = (size_t)sysconf(_SC_PAGESIZE), some = 8192;
    struct buf text = BUF_INIT;
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *many = mmap(NULL, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(root >= 0 && many != MAP_FAILED);
    for (size_t i = 0; i < pages; i += 2) /* each a mapping of its own */
        assert_int_equal(mprotect(many + i * page, page, PROT_READ), 0);
    assert_int_equal(root_read_whole(root, "proc/self/maps", (size_t)4 << 20, &text), 0);
    assert_true(text.len > some);
    assert_non_null(strstr(text.data, "[stack]"));
    buf_reset(&text);
    assert_int_equal(root_read_whole(root, "proc/self/maps", some, &text), -EFBIG);
    assert_true(text.len > some);
    buf_done(&text);
    munmap(many, pages * page);
    close(root);
}

static void reads_whole_files_below(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    struct tree tree = tree_new();
    tree_file(&tree, "file", "text\n\n");
    tree_link(&tree, "link", "/file");
    assert_int_equal(mkfifoat(tree.root, "pipe", 0644), 0);
    assert_int_equal(root_read_whole(tree.root, "link", 8, &text), 0);
    assert_string_equal(text.data, "text\n\n");
    assert_int_equal(root_read_whole(tree.root, "pipe", 8, &text), -EINVAL);
    assert_int_equal(root_read_whole(tree.root, "none", 8, &text), -ENOENT);
    assert_int_equal(text.len, 6);
    buf_done(&text);
    tree_drop(&tree);
}

static void lists_in_natural_order(void **state)
{
    (void)state;
    struct tree tree = tree_new();
    struct strlist names = STRLIST_INIT;
    tree_dir(&tree, "d/mlx5_10");
    tree_dir(&tree, "d/mlx5_2");
    tree_file(&tree, "d/file", "");
    assert_int_equal(root_list(tree.root, "d", 10, &names, NULL), 0);
    assert_int_equal(names.count, 3);
    assert_string_equal(names.items[1], "mlx5_2");
    assert_string_equal(names.items[2], "mlx5_10");
    strlist_done(&names);
    assert_int_equal(root_list(tree.root, "d", 2, &names, NULL), -E2BIG);
    assert_int_equal(root_list(tree.root, "d/file", 2, &names, NULL), -ENOTDIR);
    assert_int_equal(names.count, 0);
    tree_drop(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resolves_links_inside),    cmocka_unit_test(refuses_paths_too_long),
        cmocka_unit_test(reads_regular_files_only), cmocka_unit_test(reads_tables_to_their_end),
        cmocka_unit_test(reads_whole_files_below),  cmocka_unit_test(lists_in_natural_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
