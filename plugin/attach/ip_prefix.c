/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/ip_prefix.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

size_t ip_prefix_size(const struct ip_prefix *prefix)
{
    return prefix->family == AF_INET ? 4 : 16;
}

bool ip_address_parse(const char *text, struct ip_prefix *ret_address)
{
    struct ip_prefix address = {.family = strchr(text, ':') ? AF_INET6 : AF_INET};
    struct in6_addr six;
    if (inet_pton(address.family, text, address.bytes) != 1)
        return false;
    memcpy(&six, address.bytes, sizeof six);
    if (address.family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six))
        return false;
    address.bits = (uint8_t)(ip_prefix_size(&address) * 8);
    *ret_address = address;
    return true;
}

bool ip_prefix_parse(const char *text, struct ip_prefix *ret_prefix)
{
    char host[INET6_ADDRSTRLEN];
    struct ip_prefix prefix;
    const char *slash = strchr(text, '/');
    if (!slash || (size_t)(slash - text) >= sizeof host)
        return false;
    memcpy(host, text, (size_t)(slash - text));
    host[slash - text] = '\0';
    size_t digits = strspn(slash + 1, "0123456789");
    if (digits == 0 || digits > 3 || slash[1 + digits] || (slash[1] == '0' && digits > 1))
        return false;
    unsigned bits = 0;
    for (const char *p = slash + 1; *p; p++)
        bits = bits * 10 + (unsigned)(*p - '0');
    if (!ip_address_parse(host, &prefix) || bits > prefix.bits)
        return false;
    prefix.bits = (uint8_t)bits;
    *ret_prefix = prefix;
    return true;
}

bool ip_prefix_equal(const struct ip_prefix *a, const struct ip_prefix *b)
{
    return a->family == b->family && a->bits == b->bits &&
           memcmp(a->bytes, b->bytes, ip_prefix_size(a)) == 0;
}

struct ip_prefix ip_prefix_network(const struct ip_prefix *prefix)
{
    struct ip_prefix network = *prefix;
    for (unsigned i = network.bits; i < sizeof network.bytes * 8; i++)
        network.bytes[i / 8] &= (uint8_t) ~(0x80u >> (i % 8));
    return network;
}

const char *ip_address_text(const struct ip_prefix *address, char *out)
{
    if (!inet_ntop(address->family, address->bytes, out, IP_PREFIX_TEXT))
        out[0] = '\0';
    return out;
}

const char *ip_prefix_text(const struct ip_prefix *prefix, char *out)
{
    size_t n = strlen(ip_address_text(prefix, out));
    snprintf(out + n, IP_PREFIX_TEXT - n, "/%u", prefix->bits);
    return out;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool hw_addr_parse(const char *text, struct hw_addr *ret_addr)
{
    struct hw_addr addr = {0};
    size_t length = strlen(text);
    if (length < 14)
        return false;
    char separator = text[2] == ':' || text[2] == '-' ? text[2] : '.';
    size_t group = separator == '.' ? 2 : 1; /* bytes between separators */
    for (const char *p = text; *p; p += 2) {
        if (addr.len > 0 && addr.len % group == 0 && *p++ != separator)
            return false;
        int high = hex_digit(p[0]), low = high < 0 ? -1 : hex_digit(p[1]);
        if (low < 0 || addr.len == sizeof addr.bytes)
            return false;
        addr.bytes[addr.len++] = (uint8_t)(high << 4 | low);
    }
    if (addr.len != 6 && addr.len != 8 && addr.len != 20)
        return false;
    *ret_addr = addr;
    return true;
}

bool hw_addr_equal(const struct hw_addr *a, const struct hw_addr *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

const char *hw_addr_text(const struct hw_addr *addr, char *out)
{
    out[0] = '\0';
    for (size_t i = 0; i < addr->len; i++)
        snprintf(out + 3 * i - (i > 0), 4, "%s%02x", i > 0 ? ":" : "", addr->bytes[i]);
    return out;
}
