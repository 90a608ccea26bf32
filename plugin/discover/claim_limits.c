/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/claim_limits.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

/* Of a NIC's configuration. What stands first is what cannot reach beyond the pod: the name and
 * the routes are the pod's network's own, the MTU is bounded by the device and restored. */
static const char *const settings[] = {
    "interface.name",
    "interface.mtu",
    "interface.addresses",
    "routes",
    "rules",
    "neighbors",
    "interface.hardwareAddr",
    "interface.gsoMaxSize",
    "interface.groMaxSize",
    "interface.gsoIPv4MaxSize",
    "interface.groIPv4MaxSize",
    "interface.disableEbpfPrograms",
    "interface.forwarding",
    "interface.arpIgnore",
    "interface.arpAnnounce",
    "interface.vrf",
    "ethtool.features",
    "ethtool.privateFlags",
};
#define DEFAULTS 4u

uint32_t claim_limits_default(void)
{
    return (1u << DEFAULTS) - 1;
}

/* The settings that a text means: itself, or all below it; 0: none. */
static uint32_t bits_of(const char *text)
{
    uint32_t bits = 0;
    size_t length = strlen(text);
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        if (strncmp(settings[i], text, length) == 0 &&
            (!settings[i][length] || settings[i][length] == '.'))
            bits |= 1u << i;
    return bits;
}

void claim_limits_read_allow(const struct reader_node *node, void *field)
{
    uint32_t *allowed = field, bits = 0;
    if (reader_list(node, 0) < 0)
        return;
    for (size_t i = 0; i < json_array_size(node->value); i++) {
        struct reader_node item = reader_item(node, i);
        const char *text = NULL;
        if (reader_text(&item, &text) < 0)
            return;
        if (bits_of(text) == 0)
            reader_expected(&item, "a setting of a NIC's configuration, like \"interface.mtu\", "
                                   "\"routes\" or \"ethtool\"");
        bits |= bits_of(text);
    }
    *allowed = bits;
}

void claim_limits_read_addresses(const struct reader_node *node, void *field)
{
    struct claim_limits *limits = field;
    if (reader_list(node, 0) < 0 || json_array_size(node->value) == 0)
        return;
    size_t count = json_array_size(node->value);
    limits->addresses = calloc(count, sizeof *limits->addresses);
    if (!limits->addresses) {
        node->reader->texts.failed = true;
        return;
    }
    limits->address_count = count;
    for (size_t i = 0; i < count; i++) {
        struct reader_node item = reader_item(node, i);
        const char *text = NULL;
        struct ip_prefix network;
        if (reader_text(&item, &text) < 0)
            continue;
        if (ip_prefix_parse(text, &network))
            limits->addresses[i] = ip_prefix_network(&network);
        else
            reader_expected(&item, "a network, like \"10.9.0.0/16\" or \"fd00:9::/64\"");
    }
}

void claim_limits_done(struct claim_limits *limits)
{
    free(limits->addresses);
    *limits = (struct claim_limits){0};
}

bool claim_limits_allow(const struct claim_limits *limits, const char *setting)
{
    uint32_t bits = bits_of(setting);
    return (limits->allowed & bits) == bits;
}

bool claim_limits_have(const struct claim_limits *limits, const struct ip_prefix *address)
{
    for (size_t i = 0; i < limits->address_count; i++) {
        struct ip_prefix network = *address;
        network.bits = limits->addresses[i].bits;
        if (network.family != limits->addresses[i].family)
            continue;
        network = ip_prefix_network(&network);
        if (ip_prefix_equal(&network, &limits->addresses[i]))
            return true;
    }
    return false;
}

void claim_limits_list(const struct claim_limits *limits, struct buf *out)
{
    size_t before = out->len;
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        if (limits->allowed & 1u << i)
            buf_printf(out, "%s%s", out->len > before ? ", " : "", settings[i]);
    if (out->len == before)
        buf_printf(out, "nothing");
}

void claim_limits_plan(const struct claim_limits *limits, struct buf *out)
{
    char text[IP_PREFIX_TEXT];
    for (size_t i = 0; i < limits->address_count; i++)
        buf_printf(out, "%s%s", i ? ", " : "", ip_prefix_text(&limits->addresses[i], text));
    if (limits->address_count == 0)
        buf_printf(out, "no network");
}
