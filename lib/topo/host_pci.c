/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/topo/host_private.h"

#define BUS "sys/bus/pci/devices"

/* Classes are 24 bits: base, sub, interface (PCI Code and ID Assignment Specification). */
static bool is_display(uint32_t class_code)
{
    return class_code >> 16 == 0x03;
}

static bool is_accelerator(uint32_t class_code)
{
    return class_code >> 8 == 0x1200;
}

static bool matters(uint32_t class_code)
{
    return is_display(class_code) || is_accelerator(class_code) || class_code >> 16 == 0x02 ||
           class_code >> 8 == 0x0680; /* NVSwitch */
}

static void read_link(int dir, struct topo_pci *pci)
{
    char text[64];
    if (attr_read(dir, "current_link_speed", text, sizeof text) > 0)
        pci->speed_mts = pci_speed_parse(text);
    if (attr_read(dir, "max_link_speed", text, sizeof text) > 0)
        pci->max_speed_mts = pci_speed_parse(text);
    attr_number(dir, "current_link_width", &pci->width);
    attr_number(dir, "max_link_width", &pci->max_width);
    if (pci->max_width > 64) /* 255 is what a function without a link shows */
        pci->max_width = 0;
    if (pci->width > 64)
        pci->width = 0;
}

bool topo_pci_is_narrow(const struct topo_pci *pci, bool gpu)
{
    return (pci->width && pci->width < pci->max_width) ||
           (!gpu && pci->speed_mts && pci->speed_mts < pci->max_speed_mts);
}

static void read_attributes(int dir, struct topo_pci *pci)
{
    uint32_t numa;
    attr_number(dir, "class", &pci->class_code);
    attr_number(dir, "vendor", &pci->vendor);
    attr_number(dir, "device", &pci->device);
    attr_number(dir, "subsystem_vendor", &pci->subsystem_vendor);
    attr_number(dir, "subsystem_device", &pci->subsystem_device);
    pci->place.numa = attr_number(dir, "numa_node", &numa) && numa < 4096 ? (int32_t)numa : -1;
    read_link(dir, pci);
}

/* A function that is not there yet; its place is taken over. */
static int add_place_take(struct facts_reader *r, struct pci_place *place, const char *path,
                          size_t *ret)
{
    struct topo_host *host = r->host;
    struct topo_pci *pci = facts_grow(r, &host->pci, &host->pci_count, sizeof *pci);
    if (!pci) {
        pci_place_done(place);
        return -ENOMEM;
    }
    pci->place = *place;
    *ret = host->pci_count - 1;
    if (r->below && r->devices_alone)
        return 0;
    cleanup_close int dir = root_open(r->root, path, O_PATH | O_DIRECTORY, NULL);
    if (dir >= 0)
        read_attributes(dir, pci);
    return 0;
}

/* The path up to and with the component that names the place's function. */
static void cut_at_function(const struct pci_place *place, const char *path, struct buf *out)
{
    char name[PCI_ADDR_TEXT];
    pci_addr_format(place->addr, name);
    const char *end = NULL;
    for (const char *p = strstr(path, name); p; p = strstr(p + 1, name))
        end = p + strlen(name);
    buf_reset(out);
    buf_add(out, path, end ? (size_t)(end - path) : strlen(path));
}

/* The bridge just above what path ends in, and those above it. */
static int add_bridges(struct facts_reader *r, struct buf *path)
{
    const char *slash = path->data ? strrchr(path->data, '/') : NULL;
    size_t index;
    if (!slash)
        return 0;
    path->len = (size_t)(slash - path->data);
    path->data[path->len] = '\0';
    r->below++;
    int rc = facts_add_pci(r, path->data, &index);
    r->below--;
    return rc;
}

