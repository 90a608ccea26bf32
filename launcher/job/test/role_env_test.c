/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/job/role_env.h"
#include "lib/base/buf.h"
#include "lib/base/log.h"

#define MANY 9000 /* addresses that are longer than a variable may be */
#define ADDRESS "fd00:1234:5678:9abc::1"

static void keep_line(void *arg, const struct log_line *line)
{
    buf_add(arg, line->text, line->length);
}

/* Each role gets the variables of those that are not too large; what is said of the others. */
static void assert_told(struct spec_role *roles, uint32_t count, const char *expected)
{
    const char **hosts = calloc((size_t)SPEC_ROLES_MAX * MANY, sizeof *hosts);
    struct job_spec spec = {
        .roles = roles, .role_count = count, .document = json_pack("{s:{s:[]}}", "spec", "roles")};
    struct buf text = BUF_INIT;
    assert_non_null(hosts);
    for (size_t i = 0; i < (size_t)SPEC_ROLES_MAX * MANY; i++)
        hosts[i] = ADDRESS;
    for (uint32_t r = 0; r < count; r++) {
        struct strlist env = STRLIST_INIT;
        struct drarun_error err = {0};
        assert_int_equal(role_env_add(&spec, &roles[r], hosts, &env, &err), 0);
        assert_string_equal(env_get(&env, "DRARUN_ROLE"), roles[r].name);
        for (uint32_t other = 0; other < count; other++) {
            char name[64] = "DRARUN_HOSTS_?";
            name[strlen(name) - 1] = (char)(roles[other].name[0] - 'a' + 'A');
            assert_int_equal(env_get(&env, name) != NULL, roles[other].workers < MANY);
        }
        strlist_done(&env);
    }
    log_divert(keep_line, &text);
    int rc = role_env_tell(&spec, hosts, NULL);
    log_divert(NULL, NULL);
    assert_int_equal(rc, 0);
    assert_string_equal(text.data ? text.data : "", expected);
    json_decref(spec.document);
    buf_done(&text);
    free(hosts);
}

static void test_roles_that_are_too_large_are_told_once(void **state)
{
    struct spec_role roles[] = {{.name = "a", .workers = MANY},
                                {.name = "b", .workers = 2, .first = MANY},
                                {.name = "c", .workers = MANY, .first = MANY + 2}};
    (void)state;
    assert_told(roles, 3,
                "drarun: roles a, c: too many workers for a variable with their addresses: the "
                "ranks do not get these\n");
    assert_told(roles, 2,
                "drarun: role a: too many workers for a variable with their addresses: the ranks "
                "do not get it\n");
    assert_told(&roles[1], 1, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roles_that_are_too_large_are_told_once),
    };
    log_setup("drarun", LOG_NORMAL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
