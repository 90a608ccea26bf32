/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/topo/rdma_text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

uint32_t rdma_rate_parse(const char *text)
{
    uint32_t mbps = 0, unit = 1000;
    const char *p = text;
    int digits = 0;
    for (; digits < 6 && isdigit((unsigned char)*p); p++, digits++)
        mbps = mbps * 10 + (uint32_t)(*p - '0');
    if (digits == 0 || mbps > 4000000)
        return 0;
    mbps *= 1000;
    if (*p == '.')
        for (p++; isdigit((unsigned char)*p); p++) {
            unit /= 10;
            mbps += unit * (uint32_t)(*p - '0');
        }
    return strncmp(p, " Gb/sec", 7) == 0 ? mbps : 0;
}

bool rdma_lanes_parse(const char *text, uint32_t *ret_lanes, char *ret_speed, size_t size)
{
    const char *p = strchr(text, '(');
    uint32_t lanes = 0;
    int digits = 0;
    for (p = p ? p + 1 : ""; digits < 3 && isdigit((unsigned char)*p); p++, digits++)
        lanes = lanes * 10 + (uint32_t)(*p - '0');
    if (lanes == 0 || strncmp(p, "X ", 2) != 0)
        return false;
    size_t len = strspn(p + 2, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    if (len == 0 || len >= size || strcmp(p + 2 + len, ")") != 0)
        return false;
    snprintf(ret_speed, size, "%.*s", (int)len, p + 2);
    *ret_lanes = lanes;
    return true;
}

/* One group of four digits at p, as two bytes. */
static bool parse_group(const char *p, uint8_t *bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int c = tolower((unsigned char)p[i]);
        if (!isxdigit(c))
            return false;
        value = value * 16 + (uint32_t)(isdigit(c) ? c - '0' : c - 'a' + 10);
    }
    bytes[0] = (uint8_t)(value >> 8);
    bytes[1] = (uint8_t)value;
    return true;
}

bool gid_parse(const char *text, uint8_t ret_bytes[16])
{
    uint8_t bytes[16];
    if (strlen(text) != 39)
        return false;
    for (int i = 0; i < 8; i++)
        if (!parse_group(text + (ptrdiff_t)5 * i, bytes + (ptrdiff_t)2 * i) ||
            (i < 7 && text[5 * i + 4] != ':'))
            return false;
    memcpy(ret_bytes, bytes, sizeof bytes);
    return true;
}

bool gid_is_zero(const uint8_t bytes[16])
{
    static const uint8_t zero[16];
    return memcmp(bytes, zero, sizeof zero) == 0;
}

void gid_format(const uint8_t bytes[16], char text[48])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    bool v4 = memcmp(bytes, mapped, sizeof mapped) == 0;
    if (!inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? bytes + 12 : bytes, text, 48))
        text[0] = '\0';
}

enum topo_gid_type gid_type_parse(const char *text, enum topo_link link)
{
    if (strcmp(text, "RoCE v2") == 0)
        return TOPO_GID_ROCE2;
    if (strcmp(text, "IB/RoCE v1") != 0)
        return TOPO_GID_UNKNOWN;
    return link == TOPO_LINK_ETHERNET ? TOPO_GID_ROCE1 : TOPO_GID_IB;
}

enum topo_gid_type gid_type_find(const char *name)
{
    for (enum topo_gid_type type = TOPO_GID_IB; name && type <= TOPO_GID_ROCE2; type++)
        if (strcmp(topo_gid_type_name(type), name) == 0)
            return type;
    return TOPO_GID_UNKNOWN;
}

enum topo_tri rdma_state_parse(const char *text, char *ret_state, size_t size)
{
    const char *p = text + strspn(text, "0123456789");
    if (p == text || strncmp(p, ": ", 2) != 0)
        return TOPO_UNKNOWN;
    size_t len = strspn(p + 2, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    if (len == 0)
        return TOPO_UNKNOWN;
    snprintf(ret_state, size, "%.*s", (int)len, p + 2);
    return strcmp(ret_state, "ACTIVE") == 0 ? TOPO_YES : TOPO_NO;
}

void rdma_phys_state_parse(const char *text, char *ret_state, size_t size)
{
    const char *p = text + strspn(text, "0123456789");
    bool numbered = p != text && strncmp(p, ": ", 2) == 0;
    size_t len =
        numbered ? strspn(p + 2, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz ") : 0;
    snprintf(ret_state, size, "%.*s", (int)len, numbered ? p + 2 : "");
}

enum topo_link rdma_link_parse(const char *text)
{
    if (strcmp(text, "InfiniBand") == 0)
        return TOPO_LINK_IB;
    if (strcmp(text, "Ethernet") == 0)
        return TOPO_LINK_ETHERNET;
    return text[0] == '\0' ? TOPO_LINK_UNKNOWN : TOPO_LINK_OTHER;
}
