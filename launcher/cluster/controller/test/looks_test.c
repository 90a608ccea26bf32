/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "launcher/cluster/controller/sight.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

static struct sight all[CONTROLLER_LOOKS_MAX];

static void begin(struct controller *c)
{
    *c = (struct controller){.due = json_object(), .unread = json_object()};
    assert_true(c->due && c->unread);
}

static void done(struct controller *c)
{
    json_decref(c->due);
    json_decref(c->unread);
}

/* In a place of its own. */
static struct sight *look(struct controller *c, size_t place, const char *key, int64_t begin_ms)
{
    all[place] = (struct sight){.c = c, .begin_ms = begin_ms};
    snprintf(all[place].key, sizeof all[place].key, "%s", key);
    c->looks[place] = &all[place];
    return &all[place];
}

static void test_one_at_each(void **state)
{
    struct controller c;
    int64_t at = 0;
    (void)state;
    begin(&c);
    json_object_set_new(c.due, "a/x", json_integer(1));
    json_object_set_new(c.due, "a/y", json_integer(2));
    assert_string_equal(controller_first_due(&c, &at), "a/x");
    assert_int_equal(controller_oldest_look(&c), 0);
    look(&c, 3, "a/x", 7);
    look(&c, 5, "b/x", 6);
    assert_true(controller_is_looked_at(&c, "a/x") && !controller_is_looked_at(&c, "a/y"));
    assert_string_equal(controller_first_due(&c, &at), "a/y");
    assert_int_equal(at, 2);
    assert_int_equal(controller_count_looks(&c), 2);
    assert_int_equal(controller_oldest_look(&c), 6);
    done(&c);
}

/* What was asked first, unless it is asked for sooner. */
static void test_looked_at_again(void **state)
{
    struct controller c;
    int64_t at = 0;
    (void)state;
    begin(&c);
    int64_t now = clock_ms();
    controller_again(&c, "a", "x", 200000);
    assert_string_equal(controller_first_due(&c, &at), "a/x");
    assert_true(at >= now + 200000);
    assert_int_equal(controller_count_due(&c), 0);
    controller_again(&c, "a", "y", 100000);
    assert_string_equal(controller_first_due(&c, &at), "a/y");
    int64_t before = at;
    controller_again(&c, "a", "y", 300000);
    assert_string_equal(controller_first_due(&c, &at), "a/y");
    assert_int_equal(at, before);
    controller_again(&c, "a", "x", 0);
    assert_string_equal(controller_first_due(&c, &at), "a/x");
    assert_int_equal(controller_count_due(&c), 1);
    done(&c);
}

/* One with many slow ones leaves places to others. */
static void test_of_one_namespace(void **state)
{
    char key[32];
    struct controller c;
    size_t count = 0;
    (void)state;
    begin(&c);
    for (; count < ARRAY_LEN(c.looks) && controller_may_look(&c, "a/next"); count++) {
        snprintf(key, sizeof key, "a/x-%zu", count);
        look(&c, count, key, 1);
    }
    assert_in_range(count, 2, ARRAY_LEN(c.looks) / 2);
    assert_true(controller_may_look(&c, "a-b/x"));
    for (; count < ARRAY_LEN(c.looks); count++) {
        snprintf(key, sizeof key, "b-%zu/x", count);
        assert_true(controller_may_look(&c, key));
        look(&c, count, key, 1);
    }
    assert_false(controller_may_look(&c, "c/x"));
    c.looks[0] = NULL;
    assert_true(controller_may_look(&c, "c/x") && controller_may_look(&c, "a/next"));
    done(&c);
}

/* Of one namespace one reads at a time, and who waits longest comes next. */
static void test_who_reads(void **state)
{
    struct controller c;
    (void)state;
    begin(&c);
    struct sight *ax = look(&c, 0, "a/x", 1), *ay = look(&c, 1, "a/y", 1);
    struct sight *bx = look(&c, 2, "b/x", 1), *cx = look(&c, 3, "c/x", 1);
    assert_true(controller_take_reader(ax) && controller_take_reader(ax));
    assert_false(controller_take_reader(ay));
    assert_true(controller_take_reader(bx));
    assert_false(controller_take_reader(cx));
    assert_int_equal(json_object_size(c.unread), 2);
    json_object_set_new(c.unread, "a/y", json_integer(3));
    ay->unread_ms = 3;
    json_object_set_new(c.unread, "c/x", json_integer(2));
    cx->unread_ms = 2;
    ax->has_reader = false;
    assert_false(controller_take_reader(ay));
    assert_true(controller_take_reader(cx));
    bx->has_reader = false;
    assert_true(controller_take_reader(ay));
    assert_int_equal(json_object_size(c.unread), 0);
    done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_at_each), cmocka_unit_test(test_looked_at_again),
        cmocka_unit_test(test_of_one_namespace), cmocka_unit_test(test_who_reads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