int facts_add_pci(struct facts_reader *r, const char *path, size_t *ret_index)
{
    struct pci_place place;
    struct drarun_error own = {0};
    *ret_index = TOPO_NONE;
    int rc = pci_place_from_path(path, &place, &own);
    if (rc < 0)
        return rc == -ENOMEM ? facts_nomem(r) : 0;
    *ret_index = host_find_pci(r->host, place.addr);
    if (*ret_index != TOPO_NONE || r->host->pci_count >= TOPO_ENTRIES_MAX) {
        pci_place_done(&place);
        return 0;
    }
    struct buf own_path = BUF_INIT;
    cut_at_function(&place, path, &own_path);
    bool more = place.bridge_count > 0;
    rc = own_path.failed ? facts_nomem(r) : 0;
    if (rc < 0)
        pci_place_done(&place);
    else
        rc = add_place_take(r, &place, own_path.data, ret_index);
    if (rc == 0 && more)
        rc = add_bridges(r, &own_path);
    buf_done(&own_path);
    return rc;
}

/* A sub-function is a device of its own below its PCI function, "mlx5_core.sf.4" (the kernel's
 * Documentation/networking/devlink/devlink-port.rst). */
static void read_subfunction(const char *path, char ret_name[TOPO_NAME_MAX])
{
    bool below = false;
    ret_name[0] = '\0';
    while (*path) {
        char name[TOPO_NAME_MAX];
        struct pci_addr addr;
        size_t len = strcspn(path, "/");
        snprintf(name, sizeof name, "%.*s", (int)len, path);
        if (below && strstr(name, ".sf."))
            memcpy(ret_name, name, sizeof name);
        below = pci_addr_parse(name, &addr, NULL) == 0;
        path += len + (path[len] == '/');
    }
}

int facts_device_pci(struct facts_reader *r, const char *path, size_t *ret_index,
                     char ret_subfunction[TOPO_NAME_MAX])
{
    char link[512];
    struct buf real = BUF_INIT;
    struct drarun_error own = {0};
    snprintf(link, sizeof link, "%s/device", path);
    int rc = root_resolve(r->root, link, &real, &own);
    if (rc == -ELOOP || rc == -ENAMETOOLONG)
        facts_warn(r, "%s", own.text);
    if (rc < 0 && rc != -ENOMEM)
        rc = root_resolve(r->root, path, &real, &own);
    *ret_index = TOPO_NONE;
    ret_subfunction[0] = '\0';
    if (rc == 0) {
        read_subfunction(real.data, ret_subfunction);
        rc = facts_add_pci(r, real.data, ret_index);
    } else
        rc = rc == -ENOMEM ? facts_nomem(r) : 0;
    buf_done(&real);
    return rc;
}

static uint32_t class_of(struct facts_reader *r, const char *path)
{
    uint32_t class_code = 0;
    cleanup_close int dir = root_open(r->root, path, O_PATH | O_DIRECTORY, NULL);
    if (dir < 0 || !attr_number(dir, "class", &class_code))
        facts_warn(r, "%s: its class cannot be read", path);
    return class_code;
}

static int read_function(struct facts_reader *r, const char *name)
{
    struct pci_addr addr;
    struct drarun_error own = {0};
    if (pci_addr_parse(name, &addr, &own) < 0) {
        facts_warn(r, BUS ": %s", own.text);
        return 0;
    }
    char link[sizeof BUS + PCI_ADDR_TEXT];
    struct buf path = BUF_INIT;
    size_t index;
    snprintf(link, sizeof link, BUS "/%.*s", PCI_ADDR_TEXT - 1, name);
    int rc = root_resolve(r->root, link, &path, &own);
    if (rc < 0 && rc != -ENOMEM)
        facts_warn(r, "%s", own.text);
    if (rc == 0 && matters(class_of(r, path.data)))
        rc = facts_add_pci(r, path.data, &index);
    else if (rc != -ENOMEM)
        rc = 0;
    buf_done(&path);
    return rc == -ENOMEM ? facts_nomem(r) : rc;
}

int read_pci(struct facts_reader *r)
{
    struct strlist names = STRLIST_INIT;
    int rc = facts_list(r, BUS, &names);
    for (size_t i = 0; rc == 0 && i < names.count; i++)
        rc = read_function(r, names.items[i]);
    strlist_done(&names);
    return rc;
}
