/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

#define STD "resource.kubernetes.io"

/* ---- attributes ---- */

static const json_t *attribute(const struct slice_device *slice, const char *domain,
                               const char *name)
{
    char key[256];
    size_t length = strlen(domain), rest = strlen(name) + 1;
    if (length + 1 + rest > sizeof key)
        return NULL;
    /* by hand: with snprintf this was a quarter of what planning a large job costs */
    memcpy(key, domain, length);
    key[length] = '/';
    memcpy(key + length + 1, name, rest);
    const json_t *value = json_object_get(slice->attributes, key);
    if (!value && strcmp(domain, slice->driver) == 0)
        value = json_object_get(slice->attributes, name);
    return value;
}

const char *device_text(const struct slice_device *slice, const char *domain, const char *name)
{
    const json_t *value = attribute(slice, domain, name);
    const char *text = value_text(value, "string");
    return text && text[0] ? text : NULL;
}

/* A list type holds several (gate DRAListTypeAttributes): the first stands for all. */
static bool int_of(const json_t *value, int64_t *ret_number)
{
    const json_t *number = json_object_get(value, "int");
    if (!number)
        number = json_array_get(json_object_get(value, "ints"), 0);
    if (!json_is_integer(number))
        return false;
    *ret_number = json_integer_value(number);
    return true;
}

/* The same datum may have several keys over the drivers' history, domains in this order. */
static const char *const domains[] = {STD, "drarun.dev", "gpu.nvidia.com", "dra.net", NULL};

/* NULL, or the first; -EINVAL when two keys disagree. */
static int text_of(const struct slice_device *slice, const char *const names[],
                   const char **ret_text, struct drarun_error *err)
{
    const char *found = NULL, *found_name = NULL;
    for (size_t n = 0; names[n]; n++)
        for (size_t d = 0; d < ARRAY_LEN(domains); d++) {
            const char *domain = domains[d] ? domains[d] : slice->driver;
            const char *text = device_text(slice, domain, names[n]);
            if (!text)
                continue;
            if (found && strcasecmp(found, text) != 0)
                return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                                  "device %s of %s: %s is %.80s but %s is %.80s", slice->name,
                                  slice->driver, found_name, found, names[n], text);
            if (!found) {
                found = text;
                found_name = names[n];
            }
        }
    *ret_text = found;
    return 0;
}

static int number_of(const struct slice_device *slice, const char *name, int64_t max,
                     int32_t *ret_number, struct drarun_error *err)
{
    bool known = false;
    int64_t found = -1;
    for (size_t d = 0; d < ARRAY_LEN(domains); d++) {
        int64_t number = 0;
        if (!int_of(attribute(slice, domains[d] ? domains[d] : slice->driver, name), &number))
            continue;
        if (known && number != found)
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                              "device %s of %s: %s is %lld in one domain and %lld in another",
                              slice->name, slice->driver, name, (long long)found,
                              (long long)number);
        if (number < -1 || number > max)
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                              "device %s of %s: %s: expected 0 to %lld, got %lld", slice->name,
                              slice->driver, name, (long long)max, (long long)number);
        known = true;
        found = number;
    }
    *ret_number = (int32_t)found;
    return 0;
}

static bool flag_of(const struct slice_device *slice, const char *name)
{
    for (size_t d = 0; d < ARRAY_LEN(domains); d++)
        if (json_is_true(json_object_get(
                attribute(slice, domains[d] ? domains[d] : slice->driver, name), "bool")))
            return true;
    return false;
}

/* ---- PCI ---- */

uint64_t pci_parse(const char *text)
{
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    int end = 0;
    if (strlen(text) > 16 || strspn(text, "0123456789abcdefABCDEF:.") != strlen(text))
        return PCI_NONE;
    if (sscanf(text, "%x:%x:%x.%x%n", &domain, &bus, &slot, &function, &end) != 4) {
        domain = 0;
        if (sscanf(text, "%x:%x.%x%n", &bus, &slot, &function, &end) != 3)
            return PCI_NONE;
    }
    if (text[end] != '\0' || bus > 0xff || slot > 0x1f || function > 7)
        return PCI_NONE;
    return (uint64_t)domain << 16 | bus << 8 | slot << 3 | function;
}

void pci_format(uint64_t pci, char *text, size_t size)
{
    snprintf(text, size, "%04llx:%02x:%02x.%x", (unsigned long long)(pci >> 16),
             (unsigned)(pci >> 8) & 0xff, (unsigned)(pci >> 3) & 0x1f, (unsigned)pci & 7);
}

/* dranet up to 0.5 wrote the address in four parts. */
static uint64_t pci_of_parts(const struct slice_device *slice)
{
    static const char *const names[] = {"pciAddressDomain", "pciAddressBus", "pciAddressDevice",
                                        "pciAddressFunction"};
    const char *parts[4];
    char text[64];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        parts[i] = device_text(slice, "dra.net", names[i]);
        if (!parts[i])
            return PCI_NONE;
    }
    snprintf(text, sizeof text, "%.8s:%.2s:%.2s.%.1s", parts[0], parts[1], parts[2], parts[3]);
    return pci_parse(text);
}

