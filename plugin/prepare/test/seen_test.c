/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "plugin/prepare/checkpoint.h"
#include "plugin/prepare/seen.h"

static char dir[64], told[256];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/seen-test-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    return tree_remove(AT_FDCWD, dir);
}

static void put(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, NULL), 0);
}

static int tell(void *arg, const char *uid, struct drarun_error *err)
{
    const int *fails = arg;
    size_t n = strlen(told);
    if (*fails)
        return error_set(err, ENOMEM, "out of memory");
    snprintf(told + n, sizeof told - n, "%s ", uid);
    return 0;
}

static const char *look(struct seen *seen, int fails, int expected)
{
    told[0] = '\0';
    assert_int_equal(seen_look(seen, dir, tell, &fails, NULL), expected);
    return told;
}

static void each_difference_is_told_once(void **state)
{
    (void)state;
    struct seen seen = {0};
    assert_string_equal(look(&seen, 0, 0), "");
    put("u-1.json", "{}");
    put("u-2.json", "{}");
    put("no-checkpoint", "{}");
    put("u-3.json.abcdef", "{}"); /* being written */
    assert_int_equal(strlen(look(&seen, 0, 0)), strlen("u-1 u-2 "));
    assert_string_equal(look(&seen, 0, 0), "");
    put("u-2.json", "{}"); /* the same content is another file */
    assert_string_equal(look(&seen, 0, 0), "u-2 ");
    assert_int_equal(checkpoint_remove(dir, "u-1", NULL), 0);
    assert_string_equal(look(&seen, 0, 0), "u-1 ");
    put("u-1.json", "{}");
    assert_string_equal(look(&seen, 0, 0), "u-1 ");
    seen_done(&seen);
}

static void what_could_not_be_taken_up_comes_again(void **state)
{
    (void)state;
    struct seen seen = {0};
    put("u-1.json", "{}");
    assert_string_equal(look(&seen, 1, -ENOMEM), "");
    assert_string_equal(look(&seen, 0, 0), "u-1 ");
    assert_int_equal(checkpoint_remove(dir, "u-1", NULL), 0);
    assert_string_equal(look(&seen, 1, -ENOMEM), "");
    assert_string_equal(look(&seen, 0, 0), "u-1 ");
    seen_done(&seen);
}

static void what_a_kill_left_goes_with_the_checkpoint(void **state)
{
    (void)state;
    struct stat st;
    char other[128];
    put("u-1.json", "{}");
    put("u-1.json.abcdef", "{");
    put("u-1.json.mine", "{}");
    put("u-10.json", "{}");
    assert_int_equal(checkpoint_remove(dir, "u-1", NULL), 0);
    snprintf(other, sizeof other, "%s/u-1.json.abcdef", dir);
    assert_int_equal(stat(other, &st), -1);
    snprintf(other, sizeof other, "%s/u-1.json.mine", dir);
    assert_int_equal(stat(other, &st), 0);
    snprintf(other, sizeof other, "%s/u-10.json", dir);
    assert_int_equal(stat(other, &st), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_difference_is_told_once, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(what_could_not_be_taken_up_comes_again, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(what_a_kill_left_goes_with_the_checkpoint, make_dir,
                                        remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
