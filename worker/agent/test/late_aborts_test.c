/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/buf.h"
#include "worker/agent/late_aborts.h"

static void write_down(void *arg, uint32_t rank, int status, const char *text)
{
    buf_printf(arg, "%u:%d:%s ", rank, status, text);
}

struct fixture {
    struct late_aborts aborts;
    struct buf told;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    late_aborts_init(&fixture.aborts);
    buf_add_str(&fixture.told, "");
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    late_aborts_done(&f->aborts);
    assert_true(late_aborts_empty(&f->aborts));
    buf_done(&f->told);
    return 0;
}

static void expect(struct fixture *f, const char *text)
{
    assert_string_equal(f->told.data, text);
    buf_reset(&f->told);
    buf_add_str(&f->told, "");
}

static void after_the_ends_that_came_before(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(late_aborts_add(&f->aborts, 1, 15, "first", 1), 0);
    assert_int_equal(late_aborts_add(&f->aborts, 0, 16, "", 1), 0);
    assert_int_equal(late_aborts_add(&f->aborts, 2, 17, "third", 3), 0);
    late_aborts_tell(&f->aborts, 0, write_down, &f->told);
    expect(f, "");
    late_aborts_tell(&f->aborts, 1, write_down, &f->told);
    expect(f, "1:15:first 0:16: ");
    late_aborts_tell(&f->aborts, 2, write_down, &f->told);
    expect(f, "");
    late_aborts_tell(&f->aborts, SIZE_MAX, write_down, &f->told);
    expect(f, "2:17:third ");
    assert_true(late_aborts_empty(&f->aborts));
}

static void before_the_end_of_the_rank_itself(void **state)
{
    struct fixture *f = *state;
    late_aborts_add(&f->aborts, 1, 15, "one", 2);
    late_aborts_add(&f->aborts, 2, 15, "two", 2);
    late_aborts_tell_of(&f->aborts, 2, write_down, &f->told);
    expect(f, "2:15:two ");
    late_aborts_tell_of(&f->aborts, 2, write_down, &f->told);
    late_aborts_tell_of(&f->aborts, 7, write_down, &f->told);
    expect(f, "");
    assert_false(late_aborts_empty(&f->aborts));
}

static void of_one_rank_the_first(void **state)
{
    struct fixture *f = *state;
    late_aborts_add(&f->aborts, 1, 15, "first", 1);
    late_aborts_add(&f->aborts, 1, 3, "again", 1);
    late_aborts_tell(&f->aborts, 1, write_down, &f->told);
    expect(f, "1:15:first ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(after_the_ends_that_came_before, set_up, tear_down),
        cmocka_unit_test_setup_teardown(before_the_end_of_the_rank_itself, set_up, tear_down),
        cmocka_unit_test_setup_teardown(of_one_rank_the_first, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
