/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/claim_limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"

typedef void (*read_fn)(const struct reader_node *node, void *field);

/* Without a text: the list is right. */
static struct drarun_error read_list(read_fn read, const char *text, void *field)
{
    struct reader reader;
    struct doc *doc = NULL;
    struct drarun_error err = {0};
    assert_int_equal(doc_parse("c", text, strlen(text), DOC_FORMAT_JSON, NULL, &doc, &err), 0);
    reader_init(&reader, doc, false);
    struct reader_node root = reader_root(&reader, 0);
    read(&root, field);
    reader_result(&reader, &err);
    reader_done(&reader);
    doc_free(doc);
    return err;
}

#define DEFAULTS "interface.name, interface.mtu, interface.addresses, routes"

static void test_settings(void **state)
{
    static const struct {
        const char *allow;  /* NULL: not given */
        const char *listed; /* of those; NULL: refused */
        const char *may[4], *not [4];
    } rows[] = {
        {NULL,
         DEFAULTS,
         {"interface.name", "interface.addresses", "routes"},
         {"interface", "rules", "interface.vrf", "ethtool"}},
        {"[]", "nothing", {NULL}, {"interface.name", "interface", "routes", "ethtool.features"}},
        {"[\"routes\"]", "routes", {"routes"}, {"interface.name", "interface", "rules", "ethtool"}},
        {"[\"ethtool\", \"interface.mtu\"]",
         "interface.mtu, ethtool.features, ethtool.privateFlags",
         {"ethtool", "ethtool.features", "ethtool.privateFlags", "interface.mtu"},
         {"interface", "interface.name", "routes"}},
        {"[\"interface\"]",
         "interface.name, interface.mtu, interface.addresses, interface.hardwareAddr, "
         "interface.gsoMaxSize, interface.groMaxSize, interface.gsoIPv4MaxSize, "
         "interface.groIPv4MaxSize, interface.disableEbpfPrograms, interface.forwarding, "
         "interface.arpIgnore, interface.arpAnnounce, interface.vrf",
         {"interface", "interface.vrf"},
         {"routes", "rules", "neighbors", "ethtool"}},
        {"[\"interface.m\"]", NULL, {NULL}, {NULL}},
        {"[\"interface.mtu.x\"]", NULL, {NULL}, {NULL}},
        {"[\"dhcp\"]", NULL, {NULL}, {NULL}},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct claim_limits limits = {.allowed = claim_limits_default()};
        struct buf listed = BUF_INIT;
        struct drarun_error err = {0};
        if (rows[i].allow)
            err = read_list(claim_limits_read_allow, rows[i].allow, &limits.allowed);
        if (!rows[i].listed) {
            assert_non_null(strstr(err.text, "[0]: expected a setting of a NIC's configuration"));
            continue;
        }
        assert_string_equal(err.text, "");
        claim_limits_list(&limits, &listed);
        assert_string_equal(listed.data, rows[i].listed);
        for (size_t k = 0; k < 4; k++) {
            assert_true(!rows[i].may[k] || claim_limits_allow(&limits, rows[i].may[k]));
            assert_false(rows[i].not [k] && claim_limits_allow(&limits, rows[i].not [k]));
        }
        assert_true(claim_limits_allow(&limits, "no.setting")); /* which its reader refuses */
        buf_done(&listed);
    }
}

static void test_addresses(void **state)
{
    static const struct {
        const char *networks, *plan;
        const char *in[3], *out[4];
    } rows[] = {
        {"[]", "no network", {NULL}, {"10.9.0.1/16", "fd00::1/64"}},
        {"[\"10.9.0.0/16\"]",
         "10.9.0.0/16",
         {"10.9.0.1/24", "10.9.255.254/32", "10.9.1.1/8"},
         {"10.10.0.1/24", "10.8.255.255/16", "fd00::1/64"}},
        {"[\"10.9.7.1/16\"]", "10.9.0.0/16", {"10.9.0.1/24"}, {"10.10.7.1/16"}},
        {"[\"192.168.4.6/31\", \"fd00:9::/64\"]",
         "192.168.4.6/31, fd00:9::/64",
         {"192.168.4.7/24", "192.168.4.6/32", "fd00:9::ffff/128"},
         {"192.168.4.5/31", "192.168.4.8/31", "fd00:9:0:1::1/64", "0.0.0.9/0"}},
        {"[\"0.0.0.0/0\"]", "0.0.0.0/0", {"10.0.0.1/8", "255.0.0.1/32"}, {"::1/128"}},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct claim_limits limits = {0};
        struct ip_prefix address;
        struct buf plan = BUF_INIT;
        struct drarun_error err = read_list(claim_limits_read_addresses, rows[i].networks, &limits);
        assert_string_equal(err.text, "");
        claim_limits_plan(&limits, &plan);
        assert_string_equal(plan.data, rows[i].plan);
        for (size_t k = 0; k < 3 && rows[i].in[k]; k++) {
            assert_true(ip_prefix_parse(rows[i].in[k], &address));
            assert_true(claim_limits_have(&limits, &address));
        }
        for (size_t k = 0; k < 4 && rows[i].out[k]; k++) {
            assert_true(ip_prefix_parse(rows[i].out[k], &address));
            assert_false(claim_limits_have(&limits, &address));
        }
        buf_done(&plan);
        claim_limits_done(&limits);
        assert_int_equal(limits.address_count, 0);
    }
}

static void test_no_networks(void **state)
{
    static const char *const rows[][2] = {
        {"[\"10.9.0.0/16\", \"10.9.0.1\"]", "[1]: expected a network, like \"10.9.0.0/16\""},
        {"[\"10.9.0.0/33\"]", "[0]: expected a network"},
        {"[\"\"]", "[0]: expected a"},
        {"[7]", "[0]: expected a text"},
        {"\"10.9.0.0/16\"", "expected a list"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct claim_limits limits = {0};
        struct drarun_error err = read_list(claim_limits_read_addresses, rows[i][0], &limits);
        if (!strstr(err.text, rows[i][1]))
            fail_msg("%s: %s", rows[i][0], err.text);
        claim_limits_done(&limits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_settings),
                                       cmocka_unit_test(test_addresses),
                                       cmocka_unit_test(test_no_networks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
