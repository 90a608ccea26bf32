/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"
#include "plugin/verb.h"

#define WORDS_MAX 6

struct request {
    const char *file;
    bool help;
};

static const struct option_spec option_list[] = {
    {"file", 0, NULL, "FILE", "FILE", "Options", "a file", OPTION_TEXT,
     offsetof(struct request, file)},
    {"help", 'h', NULL, NULL, NULL, "Options", "show this help", OPTION_FLAG,
     offsetof(struct request, help)},
};
static const struct option_table options = {option_list, ARRAY_LEN(option_list)};
static const struct plugin_verb alone = {"alone", NULL, "Does it.", NULL, &options, NULL};
static const struct plugin_verb with_words = {"with",          "ADDRESS...", "Does it to some.",
                                              "More of it.\n", &options,     NULL};

static int parse(const struct plugin_verb *verb, const char *const words[], bool *ret_done,
                 struct drarun_error *err)
{
    struct request request = {0};
    int argc = 0;
    while (words[argc])
        argc++;
    return plugin_verb_parse(verb, argc, unconst(words), &request, &request.help, ret_done, err);
}

static void test_words(void **state)
{
    static const struct {
        const struct plugin_verb *verb;
        const char *words[WORDS_MAX];
        int begin;         /* of the arguments */
        const char *wrong; /* NULL: nothing */
    } rows[] = {
        {&alone, {NULL}, 0, NULL},
        {&alone, {"--file", "a"}, 2, NULL},
        {&alone, {"--file=a", "--"}, 2, NULL},
        {&alone, {"more"}, 0, "unexpected argument more"},
        {&alone, {"--file", "a", "b", "c"}, 0, "unexpected argument b"},
        {&alone, {"--", "--file"}, 0, "unexpected argument --file"},
        {&alone, {"more", "--help"}, 0, "unexpected argument more"},
        {&alone, {"--fil", "a"}, 0, "unknown option --fil; did you mean --file?"},
        {&with_words, {"a"}, 0, NULL},
        {&with_words, {"--file", "a", "b", "c"}, 2, NULL},
        {&with_words, {"--", "--file"}, 1, NULL},
        {&with_words, {NULL}, 0, "expected ADDRESS..."},
        {&with_words, {"--file", "a"}, 0, "expected ADDRESS..."},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drarun_error err = {0};
        bool is_done = false;
        int rc = parse(rows[i].verb, rows[i].words, &is_done, &err);
        assert_false(is_done);
        if (rows[i].wrong
                ? rc >= 0 || err.kind != DRARUN_ERR_USAGE || !strstr(err.text, rows[i].wrong)
                : rc != rows[i].begin)
            fail_msg("row %zu: %d, %s", i, rc, err.text);
    }
}

/* Also of a verb whose arguments are missing. */
static void test_help(void **state)
{
    static const struct {
        const struct plugin_verb *verb;
        const char *begins;
    } rows[] = {
        {&alone, "Usage: drarun-plugin alone [options]\n\nDoes it.\n"},
        {&with_words,
         "Usage: drarun-plugin with [options] ADDRESS...\n\nDoes it to some.\nMore of it.\n"},
    };
    static const char *const words[] = {"-h", NULL};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drarun_error err = {0};
        char text[1024] = "";
        bool is_done = false;
        cleanup_close int out = memfd_create("out", MFD_CLOEXEC);
        cleanup_close int before = dup(STDOUT_FILENO);
        assert_true(dup2(out, STDOUT_FILENO) >= 0);
        int rc = parse(rows[i].verb, words, &is_done, &err);
        dup2(before, STDOUT_FILENO);
        assert_true(rc >= 0 && is_done);
        assert_true(pread(out, text, sizeof text - 1, 0) > 0);
        assert_memory_equal(text, rows[i].begins, strlen(rows[i].begins));
        assert_non_null(strstr(text, "show this help"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
