/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/nearest.h"

static void words_of_a_list(void **state)
{
    (void)state;
    static const struct {
        const char *words, *text;
        int index;
    } table[] = {
        {"a bc d", "a", 0},    {"a bc d", "bc", 1},    {"a bc d", "d", 2}, {"a bc d", "b", -1},
        {"a bc d", "bcd", -1}, {"  a   bc ", "bc", 1}, {"", "a", -1},      {"   ", "a", -1},
        {NULL, "a", -1},       {"a", "", -1},          {"a a", "a", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        assert_int_equal(words_index(table[i].words, table[i].text, strlen(table[i].text)),
                         table[i].index);
        assert_int_equal(words_has(table[i].words, table[i].text), table[i].index >= 0);
    }
    assert_int_equal(words_index("text json", "text-x", 4), 0);
}

static void edits_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
        unsigned edits;
    } table[] = {
        {"workers", "workers", 0},
        {"worker", "workers", 1},
        {"workerss", "workers", 1},
        {"wirkers", "workers", 1},
        {"owrkers", "workers", 1},
        {"wokrers", "workers", 1},
        {"workesr", "workers", 1},
        {"orkers", "workers", 1},
        {"wrkrs", "workers", 2},
        {"owrkesr", "workers", 2},
        {"krowers", "workers", 3},
        {"abc", "xyz", 3},
        {"", "abc", 3},
        {"abcd", "dcba", 3},
        {"ab", "ba", 1},
        {"a", "b", 1},
        {"ca", "abc", 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char word[NEAREST_WORD_MAX] = "";
        unsigned edits = 99;
        assert_true(nearest_within(table[i].text, table[i].word, table[i].edits, word, sizeof word,
                                   &edits));
        assert_int_equal(edits, table[i].edits);
        assert_string_equal(word, table[i].word);
        if (table[i].edits > 0)
            assert_false(nearest_within(table[i].text, table[i].word, table[i].edits - 1, word,
                                        sizeof word, &edits));
    }
}

static void the_first_of_the_nearest(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words, *nearest; /* NULL: none is near */
    } table[] = {
        {"slots", "nodes slot slits", "slot"},
        {"slots", "slits slot", "slits"},
        {"slots", "slits slots", "slots"},
        {"abcdef", "abxxef abcxef", "abcxef"},
        {"abc", "abd", "abd"},
        {"ab", "ac", NULL}, /* a third of it */
        {"abcde", "abxye", NULL},
        {"abcdef", "abxyef", "abxyef"},
        {"abcdef", "", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char word[16] = "";
        bool near = nearest_word(table[i].text, table[i].words, word, sizeof word);
        assert_int_equal(near, table[i].nearest != NULL);
        if (near)
            assert_string_equal(word, table[i].nearest);
    }
}

static void long_words_are_never_near(void **state)
{
    (void)state;
    char text[NEAREST_WORD_MAX + 1], word[NEAREST_WORD_MAX + 1], list[NEAREST_WORD_MAX + 1];
    memset(text, 'x', sizeof text);
    text[NEAREST_WORD_MAX - 1] = '\0';
    memcpy(list, text, sizeof list);
    assert_true(nearest_word(text, list, word, sizeof word));
    assert_string_equal(word, text);
    assert_false(nearest_word(text, list, word, NEAREST_WORD_MAX - 1)); /* no room for it */
    assert_true(nearest_word(text, list, word, NEAREST_WORD_MAX));
    memset(list, 'x', NEAREST_WORD_MAX);
    list[NEAREST_WORD_MAX] = '\0';
    assert_false(nearest_word(text, list, word, sizeof word));
    assert_false(nearest_word(list, text, word, sizeof word));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_a_list),
        cmocka_unit_test(edits_are_counted),
        cmocka_unit_test(the_first_of_the_nearest),
        cmocka_unit_test(long_words_are_never_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
