/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "plugin/discover/config.h"
#include "plugin/prepare/claim_config.h"

static struct discover_config config_of(const char *text)
{
    struct discover_config config;
    struct drarun_error err = {0};
    CLEANUP(doc_freep) struct doc *doc = NULL;
    if (doc_parse("config.yaml", text, strlen(text), DOC_FORMAT_YAML, NULL, &doc, &err) < 0 ||
        discover_config_read(doc, &config, &err) < 0)
        fail_msg("%s", err.text);
    return config;
}

/* Every setting that there is. */
static const char whole[] =
    "{\"interface\":{\"name\":\"net1\",\"addresses\":[\"10.9.0.2/24\"],\"mtu\":1400,"
    "\"hardwareAddr\":\"02:00:00:00:00:01\",\"gsoMaxSize\":1,\"groMaxSize\":1,"
    "\"gsoIPv4MaxSize\":1,\"groIPv4MaxSize\":1,\"disableEbpfPrograms\":true,\"forwarding\":true,"
    "\"arpIgnore\":1,\"arpAnnounce\":1,\"vrf\":{\"name\":\"red\"}},"
    "\"routes\":[{\"destination\":\"10.1.0.0/16\",\"scope\":253}],"
    "\"rules\":[{\"table\":7}],\"neighbors\":[],"
    "\"ethtool\":{\"features\":{\"tso\":true},\"privateFlags\":{\"a\":true}}}";

/* The claim sets each key alone: what the configuration does not allow is refused and named. */
static void check_each(const char *text, const char *allowed)
{
    struct discover_config config = config_of(text);
    json_t *all = json_loads(whole, 0, NULL), *value, *inner;
    const char *key, *name;
    json_object_foreach(all, key, value)
    {
        bool group = strcmp(key, "interface") == 0 || strcmp(key, "ethtool") == 0;
        json_t *one = group ? value : all;
        json_object_foreach(one, name, inner)
        {
            char setting[64];
            struct drarun_error err = {0};
            if (!group && strcmp(name, key) != 0)
                continue;
            snprintf(setting, sizeof setting, "%s%s%s", group ? key : "", group ? "." : "", name);
            json_t *claim =
                group ? json_pack("{s:{s:O}}", key, name, inner) : json_pack("{s:O}", name, inner);
            bool wanted = strstr(allowed, setting);
            int rc = claim_config_check(&config.claims, claim, &err);
            if (rc != (wanted ? 0 : -EPERM))
                fail_msg("%s: %d: %s", setting, rc, err.text);
            if (!wanted) {
                assert_non_null(strstr(err.text, "the claim may not set "));
                assert_non_null(strstr(err.text, setting));
                assert_non_null(strstr(err.text, *allowed ? allowed : "may set nothing;"));
                assert_non_null(strstr(err.text, "claims.allow of the PluginConfig"));
            }
            json_decref(claim);
        }
    }
    json_decref(all);
    discover_config_done(&config);
}

static void what_a_claim_may_set(void **state)
{
    (void)state;
    check_each("{}", "interface.name, interface.mtu, interface.addresses, routes");
    check_each("claims: {allow: [rules, routes]}", "routes, rules");
    check_each("claims: {allow: []}", "");
    check_each("claims: {allow: [ethtool, interface.mtu]}",
               "interface.mtu, ethtool.features, ethtool.privateFlags");
}

static void what_a_claim_does_not_set(void **state)
{
    (void)state;
    struct discover_config config = config_of("claims: {allow: []}");
    json_t *none = json_loads("{\"interface\":{},\"ethtool\":{}}", 0, NULL);
    /* no setting at all: the reader of the configuration says so */
    json_t *unknown = json_loads("{\"interfaces\":1,\"interface\":{\"mtuu\":1}}", 0, NULL);
    assert_int_equal(claim_config_check(&config.claims, NULL, NULL), 0);
    assert_int_equal(claim_config_check(&config.claims, none, NULL), 0);
    assert_int_equal(claim_config_check(&config.claims, unknown, NULL), 0);
    json_t *text = json_loads("{\"interface\":\"mtu\"}", 0, NULL);
    assert_int_equal(claim_config_check(&config.claims, text, NULL), -EPERM);
    json_decref(none);
    json_decref(unknown);
    json_decref(text);
    discover_config_done(&config);
}

