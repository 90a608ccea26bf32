/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/ranks/wrapper.h"
#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"

#define WORDS_MAX 8

static const struct {
    const char *words[WORDS_MAX];
    enum wrapper_kind kind; /* 0: none */
    size_t options, own;
} cases[] = {
    {{"app", "x"}, 0, 0, 0},
    {{"exec", "app"}, WRAPPER_NOTHING, 1, 1},
    {{"exec", "-a", "name", "app"}, WRAPPER_NOTHING, 3, 3},
    {{"/usr/bin/time", "-v", "app"}, WRAPPER_NOTHING, 2, 2},
    {{"time", "-f", "%e", "app"}, WRAPPER_NOTHING, 3, 3},
    {{"command", "-v", "app"}, 0, 0, 0},
    {{"command", "app", "-v"}, WRAPPER_NOTHING, 1, 1},
    {{"tini", "-g", "--", "-app"}, WRAPPER_NOTHING, 3, 3},
    {{"nice", "-5", "app"}, WRAPPER_SCHEDULING, 2, 2},
    {{"nice", "-n", "5", "app"}, WRAPPER_SCHEDULING, 3, 3},
    {{"nice", "-n5", "app"}, WRAPPER_SCHEDULING, 2, 2},
    {{"nice", "--adjustment", "5", "app"}, WRAPPER_SCHEDULING, 3, 3},
    {{"nice", "--adjustment=5", "app"}, WRAPPER_SCHEDULING, 2, 2},
    {{"stdbuf", "-oL", "-e", "0", "app"}, WRAPPER_SCHEDULING, 4, 4},
    {{"numactl", "-N", "0", "--membind", "0", "-l", "app"}, WRAPPER_SCHEDULING, 6, 6},
    {{"taskset", "-c", "0-3", "app"}, WRAPPER_SCHEDULING, 2, 3},
    {{"taskset", "-p", "0-3", "17"}, 0, 0, 0},
    {{"timeout", "1h", "app"}, WRAPPER_TIME, 1, 2},
    {{"timeout", "-s", "INT", "--kill-after", "9", "1h", "app"}, WRAPPER_TIME, 5, 6},
    {{"sudo", "-Eu", "mpi", "app"}, WRAPPER_USER, 3, 3},
    {{"sudo", "-l", "app"}, 0, 0, 0},
    {{"sudo", "-E", "A=b", "app"}, WRAPPER_USER, 2, 3},
    {{"gosu", "mpi", "app"}, WRAPPER_USER, 1, 2},
    {{"env", "A=b", "C=", "app", "D=e"}, WRAPPER_ENV, 1, 3},
    {{"env", "-i", "-u", "X", "A=b", "app"}, WRAPPER_ENV, 4, 5},
    {{"env", "-", "app"}, WRAPPER_ENV, 2, 2},
    {{"env", "-a", "me", "app"}, WRAPPER_ENV, 3, 3},
    {{"env", "--argv0", "me", "A=b", "app"}, WRAPPER_ENV, 3, 4},
    {{"env", "-S", "A=b app"}, 0, 0, 0},
    {{"env", "-uSHELL", "app"}, WRAPPER_ENV, 2, 2},
    {{"env", "--split-string=A=b app"}, 0, 0, 0},
    {{"timeout"}, WRAPPER_TIME, 1, 1},
    {{"nice", "-n"}, WRAPPER_SCHEDULING, 2, 2},
};

static size_t count_words(const char *const words[WORDS_MAX])
{
    size_t count = 0;
    while (count < WORDS_MAX && words[count])
        count++;
    return count;
}

static void reads_options_and_arguments(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wrapper found = {0};
        bool is_one = wrapper_read(cases[i].words, count_words(cases[i].words), &found);
        if (is_one != (cases[i].kind != 0) || found.kind != cases[i].kind ||
            found.options != cases[i].options || found.words != cases[i].own)
            fail_msg("case %zu: kind %d, %zu options, %zu words", i, (int)found.kind, found.options,
                     found.words);
    }
}

static const struct {
    const char *words[WORDS_MAX];
    size_t skipped;
} lines[] = {
    {{"env", "A=b", "timeout", "60", "nice", "app", "nice"}, 5},
    {{"nice"}, 1},
    {{"app", "nice"}, 0},
    {{NULL}, 0},
};

static void skips_all_of_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        char *argv[WORDS_MAX + 1] = {NULL};
        memcpy(argv, lines[i].words, sizeof lines[i].words);
        assert_int_equal(wrapper_skip(argv), lines[i].skipped);
    }
}

static const struct {
    const char *words[WORDS_MAX];
    const char *line; /* NULL: none */
    size_t before;
} split[] = {
    {{"env", "-S", "A=b app"}, "A=b app", 3},
    {{"env", "-SA=b app", "x"}, "A=b app", 2},
    {{"env", "-ivS", "app", "x"}, "app", 3},
    {{"env", "-u", "S", "-C", "/", "-S", "app"}, "app", 7},
    {{"env", "--split-string", "app"}, "app", 3},
    {{"/usr/bin/env", "--split-string=A=b app", "x"}, "A=b app", 2},
    {{"env", "-uS", "app"}, NULL, 0},
    {{"env", "-u", "-S", "app"}, NULL, 0},
    {{"env", "--", "-S", "app"}, NULL, 0},
    {{"env", "app", "-S", "x"}, NULL, 0},
    {{"nice", "-S", "x"}, NULL, 0},
    {{NULL}, NULL, 0},
};

static void finds_the_line_of_env(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(split); i++) {
        char *argv[WORDS_MAX + 1] = {NULL};
        size_t before = 0;
        memcpy(argv, split[i].words, sizeof split[i].words);
        const char *line = wrapper_env_line(argv, &before);
        if (!line != !split[i].line || before != split[i].before ||
            (line && strcmp(line, split[i].line) != 0))
            fail_msg("case %zu: %s, %zu words", i, line ? line : "none", before);
    }
    char *argv[] = {unconst("env"), unconst("-S"), NULL};
    size_t before = 0;
    assert_string_equal(wrapper_env_line(argv, &before), "");
    assert_int_equal(before, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_options_and_arguments),
        cmocka_unit_test(skips_all_of_them),
        cmocka_unit_test(finds_the_line_of_env),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
