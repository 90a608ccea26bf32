/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/ranks/shell_words.h"
#include "lib/base/cleanup.h"

#define WORDS_MAX 8

static const struct {
    const char *words[WORDS_MAX];
    size_t options; /* 0: no shell */
    bool has_script, is_login;
} cases[] = {
    {{"app", "-c", "a"}, 0, false, false},
    {{NULL}, 0, false, false},
    {{"bash"}, 1, false, false},
    {{"sh", "-c", "a"}, 2, true, false},
    {{"/bin/bash", "-lc", "a", "b"}, 2, true, true},
    {{"bash", "--login", "-e", "-c", "a"}, 4, true, true},
    {{"bash", "-euo", "pipefail", "-c", "a"}, 4, true, false},
    {{"bash", "-c", "-oO", "pipefail", "extglob", "a"}, 5, true, false},
    {{"bash", "+x", "-c", "--", "-a"}, 4, true, false},
    {{"bash", "--rcfile", "r", "-c", "a"}, 4, true, false},
    {{"zsh", "run.sh", "-c", "a"}, 1, false, false},
    {{"sh", "-", "-c"}, 2, false, false},
    {{"dash", "-c"}, 2, false, false},
    {{"ksh", "-co"}, 2, false, false},
};

static void finds_the_script(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct shell_words shell = {0};
        size_t count = 0;
        while (count < WORDS_MAX && cases[i].words[count])
            count++;
        assert_int_equal(shell_words_read(cases[i].words, count, &shell), cases[i].options > 0);
        assert_int_equal(shell.options, cases[i].options);
        assert_int_equal(shell.has_script, cases[i].has_script);
        assert_int_equal(shell.is_login, cases[i].is_login);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_script),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
