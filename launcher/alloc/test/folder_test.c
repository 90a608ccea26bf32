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
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "launcher/alloc/folder.h"
#include "lib/base/cleanup.h"
#include "lib/base/file.h"

static char base[] = "/tmp/folder_test.XXXXXX";

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* A folder beside the others. owner: what the file of that name holds; NULL: there is none. */
static void leave(const char *name, const char *owner, char path[128])
{
    char file[160];
    snprintf(path, 128, "%s/%s", base, name);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(file, sizeof file, "%s/key", path);
    close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (!owner)
        return;
    snprintf(file, sizeof file, "%s/owner", path);
    cleanup_close int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(fd_write_all(fd, owner, strlen(owner)), 0);
}

static void make(char path[128], int *ret_owner)
{
    struct drarun_error err = {0};
    *ret_owner = -1;
    assert_int_equal(folder_make(path, 128, ret_owner, &err), 0);
    assert_int_equal(err.code, 0);
}

/* It is its maker's as long as the descriptor is open, and only its user may enter it. */
static void a_folder_is_left_when_its_maker_is_gone(void **state)
{
    char path[128], expected[64], file[160];
    struct stat st;
    int owner;
    (void)state;
    make(path, &owner);
    snprintf(expected, sizeof expected, "%s/drarun-alloc-", base);
    assert_memory_equal(path, expected, strlen(expected));
    assert_true(owner >= 0);
    assert_int_equal(fcntl(owner, F_GETFD), FD_CLOEXEC);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    snprintf(file, sizeof file, "%s/owner", path);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_false(folder_is_left(path));
    close(owner);
    assert_true(folder_is_left(path));
    tree_remove(AT_FDCWD, path);
    assert_false(folder_is_left(path)); /* it is not there */
}

/* Only what is certain: a folder that its maker is about to lock is empty yet. */
static void folders_that_are_not_left(void **state)
{
    static const struct {
        const char *owner;
        bool left;
    } rows[] = {{"locked\n", true}, {"", false}, {NULL, false}};
    char path[128], file[160];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        leave("drarun-alloc-x", rows[i].owner, path);
        assert_int_equal(folder_is_left(path), rows[i].left);
        tree_remove(AT_FDCWD, path);
    }
    leave("drarun-alloc-x", NULL, path);
    snprintf(file, sizeof file, "%s/owner", path);
    assert_int_equal(symlink("key", file), 0); /* of no file of its own */
    assert_false(folder_is_left(path));
    unlink(file);
    assert_int_equal(mkfifo(file, 0600), 0); /* which must not hold us up */
    assert_false(folder_is_left(path));
    unlink(file);
    assert_int_equal(mkdir(file, 0700), 0);
    assert_false(folder_is_left(path));
    tree_remove(AT_FDCWD, path);
}

/* With their keys, by the next allocation of the same user. */
static void what_killed_allocations_left_is_removed(void **state)
{
    char killed[128], alive[128], unlocked[128], other[128], shorter[128], made[128], target[128];
    char link[160];
    int owner, second;
    (void)state;
    make(alive, &owner);
    leave("drarun-alloc-killed", "locked\n", killed);
    leave("drarun-alloc-unlocked", "", unlocked);
    leave("drarun-bench-x", "locked\n", other);
    leave("drarun-alloc", "locked\n", shorter);
    leave("target", "locked\n", target);
    snprintf(link, sizeof link, "%s/drarun-alloc-link", base);
    assert_int_equal(symlink(target, link), 0);
    make(made, &second);
    assert_true(second >= 0);
    assert_false(exists(killed));
    assert_true(exists(alive));
    assert_true(exists(unlocked));
    assert_true(exists(other));
    assert_true(exists(shorter));
    assert_true(exists(target));
    assert_true(exists(link));
    assert_true(exists(made));
    close(owner);
    close(second);
    make(target, &owner); /* removes the two that were ours */
    assert_false(exists(alive));
    assert_false(exists(made));
    close(owner);
    tree_remove(AT_FDCWD, base);
    assert_int_equal(mkdir(base, 0700), 0);
}

static void folders_that_cannot_be_made(void **state)
{
    struct drarun_error err = {0};
    char path[128] = "x", nowhere[64];
    int owner = -7;
    (void)state;
    assert_int_equal(folder_make(path, strlen(base) + 10, &owner, &err), -ENAMETOOLONG);
    assert_string_equal(path, "");
    assert_int_equal(owner, -7);
    snprintf(nowhere, sizeof nowhere, "%s/nowhere", base);
    setenv("TMPDIR", nowhere, 1);
    assert_int_equal(folder_make(path, sizeof path, &owner, &err), -ENOENT);
    assert_int_equal(err.kind, DRARUN_ERR_INFRASTRUCTURE);
    setenv("TMPDIR", base, 1);
}

/* One after the other; the right to run ends with its descriptor. */
static void jobs_take_turns(void **state)
{
    char path[128], expected[256];
    int owner, first = -1, second = -7;
    struct drarun_error err = {0};
    (void)state;
    make(path, &owner);
    assert_int_equal(folder_enter(path, "use --workers N", &first, &err), 0);
    assert_true(first >= 0);
    assert_int_equal(fcntl(first, F_GETFD), FD_CLOEXEC);
    assert_int_equal(folder_enter(path, "use --workers N", &second, &err), -EBUSY);
    assert_int_equal(second, -7);
    assert_int_equal(err.kind, DRARUN_ERR_CAPACITY);
    snprintf(expected, sizeof expected,
             "another drarun runs in this allocation (%s), whose jobs run one after the other: "
             "wait for it, or use --workers N",
             path);
    assert_string_equal(err.text, expected);
    close(first);
    assert_int_equal(folder_enter(path, "", &second, &err), 0);
    assert_true(second >= 0);
    close(second);
    close(owner);
    tree_remove(AT_FDCWD, path);
    assert_int_equal(folder_enter(path, "", &second, &err), 0); /* no folder, no lock */
    assert_int_equal(second, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_is_left_when_its_maker_is_gone),
        cmocka_unit_test(folders_that_are_not_left),
        cmocka_unit_test(what_killed_allocations_left_is_removed),
        cmocka_unit_test(folders_that_cannot_be_made),
        cmocka_unit_test(jobs_take_turns),
    };
    if (!mkdtemp(base))
        return 1;
    setenv("TMPDIR", base, 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tree_remove(AT_FDCWD, base);
    return failed;
}