static int read_pci(const struct slice_device *slice, uint64_t *ret_pci, struct drarun_error *err)
{
    static const char *const names[] = {"pciBusID", "pcieBusID", "pciAddress", NULL};
    const char *text = NULL;
    int rc = text_of(slice, names, &text, err);
    if (rc < 0)
        return rc;
    uint64_t parts = pci_of_parts(slice);
    *ret_pci = text ? pci_parse(text) : parts;
    if (text && *ret_pci == PCI_NONE)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "device %s of %s: \"%.40s\" is no PCI address (expected 0000:8f:00.0)",
                          slice->name, slice->driver, text);
    if (text && parts != PCI_NONE && parts != *ret_pci)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "device %s of %s: pciAddress %.40s contradicts pciAddressBus and its kin",
                          slice->name, slice->driver, text);
    return 0;
}

/* ---- the device ---- */

/* By what it publishes: a NIC is what has an attribute that only NICs have. */
static enum device_kind kind_of(const struct slice_device *slice)
{
    static const char *const nic_keys[] = {"rdma",        "rdmaDevice", "ifName",
                                           "rdmaCapable", "mac",        "interfaceName"};
    const char *type = device_text(slice, slice->driver, "type");
    if (!type)
        type = device_text(slice, "gpu.nvidia.com", "type");
    for (size_t k = 0; k < ARRAY_LEN(nic_keys); k++)
        for (size_t d = 0; d < ARRAY_LEN(domains); d++)
            if (attribute(slice, domains[d] ? domains[d] : slice->driver, nic_keys[k]))
                return DEVICE_NIC;
    if (!type)
        return device_text(slice, slice->driver, "uuid") ? DEVICE_GPU : DEVICE_OTHER;
    if (strcmp(type, "gpu") == 0)
        return DEVICE_GPU;
    if (strcmp(type, "mig") == 0)
        return DEVICE_MIG;
    return strcmp(type, "channel") == 0 ? DEVICE_CHANNEL : DEVICE_OTHER;
}

static const char *any_text(const struct slice_device *slice, const char *name)
{
    for (size_t d = 0; d < ARRAY_LEN(domains); d++) {
        const char *text = device_text(slice, domains[d] ? domains[d] : slice->driver, name);
        if (text)
            return text;
    }
    return NULL;
}

static void read_nic(const struct slice_device *slice, struct device *device)
{
    const char *encapsulation = any_text(slice, "encapsulation");
    device->ibdev = any_text(slice, "rdmaDevice");
    device->ifname = any_text(slice, "ifName");
    if (!device->ifname)
        device->ifname = any_text(slice, "interfaceName");
    device->rdma = flag_of(slice, "rdma") || flag_of(slice, "rdmaCapable") || device->ibdev;
    device->encap_ib = encapsulation && strcmp(encapsulation, "infiniband") == 0;
}

int device_read(const struct slice_device *slice, struct device *ret_device,
                struct drarun_error *err)
{
    static const char *const root_names[] = {"pcieRoot", NULL};
    struct device device = {.slice = slice, .name = slice->name, .kind = kind_of(slice)};
    int rc = read_pci(slice, &device.pci, err);
    if (rc == 0)
        rc = text_of(slice, root_names, &device.root, err);
    if (rc == 0)
        rc = number_of(slice, "numaNode", 1023, &device.numa, err);
    if (rc == 0)
        rc = number_of(slice, "index", 1023, &device.index, err);
    if (rc == 0 && device.index < 0)
        rc = number_of(slice, "minor", 1023, &device.index, err);
    if (rc < 0)
        return rc;
    const char *mode = any_text(slice, "addressingMode");
    device.ats = mode && strcmp(mode, "ATS") == 0;
    device.uuid = any_text(slice, "uuid");
    device.parent = any_text(slice, "parentUUID");
    device.product = any_text(slice, "productName");
    if (device.kind == DEVICE_NIC)
        read_nic(slice, &device);
    *ret_device = device;
    return 0;
}

static const char *either(const char *first, const char *second)
{
    return first ? first : second;
}

void device_fill(struct device *device, const struct device *other)
{
    if (device->kind == DEVICE_OTHER)
        device->kind = other->kind;
    if (device->pci == PCI_NONE)
        device->pci = other->pci;
    if (device->numa < 0)
        device->numa = other->numa;
    if (device->index < 0)
        device->index = other->index;
    device->root = either(device->root, other->root);
    device->uuid = either(device->uuid, other->uuid);
    device->parent = either(device->parent, other->parent);
    device->product = either(device->product, other->product);
    device->ibdev = either(device->ibdev, other->ibdev);
    device->ifname = either(device->ifname, other->ifname);
    device->pod_name = either(device->pod_name, other->pod_name);
    device->ats |= other->ats;
    device->rdma |= other->rdma;
    device->encap_ib |= other->encap_ib;
}
