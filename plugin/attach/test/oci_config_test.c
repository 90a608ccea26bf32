/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "plugin/attach/oci_config.h"

static int parse(const char *text, struct oci_config *ret, struct drarun_error *err)
{
    return oci_config_parse("/b", text, strlen(text), ret, err);
}

static void configurations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *root; /* NULL: refused */
        const char *part; /* of the error, or the marks */
    } table[] = {
        {"{\"root\":{\"path\":\"rootfs\"}}", "/b/rootfs", ""},
        {"{\"root\":{\"path\":\"/r\"},\"process\":{\"env\":[\"A=1\",\"DRARUN_NIC_u_a=1\",5,"
         "\"DRARUN_NIC_u_b\",\"XDRARUN_NIC_u_c=1\"]}}",
         "/r", "DRARUN_NIC_u_a DRARUN_NIC_u_b "},
        {"{\"root\":{\"path\":\"/r\"},\"process\":{\"env\":[\"A=\\u0000\\uffff\\u0001\"]}}", "/r",
         ""},
        {"{\"root\":{\"path\":\"/r\"},\"process\":7}", "/r", ""},
        {"{\"root\":{\"path\":\"\"}}", NULL, "/b/config.json: expected root.path"},
        {"{\"root\":5}", NULL, "expected root.path"},
        {"[]", NULL, "expected a JSON object"},
        {"", NULL, "expected a JSON object"},
        {"{\"process\":{\"env\":[\"SECRET=hidden\"", NULL, "expected a JSON object (line 1)"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct drarun_error err = {0};
        struct oci_config config = {0};
        char marks[256] = "";
        int rc = parse(table[i].text, &config, &err);
        if ((rc == 0) != (table[i].root != NULL))
            fail_msg("%s: %d %s", table[i].text, rc, err.text);
        for (size_t k = 0; k < config.marks.count; k++) {
            size_t n = strlen(marks);
            snprintf(marks + n, sizeof marks - n, "%s ", config.marks.items[k]);
        }
        if (rc == 0) {
            assert_string_equal(config.root, table[i].root);
            assert_string_equal(marks, table[i].part);
        } else if (!strstr(err.text, table[i].part) || strstr(err.text, "hidden")) {
            fail_msg("%s: %s", table[i].text, err.text);
        }
        oci_config_done(&config);
    }
}

static bool has(const char *text, const char *uid, const char *device)
{
    struct oci_config config = {0};
    struct attach_order order = {0};
    assert_int_equal(parse(text, &config, NULL), 0);
    snprintf(order.claim_uid, sizeof order.claim_uid, "%s", uid);
    snprintf(order.device, sizeof order.device, "%s", device);
    bool found = oci_config_has(&config, &order);
    oci_config_done(&config);
    return found;
}

static void a_container_has_what_is_marked(void **state)
{
    (void)state;
    static const char some[] = "{\"root\":{\"path\":\"/r\"},\"process\":{\"env\":["
                               "\"DRARUN_NIC_0a_1b_pci_0000_8f_00_0=1\",\"DRARUN_NIC_x_=\"]}}";
    assert_true(has(some, "0a-1b", "pci-0000-8f-00-0"));
    assert_false(has(some, "0a-1b", "pci-0000-8f-00-1"));
    assert_false(has(some, "0a-1b", "pci-0000-8f-00"));
    assert_false(has(some, "x", "a"));
}

/* Of another claim's marks nothing follows; without one an older plugin wrote the edits. */
static void without_a_mark_of_the_claim_it_has_all(void **state)
{
    (void)state;
    static const char other[] =
        "{\"root\":{\"path\":\"/r\"},\"process\":{\"env\":[\"DRARUN_NIC_other_a=1\"]}}";
    assert_true(has(other, "0a-1b", "a"));
    assert_true(has("{\"root\":{\"path\":\"/r\"}}", "0a-1b", "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations),
        cmocka_unit_test(a_container_has_what_is_marked),
        cmocka_unit_test(without_a_mark_of_the_claim_it_has_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
