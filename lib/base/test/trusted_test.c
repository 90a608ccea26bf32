/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/test/skip.h"
#include "lib/base/trusted.h"

static char dir[64];

static const char *path_of(const char *name)
{
    static char paths[4][256];
    static unsigned turn;
    char *path = paths[turn++ % ARRAY_LEN(paths)];
    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

/* ours/in, open/ (0777), open/in, sticky/ (1777), sticky/in */
static int make_tree(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned mode;
    } made[] = {{"ours", 0755},  {"ours/in", 0755},  {"open", 0777},    {"open/in", 0755},
                {"group", 0775}, {"group/in", 0755}, {"sticky", 01777}, {"sticky/in", 0700}};
    snprintf(dir, sizeof dir, "/tmp/trusted-test-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(made); i++)
        if (mkdir(path_of(made[i].name), 0700) < 0 ||
            chmod(path_of(made[i].name), made[i].mode) < 0)
            return -1;
    return chown(path_of("group"), geteuid(), geteuid() ? getegid() : 1234) < 0 ? -1 : 0;
}

static int remove_tree(void **state)
{
    (void)state;
    return tree_remove(AT_FDCWD, dir);
}

static void link_to(const char *target, const char *name)
{
    unlink(path_of(name));
    assert_int_equal(symlink(target, path_of(name)), 0);
}

static void where_others_cannot_write(void **state)
{
    (void)state;
    assert_int_equal(dir_check_trusted("/", NULL), 0);
    assert_int_equal(dir_check_trusted(path_of("ours/in"), NULL), 0);
    assert_int_equal(dir_check_trusted(path_of("ours/in/to/be/made"), NULL), 0);
    assert_int_equal(dir_check_trusted(path_of("sticky/in"), NULL), 0);
    assert_int_equal(dir_make_trusted(path_of("sticky/new/deeper"), 0755, NULL), 0);
    link_to("ours", "link");
    assert_int_equal(dir_check_trusted(path_of("link/in"), NULL), 0);
    link_to(path_of("ours/in"), "link");
    assert_int_equal(dir_check_trusted(path_of("link"), NULL), 0);
    link_to("../ours/./in", "sticky/link");
    assert_int_equal(dir_check_trusted(path_of("sticky/link"), NULL), 0);
}

static void where_others_can(void **state)
{
    (void)state;
    static const char *const names[] = {"open",   "open/in", "open/to/be/made", "group/in",
                                        "sticky", "link/in", "ours/link"};
    link_to("open", "link");
    link_to("../open/in", "ours/link");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct drarun_error err = {0};
        assert_int_equal(dir_check_trusted(path_of(names[i]), &err), -EPERM);
        assert_ptr_equal(strstr(err.text, path_of(names[i])), err.text);
        assert_non_null(strstr(err.text, ": others may write "));
    }
}

/* A link, or a folder, that another user has put into a directory for all. */
static void what_is_another_users(void **state)
{
    (void)state;
    struct drarun_error err = {0};
    if (geteuid() != 0)
        skip_for("needs root");
    link_to("../ours/in", "sticky/theirs");
    assert_int_equal(dir_check_trusted(path_of("sticky/theirs"), NULL), 0);
    assert_int_equal(lchown(path_of("sticky/theirs"), 1234, 1234), 0);
    assert_int_equal(dir_check_trusted(path_of("sticky/theirs"), NULL), -EPERM);
    assert_int_equal(dir_make_trusted(path_of("sticky/theirs"), 0755, NULL), -EPERM);
    assert_int_equal(mkdir(path_of("ours/theirs"), 0755), 0);
    assert_int_equal(chown(path_of("ours/theirs"), 1234, 1234), 0);
    assert_int_equal(dir_check_trusted(path_of("ours/theirs/deeper"), &err), -EPERM);
    assert_non_null(strstr(err.text, "ours/theirs belongs to user 1234"));
}

static void what_leads_nowhere(void **state)
{
    (void)state;
    struct drarun_error err = {0};
    link_to("loop", "loop");
    assert_int_equal(dir_check_trusted(path_of("loop"), NULL), -ELOOP);
    assert_int_equal(dir_check_trusted("tmp", &err), -EINVAL);
    assert_string_equal(err.text, "tmp: expected an absolute path");
    assert_int_equal(file_write_atomic(path_of("ours/file"), "x", 1, 0600, NULL), 0);
    assert_int_equal(dir_check_trusted(path_of("ours/file/in"), NULL), -ENOTDIR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_others_cannot_write),
        cmocka_unit_test(where_others_can),
        cmocka_unit_test(what_is_another_users),
        cmocka_unit_test(what_leads_nowhere),
    };
    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
