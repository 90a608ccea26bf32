/* SPDX-License-Identifier: Apache-2.0 */
/* Which words of a text get a colour, and where nothing does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "launcher/cli/paint.h"

#define R "\033[31m"
#define G "\033[32m"
#define Y "\033[33m"
#define X "\033[0m"

static void words_that_say_how_it_is(void **state)
{
    static const struct {
        const char *text, *painted;
    } cases[] = {
        {"", ""},
        /* doctor */
        {"failed   kubelet   it failed\nok       acs\n",
         R "failed" X "   kubelet   it failed\n" G "ok" X "       acs\n"},
        {"warning  shm       small\n", Y "warning" X "  shm       small\n"},
        {"10 ok, 2 warnings, 1 failed\n", "10 ok, 2 warnings, 1 failed\n"},
        /* list, status, accept */
        {"train     running        2/2\n", "train     " G "running" X "        2/2\n"},
        {"ended     ended          failed (3)\n",
         "ended     ended          " R "failed" X " (3)\n"},
        {"default/train: succeeded, 4 s ago\n", "default/train: " G "succeeded" X ", 4 s ago\n"},
        {"default/train: waiting for 4 s\n", "default/train: " Y "waiting" X " for 4 s\n"},
        {"node-1  bad       12.5\n", "node-1  " R "bad" X "       12.5\n"},
        {"job.yaml: error: no image\n", "job.yaml: " R "error" X ": no image\n"},
        /* other words, and those of sentences */
        {"okay\nrunning on\n  failed to start\n", "okay\nrunning on\n  failed to start\n"},
        {"\"state\": \"running\"", "\"state\": \"running\""},
        {"ok", G "ok" X},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buf out = BUF_INIT;
        paint_add(cases[i].text, strlen(cases[i].text), &out);
        assert_string_equal(out.data, cases[i].painted);
        buf_done(&out);
    }
}

static void not_for_files(void **state)
{
    (void)state;
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    assert_false(paint_wanted(-1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_that_say_how_it_is),
        cmocka_unit_test(not_for_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
