/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/spec/spec.h"
#include "jobs/spec/spec_words.h"
#include "lib/base/cleanup.h"

static struct job_spec read_spec(const char *text)
{
    struct job_spec spec;
    struct drarun_error err = {0};
    if (spec_parse("job.yaml", text, strlen(text), &spec, &err) < 0)
        fail_msg("%s\n%s", text, err.text);
    return spec;
}

static void assert_list(const struct strlist *list, const char *const *expected)
{
    size_t count = 0;
    for (; expected[count]; count++)
        ;
    assert_false(list->failed);
    assert_int_equal(list->count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(list->items[i], expected[i]);
}

#define WORDS(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static void test_words(void **state)
{
    struct job_spec spec = read_spec("image: i\ncommand: [p, $(A), '']\nargs: [b, c]\n");
    CLEANUP(strlist_done)
    struct strlist own = STRLIST_INIT, line = STRLIST_INIT, given = STRLIST_INIT;
    (void)state;
    assert_int_equal(spec_words_add(&spec.roles[0], NULL, &own), 5);
    assert_list(&own, WORDS("p", "$(A)", "", "b", "c"));
    strlist_add(&own, "x");
    assert_int_equal(spec_words_add(&spec.roles[0], &given, &own), 5);
    assert_int_equal(own.count, 11);
    strlist_add(&given, "$(B)");
    assert_int_equal(spec_words_add(&spec.roles[0], &given, &line), 3);
    assert_list(&line, WORDS("p", "$(A)", "", "$(B)"));
    job_spec_done(&spec);
}

/* Those before it alone, the nearest of several of one name, and none of what is in env before. */
static void test_env(void **state)
{
    struct job_spec spec = read_spec(
        "image: i\ncommand: [p]\nenv:\n- {name: EARLY, value: $(FOO)}\n"
        "- {name: FOO, value: foo}\n- {name: BAR, value: $(FOO)-x $$(FOO) $$}\n"
        "- {name: EMPTY}\n- {name: SECRET, valueFrom: {secretKeyRef: {name: s, key: k}}}\n"
        "- {name: BOTH, value: '<$(EMPTY)$(SECRET)$(BAR)$(OUTER)>'}\n");
    CLEANUP(strlist_done) struct strlist env = STRLIST_INIT;
    (void)state;
    strlist_add(&env, "OUTER=x");
    spec_words_env(&spec.roles[0], &env);
    assert_list(&env, WORDS("OUTER=x", "EARLY=$(FOO)", "FOO=foo", "BAR=foo-x $(FOO) $",
                            "EMPTY=", "BOTH=<$(SECRET)foo-x $(FOO) $$(OUTER)>"));
    job_spec_done(&spec);
}

static void test_literal(void **state)
{
    CLEANUP(json_decrefp) json_t *word = spec_words_literal("$(A) $$");
    (void)state;
    assert_string_equal(json_string_value(word), "$$(A) $$$");
    assert_null(spec_words_literal("\xff"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_env),
        cmocka_unit_test(test_literal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
