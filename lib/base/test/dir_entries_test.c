/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/dir_entries.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define FILES 500 /* more than one buffer has */

static void each_name_once(void **state)
{
    char path[] = "/tmp/dir-entries-XXXXXX", name[64];
    bool seen[FILES] = {false};
    int count = 0, rc = 1;
    (void)state;
    assert_non_null(mkdtemp(path));
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    assert_true(fd >= 0);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "a-file-with-the-number-%d", i);
        close(openat(fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600));
    }
    struct dir_entries entries = {.fd = fd};
    for (const char *found; (found = dir_entries_next(&entries, &rc)); count++) {
        int number = atoi(strrchr(found, '-') + 1);
        assert_in_range(number, 0, FILES - 1);
        assert_false(seen[number]);
        seen[number] = true;
        assert_int_equal(unlinkat(fd, found, 0), 0);
    }
    assert_int_equal(rc, 0);
    assert_int_equal(count, FILES);
    close(fd);
    assert_int_equal(rmdir(path), 0);
}

static void what_is_no_directory(void **state)
{
    int rc = 0;
    (void)state;
    struct dir_entries entries = {.fd = open("/dev/null", O_RDONLY)};
    assert_null(dir_entries_next(&entries, &rc));
    assert_int_equal(rc, -ENOTDIR);
    close(entries.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_name_once),
        cmocka_unit_test(what_is_no_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
