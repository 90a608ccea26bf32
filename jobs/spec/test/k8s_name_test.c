/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/spec/k8s_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"

#define A31 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A61 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" A31
#define A63 A61 "aa"
#define POINTS A63 "." A63 "." A63 "." /* 192 */

/* What each kind of name takes: L a DNS label, S a subdomain, Q a qualified name, V a label's
 * value, D a device's attribute, E a variable, P a path in a domain. */
static void test_names(void **state)
{
    static const struct {
        const char *text, *kinds;
    } rows[] = {
        {"", "V"},
        {"a", "LSQVDE"},
        {"7", "LSQV"},
        {"a-b", "LSQV"},
        {"a--b", "LSQV"},
        {"-a", ""},
        {"a-", ""},
        {"A", "QVDE"},
        {"a_b", "QVDE"},
        {"_a", "DE"},
        {"a_", "DE"},
        {"a.b", "SQV"},
        {".a", ""},
        {"a.", ""},
        {"a..b", "QV"},
        {"a.-b", "QV"},
        {"a-.b", "QV"},
        {"a b", ""},
        {"a\n", ""},
        {"\xc3\xa4", ""},
        {"a=b", ""},
        {"7a", "LSQV"},
        {A63, "LSQVE"},
        {A63 "a", "SE"},
        {A31 "a", "LSQVDE"},
        {A31 "aa", "LSQVE"},
        {POINTS A61, "S"}, /* 253 */
        {POINTS A61 "a", ""},
        {POINTS A61 "/a", "QP"},
        {POINTS A61 "a/a", ""},
        {"a.b/c", "QDP"},
        {"a.b/C_d", "QDP"},
        {"a.b/c-d", "QP"},
        {"a.b/c.d", "QP"},
        {"a.b/c/d", "P"},
        {"a.b/", ""},
        {"a.b/%41~", "P"},
        {"a.b/c d", ""},
        {"/a", ""},
        {"A/b", ""},
        {"a_b/c", ""},
        {"a.b/" A63, "QP"},
        {"a.b/" A63 "a", "P"},
        {"a.b/" A31 "a", "QDP"},
        {"a.b/" A31 "aa", "QP"},
        {A63 "/a", "QDP"},
        {A63 "a/a", "QP"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *text = rows[i].text;
        const struct {
            char kind;
            bool is;
        } all[] = {{'L', k8s_is_label(text)},       {'S', k8s_is_subdomain(text)},
                   {'Q', k8s_is_qualified(text)},   {'V', k8s_is_label_value(text)},
                   {'D', k8s_is_device_name(text)}, {'E', k8s_is_env_name(text)},
                   {'P', k8s_is_domain_path(text)}};
        for (size_t k = 0; k < ARRAY_LEN(all); k++)
            if (all[k].is != (strchr(rows[i].kinds, all[k].kind) != NULL))
                fail_msg("\"%s\" is %c: %d", text, all[k].kind, all[k].is);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
