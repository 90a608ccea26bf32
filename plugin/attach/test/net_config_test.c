/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/base/cleanup.h"
#include "plugin/attach/net_config.h"

static const struct {
    const char *text;
    const char *finding; /* a part of the first; NULL: taken */
} table[] = {
    {"{}", NULL},
    {"{\"interface\": {}}", NULL},
    {"[]", "expected a mapping, got a list"},
    {"{\"profile\": \"x\"}", "profile: profiles are a cloud provider's"},
    {"{\"interfaces\": {}}", "interfaces: unknown key; did you mean interface?"},
    {"{\"interface\": {\"adresses\": []}}", "did you mean addresses?"},
    /* isValidLinuxInterfaceName */
    {"{\"interface\": {\"name\": \"net1\"}}", NULL},
    {"{\"interface\": {\"name\": \"abcdefghijklmno\"}}", NULL},
    {"{\"interface\": {\"name\": \"abcdefghijklmnop\"}}",
     "interface.name: expected an interface's"},
    {"{\"interface\": {\"name\": \"a/b\"}}", "interface.name: expected an interface's name"},
    {"{\"interface\": {\"name\": \"a b\"}}", "interface.name: expected an interface's name"},
    {"{\"interface\": {\"name\": \".\"}}", "interface.name: expected an interface's name"},
    {"{\"interface\": {\"name\": \"..\"}}", "interface.name: expected an interface's name"},
    {"{\"interface\": {\"name\": \"a%d\"}}", "interface.name: expected an interface's name"},
    {"{\"interface\": {\"name\": \"a:1\"}}", "interface.name: expected an interface's name"},
    {"{\"interface\": {\"name\": 7}}", "interface.name: expected a text"},
    /* addresses */
    {"{\"interface\": {\"addresses\": [\"10.0.0.2/24\", \"fd00::2/64\"]}}", NULL},
    {"{\"interface\": {\"addresses\": [\"10.0.0.2\"]}}",
     "interface.addresses[0]: expected an addr"},
    {"{\"interface\": {\"addresses\": [\"10.0.0.2/33\"]}}", "interface.addresses[0]"},
    {"{\"interface\": {\"addresses\": [\"10.0.0.2/024\"]}}", "interface.addresses[0]"},
    {"{\"interface\": {\"addresses\": [\"10.0.0.02/24\"]}}", "interface.addresses[0]"},
    {"{\"interface\": {\"addresses\": [\"10.0.0.2/\"]}}", "interface.addresses[0]"},
    {"{\"interface\": {\"addresses\": [\"fe80::1%eth0/64\"]}}", "interface.addresses[0]"},
    {"{\"interface\": {\"addresses\": [\"fd00::2/129\"]}}", "interface.addresses[0]"},
    {"{\"interface\": {\"addresses\": [\"::ffff:10.0.0.2/120\"]}}", "interface.addresses[0]"},
    {"{\"interface\": {\"addresses\": [\"10.0.0.2/24\", 5]}}", "interface.addresses[1]"},
    /* dhcp */
    {"{\"interface\": {\"dhcp\": false}}", NULL},
    {"{\"interface\": {\"dhcp\": true}}",
     "interface.dhcp: DHCP is not served here; give addresses"},
    {"{\"interface\": {\"dhcp\": true, \"addresses\": [\"10.0.0.2/24\"]}}", "interface.dhcp"},
    /* numbers */
    {"{\"interface\": {\"mtu\": 68}}", NULL},
    {"{\"interface\": {\"mtu\": 67}}", "interface.mtu: expected an integer of at least 68, got 67"},
    {"{\"interface\": {\"mtu\": 2147483648}}", "interface.mtu: expected an integer of at most"},
    {"{\"interface\": {\"gsoMaxSize\": 1}}", NULL},
    {"{\"interface\": {\"gsoMaxSize\": 0}}",
     "interface.gsoMaxSize: expected an integer of at least 1"},
    {"{\"interface\": {\"groMaxSize\": -1}}", "interface.groMaxSize"},
    {"{\"interface\": {\"gsoIPv4MaxSize\": 0}}", "interface.gsoIPv4MaxSize"},
    {"{\"interface\": {\"groIPv4MaxSize\": 0}}", "interface.groIPv4MaxSize"},
    {"{\"interface\": {\"arpIgnore\": 0}}", NULL},
    {"{\"interface\": {\"arpIgnore\": 8}}", NULL},
    {"{\"interface\": {\"arpIgnore\": 4}}",
     "interface.arpIgnore: expected one of 0, 1, 2, 3 and 8"},
    {"{\"interface\": {\"arpIgnore\": 9}}", "interface.arpIgnore"},
    {"{\"interface\": {\"arpAnnounce\": 2}}", NULL},
    {"{\"interface\": {\"arpAnnounce\": 3}}",
     "interface.arpAnnounce: expected an integer of at most 2"},
    {"{\"interface\": {\"arpAnnounce\": -1}}", "interface.arpAnnounce"},
    {"{\"interface\": {\"forwarding\": \"yes\"}}", "interface.forwarding: expected true or false"},
    /* hardware addresses, as net.ParseMAC */
    {"{\"interface\": {\"hardwareAddr\": \"02:00:5e:10:00:01\"}}", NULL},
    {"{\"interface\": {\"hardwareAddr\": \"02-00-5E-10-00-01\"}}", NULL},
    {"{\"interface\": {\"hardwareAddr\": \"0200.5e10.0001\"}}", NULL},
    {"{\"interface\": {\"hardwareAddr\": \"02:00:5e:10:00\"}}", "interface.hardwareAddr: expected"},
    {"{\"interface\": {\"hardwareAddr\": \"02:00:5e:10:00:0\"}}", "interface.hardwareAddr"},
    {"{\"interface\": {\"hardwareAddr\": \"02:00:5e:10:00:0g\"}}", "interface.hardwareAddr"},
    {"{\"interface\": {\"hardwareAddr\": \"02:00-5e:10:00:01\"}}", "interface.hardwareAddr"},
    {"{\"interface\": {\"hardwareAddr\": \"02005e100001\"}}", "interface.hardwareAddr"},
    /* VRF */
    {"{\"interface\": {\"vrf\": {\"name\": \"red\"}}}", NULL},
    {"{\"interface\": {\"vrf\": {\"name\": \"red\", \"table\": 100}}}", NULL},
    {"{\"interface\": {\"vrf\": {\"table\": 100}}}", "interface.vrf: a VRF needs a name"},
    {"{\"interface\": {\"vrf\": {\"name\": \"\"}}}", "interface.vrf.name"},
    {"{\"interface\": {\"vrf\": {\"name\": \"red\", \"table\": 0}}}", "interface.vrf.table"},
    {"{\"interface\": {\"vrf\": {\"name\": \"red\", \"table\": 253}}}",
     "table 253 is the kernel's own"},
    {"{\"interface\": {\"vrf\": {\"name\": \"red\", \"table\": 254}}}",
     "table 254 is the kernel's own"},
    {"{\"interface\": {\"vrf\": {\"name\": \"red\", \"table\": 255}}}",
     "table 255 is the kernel's own"},
    {"{\"interface\": {\"name\": \"x\", \"vrf\": {\"name\": \"x\"}}}", "both called \"x\""},
    {"{\"interface\": {\"vrf\": {\"name\": \"red\"}}, \"rules\": [{\"source\": \"10.0.0.0/8\", "
     "\"table\": 5}]}",
     "rules: the kernel's rules know no VRF"},
    /* routes */
    {"{\"routes\": [{\"destination\": \"10.1.0.0/16\", \"gateway\": \"10.0.0.1\"}]}", NULL},
    {"{\"routes\": [{\"destination\": \"10.1.0.0/16\", \"scope\": 253}]}", NULL},
    {"{\"routes\": [{\"destination\": \"fd01::/64\", \"gateway\": \"fd00::1\", \"source\": "
     "\"fd00::2\", "
     "\"table\": 100}]}",
     NULL},
    {"{\"routes\": [{\"gateway\": \"10.0.0.1\"}]}", "routes[0]: a route needs a destination"},
    {"{\"routes\": [{\"destination\": \"10.1.0.0\", \"gateway\": \"10.0.0.1\"}]}",
     "routes[0].destination: expected an address with its prefix"},
    {"{\"routes\": [{\"destination\": \"10.1.0.0/16\"}]}", "routes[0]: a route needs a gateway"},
    {"{\"routes\": [{\"destination\": \"10.1.0.0/16\", \"gateway\": \"10.0.0.1/24\"}]}",
     "routes[0].gateway: expected an address without prefix"},
    {"{\"routes\": [{\"destination\": \"10.1.0.0/16\", \"gateway\": \"fd00::1\"}]}",
     "routes[0].gateway: expected the IP version of the destination"},
    {"{\"routes\": [{\"destination\": \"10.1.0.0/16\", \"scope\": 253, \"source\": \"fd00::1\"}]}",
     "routes[0].source: expected the IP version of the destination"},
    {"{\"routes\": [{\"destination\": \"10.1.0.0/16\", \"scope\": 253, \"source\": \"x\"}]}",
     "routes[0].source: expected an address"},
    {"{\"routes\": [{\"destination\": \"10.1.0.0/16\", \"gateway\": \"10.0.0.1\", \"scope\": "
     "200}]}",
     "routes[0].scope: expected 0 (universe) or 253 (link), got 200"},
    {"{\"routes\": [{\"destination\": \"10.1.0.0/16\", \"scope\": 253, \"gateway\": "
     "\"10.0.0.1\"}]}",
     "routes[0].gateway: the kernel takes no gateway for scope 253"},
    {"{\"routes\": [{\"destination\": \"10.1.0.0/16\", \"scope\": 253, \"table\": -1}]}",
     "routes[0].table: expected an integer of at least 0"},
    /* rules */
    {"{\"rules\": [{\"priority\": 32767, \"source\": \"10.0.0.0/8\", \"table\": 100}]}", NULL},
    {"{\"rules\": [{\"table\": 100}]}", NULL},
    {"{\"rules\": [{\"priority\": 32768, \"table\": 100}]}",
     "rules[0].priority: expected an integer"},
    {"{\"rules\": [{\"priority\": -1, \"table\": 100}]}", "rules[0].priority: expected an integer"},
    {"{\"rules\": [{\"table\": -1}]}", "rules[0].table"},
    {"{\"rules\": [{\"priority\": 5}]}", "rules[0]: a rule needs the table"},
    {"{\"rules\": [{\"source\": \"10.0.0.1\", \"table\": 1}]}", "rules[0].source"},
    {"{\"rules\": [{\"destination\": \"x/8\", \"table\": 1}]}", "rules[0].destination"},
    {"{\"rules\": [{\"source\": \"10.0.0.0/8\", \"destination\": \"fd00::/8\", \"table\": 1}]}",
     "rules[0].source: expected the IP version of the destination"},
    /* neighbours */
    {"{\"neighbors\": [{\"destination\": \"10.0.0.9\", \"hardwareAddr\": \"02:00:00:00:00:09\"}]}",
     NULL},
    {"{\"neighbors\": [{\"hardwareAddr\": \"02:00:00:00:00:09\"}]}",
     "neighbors[0]: a neighbour needs destination"},
    {"{\"neighbors\": [{\"destination\": \"10.0.0.9\"}]}",
     "neighbors[0]: a neighbour needs hardwareAddr"},
    {"{\"neighbors\": [{\"destination\": \"10.0.0.9/24\", \"hardwareAddr\": "
     "\"02:00:00:00:00:09\"}]}",
     "neighbors[0].destination: expected an address without prefix"},
    {"{\"neighbors\": [{\"destination\": \"10.0.0.9\", \"hardwareAddr\": \"zz\"}]}",
     "neighbors[0].hardwareAddr: expected a hardware address"},
    /* ethtool */
    {"{\"ethtool\": {\"features\": {\"tx-checksumming\": false}, \"privateFlags\": {\"a b\": "
     "true}}}",
     NULL},
    {"{\"ethtool\": {\"features\": {\"tso\": \"off\"}}}",
     "ethtool.features.tso: expected true or false"},
    {"{\"ethtool\": {\"features\": {\"abcdefghijklmnopqrstuvwxyzabcdefg\": true}}}",
     "1 to 31 characters"},
    {"{\"ethtool\": {\"feature\": {}}}", "feature: unknown key; did you mean features?"},
};

