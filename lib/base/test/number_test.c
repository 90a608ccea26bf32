/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/number.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"

#define REFUSED (-1)

static void test_numbers(void **state)
{
    static const struct {
        const char *text;
        int64_t min, max, value;
        int code; /* 0: the value */
        const char *says;
    } rows[] = {
        {"0", 0, 9, 0, 0, NULL},
        {"9", 0, 9, 9, 0, NULL},
        {"-3", -3, 9, -3, 0, NULL},
        {"007", 0, 9, 7, 0, NULL},
        {"9223372036854775807", 0, INT64_MAX, INT64_MAX, 0, NULL},
        {"10", 0, 9, 0, ERANGE, "x: expected 0 to 9, got 10"},
        {"-1", 0, 9, 0, ERANGE, "x: expected 0 to 9, got -1"},
        {"9223372036854775808", 0, INT64_MAX, 0, ERANGE, "got 9223372036854775808"},
        {"-9223372036854775809", INT64_MIN, 0, 0, ERANGE, "got -9223372036854775809"},
        {"", 0, 9, 0, EINVAL, "x: expected a whole number from 0 to 9, got \"\""},
        {" 1", 0, 9, 0, EINVAL, "got \" 1\""},
        {"1 ", 0, 9, 0, EINVAL, "got \"1 \""},
        {"1.0", 0, 9, 0, EINVAL, "got \"1.0\""},
        {"0x1", 0, 9, 0, EINVAL, "got \"0x1\""},
        {"one", 0, 9, 0, EINVAL, "got \"one\""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drarun_error err = {0};
        int64_t value = 77;
        int rc = number_parse("x", rows[i].text, rows[i].min, rows[i].max, &value, &err);
        if (rc != -rows[i].code || value != (rc < 0 ? 77 : rows[i].value) ||
            (rc < 0 && (err.kind != DRARUN_ERR_USAGE || !strstr(err.text, rows[i].says))))
            fail_msg("\"%s\": %d, %s", rows[i].text, rc, err.text);
    }
}

#define DAY INT64_C(86400000)

static void test_durations(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;   /* REFUSED */
        int64_t bare; /* where a number may stand for seconds; 0: the same */
    } rows[] = {
        {"0", 0, 0},
        {"90s", 90000, 0},
        {"250ms", 250, 0},
        {"1h30m", 5400000, 0},
        {"2d", 2 * DAY, 0},
        {"1d1h1m1s1ms", DAY + 3661001, 0},
        {"1m1m", 120000, 0}, /* they are added */
        {"1.5h", 5400000, 0},
        {"0.5ms", 0, 0},
        {"3650d", 3650 * DAY, 0},
        {"3650d1ms", REFUSED, 0},
        {"999999999999ms", REFUSED, 0},
        {"1234567890123ms", REFUSED, 0}, /* 13 digits */
        {"90", REFUSED, 90000},
        {"0.25", REFUSED, 250},
        {"315360000", REFUSED, 3650 * DAY},
        {"315360001", REFUSED, 0},
        {"", REFUSED, 0},
        {"s", REFUSED, 0},
        {"-1s", REFUSED, 0},
        {"+1s", REFUSED, 0},
        {" 1s", REFUSED, 0},
        {"1s ", REFUSED, 0},
        {"1 s", REFUSED, 0},
        {"1h30", REFUSED, 0},
        {"1y", REFUSED, 0},
        {"1sm", REFUSED, 0},
        {"1S", REFUSED, 0},
        {".5s", REFUSED, 0},
        {"1.5.5s", REFUSED, 0},
        {"1.5.5", REFUSED, 0},
        {"0x10s", REFUSED, 0},
        {"1e3s", REFUSED, 0},
        {"1.5e3s", REFUSED, 0},
        {"1e3", REFUSED, 0},
        {"inf", REFUSED, 0},
        {"nan", REFUSED, 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drarun_error err = {0};
        int64_t ms = REFUSED, bare = REFUSED;
        if (duration_read(rows[i].text, &ms) != (rows[i].ms >= 0) || ms != rows[i].ms)
            fail_msg("\"%s\": %lld ms", rows[i].text, (long long)ms);
        int rc = duration_parse("x", rows[i].text, &bare, &err);
        if (bare != (rows[i].bare ? rows[i].bare : rows[i].ms) || (rc < 0) != (bare < 0))
            fail_msg("\"%s\": %d, %lld ms", rows[i].text, rc, (long long)bare);
        if (rc < 0 && !strstr(err.text, "x: expected a duration such as 90s, 1h30m or 2d, at most"))
            fail_msg("\"%s\": %s", rows[i].text, err.text);
    }
}

static void test_amounts(void **state)
{
    static const struct {
        const char *text;
        double value; /* REFUSED */
    } rows[] = {
        {"1", 1},        {"0.5", 0.5},    {"100", 100},     {"1e1", 10},
        {"0", REFUSED},  {"-1", REFUSED}, {"", REFUSED},    {"100.1", REFUSED},
        {"1x", REFUSED}, {"x", REFUSED},  {"inf", REFUSED}, {"nan", REFUSED},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drarun_error err = {0};
        double value = REFUSED;
        int rc = amount_parse("x", rows[i].text, 100, "GB/s", &value, &err);
        if (value != rows[i].value || (rc < 0) != (value < 0))
            fail_msg("\"%s\": %d, %g", rows[i].text, rc, value);
        if (rc < 0 && !strstr(err.text, "x: expected GB/s above 0, at most 100, got \""))
            fail_msg("\"%s\": %s", rows[i].text, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_durations),
                                       cmocka_unit_test(test_amounts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
