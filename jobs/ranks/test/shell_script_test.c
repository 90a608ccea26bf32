/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/ranks/shell_script.h"
#include "lib/base/cleanup.h"

/* "JOIN depth words <inputs >outputs", a line for each command. */
static void show(const char *text, struct buf *out)
{
    static const char *const joins[] = {"", "first", "then", "and", "or", "pipe"};
    struct shell_script script;
    bool good = shell_parse(text, &script);
    for (size_t i = 0; i < script.count; i++) {
        const struct shell_command *c = &script.commands[i];
        buf_printf(out, "%s %u", joins[c->join], c->depth);
        for (size_t k = 0; k < c->words.count; k++)
            buf_printf(out, " [%s]", c->words.items[k]);
        for (size_t k = 0; k < c->inputs.count; k++)
            buf_printf(out, " I(%s)", c->inputs.items[k]);
        for (size_t k = 0; k < c->outputs.count; k++)
            buf_printf(out, " O(%s)", c->outputs.items[k]);
        buf_printf(out, "%s\n", c->in_background ? " &" : "");
    }
    if (!good)
        buf_add_str(out, "open\n");
    shell_script_done(&script);
}

static void finds_simple_commands(void **state)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"a b 2>&1 | tee l", "first 0 [a] [b] O(2>&1)\npipe 0 [tee] [l]\n"},
        {"cd x && a; b || c &\nd",
         "first 0 [cd] [x]\nand 0 [a]\nthen 0 [b]\nor 0 [c] &\nthen 0 [d]\n"},
        {"a \\\n b # c\n# d\ne", "first 0 [a] [b]\nthen 0 [e]\n"},
        {"a 'b c' \"d;e\" f\\ g", "first 0 [a] ['b c'] [\"d;e\"] [f\\ g]\n"},
        {"N=$(wc -l < $F); M=$((N*2)) a `b c`",
         "first 0 [N=$(wc -l < $F)]\nthen 0 [M=$((N*2))] [a] [`b c`]\n"},
        {"a \"$(b \"c d\")\" ${e:-f g}", "first 0 [a] [\"$(b \"c d\")\"] [${e:-f g}]\n"},
        {"if a; then b; else c; fi; d", "first 1 [a]\nthen 1 [b]\nthen 1 [c]\nthen 0 [d]\n"},
        {"for i in 1 2; do a $i; done\nb",
         "first 1 [for] [i] [in] [1] [2]\nthen 1 [a] [$i]\nthen 0 [b]\n"},
        {"until a; do sleep 1; done; b", "first 1 [a]\nthen 1 [sleep] [1]\nthen 0 [b]\n"},
        {"f() { a; }; (b); c", "first 0 [f]\nfirst 1 [a]\nthen 1 [b]\nthen 0 [c]\n"},
        {"case $x in y) a;; esac; b", "first 1 [case] [$x] [in] [y]\nthen 0 [a]\nthen 0 [b]\n"},
        {"a < in > out 2>/dev/null &> b >>c",
         "first 0 [a] I(< in) O(> out) O(2>/dev/null) O(&> b) O(>>c)\n"},
        {"a <<EOF >x\nb; c\nEOF\nd", "first 0 [a] I(<<EOF) O(>x)\nthen 0 [d]\n"},
        {"a > >(tee b) 3", "first 0 [a] [3] O(> >(tee b))\n"},
        {"A=(b 'c d') e", "first 0 [A=(b 'c d')] [e]\n"},
        {"a 2 > b", "first 0 [a] [2] O(> b)\n"},
        {"a >", "first 0 [a] O(>)\n"},
        {"a 'b", "first 0 [a]\nopen\n"},
        {"a $(b", "first 0 [a]\nopen\n"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out = BUF_INIT;
        buf_add(&out, "", 0);
        show(cases[i].text, &out);
        assert_string_equal(out.data, cases[i].shown);
        buf_done(&out);
    }
}

/* "$(" so often, closed again. */
static bool parses_nested(size_t depth, bool *ret_too_deep)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    struct shell_script script;
    buf_add_str(&text, "a ");
    for (size_t i = 0; i < depth; i++)
        buf_add_str(&text, i ? "(" : "$(");
    for (size_t i = 0; i < depth; i++)
        buf_add_str(&text, ")");
    bool good = shell_parse(text.data, &script);
    *ret_too_deep = script.too_deep;
    shell_script_done(&script);
    return good;
}

