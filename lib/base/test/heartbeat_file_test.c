/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/heartbeat_file.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

struct fixture {
    char folder[32], path[48];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->folder, sizeof f->folder, "/tmp/heartbeat.XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    snprintf(f->path, sizeof f->path, "%s/beat", f->folder);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    unlink(f->path);
    rmdir(f->folder);
    free(f);
    return 0;
}

static void test_beats_and_stops(void **state)
{
    struct fixture *f = *state;
    struct drarun_error err = {0};
    assert_int_equal(heartbeat_file_check(f->path, clock_ms(), &err), -ENOENT);
    assert_int_equal(err.kind, DRARUN_ERR_INFRASTRUCTURE);
    int64_t before = clock_ms();
    cleanup_close int fd = heartbeat_file_open(f->path, &err);
    assert_true(fd >= 0);
    assert_int_equal(heartbeat_file_check(f->path, before + HEARTBEAT_FILE_STALE_MS - 1, &err), 0);
    int64_t late = clock_ms() + HEARTBEAT_FILE_STALE_MS;
    assert_int_equal(heartbeat_file_check(f->path, late, &err), -ETIME);
    assert_non_null(strstr(err.text, "last written 30 s ago, expected less than 30 s"));
    while (clock_ms() + HEARTBEAT_FILE_STALE_MS <= late)
        usleep(1000);
    assert_int_equal(heartbeat_file_beat(fd), 0);
    assert_int_equal(heartbeat_file_check(f->path, late, &err), 0);
}

/* One that an earlier process of the container has left is taken over. */
static void test_old_file(void **state)
{
    struct fixture *f = *state;
    static const char *const texts[] = {"", "12\n", "00000000000000000001\n",
                                        "0000000000000000x001\n", "000000000000000000001\n"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct drarun_error err = {0};
        int fd = open(f->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_int_equal(write(fd, texts[i], strlen(texts[i])), (ssize_t)strlen(texts[i]));
        close(fd);
        assert_true(heartbeat_file_check(f->path, 1 + HEARTBEAT_FILE_STALE_MS, &err) < 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_beats_and_stops, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_old_file, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