static int read_text(const char *text, struct net_config *ret, char *finding, size_t size)
{
    struct reader reader;
    struct doc *doc = NULL;
    struct drarun_error err = {0};
    assert_int_equal(doc_parse("config", text, strlen(text), DOC_FORMAT_JSON, NULL, &doc, &err), 0);
    reader_init(&reader, doc, false);
    struct reader_node root = reader_root(&reader, 0);
    int rc = net_config_read(&root, ret);
    assert_int_equal(rc, reader_result(&reader, &err));
    snprintf(finding, size, "%s", err.text);
    reader_done(&reader);
    doc_free(doc);
    return rc;
}

static void rules_hold(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct net_config config = NET_CONFIG_INIT;
        char finding[600];
        int rc = read_text(table[i].text, &config, finding, sizeof finding);
        if (!table[i].finding && rc < 0)
            fail_msg("%s: %s", table[i].text, finding);
        if (table[i].finding && rc == 0)
            fail_msg("%s was taken", table[i].text);
        if (table[i].finding && !strstr(finding, table[i].finding))
            fail_msg("%s: \"%s\" lacks \"%s\"", table[i].text, finding, table[i].finding);
        net_config_done(&config);
    }
}

static const char whole[] =
    "{\"interface\":{\"name\":\"net1\",\"addresses\":[\"10.0.0.2/24\",\"fd00::2/64\"],\"mtu\":9000,"
    "\"hardwareAddr\":\"02:00:00:00:00:05\",\"gsoMaxSize\":1,\"groMaxSize\":2,\"gsoIPv4MaxSize\":3,"
    "\"groIPv4MaxSize\":4,\"disableEbpfPrograms\":true,\"forwarding\":true,\"arpIgnore\":0,"
    "\"arpAnnounce\":2,\"vrf\":{\"name\":\"red\",\"table\":77}},"
    "\"routes\":[{\"destination\":\"10.0.0.1/32\",\"scope\":253},{\"destination\":\"0.0.0.0/0\","
    "\"gateway\":\"10.0.0.1\",\"source\":\"10.0.0.2\",\"table\":5}],"
    "\"neighbors\":[{\"destination\":\"fd00::9\",\"hardwareAddr\":\"02:00:00:00:00:09\"}],"
    "\"ethtool\":{\"features\":{\"tso\":false},\"privateFlags\":{\"x\":true}}}";

