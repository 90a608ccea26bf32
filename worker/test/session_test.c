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

#include "worker/session.h"

static char top[] = "/tmp/session_test.XXXXXX";
static char path[64];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(top))
        return -1;
    snprintf(path, sizeof path, "%s/session", top);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(top);
}

static void only_ours_may_enter(void **state)
{
    (void)state;
    struct stat st;
    mode_t before = umask(0);
    assert_int_equal(session_make(path, NULL), 0);
    umask(before);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(session_remove(path), 0);
}

static void what_is_there_is_not_taken(void **state)
{
    (void)state;
    struct drarun_error err = {0};
    assert_int_equal(symlink(top, path), 0);
    assert_int_equal(session_make(path, &err), -EEXIST);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(session_remove(path), 0); /* the link, not what it points to */
    assert_int_equal(access(top, F_OK), 0);
    assert_int_equal(session_make("/no/such/session", &err), -ENOENT);
}

static void removed_with_all_below(void **state)
{
    (void)state;
    char below[128], outside[64];
    snprintf(outside, sizeof outside, "%s/outside", top);
    close(open(outside, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(session_make(path, NULL), 0);
    snprintf(below, sizeof below, "%s/a", path);
    assert_int_equal(mkdir(below, 0700), 0);
    snprintf(below, sizeof below, "%s/a/link", path);
    assert_int_equal(symlink(outside, below), 0);
    assert_int_equal(session_remove(path), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(outside, F_OK), 0);
    assert_int_equal(session_remove(path), 0); /* again */
    unlink(outside);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_ours_may_enter),
        cmocka_unit_test(what_is_there_is_not_taken),
        cmocka_unit_test(removed_with_all_below),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
