/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "worker/agent/private.h"

int __wrap_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit);
int __wrap_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
    (void)limit;
    errno = EPERM;
    return resource == RLIMIT_MEMLOCK ? -1 : 0;
}

/* As a security module may do it. */
static void names_the_limit_that_is_refused(void **state)
{
    uint64_t limits[RLIM_NLIMITS] = {0};
    Drarun__Wire__Shell shell = DRARUN__WIRE__SHELL__INIT;
    struct drarun_error err = {0};
    (void)state;
    shell.umask = 022;
    shell.soft = shell.hard = limits;
    shell.n_soft = shell.n_hard = RLIM_NLIMITS;
    assert_int_equal(agent_take_shell(&shell, &err), -EPERM);
    assert_int_equal(err.kind, DRARUN_ERR_INFRASTRUCTURE);
    assert_string_equal(err.text,
                        "set the limit RLIMIT_MEMLOCK of the shell that runs drarun: Operation not "
                        "permitted; drarun --workers K starts agents for this job alone");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_the_limit_that_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
