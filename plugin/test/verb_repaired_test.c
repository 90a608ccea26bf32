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

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "plugin/verb.h"

static char said[1024];

static void on_log(void *arg, const struct log_line *line)
{
    (void)arg;
    /* without the program before it and the end of the line */
    snprintf(said, sizeof said, "%.*s", (int)(line->length - line->prefix - 1),
             line->text + line->prefix);
}

static void addresses_leave_files(void **state)
{
    char dir[] = "/tmp/repaired_test.XXXXXX", path[128], folder[64];
    char option[] = "--state-dir", one[] = "0000:8F:00.0", two[] = "0001:8f:1f.7";
    char *argv[] = {option, dir, one, two};
    static const char *const names[] = {"0000:8f:00.0", "0001:8f:1f.7"};
    struct stat st;
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(folder, sizeof folder, "%s/repaired", dir);
    for (int i = 0; i < 2; i++)
        assert_int_equal(verb_repaired.run(4, argv), 0);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_int_equal(lstat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(st.st_size, 0);
    }
    assert_int_equal(stat(folder, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    tree_remove(AT_FDCWD, dir);
}

static void what_cannot_be_is_told(void **state)
{
    char dir[] = "/tmp/repaired_test.XXXXXX", option[] = "--state-dir", bad[] = "8f:00",
         good[] = "0000:8f:00.0", file[64], expected[256], deep[300];
    char *argv[] = {option, dir, good};
    (void)state;
    log_divert(on_log, NULL);
    assert_non_null(mkdtemp(dir));
    argv[2] = bad;
    assert_int_equal(verb_repaired.run(3, argv), error_exit_status(DRARUN_ERR_USAGE));
    assert_string_equal(said, "repaired: 8f:00: expected a GPU's PCI address, as 0000:8f:00.0");
    argv[2] = good;
    snprintf(file, sizeof file, "%s/repaired/0000:8f:00.0", dir);
    assert_int_equal(symlink("/dev/null", file), 0);
    assert_int_equal(verb_repaired.run(3, argv), error_exit_status(DRARUN_ERR_INFRASTRUCTURE));
    snprintf(expected, sizeof expected, "repaired: %s: Too many levels of symbolic links", file);
    assert_string_equal(said, expected);
    memset(deep, 'x', sizeof deep);
    memcpy(deep, "/dev/null/", 10);
    deep[256 - sizeof "/repaired"] = '\0';
    argv[1] = deep; /* a path that fits, and where nothing can be, */
    assert_int_equal(verb_repaired.run(3, argv), error_exit_status(DRARUN_ERR_INFRASTRUCTURE));
    deep[256 - sizeof "/repaired"] = 'x'; /* and one that does not fit */
    deep[257 - sizeof "/repaired"] = '\0';
    assert_int_equal(verb_repaired.run(3, argv), error_exit_status(DRARUN_ERR_USAGE));
    assert_string_equal(said, "repaired: --state-dir: the path is too long");
    log_divert(NULL, NULL);
    tree_remove(AT_FDCWD, dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_leave_files),
        cmocka_unit_test(what_cannot_be_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
