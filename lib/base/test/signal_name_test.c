/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/nearest.h"
#include "lib/base/signal_name.h"

static int number_of(const char *name)
{
    return signal_of_name(name, strlen(name));
}

static void reads_names_and_numbers(void **state)
{
    (void)state;
    assert_int_equal(number_of("SIGUSR1"), SIGUSR1);
    assert_int_equal(number_of("usr2"), SIGUSR2);
    assert_int_equal(number_of("sigTerm"), SIGTERM);
    assert_int_equal(number_of("15"), SIGTERM);
    assert_int_equal(signal_of_name("USR1@60", 4), SIGUSR1);
}

static void knows_no_others(void **state)
{
    static const char *const others[] = {"",  "SIG", "KILL", "SIGSTOP", "CONT", "9",
                                         "0", "010", "USR",  "USR11",   "-15",  "SIGSIGHUP"};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (number_of(others[i]) != 0)
            fail_msg("\"%s\" is %d", others[i], number_of(others[i]));
}

static void every_name_has_its_place(void **state)
{
    const char *at = SIGNAL_NAMES;
    size_t length = 0, index = 0;
    (void)state;
    for (const char *word; (word = words_next(&at, &length)); index++) {
        assert_int_not_equal(signal_at(index), 0);
        assert_int_equal(signal_of_name(word, length), signal_at(index));
    }
    assert_int_equal(signal_at(index), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_names_and_numbers),
        cmocka_unit_test(knows_no_others),
        cmocka_unit_test(every_name_has_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
