/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/base/unconst.h"

struct target {
    bool quiet, verbose;
    const char *name, *format, *file;
    uint32_t count;
    int64_t wait;
    struct strlist env;
    char called[64];
    unsigned seen;
};

static int call(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    struct target *t = target;
    if (strcmp(value, "bad") == 0)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s: it is bad", shown);
    snprintf(t->called, sizeof t->called, "%s %s", shown, value);
    return 0;
}

static void see(void *target, const struct option_spec *spec)
{
    (void)spec;
    ((struct target *)target)->seen++;
}

#define AT(field) .offset = offsetof(struct target, field)

static const struct option_spec list[] = {
    {"quiet", 'q', NULL, NULL, NULL, "One", "says nothing", OPTION_FLAG, AT(quiet)},
    {"verbose", 'v', NULL, NULL, NULL, "One", "says more", OPTION_FLAG, AT(verbose)},
    {"name", 0, NULL, "NAME", NULL, "One", "is called so", OPTION_TEXT, AT(name), .each = true},
    {"output", 'o', NULL, "FORMAT", "text json", "Two", "a format", OPTION_TEXT, AT(format)},
    {"file", 0, NULL, "FILE", "FILE", NULL, "hidden", OPTION_TEXT, AT(file)},
    {"workers", 'n', "-np --np", "N", NULL, "Two", "how many", OPTION_COUNT, AT(count), .min = 1,
     .max = 9, .each = true},
    {"wait", 'w', NULL, "TIME", NULL, "Two", "how long", OPTION_DURATION, AT(wait)},
    {"env", 'e', NULL, "NAME=VALUE", NULL, "Two", "a variable", OPTION_LIST, AT(env)},
    {"a-very-long-option", 0, NULL, "VALUE", NULL, "Two", "calls", OPTION_CALL, .set = call},
};
static const struct option_table table = {.list = list, .count = ARRAY_LEN(list), .seen = see};

static int parse(struct target *t, const char *const *words, bool each_only,
                 struct drarun_error *err)
{
    int argc = 0;
    while (words[argc])
        argc++;
    *t = (struct target){.env = STRLIST_INIT};
    *err = (struct drarun_error){0};
    int rc = options_parse(&table, argc, unconst(words), each_only, t, err);
    strlist_done(&t->env);
    return rc;
}

