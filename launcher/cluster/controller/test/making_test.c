/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "launcher/cluster/controller/sight.h"

/* No function below looks into one. */
static int anything;
static struct submission *const submission = (void *)&anything;

static void begin(struct controller *c, json_t *waiting_take)
{
    *c = (struct controller){.due = json_object(),
                             .held = json_object(),
                             .large = {.waiting = waiting_take},
                             .small = {.waiting = json_object()}};
    assert_true(c->due && c->held && c->large.waiting && c->small.waiting);
}

static void done(struct controller *c)
{
    json_decref(c->due);
    json_decref(c->held);
    json_decref(c->large.waiting);
    json_decref(c->small.waiting);
}

/* Of the jobs b/y, b/z, a/x, c/w the one that may be created. */
static void assert_next(const struct controller *c, const char *expected)
{
    static const char *const jobs[] = {"b/y", "b/z", "a/x", "c/w"};
    char next[64] = "";
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
        if (controller_may_make(c, jobs[i], true)) {
            assert_string_equal(next, "");
            snprintf(next, sizeof next, "%s", jobs[i]);
        }
    assert_string_equal(next, expected);
}

static void test_the_one_that_waits_longest(void **state)
{
    struct controller c;
    (void)state;
    begin(&c, json_pack("{s:i, s:i, s:i}", "b/y", 2, "a/x", 3, "b/z", 1));
    assert_next(&c, "b/z");
    json_object_del(c.large.waiting, "b/z");
    controller_make(&c, "b/z", "uid", true, submission);
    assert_next(&c, "a/x"); /* one of a namespace */
    json_object_del(c.large.waiting, "a/x");
    assert_next(&c, "");
    c.making[0].submission = NULL;
    assert_next(&c, "b/y");
    done(&c);
}

/* One that is looked at has its place already; the first may need one of its namespace, */
static void test_of_one_namespace_none_passes(void **state)
{
    static struct sight looks[4]; /* all that one namespace may have */
    static const char *const keys[] = {"b/y", "b/1", "b/2", "b/3"};
    struct controller c;
    (void)state;
    begin(&c, json_pack("{s:i, s:i, s:i}", "b/z", 1, "b/y", 2, "c/w", 3));
    for (size_t i = 0; i < ARRAY_LEN(looks); i++) {
        looks[i] = (struct sight){.queued = true};
        snprintf(looks[i].key, sizeof looks[i].key, "%s", keys[i]);
        c.looks[i] = &looks[i];
    }
    assert_false(controller_may_look(&c, "b/z"));
    assert_next(&c, "c/w");
    c.looks[3] = NULL;
    assert_next(&c, "b/z");
    done(&c);
}

/* or a look at it has not decided yet. */
static void test_first_that_is_looked_at(void **state)
{
    static struct sight look = {.key = "b/z"};
    struct controller c;
    (void)state;
    begin(&c, json_pack("{s:i, s:i, s:i}", "b/z", 1, "b/y", 2, "c/w", 3));
    c.looks[0] = &look;
    look.queued = false;
    assert_next(&c, "c/w");
    look.queued = true;
    assert_next(&c, "b/z");
    json_object_del(c.large.waiting, "b/z");
    assert_next(&c, "b/y");
    done(&c);
}

/* It keeps its place, and is not called. */
static void test_first_that_is_held(void **state)
{
    struct controller c;
    (void)state;
    begin(&c, json_pack("{s:i, s:i, s:i, s:i}", "b/z", 1, "b/y", 2, "c/w", 3, "a/x", 4));
    json_object_set_new(c.held, "b/z", json_null());
    assert_next(&c, "c/w");
    json_object_set_new(c.held, "c/w", json_null());
    assert_next(&c, "a/x"); /* of another namespace */
    json_object_clear(c.held);
    json_object_set_new(c.held, "b/y", json_null());
    assert_next(&c, "b/z"); /* it waits longer */
    done(&c);
}

