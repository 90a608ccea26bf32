/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "benchmarks/bench/room.h"

#define MIB 1048576.0

static void the_first_that_has_too_little(void **state)
{
    static const struct {
        struct room all[3];
        struct room_need need;
        const char *says; /* NULL: there is room */
    } cases[] = {
        {{{"a", 96 * MIB}, {"a", 96 * MIB}, {"b", 32 * MIB}},
         {32 * MIB, 16777216, false, false},
         NULL},
        {{{"a", 96 * MIB}, {"a", 60 * MIB}, {"b", 1}},
         {32 * MIB, 16777216, false, false},
         "rank 1 on a: -e 16777216 needs 32 MiB of memory a rank, 64 MiB for the 2 ranks of this "
         "host, and 60 MiB are free: give a smaller -e"},
        {{{"a", 60 * MIB}, {"b", 31.5 * MIB}, {"c", 1}},
         {32 * MIB, 16777216, false, true},
         "rank 1 on b: -e 16777216 needs 32 MiB of memory a rank, and 31.5 MiB are free: give a "
         "smaller -e, or -c 0, which takes a third less"},
        {{{"a", 32 * MIB}, {"a", 32 * MIB}, {"a", 4 * MIB}},
         {32 * MIB, 16777216, true, false},
         "rank 2 on a: -e 16777216 needs 32 MiB of the device's memory a rank, and 4 MiB are "
         "free: give a smaller -e"},
        {{{"a", INFINITY}, {"a", INFINITY}, {"a", INFINITY}}, {1e30, 1, false, false}, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct drarun_error err = {0};
        int rc = room_check(cases[i].all, 3, &cases[i].need, &err);
        assert_int_equal(rc, cases[i].says ? -ENOMEM : 0);
        assert_string_equal(err.text, cases[i].says ? cases[i].says : "");
    }
}

static double room_with(const char *text)
{
    char path[] = "/tmp/room-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    double bytes = room_of_machine(path);
    unlink(path);
    return bytes;
}

/* Memory with files in it is free for who asks. */
static void the_page_cache_is_room(void **state)
{
    (void)state;
    assert_float_equal(room_with("MemTotal: 9000 kB\nMemFree:  10 kB\nMemAvailable:  500 kB\n"),
                       500 * 1024, 0);
    double group = room_of_machine("/no/such/file"); /* of the control group, if it has a limit */
    assert_true(isinf(group) || group >= 0);
    assert_true(room_with("MemTotal: 9000 kB\n") >= 0);
    assert_true(room_of_machine("/proc/meminfo") > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_that_has_too_little),
        cmocka_unit_test(the_page_cache_is_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