static void bounds_what_is_inside_one_another(void **state)
{
    bool too_deep = false;
    (void)state;
    assert_true(parses_nested(SHELL_DEPTH_MAX, &too_deep));
    assert_false(too_deep);
    assert_false(parses_nested(SHELL_DEPTH_MAX + 1, &too_deep));
    assert_true(too_deep);
    assert_false(parses_nested(1000000, &too_deep));
    assert_true(too_deep);
}

static enum shell_worth look_up(void *context, const char *name, const char **ret_value)
{
    (void)context;
    if (strcmp(name, "A") == 0)
        *ret_value = "x y";
    else if (strcmp(name, "E") == 0)
        *ret_value = "";
    else if (strcmp(name, "1") == 0)
        *ret_value = "one";
    else
        return strcmp(name, "C") == 0 ? SHELL_COMPUTED : SHELL_KEPT;
    return SHELL_LITERAL;
}

static void tells_what_a_word_is_worth(void **state)
{
    static const struct {
        const char *word;
        enum shell_worth worth;
        const char *fields, *culprit;
    } cases[] = {
        {"a", SHELL_LITERAL, "[a]", ""},
        {"'$A'\"b c\"\\ d", SHELL_LITERAL, "[$Ab c d]", ""},
        {"$A", SHELL_LITERAL, "[x][y]", ""},
        {"\"$A\"", SHELL_LITERAL, "[x y]", ""},
        {"p${A}q", SHELL_LITERAL, "[px][yq]", ""},
        {"$E", SHELL_LITERAL, "", ""},
        {"\"$E\"", SHELL_LITERAL, "[]", ""},
        {"''", SHELL_LITERAL, "[]", ""},
        {"${A:-z}", SHELL_LITERAL, "[x][y]", ""},
        {"$1", SHELL_LITERAL, "[one]", ""},
        {"a$", SHELL_LITERAL, "[a$]", ""},
        {"\"\\$A\\n\"", SHELL_LITERAL, "[$A\\n]", ""},
        {"$HOME/x", SHELL_KEPT, "", "$HOME"},
        {"${B:-z}", SHELL_KEPT, "", "${B:-z}"},
        {"*.py", SHELL_KEPT, "", "*.py"},
        {"~/x", SHELL_KEPT, "", "~/x"},
        {"a~", SHELL_LITERAL, "[a~]", ""},
        {"f{1,2}", SHELL_KEPT, "", "f{1,2}"},
        {"$C", SHELL_COMPUTED, "", "$C"},
        {"$B$C", SHELL_COMPUTED, "", "$C"},
        {"${C:-1}", SHELL_COMPUTED, "", "${C:-1}"},
        {"$(date)", SHELL_COMPUTED, "", "$(date)"},
        {"\"`date`\"", SHELL_COMPUTED, "", "`date`"},
        {"$((1+2))", SHELL_COMPUTED, "", "$((1+2))"},
        {"\"$@\"", SHELL_COMPUTED, "", "$@"},
        {">(tee)", SHELL_COMPUTED, "", ">(tee)"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct strlist fields = STRLIST_INIT;
        struct buf culprit = BUF_INIT, shown = BUF_INIT;
        buf_add(&shown, "", 0);
        buf_add(&culprit, "", 0);
        enum shell_worth worth = shell_expand(cases[i].word, look_up, NULL, &fields, &culprit);
        for (size_t k = 0; k < fields.count; k++)
            buf_printf(&shown, "[%s]", fields.items[k]);
        if (worth != cases[i].worth)
            fail_msg("%s: %d", cases[i].word, (int)worth);
        assert_string_equal(shown.data, cases[i].fields);
        assert_string_equal(culprit.data, cases[i].culprit);
        strlist_done(&fields);
        buf_done(&culprit);
        buf_done(&shown);
    }
}

static void quotes_a_text(void **state)
{
    static const char *const cases[][2] = {
        {"a", "a"}, {"", "''"}, {"a b", "'a b'"}, {"it's", "'it'\\''s'"}, {"$A", "'$A'"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out = BUF_INIT, back = BUF_INIT;
        shell_quote(cases[i][0], &out);
        assert_string_equal(out.data, cases[i][1]);
        shell_unquote(out.data, &back);
        assert_string_equal(back.data, cases[i][0]);
        buf_done(&out);
        buf_done(&back);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_simple_commands),
        cmocka_unit_test(bounds_what_is_inside_one_another),
        cmocka_unit_test(tells_what_a_word_is_worth),
        cmocka_unit_test(quotes_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