static void test_names_that_begin_alike(void **state)
{
    struct controller c;
    (void)state;
    begin(&c, json_pack("{s:i, s:i}", "b/y", 1, "c/w", 1));
    assert_next(&c, "b/y"); /* of the same age */
    controller_make(&c, "b/", "uid", true, submission);
    assert_next(&c, "c/w");
    done(&c);
    begin(&c, json_pack("{s:i}", "b/y", 1));
    controller_make(&c, "b-c/y", "uid", true, submission);
    assert_next(&c, "b/y");
    assert_null(controller_find_making(&c, "b/y"));
    assert_null(controller_find_making(&c, "b-c/y2"));
    assert_ptr_equal(controller_find_making(&c, "b-c/y"), &c.making[0]);
    done(&c);
}

static void test_two_at_a_time(void **state)
{
    struct controller c;
    (void)state;
    begin(&c, json_pack("{s:i}", "c/w", 1));
    controller_make(&c, "a/x", "uid", true, submission);
    assert_next(&c, "c/w");
    controller_make(&c, "b/y", "uid", true, submission);
    assert_next(&c, "");
    c.making[0].submission = NULL;
    assert_next(&c, "c/w");
    controller_make(&c, "c/w", "uid", true, submission);
    assert_string_equal(c.making[0].key, "c/w");
    done(&c);
}

/* They are in the way neither of large ones nor, of one namespace, of those of others. */
static void test_small_ones(void **state)
{
    struct controller c;
    (void)state;
    begin(&c, json_pack("{s:i}", "b/y", 1));
    for (size_t i = 0; i < CONTROLLER_SMALL_MAX / 2; i++) {
        json_object_set_new(c.small.waiting, "b/z", json_integer(1));
        assert_true(controller_may_make(&c, "b/z", false));
        json_object_del(c.small.waiting, "b/z");
        controller_make(&c, "b/x", "uid", false, submission);
    }
    json_object_set_new(c.small.waiting, "b/z", json_integer(1));
    json_object_set_new(c.small.waiting, "c/w", json_integer(2));
    assert_false(controller_may_make(&c, "b/z", false));
    assert_true(controller_may_make(&c, "c/w", false));
    assert_next(&c, "b/y");
    c.making[CONTROLLER_LARGE_MAX].submission = NULL;
    assert_true(controller_may_make(&c, "b/z", false));
    for (size_t i = 0; i < ARRAY_LEN(c.making); i++)
        c.making[i].submission = i < CONTROLLER_LARGE_MAX ? NULL : submission;
    assert_false(controller_may_make(&c, "c/w", false));
    assert_next(&c, "b/y");
    done(&c);
}

static void test_what_is_looked_at_first(void **state)
{
    struct controller c;
    (void)state;
    begin(&c, json_object());
    controller_note_change(&c, "a", "x"); /* as any DraJob */
    assert_null(controller_next_making(&c));
    controller_make(&c, "a/x", "uid", true, submission);
    controller_make(&c, "b/y", "uid", true, submission);
    assert_null(controller_next_making(&c));
    controller_note_change(&c, "a", "x");
    controller_note_change(&c, "b", "z");
    assert_string_equal(controller_next_making(&c), "a/x");
    assert_true(c.making[0].changed && !c.making[1].changed);
    c.making[1].over = true;
    assert_string_equal(controller_next_making(&c), "b/y");
    assert_int_equal(json_object_size(c.due), 2);
    c.making[0].submission = c.making[1].submission = NULL;
    assert_null(controller_next_making(&c));
    done(&c);
}

/* Authors who change theirs again and again hold up no other. */
static void test_changed_ones_in_turn(void **state)
{
    static const char *const expected[] = {"b/y", "a/x", "b/y", "a/x"};
    struct controller c;
    (void)state;
    begin(&c, json_object());
    controller_make(&c, "a/x", "uid", true, submission);
    controller_make(&c, "b/y", "uid", true, submission);
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        controller_note_change(&c, "a", "x");
        controller_note_change(&c, "b", "y");
        assert_string_equal(controller_next_making(&c), expected[i]);
    }
    done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_one_that_waits_longest),
                                       cmocka_unit_test(test_of_one_namespace_none_passes),
                                       cmocka_unit_test(test_first_that_is_looked_at),
                                       cmocka_unit_test(test_first_that_is_held),
                                       cmocka_unit_test(test_names_that_begin_alike),
                                       cmocka_unit_test(test_two_at_a_time),
                                       cmocka_unit_test(test_small_ones),
                                       cmocka_unit_test(test_what_is_looked_at_first),
                                       cmocka_unit_test(test_changed_ones_in_turn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