static void what_the_administrator_set_stays(void **state)
{
    (void)state;
    static const struct {
        const char *class_, *claim, *merged;
    } table[] = {
        {"{\"interface\":{\"mtu\":1,\"arpIgnore\":1},\"rules\":[1]}", "{\"interface\":{\"mtu\":2}}",
         "{\"interface\":{\"mtu\":2,\"arpIgnore\":1},\"rules\":[1]}"},
        {"{\"routes\":[1,2]}", "{\"routes\":[3],\"interface\":{\"name\":\"a\"}}",
         "{\"routes\":[3],\"interface\":{\"name\":\"a\"}}"},
        {"{\"interface\":{\"mtu\":1}}", "{\"interface\":7}", "{\"interface\":7}"},
        {"{\"interface\":{\"mtu\":1}}", "[]", "[]"},
        {"{\"ethtool\":{\"features\":{\"a\":true}}}", "{}",
         "{\"ethtool\":{\"features\":{\"a\":true}}}"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        json_t *class_ = json_loads(table[i].class_, 0, NULL), *merged = NULL;
        json_t *claim = json_loads(table[i].claim, 0, NULL);
        json_t *wanted = json_loads(table[i].merged, 0, NULL), *before = json_deep_copy(class_);
        assert_int_equal(claim_config_merge(class_, claim, &merged, NULL), 0);
        assert_true(json_equal(merged, wanted));
        assert_true(json_equal(class_, before));
        json_decref(merged);
        assert_int_equal(claim_config_merge(class_, NULL, &merged, NULL), 0);
        assert_true(json_equal(merged, class_));
        json_decref(merged);
        assert_int_equal(claim_config_merge(NULL, claim, &merged, NULL), 0);
        assert_true(json_equal(merged, claim));
        json_decref(merged);
        json_decref(class_);
        json_decref(claim);
        json_decref(wanted);
        json_decref(before);
    }
    json_t *merged = json_true();
    assert_int_equal(claim_config_merge(NULL, NULL, &merged, NULL), 0);
    assert_null(merged);
}

static struct ip_prefix prefix(const char *text)
{
    struct ip_prefix made;
    assert_true(ip_prefix_parse(text, &made));
    return made;
}

static void addresses_are_those_of_the_plan(void **state)
{
    (void)state;
    static const struct {
        const char *plan, *address, *says;
    } table[] = {
        {"{}", "10.9.0.2/24",
         "may not have 10.9.0.2/24: the address plan (claims.addresses of the "
         "PluginConfig) has no network"},
        {"{}", "192.168.1.5/24", NULL}, /* its own on the host */
        {"claims: {addresses: [10.9.0.0/16]}", "10.9.255.2/8", NULL},
        {"claims: {addresses: [10.9.0.0/16]}", "10.10.0.2/24", "has 10.9.0.0/16, and it is no"},
        {"claims: {addresses: [10.9.0.7/16, 'fd00:9::/64']}", "fd00:9::2/64", NULL},
        {"claims: {addresses: [10.9.0.7/16, 'fd00:9::/64']}", "fd00:8::2/64",
         "has 10.9.0.0/16, fd00:9::/64"},
        {"claims: {addresses: [0.0.0.0/0]}", "1.2.3.4/24", NULL},
        {"claims: {addresses: [0.0.0.0/0]}", "fd00::1/64", "has 0.0.0.0/0"},
    };
    const struct ip_prefix own = prefix("192.168.1.5/32");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct discover_config config = config_of(table[i].plan);
        struct drarun_error err = {0};
        const struct ip_prefix wanted[] = {own, prefix(table[i].address)};
        int rc = claim_config_check_addresses(&config.claims, wanted, 2, &own, 1, &err);
        assert_int_equal(rc, table[i].says ? -EPERM : 0);
        if (table[i].says && !strstr(err.text, table[i].says))
            fail_msg("%s", err.text);
        discover_config_done(&config);
    }
}

static void wrong_limits(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } table[] = {
        {"claims: {allow: [interface.mt]}", "claims.allow[0]: expected a setting"},
        {"claims: {allow: [ethtool.features.tso]}", "claims.allow[0]: expected a setting"},
        {"claims: {allow: routes}", "claims.allow: expected a list"},
        {"claims: {addresses: [10.9.0.1]}", "claims.addresses[0]: expected a network"},
        {"claims: {alow: []}", "claims.alow: unknown key; did you mean allow?"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct discover_config config;
        struct drarun_error err = {0};
        CLEANUP(doc_freep) struct doc *doc = NULL;
        assert_int_equal(doc_parse("c.yaml", table[i].text, strlen(table[i].text), DOC_FORMAT_YAML,
                                   NULL, &doc, &err),
                         0);
        assert_int_equal(discover_config_read(doc, &config, &err), -EINVAL);
        if (!strstr(err.text, table[i].says))
            fail_msg("%s", err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_claim_may_set),
        cmocka_unit_test(what_a_claim_does_not_set),
        cmocka_unit_test(what_the_administrator_set_stays),
        cmocka_unit_test(addresses_are_those_of_the_plan),
        cmocka_unit_test(wrong_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
