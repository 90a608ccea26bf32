/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/strlist.h"
#include "lib/base/unconst.h"

/* Joined by "|". */
static void assert_list(const struct strlist *l, const char *expected)
{
    struct buf text = BUF_INIT;
    buf_add_str(&text, "");
    for (size_t i = 0; i < l->count; i++)
        buf_printf(&text, "%s%s", i > 0 ? "|" : "", l->items[i]);
    assert_string_equal(text.data, expected);
    if (l->items)
        assert_null(l->items[l->count]);
    assert_false(l->failed);
    buf_done(&text);
}

static void grows_and_shrinks(void **state)
{
    (void)state;
    struct strlist l = STRLIST_INIT;
    const char *const more[] = {"c", "d", NULL};
    strlist_add_all(&l, NULL);
    assert_null(strlist_items(&l));
    strlist_add(&l, "a");
    strlist_addf(&l, "%s%d", "b", 1);
    strlist_add_all(&l, unconst(more));
    assert_list(&l, "a|b1|c|d");
    assert_true(strlist_has(&l, "a"));
    assert_true(strlist_has(&l, "d"));
    assert_false(strlist_has(&l, "b"));
    strlist_remove(&l, 1);
    assert_list(&l, "a|c|d");
    strlist_remove(&l, 2);
    assert_list(&l, "a|c");
    strlist_remove(&l, 0);
    strlist_remove(&l, 0);
    assert_list(&l, "");
    for (int i = 0; i < 100; i++) { /* the end is marked at each length */
        strlist_addf(&l, "%d", i);
        assert_int_equal(l.count, i + 1);
        assert_null(l.items[i + 1]);
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(strtol(l.items[i], NULL, 10), i);
    strlist_done(&l);
    assert_null(l.items);
    assert_int_equal(l.count, 0);
}

static void environments(void **state)
{
    (void)state;
    struct strlist env = STRLIST_INIT;
    assert_null(env_get(&env, "A"));
    env_unset(&env, "A");
    env_set(&env, "A", "1");
    env_set(&env, "AB", "2");
    env_setf(&env, "B", "%d-%s", 3, "x");
    env_set(&env, "E", "");
    assert_list(&env, "A=1|AB=2|B=3-x|E=");
    assert_string_equal(env_get(&env, "A"), "1");
    assert_string_equal(env_get(&env, "AB"), "2");
    assert_string_equal(env_get(&env, "E"), "");
    assert_null(env_get(&env, "a"));
    assert_null(env_get(&env, ""));
    env_default(&env, "A", "9"); /* it is there */
    env_default(&env, "E", "9"); /* so is this */
    env_default(&env, "F", "9");
    env_set(&env, "B", "=4");
    assert_list(&env, "A=1|AB=2|B==4|E=|F=9");
    env_unset(&env, "A");
    env_unset(&env, "A");
    assert_list(&env, "AB=2|B==4|E=|F=9");
    env_set(&env, "BC", "5");
    env_unset_prefix(&env, "B");
    assert_list(&env, "AB=2|E=|F=9");
    env_unset_prefix(&env, "X");
    env_unset_prefix(&env, "AB");
    env_unset_prefix(&env, "F");
    assert_list(&env, "E=");
    strlist_done(&env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_and_shrinks),
        cmocka_unit_test(environments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
