/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ranks/tail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static bool no_memory;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return no_memory ? NULL : __real_malloc(size);
}

static void expect(const struct tail *tail, const char *text, size_t length)
{
    size_t own = 0;
    const char *is = tail_text(tail, &own);
    assert_int_equal(own, length);
    assert_memory_equal(is, text, length);
}

static void test_short_text(void **state)
{
    struct tail tail = {0};
    (void)state;
    expect(&tail, "", 0);
    tail_add(&tail, "", 0);
    assert_null(tail.data);
    tail_add(&tail, "one\nt", 5);
    tail_add(&tail, "wo", 2);
    expect(&tail, "one\ntwo", 7);
    tail_done(&tail);
    expect(&tail, "", 0);
}

/* In pieces of each size: what is left begins with a line. */
static void test_long_text(void **state)
{
    static const size_t pieces[] = {1, 7, 1000, TAIL_MAX - 1, TAIL_MAX, TAIL_MAX + 1, 3 * TAIL_MAX};
    char text[3 * TAIL_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 10 == 9 ? '\n' : (char)('a' + i / 10 % 26);
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        struct tail tail = {0};
        for (size_t at = 0; at < sizeof text; at += pieces[p])
            tail_add(&tail, text + at, sizeof text - at < pieces[p] ? sizeof text - at : pieces[p]);
        size_t begin = sizeof text - TAIL_MAX;
        begin += 10 - begin % 10;
        assert_true(tail.cut);
        expect(&tail, text + begin, sizeof text - begin);
        tail_done(&tail);
    }
}

static void test_exactly_all(void **state)
{
    struct tail tail = {0};
    char text[TAIL_MAX + 1];
    size_t length = 0;
    (void)state;
    memset(text, 'x', sizeof text);
    text[3] = '\n';
    tail_add(&tail, text, TAIL_MAX);
    expect(&tail, text, TAIL_MAX); /* nothing was dropped */
    text[TAIL_MAX] = 'y';
    tail_add(&tail, "y", 1);
    expect(&tail, text + 4, TAIL_MAX - 3);
    tail_done(&tail);
    memset(text, 'x', sizeof text); /* one line, and its end */
    text[TAIL_MAX] = '\n';
    tail_add(&tail, text, TAIL_MAX + 1);
    expect(&tail, text + 1, TAIL_MAX);
    tail_done(&tail);
    no_memory = true;
    tail_add(&tail, "x", 1);
    no_memory = false;
    assert_string_equal(tail_text(&tail, &length), "(out of memory)\n");
    assert_int_equal(length, strlen("(out of memory)\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_short_text),
                                       cmocka_unit_test(test_long_text),
                                       cmocka_unit_test(test_exactly_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