static void words_are_consumed_up_to_the_first_that_is_none(void **state)
{
    (void)state;
    static const struct {
        const char *words[6];
        int consumed;
        unsigned seen;
    } rows[] = {
        {{NULL}, 0, 0},
        {{"a", "-q"}, 0, 0},
        {{"-q", "a", "-v"}, 1, 1},
        {{"-q", "-", "-v"}, 1, 1},
        {{"-q", "--", "-v"}, 2, 1},
        {{"--"}, 1, 0},
        {{"--name", "--", "-v", "b"}, 3, 2}, /* a value may look like anything */
        {{"-qv", "--workers=3", "b"}, 2, 3},
        {{"-qn", "4", "-v"}, 3, 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct target t;
        struct drarun_error err;
        assert_int_equal(parse(&t, rows[i].words, false, &err), rows[i].consumed);
        assert_int_equal(t.seen, rows[i].seen);
    }
}

static void values_of_each_kind(void **state)
{
    (void)state;
    static const char *const words[] = {"-qo",    "json",      "-np",
                                        "9",      "--wait=2s", "--name=a=b",
                                        "--file", "x y",       "--a-very-long-option",
                                        "v",      NULL};
    struct target t;
    struct drarun_error err;
    assert_int_equal(parse(&t, words, false, &err), 10);
    assert_true(t.quiet);
    assert_false(t.verbose);
    assert_string_equal(t.format, "json");
    assert_int_equal(t.count, 9);
    assert_int_equal(t.wait, 2000);
    assert_string_equal(t.name, "a=b");
    assert_string_equal(t.file, "x y");
    assert_string_equal(t.called, "--a-very-long-option v");
    assert_int_equal(t.seen, 7);
    static const char *const again[] = {"-n1", "--np", "2", "-w", "5ms", "--name=", NULL};
    assert_int_equal(parse(&t, again, false, &err), 6);
    assert_int_equal(t.count, 2);
    assert_int_equal(t.wait, 5);
    assert_string_equal(t.name, "");
}

static void errors_name_the_word(void **state)
{
    (void)state;
    static const struct {
        const char *words[4], *text;
        bool each_only;
    } rows[] = {
        {{"--nmae", "x"}, "unknown option --nmae; did you mean --name?"},
        {{"-zname", "x"}, "unknown option -zname; did you mean --name?"},
        {{"--worker=3"}, "unknown option --worker; did you mean --workers?"},
        {{"--fil", "x"}, "unknown option --fil; --help lists them"}, /* a hidden one */
        {{"--zzz"}, "unknown option --zzz; --help lists them"},
        {{"-x"}, "unknown option -x; --help lists them"},
        {{"-qx=3"}, "unknown option -qx; --help lists them"},
        {{"--quiet=1"}, "--quiet takes no value, got \"1\""},
        {{"--name"}, "--name needs a value: --name NAME"},
        {{"-qn"}, "-n needs a value: -n N"},
        {{"-np"}, "-np needs a value: -np N"},
        {{"-oxml"}, "-o: expected one of \"text json\", got \"xml\""},
        {{"--output=tex"}, "--output: expected one of \"text json\", got \"tex\""},
        {{"--a-very-long-option", "bad"}, "--a-very-long-option: it is bad"},
        {{"--name", "a", "-q"}, "-q is for the whole job: give it before the first program", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct target t;
        struct drarun_error err;
        assert_int_equal(parse(&t, rows[i].words, rows[i].each_only, &err), -EINVAL);
        assert_string_equal(err.text, rows[i].text);
        assert_int_equal(err.kind, DRARUN_ERR_USAGE);
    }
    for (int n = 0; n <= 10; n++) {
        struct target t;
        struct drarun_error err;
        char word[16];
        snprintf(word, sizeof word, "-n%d", n);
        int rc = parse(&t, (const char *const[]){word, NULL}, true, &err);
        assert_int_equal(rc == 1, n >= 1 && n <= 9);
        assert_int_equal(rc < 0, n < 1 || n > 9);
    }
}

static void picked_from_among_others(void **state)
{
    (void)state;
    const char *const words[] = {"a", "-v", "-xq", "--np=3", "--none", "-", "-nq", "--", "-q"};
    struct target t = {.env = STRLIST_INIT};
    struct drarun_error err = {0};
    struct strlist others = STRLIST_INIT;
    /* "-nq" is ours, with a value that is no number */
    assert_int_equal(options_pick(&table, 9, unconst(words), &t, &others, &err), -EINVAL);
    strlist_done(&others);
    t = (struct target){.env = STRLIST_INIT};
    assert_int_equal(options_pick(&table, 6, unconst(words), &t, &others, &err), 0);
    assert_int_equal(others.count, 4);
    assert_string_equal(others.items[0], "a");
    assert_string_equal(others.items[1], "-xq");
    assert_string_equal(others.items[2], "--none");
    assert_string_equal(others.items[3], "-");
    assert_true(t.verbose);
    assert_false(t.quiet);
    assert_int_equal(t.count, 3);
    strlist_done(&others);
    assert_int_equal(options_pick(&table, 2, unconst(words + 7), &t, &others, &err), 0);
    assert_int_equal(others.count, 2); /* all behind "--", and it */
    assert_false(t.quiet);
    strlist_done(&others);
}

static void set_as_if_typed(void **state)
{
    (void)state;
    struct target t = {.env = STRLIST_INIT};
    struct drarun_error err = {0};
    assert_int_equal(options_set(&table, "--workers", "workers", "4", false, &t, &err), 0);
    assert_int_equal(t.count, 4);
    assert_int_equal(options_set(&table, "--workers=5", "workers", NULL, true, &t, &err), 0);
    assert_int_equal(t.count, 5);
    assert_int_equal(options_set(&table, "--env", "env", "A=1", false, &t, &err), 0);
    assert_int_equal(options_set(&table, "--env=B=2", "env", NULL, false, &t, &err), 0);
    assert_int_equal(t.env.count, 2);
    assert_string_equal(t.env.items[0], "A=1");
    assert_string_equal(t.env.items[1], "B=2");
    strlist_done(&t.env);
    assert_int_equal(options_set(&table, "--none", "DRARUN_X", "4", false, &t, &err), -EINVAL);
    assert_string_equal(err.text, "DRARUN_X: there is no option --none");
    assert_int_equal(options_set(&table, "--wait", "DRARUN_X", "4s", true, &t, &err), -EINVAL);
    assert_string_equal(err.text,
                        "DRARUN_X is for the whole job: give it before the first program");
}

static void help_has_groups_and_columns(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    options_help(&table, &out);
    assert_string_equal(out.data, "\n"
                                  "One:\n"
                                  "  -q, --quiet                 says nothing\n"
                                  "  -v, --verbose               says more\n"
                                  "  --name NAME                 is called so\n"
                                  "\n"
                                  "Two:\n"
                                  "  -o, --output FORMAT         a format\n"
                                  "  -n, --workers N             how many\n"
                                  "  -w, --wait TIME             how long\n"
                                  "  -e, --env NAME=VALUE        a variable\n"
                                  "  --a-very-long-option VALUE  calls\n");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_consumed_up_to_the_first_that_is_none),
        cmocka_unit_test(values_of_each_kind),
        cmocka_unit_test(errors_name_the_word),
        cmocka_unit_test(picked_from_among_others),
        cmocka_unit_test(set_as_if_typed),
        cmocka_unit_test(help_has_groups_and_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
