/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/timestamp.h"

#define AT INT64_C(1795273200000) /* 2026-11-21T15:00:00Z */
#define NONE INT64_MIN

static void times_as_kubernetes_writes_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } table[] = {
        {"2026-11-21T15:00:00Z", AT},
        {"2026-11-21T15:00:01.5Z", AT + 1500},
        {"2026-11-21T15:00:00.123456Z", AT + 123},
        {"2026-11-21T15:00:00.0019Z", AT + 1},
        {"2026-11-21T17:30:00+02:30", AT},
        {"2026-11-21T13:59:00.25-01:01", AT + 250},
        {"2026-11-21T15:00:00+00:00", AT},
        {"1970-01-01T00:00:00Z", 0},
        {"1969-12-31T23:59:59.999Z", -1},
        {"2024-02-29T00:00:00Z", INT64_C(1709164800000)},
        {"2026-01-01T00:00:00Z", INT64_C(1767225600000)},
        {"2026-12-31T23:59:60Z", INT64_C(1798761600000)}, /* a leap second */
        {NULL, NONE},
        {"", NONE},
        {"soon", NONE},
        {"2026-11-21", NONE},
        {"2026-11-21 15:00:00Z", NONE},
        {"2026-11-21t15:00:00Z", NONE},
        {"2026-11-21T15:00:00", NONE},
        {"2026-11-21T15:00:00z", NONE},
        {"2026-11-21T15:00:00Zx", NONE},
        {"2026-11-21T15:00:00.Z", NONE},
        {"2026-11-21T15:00:00,5Z", NONE},
        {"2026-11-21T15:00:00+1:00", NONE},
        {"2026-11-21T15:00:00+0100", NONE},
        {"2026-11-21T15:00:00 01:00", NONE},
        {"2026-1-21T15:00:00Z", NONE},
        {"26-11-21T15:00:00Z", NONE},
        {"2026/11-21T15:00:00Z", NONE},
        {"2026-11/21T15:00:00Z", NONE},
        {"2026-11-21T15-00:00Z", NONE},
        {"2026-11-21T15:00-00Z", NONE},
        {"2026-00-21T15:00:00Z", NONE},
        {"2026-13-21T15:00:00Z", NONE},
        {"2026-11-00T15:00:00Z", NONE},
        {"2026-11-32T15:00:00Z", NONE},
        {"2026-11-21T24:00:00Z", NONE},
        {"2026-11-21T15:60:00Z", NONE},
        {"2026-11-21T15:00:61Z", NONE},
        {"2026-11-21T1a:00:00Z", NONE},
        {"2026-11-21T1/:00:00Z", NONE},
        {"2026-11-21T1::00:00Z", NONE},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        int64_t ms = NONE;
        bool good = timestamp_parse(table[i].text, &ms);
        if (good != (table[i].ms != NONE) || ms != table[i].ms)
            fail_msg("%s gave %lld", table[i].text, (long long)ms);
    }
}

static void times_are_written_with_milliseconds(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } table[] = {
        {0, "1970-01-01T00:00:00.000Z"},         {AT, "2026-11-21T15:00:00.000Z"},
        {AT + 7, "2026-11-21T15:00:00.007Z"},    {AT + 999, "2026-11-21T15:00:00.999Z"},
        {AT + 1000, "2026-11-21T15:00:01.000Z"}, {-1, "1969-12-31T23:59:59.999Z"},
        {-1000, "1969-12-31T23:59:59.000Z"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char text[TIMESTAMP_SIZE];
        int64_t back = NONE;
        timestamp_format(table[i].ms, text, sizeof text);
        assert_string_equal(text, table[i].text);
        assert_true(timestamp_parse(text, &back));
        assert_true(back == table[i].ms);
    }
}

static void durations_have_two_units_at_most(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } table[] = {
        {-1, "0 ms"},
        {0, "0 ms"},
        {1, "1 ms"},
        {999, "999 ms"},
        {1000, "1 s"},
        {1999, "1 s"},
        {59999, "59 s"},
        {60000, "1 min"},
        {61000, "1 min 1 s"},
        {120000, "2 min"},
        {200000, "3 min 20 s"},
        {3599999, "59 min 59 s"},
        {3600000, "1 h"},
        {3659999, "1 h"},
        {3660000, "1 h 1 min"},
        {7500000, "2 h 5 min"},
        {86399999, "23 h 59 min"},
        {86400000, "1 d"},
        {89999999, "1 d"},
        {90000000, "1 d 1 h"},
        {INT64_C(273600000), "3 d 4 h"},
        {INT64_C(8640000000), "100 d"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char text[32];
        duration_format(table[i].ms, text, sizeof text);
        assert_string_equal(text, table[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_as_kubernetes_writes_them),
        cmocka_unit_test(times_are_written_with_milliseconds),
        cmocka_unit_test(durations_have_two_units_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
