/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/topo/pci.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"

/* ---- text ---- */

/* From min to max hexadecimal digits at *p. */
static bool parse_hex(const char **p, int min, int max, uint32_t *ret_value)
{
    uint32_t value = 0;
    int count = 0;
    for (; count < max && isxdigit((unsigned char)**p); (*p)++, count++) {
        int c = tolower((unsigned char)**p);
        value = value * 16 + (uint32_t)(isdigit(c) ? c - '0' : c - 'a' + 10);
    }
    *ret_value = value;
    return count >= min;
}

static bool skip(const char **p, char c)
{
    bool there = **p == c;
    *p += there;
    return there;
}

/* "8f:00.0" at p, to its end. */
static bool parse_bdf(const char *p, struct pci_addr *addr)
{
    uint32_t bus, device, function;
    if (!parse_hex(&p, 2, 2, &bus) || !skip(&p, ':') || !parse_hex(&p, 2, 2, &device) ||
        !skip(&p, '.') || !parse_hex(&p, 1, 1, &function) || *p != '\0')
        return false;
    if (device > 0x1f || function > 7)
        return false;
    addr->bus = (uint8_t)bus;
    addr->device = (uint8_t)device;
    addr->function = (uint8_t)function;
    return true;
}

static bool parse_addr(const char *text, struct pci_addr *ret_addr)
{
    struct pci_addr addr = {0};
    const char *p = text;
    if (!parse_bdf(text, &addr) &&
        (!parse_hex(&p, 4, 8, &addr.domain) || !skip(&p, ':') || !parse_bdf(p, &addr)))
        return false;
    *ret_addr = addr;
    return true;
}

int pci_addr_parse(const char *text, struct pci_addr *ret_addr, struct drarun_error *err)
{
    return parse_addr(text, ret_addr)
               ? 0
               : error_set(err, EINVAL, "PCI address \"%.64s\": expected one such as 0000:8f:00.0",
                           text);
}

void pci_addr_format(struct pci_addr addr, char text[PCI_ADDR_TEXT])
{
    snprintf(text, PCI_ADDR_TEXT, "%04x:%02x:%02x.%x", addr.domain, addr.bus, addr.device,
             addr.function);
}

int pci_addr_compare(struct pci_addr a, struct pci_addr b)
{
    uint32_t x = (uint32_t)a.bus << 16 | (uint32_t)a.device << 8 | a.function;
    uint32_t y = (uint32_t)b.bus << 16 | (uint32_t)b.device << 8 | b.function;
    if (a.domain != b.domain)
        return a.domain < b.domain ? -1 : 1;
    return x < y ? -1 : x > y;
}

bool pci_root_valid(const char *text)
{
    uint32_t domain, bus;
    const char *p = text + 3;
    return strncmp(text, "pci", 3) == 0 && parse_hex(&p, 4, 8, &domain) && skip(&p, ':') &&
           parse_hex(&p, 2, 2, &bus) && *p == '\0';
}

uint32_t pci_speed_parse(const char *text)
{
    uint32_t whole = 0, tenth = 0;
    const char *p = text;
    int digits = 0;
    for (; digits < 4 && isdigit((unsigned char)*p); p++, digits++)
        whole = whole * 10 + (uint32_t)(*p - '0');
    if (digits > 0 && p[0] == '.' && isdigit((unsigned char)p[1])) {
        tenth = (uint32_t)(p[1] - '0');
        p += 2;
    }
    return digits > 0 && strncmp(p, " GT/s", 5) == 0 ? whole * 1000 + tenth * 100 : 0;
}

/* ---- places ---- */

static int add_bridge(struct pci_place *place, struct pci_addr addr)
{
    struct pci_addr *more = realloc(place->bridges, (place->bridge_count + 1) * sizeof *more);
    if (!more)
        return -ENOMEM;
    memmove(more + 1, more, place->bridge_count * sizeof *more);
    more[0] = addr;
    place->bridges = more;
    place->bridge_count++;
    return 0;
}

/* One component of the path, from the root down: a function becomes the place's own, and the one
 * before it a bridge. */
