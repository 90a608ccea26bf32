/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/expand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static void set_variables(struct strlist *env)
{
    env_set(env, "A", "a b");
    env_set(env, "EMPTY", "");
    env_set(env, "REF", "$(A)$$");
    env_set(env, "x.y-z", "dots");
    env_set(env, "1", "digit");
}

/* As k8s.io/kubernetes/third_party/forked/golang/expansion has it. */
static void test_expand(void **state)
{
    static const struct {
        const char *text, *expanded;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"$(A)", "a b"},
        {"<$(A)$(A)>", "<a ba b>"},
        {"$(EMPTY)", ""},
        {"$(x.y-z)/$(1)", "dots/digit"},
        {"$(REF)", "$(A)$$"},
        {"$(NONE)", "$(NONE)"},
        {"$()", "$()"},
        {"$(date +%s)", "$(date +%s)"},
        {"$((1 + 2))", "$((1 + 2))"},
        {"$(a$(A)", "$(a$(A)"},
        {"$(A", "$(A"},
        {"$(", "$("},
        {"$A ${A}", "$A ${A}"},
        {"$", "$"},
        {"a$", "a$"},
        {"$$", "$"},
        {"$$$", "$$"},
        {"$$$$", "$$"},
        {"$$A", "$A"},
        {"$$(A)", "$(A)"},
        {"$$$(A)", "$a b"},
        {"$$$$(A)", "$$(A)"},
        {"$x$(A)", "$xa b"},
        {"\xc3\xa4$\xc3\xa4", "\xc3\xa4$\xc3\xa4"},
    };
    CLEANUP(strlist_done) struct strlist env = STRLIST_INIT;
    (void)state;
    set_variables(&env);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(buf_done) struct buf out = BUF_INIT;
        expand_text_env(cases[i].text, &env, &out);
        assert_false(out.failed);
        assert_string_equal(out.data, cases[i].expanded);
    }
}

static void test_escape(void **state)
{
    static const struct {
        const char *text, *escaped;
    } cases[] = {
        {"", ""},
        {"$", "$"},
        {"a $A ${A} $1", "a $A ${A} $1"},
        {"$(A)", "$$(A)"},
        {"$(hostname)", "$$(hostname)"},
        {"$$", "$$$"},
        {"kill $$; $(A)", "kill $$$; $$(A)"},
        {"$$(A)", "$$$$(A)"},
        {"$$$(A)", "$$$$$$(A)"},
        {"$(date +%s) $((1 + 2)) $() $(A", "$(date +%s) $((1 + 2)) $() $(A"},
        {"$(( $(A) / 2 )) $(A)", "$(( $(A) / 2 )) $$(A)"},
        {"$(a $(A)) $$", "$(a $(A)) $$$"},
        {"$(a $$(A)", "$(a $$(A)"},
        {"$(a $(A", "$(a $(A"},
    };
    CLEANUP(strlist_done) struct strlist env = STRLIST_INIT;
    (void)state;
    set_variables(&env);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(buf_done) struct buf escaped = BUF_INIT, again = BUF_INIT;
        expand_escape(cases[i].text, &escaped);
        assert_string_equal(escaped.data, cases[i].escaped);
        expand_text_env(escaped.data, &env, &again);
        assert_string_equal(again.data, cases[i].text);
    }
}

static void test_refers(void **state)
{
    static const char *const refer[] = {"$(A)", "a $(x.y-z)", "$$", "kill $$", "$(date)"};
    static const char *const plain[] = {
        "", "$", "a$", "$(", "$(A", "$()", "$(a$(A)", "$(date +%s)", "$((1 + 2)) $A ${A}"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refer); i++)
        assert_true(expand_refers(refer[i]));
    for (size_t i = 0; i < ARRAY_LEN(plain); i++)
        assert_false(expand_refers(plain[i]));
}

/* Behind what is there. */
static void test_append(void **state)
{
    CLEANUP(strlist_done) struct strlist env = STRLIST_INIT;
    CLEANUP(buf_done) struct buf out = BUF_INIT;
    (void)state;
    set_variables(&env);
    buf_add_str(&out, "first ");
    expand_text_env("$(A) ", &env, &out);
    expand_escape("$(A)", &out);
    assert_string_equal(out.data, "first a b $$(A)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expand),
        cmocka_unit_test(test_escape),
        cmocka_unit_test(test_refers),
        cmocka_unit_test(test_append),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
