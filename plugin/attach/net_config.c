/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/net_config.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/cleanup.h"
#include "lib/base/fnv.h"
#include "lib/doc/fields.h"
#include "plugin/attach/net_config_private.h"

#define MTU_MIN 68             /* DraNet's MinMTU, the least of IPv4 */
#define VRF_TABLE_OFFSET 1000u /* DraNet's VRFTableOffset */
#define SCOPE_LINK 253         /* RT_SCOPE_LINK */
#define PRIORITY_MAX 32767

static bool is_name(const char *name)
{
    size_t length = strlen(name);
    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
            return false;
    return length > 0 && length < IFNAMSIZ && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

void net_name_read(const struct reader_node *node, char *name)
{
    const char *text = NULL;
    if (reader_text(node, &text) < 0)
        return;
    if (is_name(text))
        memcpy(name, text, strlen(text) + 1);
    else
        reader_expected(node, "an interface's name of 1 to 15 letters, digits, \"-\", \"_\" "
                              "and \".\"");
}

static void read_name(const struct reader_node *node, void *field)
{
    net_name_read(node, field);
}

static void read_prefix(const struct reader_node *node, void *field)
{
    const char *text = NULL;
    if (reader_text(node, &text) == 0 && !ip_prefix_parse(text, field))
        reader_expected(node, "an address with its prefix, like \"10.0.0.2/24\" or "
                              "\"fd00::2/64\" (one host: /32 or /128)");
}

static void read_address(const struct reader_node *node, void *field)
{
    const char *text = NULL;
    if (reader_text(node, &text) == 0 && !ip_address_parse(text, field))
        reader_expected(node, "an address without prefix, like \"10.0.0.1\" or \"fd00::1\"");
}

static void read_hw(const struct reader_node *node, void *field)
{
    const char *text = NULL;
    if (reader_text(node, &text) == 0 && !hw_addr_parse(text, field))
        reader_expected(node, "a hardware address like \"02:00:00:00:00:01\"");
}

/* A list whose items are of `size` bytes each; read() fills one that is zero. */
static int read_list(const struct reader_node *node, size_t size, field_read_fn read,
                     void **ret_list, size_t *ret_count)
{
    if (reader_list(node, 0) < 0)
        return -EINVAL;
    size_t count = json_array_size(node->value);
    char *list = calloc(count ? count : 1, size);
    if (!list) {
        node->reader->texts.failed = true;
        return -EINVAL;
    }
    for (size_t i = 0; i < count; i++) {
        struct reader_node item = reader_item(node, i);
        read(&item, list + i * size);
    }
    *ret_list = list;
    *ret_count = count;
    return 0;
}

int net_prefixes_read(const struct reader_node *node, struct ip_prefix **ret_list,
                      size_t *ret_count)
{
    return read_list(node, sizeof(struct ip_prefix), read_prefix, (void **)ret_list, ret_count);
}

static void read_addresses(const struct reader_node *node, void *field)
{
    struct net_interface *interface = field;
    net_prefixes_read(node, &interface->addresses, &interface->address_count);
}

static void read_dhcp(const struct reader_node *node, void *field)
{
    bool dhcp = false;
    (void)field;
    if (reader_bool(node, &dhcp) == 0 && dhcp)
        reader_fail(node, "DHCP is not served here; give addresses instead of dhcp");
}

static void read_arp_ignore(const struct reader_node *node, void *field)
{
    int64_t value = -1;
    if (reader_integer(node, 0, 8, &value) < 0)
        return;
    if (value > 3 && value < 8)
        reader_expected(node, "one of 0, 1, 2, 3 and 8");
    *(int32_t *)field = (int32_t)value;
}

static void read_arp_announce(const struct reader_node *node, void *field)
{
    int64_t value = -1;
    if (reader_integer(node, 0, 2, &value) == 0)
        *(int32_t *)field = (int32_t)value;
}

/* DraNet's: interfaces that join a VRF of one name share its table. */
static uint32_t vrf_table_of(const char *name)
{
    return fnv1a_32(name, strlen(name)) % 1000 + VRF_TABLE_OFFSET;
}

static void read_vrf_table(const struct reader_node *node, void *field)
{
    int64_t table = 0;
    if (reader_integer(node, 1, UINT32_MAX, &table) < 0)
        return;
    if (table >= 253 && table <= 255)
        reader_fail(node, "table %d is the kernel's own; take another", (int)table);
    *(uint32_t *)field = (uint32_t)table;
}

static const struct field vrf_fields[] = {
    {"name", FIELD_CALL, offsetof(struct net_interface, vrf), .read = read_name},
    {"table", FIELD_CALL, offsetof(struct net_interface, vrf_table), .read = read_vrf_table},
};
static const struct field_table vrf_table = {vrf_fields, ARRAY_LEN(vrf_fields)};

static void read_vrf(const struct reader_node *node, void *field)
{
    struct net_interface *interface = field;
    struct reader_node name;
    if (!fields_read(&vrf_table, node, interface))
        return;
    if (!reader_get(node, "name", &name))
        reader_fail(node, "a VRF needs a name");
    else if (!interface->vrf_table)
        interface->vrf_table = vrf_table_of(interface->vrf);
}

static const struct field interface_fields[] = {
    {"name", FIELD_CALL, offsetof(struct net_interface, name), .read = read_name},
    {"addresses", FIELD_CALL, .read = read_addresses},
    {"dhcp", FIELD_CALL, .read = read_dhcp},
    {"mtu", FIELD_COUNT, offsetof(struct net_interface, mtu), MTU_MIN, INT32_MAX},
    {"hardwareAddr", FIELD_CALL, offsetof(struct net_interface, hw), .read = read_hw},
    {"gsoMaxSize", FIELD_COUNT, offsetof(struct net_interface, gso), 1, INT32_MAX},
    {"groMaxSize", FIELD_COUNT, offsetof(struct net_interface, gro), 1, INT32_MAX},
    {"gsoIPv4MaxSize", FIELD_COUNT, offsetof(struct net_interface, gso4), 1, INT32_MAX},
    {"groIPv4MaxSize", FIELD_COUNT, offsetof(struct net_interface, gro4), 1, INT32_MAX},
    {"disableEbpfPrograms", FIELD_BOOL, offsetof(struct net_interface, no_ebpf)},
    {"forwarding", FIELD_BOOL, offsetof(struct net_interface, forwarding)},
    {"arpIgnore", FIELD_CALL, offsetof(struct net_interface, arp_ignore), .read = read_arp_ignore},
    {"arpAnnounce", FIELD_CALL, offsetof(struct net_interface, arp_announce),
     .read = read_arp_announce},
    {"vrf", FIELD_CALL, .read = read_vrf},
};
static const struct field_table interface_table = {interface_fields, ARRAY_LEN(interface_fields)};

static void read_interface(const struct reader_node *node, void *field)
{
    struct net_interface *interface = field;
    struct reader_node dhcp;
    if (!fields_read(&interface_table, node, interface))
        return;
    if (reader_get(node, "dhcp", &dhcp) && json_is_true(dhcp.value) && interface->address_count)
        reader_fail(&dhcp, "dhcp and addresses exclude each other");
    if (interface->vrf[0] && strcmp(interface->vrf, interface->name) == 0)
        reader_fail(node, "the interface and its VRF are both called \"%s\"", interface->vrf);
}

static void read_scope(const struct reader_node *node, void *field)
{
    int64_t scope = 0;
    if (reader_integer(node, 0, 255, &scope) < 0)
        return;
    if (scope != 0 && scope != SCOPE_LINK)
        reader_expected(node, "0 (universe) or 253 (link)");
    *(bool *)field = scope == SCOPE_LINK;
}

static const struct field route_fields[] = {
    {"destination", FIELD_CALL, offsetof(struct net_route, destination), .read = read_prefix},
    {"gateway", FIELD_CALL, offsetof(struct net_route, gateway), .read = read_address},
    {"source", FIELD_CALL, offsetof(struct net_route, source), .read = read_address},
    {"scope", FIELD_CALL, offsetof(struct net_route, link), .read = read_scope},
    {"table", FIELD_COUNT, offsetof(struct net_route, table), 0, UINT32_MAX},
};
static const struct field_table route_table = {route_fields, ARRAY_LEN(route_fields)};

static void same_family(const struct reader_node *object, const char *key,
                        const struct ip_prefix *value, const struct ip_prefix *destination)
{
    if (value->family && destination->family && value->family != destination->family)
        reader_fail_key(object, key, "expected the IP version of the destination");
}

static void read_route(const struct reader_node *node, void *field)
{
    struct net_route *route = field;
    struct reader_node member;
    if (!fields_read(&route_table, node, route))
        return;
    if (!reader_get(node, "destination", &member))
        reader_fail(node, "a route needs a destination");
    if (!route->link && !reader_get(node, "gateway", &member))
        reader_fail(node, "a route needs a gateway, or scope 253 (link)");
    if (route->link && route->gateway.family == AF_INET)
        reader_fail_key(node, "gateway", "the kernel takes no gateway for scope 253 (link)");
    same_family(node, "gateway", &route->gateway, &route->destination);
    same_family(node, "source", &route->source, &route->destination);
    route->destination = ip_prefix_network(&route->destination);
}

static const struct field rule_fields[] = {
    {"priority", FIELD_COUNT, offsetof(struct net_rule, priority), 0, PRIORITY_MAX},
    {"source", FIELD_CALL, offsetof(struct net_rule, source), .read = read_prefix},
    {"destination", FIELD_CALL, offsetof(struct net_rule, destination), .read = read_prefix},
    {"table", FIELD_COUNT, offsetof(struct net_rule, table), 1, UINT32_MAX},
};
static const struct field_table rule_table = {rule_fields, ARRAY_LEN(rule_fields)};

static void read_rule(const struct reader_node *node, void *field)
{
    struct net_rule *rule = field;
    struct reader_node member;
    if (!fields_read(&rule_table, node, rule))
        return;
    if (!reader_get(node, "table", &member))
        reader_fail(node, "a rule needs the table that it looks up");
    same_family(node, "source", &rule->source, &rule->destination);
    rule->source = ip_prefix_network(&rule->source);
    rule->destination = ip_prefix_network(&rule->destination);
}

static const struct field neighbor_fields[] = {
    {"destination", FIELD_CALL, offsetof(struct net_neighbor, address), .read = read_address},
    {"hardwareAddr", FIELD_CALL, offsetof(struct net_neighbor, hw), .read = read_hw},
};
static const struct field_table neighbor_table = {neighbor_fields, ARRAY_LEN(neighbor_fields)};

static void read_neighbor(const struct reader_node *node, void *field)
{
    struct reader_node member;
    if (!fields_read(&neighbor_table, node, field))
        return;
    for (size_t i = 0; i < ARRAY_LEN(neighbor_fields); i++)
        if (!reader_get(node, neighbor_fields[i].key, &member))
            reader_fail(node, "a neighbour needs %s", neighbor_fields[i].key);
}

/* Those of scope link first, else in their order: a gateway is reached through one of them. */
static void sort_routes(struct net_route *routes, size_t count)
{
    for (size_t i = 0, links = 0; i < count; i++) {
        struct net_route route = routes[i];
        if (!route.link)
            continue;
        memmove(&routes[links + 1], &routes[links], (i - links) * sizeof route);
        routes[links++] = route;
    }
}

static void read_routes(const struct reader_node *node, void *field)
{
    struct net_config *config = field;
    if (read_list(node, sizeof(struct net_route), read_route, (void **)&config->routes,
                  &config->route_count) == 0)
        sort_routes(config->routes, config->route_count);
}

static void read_rules(const struct reader_node *node, void *field)
{
    struct net_config *config = field;
    read_list(node, sizeof(struct net_rule), read_rule, (void **)&config->rules,
              &config->rule_count);
}

static void read_neighbors(const struct reader_node *node, void *field)
{
    struct net_config *config = field;
    read_list(node, sizeof(struct net_neighbor), read_neighbor, (void **)&config->neighbors,
              &config->neighbor_count);
}

void net_switches_read(const struct reader_node *node, void *field)
{
    const char *name = NULL;
    json_t *value = NULL;
    bool on = false;
    if (reader_object(node) < 0)
        return;
    json_object_foreach(node->value, name, value)
    {
        struct reader_node item;
        if (reader_get(node, name, &item))
            reader_bool(&item, &on);
        if (!*name || strlen(name) >= NET_SWITCH_NAME_MAX)
            reader_fail_key(node, name, "expected a name of 1 to %d characters",
                            NET_SWITCH_NAME_MAX - 1);
    }
    *(json_t **)field = json_incref(node->value);
}

static const struct field ethtool_fields[] = {
    {"features", FIELD_CALL, offsetof(struct net_config, features), .read = net_switches_read},
    {"privateFlags", FIELD_CALL, offsetof(struct net_config, private_flags),
     .read = net_switches_read},
};
static const struct field_table ethtool_table = {ethtool_fields, ARRAY_LEN(ethtool_fields)};

static void read_ethtool(const struct reader_node *node, void *field)
{
    fields_read(&ethtool_table, node, field);
}

static void read_profile(const struct reader_node *node, void *field)
{
    (void)field;
    reader_fail(node, "profiles are a cloud provider's and not served here; give the settings");
}

static const struct field config_fields[] = {
    {"profile", FIELD_CALL, .read = read_profile},
    {"interface", FIELD_CALL, offsetof(struct net_config, interface), .read = read_interface},
    {"routes", FIELD_CALL, .read = read_routes},
    {"rules", FIELD_CALL, .read = read_rules},
    {"neighbors", FIELD_CALL, .read = read_neighbors},
    {"ethtool", FIELD_CALL, .read = read_ethtool},
};
static const struct field_table config_table = {config_fields, ARRAY_LEN(config_fields)};

int net_config_read(const struct reader_node *node, struct net_config *ret)
{
    struct net_config config = NET_CONFIG_INIT;
    size_t before = node->reader->findings;
    if (fields_read(&config_table, node, &config) && config.rule_count && config.interface.vrf[0])
        reader_fail_key(node, "rules",
                        "the kernel's rules know no VRF; give rules or "
                        "interface.vrf");
    if (node->reader->findings > before || node->reader->texts.failed) {
        net_config_done(&config);
        return -EINVAL;
    }
    *ret = config;
    return 0;
}

/* DraNet takes `interface: {}`, which its own types always write. */
static bool says_something(const json_t *value)
{
    return (json_is_object(value) || json_is_array(value))
               ? json_object_size(value) > 0 || json_array_size(value) > 0
               : !json_is_null(value);
}

int net_config_read_rdma(const struct reader_node *node)
{
    struct net_config config;
    struct reader_node member;
    size_t before = node->reader->findings;
    if (net_config_read(node, &config) == 0)
        net_config_done(&config);
    for (size_t i = 0; json_is_object(node->value) && i < config_table.count; i++) {
        const char *key = config_table.list[i].key;
        if (reader_get(node, key, &member) && says_something(member.value))
            reader_fail_key(node, key, "the device has no network interface to set this on");
    }
    return node->reader->findings > before || node->reader->texts.failed ? -EINVAL : 0;
}

void net_config_done(struct net_config *config)
{
    free(config->interface.addresses);
    free(config->routes);
    free(config->rules);
    free(config->neighbors);
    json_decref(config->features);
    json_decref(config->private_flags);
    *config = (struct net_config)NET_CONFIG_INIT;
}
