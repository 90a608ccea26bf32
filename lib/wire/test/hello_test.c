/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"
#include "lib/wire/hello.h"

static Drarun__Wire__Hello hello_of(uint32_t major, const char *pmix)
{
    Drarun__Wire__Hello hello = DRARUN__WIRE__HELLO__INIT;
    hello_fill(&hello, DRARUN__WIRE__ROLE__ROLE_AGENT, pmix);
    hello.major = major;
    return hello;
}

static void who_may_come(void **state)
{
    static const struct {
        const char *theirs, *ours;
    } good[] = {{"5.0.7", "5.0.7"}, {"", "5.0.7"}, {"5.0.7", ""}, {"", ""}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct drarun_error err = {0};
        Drarun__Wire__Hello hello = hello_of(WIRE_MAJOR, good[i].theirs);
        assert_int_equal(hello.minor, WIRE_MINOR);
        hello.minor += 5; /* a newer minor version only adds */
        if (hello_check(&hello, good[i].ours, &err) < 0)
            fail_msg("%s", err.text);
    }
}

static void another_major_version_is_refused(void **state)
{
    struct drarun_error err = {0};
    Drarun__Wire__Hello hello = hello_of(WIRE_MAJOR + 1, "5.0.7");
    hello.build = unconst("9.9.9");
    hello.minor = 7;
    (void)state;
    assert_int_equal(hello_check(&hello, "5.0.7", &err), -EPROTONOSUPPORT);
    assert_int_equal(err.kind, DRARUN_ERR_INFRASTRUCTURE);
    assert_non_null(strstr(err.text, "version 2.7"));
    assert_non_null(strstr(err.text, "this side 1.1"));
    assert_non_null(strstr(err.text, "9.9.9"));
    assert_non_null(strstr(err.text, "same release"));
    hello.major = 0; /* one that sent none */
    assert_int_equal(hello_check(&hello, "", NULL), -EPROTONOSUPPORT);
}

static void another_release_is_refused(void **state)
{
    struct drarun_error err = {0};
    Drarun__Wire__Hello hello = hello_of(WIRE_MAJOR, "5.0.7");
    (void)state;
    assert_int_equal(hello_check_release(&hello, &err), 0);
    hello.build = unconst("9.9.9");
    assert_int_equal(hello_check_release(&hello, &err), -EPROTONOSUPPORT);
    assert_int_equal(err.kind, DRARUN_ERR_INFRASTRUCTURE);
    assert_non_null(strstr(err.text, "drarun 9.9.9, this side of drarun " DRARUN_VERSION));
}

static void another_libpmix_is_refused(void **state)
{
    struct drarun_error err = {0};
    Drarun__Wire__Hello hello = hello_of(WIRE_MAJOR, "4.2.2");
    (void)state;
    assert_int_equal(hello_check(&hello, "5.0.7", &err), -EPROTONOSUPPORT);
    assert_non_null(strstr(err.text, "4.2.2"));
    assert_non_null(strstr(err.text, "5.0.7"));
    assert_non_null(strstr(err.text, "same drarun-worker"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_may_come),
        cmocka_unit_test(another_major_version_is_refused),
        cmocka_unit_test(another_release_is_refused),
        cmocka_unit_test(another_libpmix_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