static void written_as_it_was_read(void **state)
{
    (void)state;
    struct net_config config = NET_CONFIG_INIT;
    char finding[600];
    assert_int_equal(read_text(whole, &config, finding, sizeof finding), 0);
    json_t *json = net_config_json(&config);
    char *text = json_dumps(json, JSON_COMPACT);
    assert_string_equal(text, whole);
    free(text);
    json_decref(json);
    net_config_done(&config);
}

/* A gateway is reached through a route of scope link, wherever that one stood. */
static void routes_of_scope_link_come_first(void **state)
{
    (void)state;
    static const char text[] =
        "{\"routes\": [{\"destination\": \"10.1.0.9/16\", \"gateway\": \"10.9.0.1\"},"
        "{\"destination\": \"10.2.0.0/16\", \"gateway\": \"10.9.0.1\"},"
        "{\"destination\": \"10.9.0.1/32\", \"scope\": 253}]}";
    static const char *const order[] = {"10.9.0.1/32", "10.1.0.0/16", "10.2.0.0/16"};
    struct net_config config = NET_CONFIG_INIT;
    char finding[600], shown[IP_PREFIX_TEXT];
    assert_int_equal(read_text(text, &config, finding, sizeof finding), 0);
    assert_int_equal(config.route_count, ARRAY_LEN(order));
    for (size_t i = 0; i < config.route_count; i++)
        assert_string_equal(ip_prefix_text(&config.routes[i].destination, shown), order[i]);
    net_config_done(&config);
}

