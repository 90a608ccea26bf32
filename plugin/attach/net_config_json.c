/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/net_config.h"

#include "lib/base/cleanup.h"
#include "plugin/attach/net_config_private.h"

bool net_put_take(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

bool net_put_count(json_t *object, const char *key, uint32_t value)
{
    return value == 0 || net_put_take(object, key, json_integer(value));
}

bool net_put_hw(json_t *object, const char *key, const struct hw_addr *hw)
{
    char text[HW_ADDR_TEXT];
    return hw->len == 0 || net_put_take(object, key, json_string(hw_addr_text(hw, text)));
}

static json_t *prefixes_json(const struct ip_prefix *list, size_t count)
{
    CLEANUP(json_decrefp) json_t *array = json_array();
    char text[IP_PREFIX_TEXT];
    for (size_t i = 0; i < count; i++)
        if (json_array_append_new(array, json_string(ip_prefix_text(&list[i], text))) < 0)
            return NULL;
    return TAKE_PTR(array);
}

bool net_put_prefixes(json_t *object, const char *key, const struct ip_prefix *list, size_t count)
{
    return count == 0 || net_put_take(object, key, prefixes_json(list, count));
}

bool net_put_switches(json_t *object, const char *key, const json_t *switches)
{
    return json_object_size(switches) == 0 || net_put_take(object, key, json_deep_copy(switches));
}

static bool put_text(json_t *object, const char *key, const char *text)
{
    return !*text || net_put_take(object, key, json_string(text));
}

static bool put_prefix(json_t *object, const char *key, const struct ip_prefix *prefix)
{
    char text[IP_PREFIX_TEXT];
    return !prefix->family || net_put_take(object, key, json_string(ip_prefix_text(prefix, text)));
}

static bool put_address(json_t *object, const char *key, const struct ip_prefix *address)
{
    char text[IP_PREFIX_TEXT];
    return !address->family ||
           net_put_take(object, key, json_string(ip_address_text(address, text)));
}

static bool put_at_least_0(json_t *object, const char *key, int32_t value)
{
    return value < 0 || net_put_take(object, key, json_integer(value));
}

static json_t *interface_json(const struct net_interface *i)
{
    CLEANUP(json_decrefp) json_t *object = json_object();
    bool ok = put_text(object, "name", i->name) &&
              net_put_prefixes(object, "addresses", i->addresses, i->address_count) &&
              net_put_count(object, "mtu", i->mtu) && net_put_hw(object, "hardwareAddr", &i->hw) &&
              net_put_count(object, "gsoMaxSize", i->gso) &&
              net_put_count(object, "groMaxSize", i->gro) &&
              net_put_count(object, "gsoIPv4MaxSize", i->gso4) &&
              net_put_count(object, "groIPv4MaxSize", i->gro4) &&
              (!i->no_ebpf || net_put_take(object, "disableEbpfPrograms", json_true())) &&
              (!i->forwarding || net_put_take(object, "forwarding", json_true())) &&
              put_at_least_0(object, "arpIgnore", i->arp_ignore) &&
              put_at_least_0(object, "arpAnnounce", i->arp_announce) &&
              (!i->vrf[0] || net_put_take(object, "vrf",
                                          json_pack("{s:s, s:I}", "name", i->vrf, "table",
                                                    (json_int_t)i->vrf_table)));
    return ok ? TAKE_PTR(object) : NULL;
}

static json_t *route_json(const struct net_route *r)
{
    CLEANUP(json_decrefp) json_t *object = json_object();
    bool ok = put_prefix(object, "destination", &r->destination) &&
              put_address(object, "gateway", &r->gateway) &&
              put_address(object, "source", &r->source) &&
              net_put_count(object, "scope", r->link ? 253 : 0) &&
              net_put_count(object, "table", r->table);
    return ok ? TAKE_PTR(object) : NULL;
}

static json_t *rule_json(const struct net_rule *r)
{
    CLEANUP(json_decrefp) json_t *object = json_object();
    bool ok = net_put_count(object, "priority", r->priority) &&
              put_prefix(object, "source", &r->source) &&
              put_prefix(object, "destination", &r->destination) &&
              net_put_count(object, "table", r->table);
    return ok ? TAKE_PTR(object) : NULL;
}

static json_t *neighbor_json(const struct net_neighbor *n)
{
    CLEANUP(json_decrefp) json_t *object = json_object();
    bool ok = put_address(object, "destination", &n->address) &&
              net_put_hw(object, "hardwareAddr", &n->hw);
    return ok ? TAKE_PTR(object) : NULL;
}

static bool put_lists(json_t *object, const struct net_config *config)
{
    json_t *routes = json_array(), *rules = json_array(), *neighbors = json_array();
    bool ok = net_put_take(object, "routes", routes);
    ok = net_put_take(object, "rules", rules) && ok;
    ok = net_put_take(object, "neighbors", neighbors) && ok;
    for (size_t i = 0; ok && i < config->route_count; i++)
        ok = json_array_append_new(routes, route_json(&config->routes[i])) == 0;
    for (size_t i = 0; ok && i < config->rule_count; i++)
        ok = json_array_append_new(rules, rule_json(&config->rules[i])) == 0;
    for (size_t i = 0; ok && i < config->neighbor_count; i++)
        ok = json_array_append_new(neighbors, neighbor_json(&config->neighbors[i])) == 0;
    for (size_t i = 0; ok && i < 3; i++) {
        static const char *const keys[] = {"routes", "rules", "neighbors"};
        if (json_array_size(json_object_get(object, keys[i])) == 0)
            json_object_del(object, keys[i]);
    }
    return ok;
}

static bool put_ethtool(json_t *object, const struct net_config *config)
{
    if (json_object_size(config->features) == 0 && json_object_size(config->private_flags) == 0)
        return true;
    json_t *ethtool = json_object();
    return net_put_take(object, "ethtool", ethtool) &&
           net_put_switches(ethtool, "features", config->features) &&
           net_put_switches(ethtool, "privateFlags", config->private_flags);
}

json_t *net_config_json(const struct net_config *config)
{
    CLEANUP(json_decrefp) json_t *object = json_object();
    bool ok = net_put_take(object, "interface", interface_json(&config->interface)) &&
              put_lists(object, config) && put_ethtool(object, config);
    return ok ? TAKE_PTR(object) : NULL;
}