static int take_component(struct pci_place *place, const char *name, bool *found)
{
    struct pci_addr addr;
    if (pci_root_valid(name)) {
        pci_place_done(place);
        snprintf(place->root, sizeof place->root, "%s", name);
        *found = false;
        return 0;
    }
    if (place->root[0] == '\0' || !parse_addr(name, &addr))
        return 0;
    if (*found && place->bridge_count == PCI_BRIDGES_MAX)
        return -ENOENT;
    int rc = *found ? add_bridge(place, place->addr) : 0;
    place->addr = addr;
    *found = true;
    return rc;
}

int pci_place_from_path(const char *path, struct pci_place *ret_place, struct drarun_error *err)
{
    struct pci_place place = {.numa = -1};
    bool found = false;
    int rc = 0;
    for (const char *p = path; rc == 0 && *p != '\0';) {
        char name[PCI_ADDR_TEXT];
        size_t len = strcspn(p, "/");
        if (len < sizeof name) {
            memcpy(name, p, len);
            name[len] = '\0';
            rc = take_component(&place, name, &found);
        }
        p += len + (p[len] == '/');
    }
    if (rc == 0 && found) {
        place.chain_known = true;
        *ret_place = place;
        return 0;
    }
    pci_place_done(&place);
    return rc == -ENOMEM ? error_set(err, ENOMEM, "PCI place: out of memory")
                         : error_set(err, ENOENT, "%.200s: no PCI function in it", path);
}

void pci_place_done(struct pci_place *place)
{
    free(place->bridges);
    *place = (struct pci_place){.numa = -1};
}

/* ---- distance ---- */

/* The nearest bridge above both, as its index in each chain. */
static bool common_bridge(const struct pci_place *a, const struct pci_place *b, size_t *ret_a,
                          size_t *ret_b)
{
    for (size_t i = 0; i < a->bridge_count; i++)
        for (size_t j = 0; j < b->bridge_count; j++)
            if (pci_addr_compare(a->bridges[i], b->bridges[j]) == 0) {
                *ret_a = i;
                *ret_b = j;
                return true;
            }
    return false;
}

static enum topo_path path_by_node(const struct pci_place *a, const struct pci_place *b,
                                   size_t numa_nodes)
{
    if (numa_nodes == 1)
        return TOPO_PATH_NODE;
    if (a->numa < 0 || b->numa < 0)
        return TOPO_PATH_UNKNOWN;
    return a->numa == b->numa ? TOPO_PATH_NODE : TOPO_PATH_SYS;
}

enum topo_path pci_path(const struct pci_place *a, const struct pci_place *b, bool c2c,
                        size_t numa_nodes)
{
    size_t i, j;
    if (a == b || (!a->addr_unknown && !b->addr_unknown && pci_addr_compare(a->addr, b->addr) == 0))
        return TOPO_PATH_SELF;
    /* below one switch lie its upstream port, which is the common bridge, and a downstream port on
     * each side; functions of one card share even that */
    if (common_bridge(a, b, &i, &j))
        return i <= 1 && j <= 1 ? TOPO_PATH_PIX : TOPO_PATH_PXB;
    enum topo_path node = path_by_node(a, b, numa_nodes);
    if (c2c && node == TOPO_PATH_NODE)
        return TOPO_PATH_P2C;
    if (a->root[0] != '\0' && strcmp(a->root, b->root) == 0)
        return a->chain_known && b->chain_known ? TOPO_PATH_PHB : TOPO_PATH_ROOT;
    return node;
}

const char *topo_path_name(enum topo_path path)
{
    static const char *const names[TOPO_PATH_COUNT] = {
        [TOPO_PATH_UNKNOWN] = "?", [TOPO_PATH_SELF] = "X",    [TOPO_PATH_PIX] = "PIX",
        [TOPO_PATH_PXB] = "PXB",   [TOPO_PATH_P2C] = "P2C",   [TOPO_PATH_ROOT] = "ROOT",
        [TOPO_PATH_PHB] = "PHB",   [TOPO_PATH_NODE] = "NODE", [TOPO_PATH_SYS] = "SYS",
    };
    return names[(size_t)path < TOPO_PATH_COUNT ? (size_t)path : 0];
}
