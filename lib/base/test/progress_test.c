/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent reads at a path that a rank may put anything at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/progress.h"

static char place[64];

static int enter(void **state)
{
    (void)state;
    snprintf(place, sizeof place, "/tmp/progress-test-XXXXXX");
    return mkdtemp(place) && chdir(place) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    return chdir("/") < 0 ? -1 : tree_remove(AT_FDCWD, place);
}

static void what_was_told(void **state)
{
    struct progress_page seen, *page = progress_open("page");
    (void)state;
    assert_non_null(page);
    progress_step(page, true, "barrier");
    assert_true(progress_read("page", &seen));
    assert_int_equal(seen.step, 1);
    assert_string_equal(seen.what, "barrier");
    munmap(page, sizeof *page);
    assert_false(progress_read("nothing", &seen));
}

/* A FIFO would stop the reader until somebody opens its other end. */
static void what_is_no_page(void **state)
{
    struct progress_page seen;
    (void)state;
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(symlink("/dev/zero", "link"), 0);
    assert_int_equal(close(open("short", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
    alarm(60);
    assert_false(progress_read("fifo", &seen));
    alarm(0);
    assert_false(progress_read("link", &seen));
    assert_false(progress_read("short", &seen));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_told, enter, leave),
        cmocka_unit_test_setup_teardown(what_is_no_page, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