/* Expected values from DraNet's VRFConfig.Default (fnv.New32a() % 1000 + 1000). */
static void vrf_tables_are_dranets(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t table;
    } vectors[] = {{"red", 1596}, {"vrf0", 1343}, {"blue-1", 1867}};
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        struct net_config config = NET_CONFIG_INIT;
        char text[100], finding[600];
        snprintf(text, sizeof text, "{\"interface\": {\"vrf\": {\"name\": \"%s\"}}}",
                 vectors[i].name);
        assert_int_equal(read_text(text, &config, finding, sizeof finding), 0);
        assert_int_equal(config.interface.vrf_table, vectors[i].table);
        net_config_done(&config);
    }
}

static void devices_without_interface_take_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *text, *finding;
    } cases[] = {
        {"{}", NULL},
        {"{\"interface\": {}}", NULL},
        {"{\"routes\": []}", NULL},
        {"{\"interface\": {\"mtu\": 1500}}", "interface: the device has no network interface"},
        {"{\"interface\": {\"forwarding\": true}}", "interface: the device has no"},
        {"{\"routes\": [{\"destination\": \"10.1.0.0/16\", \"scope\": 253}]}",
         "routes: the device"},
        {"{\"rules\": [{\"table\": 5}]}", "rules: the device has no"},
        {"{\"ethtool\": {\"features\": {\"tso\": true}}}", "ethtool: the device has no"},
        {"{\"neighbors\": [{\"destination\": \"10.0.0.9\", \"hardwareAddr\": "
         "\"02:00:00:00:00:09\"}]}",
         "neighbors: the device has no"},
        {"{\"mtu\": 5}", "mtu: unknown key; known here: profile interface"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct reader reader;
        struct doc *doc = NULL;
        struct drarun_error err = {0};
        assert_int_equal(doc_parse("config", cases[i].text, strlen(cases[i].text), DOC_FORMAT_JSON,
                                   NULL, &doc, &err),
                         0);
        reader_init(&reader, doc, false);
        struct reader_node root = reader_root(&reader, 0);
        assert_int_equal(net_config_read_rdma(&root), cases[i].finding ? -EINVAL : 0);
        assert_int_equal(reader_result(&reader, &err), cases[i].finding ? -EINVAL : 0);
        if (cases[i].finding && !strstr(err.text, cases[i].finding))
            fail_msg("%s: %s", cases[i].text, err.text);
        reader_done(&reader);
        doc_free(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_hold),
        cmocka_unit_test(written_as_it_was_read),
        cmocka_unit_test(routes_of_scope_link_come_first),
        cmocka_unit_test(vrf_tables_are_dranets),
        cmocka_unit_test(devices_without_interface_take_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
