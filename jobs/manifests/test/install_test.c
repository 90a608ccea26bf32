/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/manifests/install.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"

static json_t *printed_role(void)
{
    CLEANUP(json_decrefp) json_t *list = install_manifests("train", NULL);
    json_t *role = json_incref(json_array_get(list, 1));
    assert_string_equal(json_string_value(json_object_get(role, "kind")), "Role");
    return role;
}

/* The role's rule for the resource; borrowed. */
static json_t *rule_of(json_t *role, const char *resource)
{
    size_t i;
    json_t *rule;
    json_array_foreach(json_object_get(role, "rules"), i, rule)
    {
        json_t *name = json_array_get(json_object_get(rule, "resources"), 0);
        if (strcmp(json_string_value(name), resource) == 0)
            return rule;
    }
    fail_msg("no rule for %s", resource);
    return NULL;
}

static void expect_lacking(const json_t *role, const char *expected)
{
    struct strlist lacking = STRLIST_INIT;
    struct buf text = BUF_INIT;
    buf_add_str(&text, "");
    assert_int_equal(install_role_lacks(role, &lacking), 0);
    for (size_t i = 0; i < lacking.count; i++)
        buf_printf(&text, "%s%s", i ? ", " : "", lacking.items[i]);
    assert_string_equal(text.data, expected);
    strlist_done(&lacking);
    buf_done(&text);
}

static void test_role_of_an_older_version(void **state)
{
    (void)state;
    CLEANUP(json_decrefp) json_t *role = printed_role();
    expect_lacking(role, "");
    json_t *templates = rule_of(role, "resourceclaimtemplates");
    json_object_set_new(templates, "verbs", json_pack("[s, s]", "delete", "create"));
    json_object_set_new(rule_of(role, "leases"), "resourceNames", json_pack("[s]", "one"));
    expect_lacking(role, "create leases, get leases, update leases, get resourceclaimtemplates");
}

static void test_role_with_wildcards(void **state)
{
    (void)state;
    CLEANUP(json_decrefp)
    json_t *all = json_pack("{s:[{s:[s], s:[s], s:[s]}]}", "rules", "apiGroups", "*", "resources",
                            "*", "verbs", "*");
    expect_lacking(all, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_role_of_an_older_version),
        cmocka_unit_test(test_role_with_wildcards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
