/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/inventory/device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jobs/derive/inventory/device_role.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

/* ---- attributes, by name and domain ---- */

/* Names over the drivers' history (docs/design/011-derivation.md). */
enum attribute_name {
    ATTRIBUTE_PCI_BUS_ID,
    ATTRIBUTE_PCIE_BUS_ID,
    ATTRIBUTE_PCI_ADDRESS,
    ATTRIBUTE_PCI_ADDR,           /* AMD */
    ATTRIBUTE_PCI_ADDRESS_DOMAIN, /* dranet up to 0.5 wrote the address in four parts */
    ATTRIBUTE_PCI_ADDRESS_BUS,
    ATTRIBUTE_PCI_ADDRESS_DEVICE,
    ATTRIBUTE_PCI_ADDRESS_FUNCTION,
    ATTRIBUTE_PCIE_ROOT,
    ATTRIBUTE_NUMA_NODE,
    ATTRIBUTE_INDEX,
    ATTRIBUTE_MINOR,
    ATTRIBUTE_TYPE,
    ATTRIBUTE_UUID,
    ATTRIBUTE_PARENT_UUID,
    ATTRIBUTE_PRODUCT_NAME,
    ATTRIBUTE_ADDRESSING_MODE,
    ATTRIBUTE_RDMA,
    ATTRIBUTE_RDMA_CAPABLE,
    ATTRIBUTE_RDMA_DEVICE,
    ATTRIBUTE_IF_NAME,
    ATTRIBUTE_INTERFACE_NAME,
    ATTRIBUTE_MAC,
    ATTRIBUTE_ENCAPSULATION,
    ATTRIBUTE_PORT,
    ATTRIBUTE_RAIL,
    ATTRIBUTE_COUNT,
};

/* Of one name, in this order. */
enum attribute_domain {
    DOMAIN_STANDARD, /* resource.kubernetes.io */
    DOMAIN_DRARUN,
    DOMAIN_NVIDIA,
    DOMAIN_DRANET,
    DOMAIN_DRIVER, /* the driver's own, which it may also leave out; may be one of the others */
    DOMAIN_COUNT,
};

/* Found in one pass over what the driver published: reading a cluster's devices is what planning a
 * large job costs. */
struct attributes {
    const struct slice_device *slice;
    const json_t *values[ATTRIBUTE_COUNT][DOMAIN_COUNT]; /* borrowed; NULL: absent */
};

struct word {
    const char *text;
    size_t length;
};

#define WORD(text)                                                                                 \
    {                                                                                              \
        text, sizeof text - 1                                                                      \
    }

static const struct word names[ATTRIBUTE_COUNT] = {
    [ATTRIBUTE_PCI_BUS_ID] = WORD("pciBusID"),
    [ATTRIBUTE_PCIE_BUS_ID] = WORD("pcieBusID"),
    [ATTRIBUTE_PCI_ADDRESS] = WORD("pciAddress"),
    [ATTRIBUTE_PCI_ADDR] = WORD("pciAddr"),
    [ATTRIBUTE_PCI_ADDRESS_DOMAIN] = WORD("pciAddressDomain"),
    [ATTRIBUTE_PCI_ADDRESS_BUS] = WORD("pciAddressBus"),
    [ATTRIBUTE_PCI_ADDRESS_DEVICE] = WORD("pciAddressDevice"),
    [ATTRIBUTE_PCI_ADDRESS_FUNCTION] = WORD("pciAddressFunction"),
    [ATTRIBUTE_PCIE_ROOT] = WORD("pcieRoot"),
    [ATTRIBUTE_NUMA_NODE] = WORD("numaNode"),
    [ATTRIBUTE_INDEX] = WORD("index"),
    [ATTRIBUTE_MINOR] = WORD("minor"),
    [ATTRIBUTE_TYPE] = WORD("type"),
    [ATTRIBUTE_UUID] = WORD("uuid"),
    [ATTRIBUTE_PARENT_UUID] = WORD("parentUUID"),
    [ATTRIBUTE_PRODUCT_NAME] = WORD("productName"),
    [ATTRIBUTE_ADDRESSING_MODE] = WORD("addressingMode"),
    [ATTRIBUTE_RDMA] = WORD("rdma"),
    [ATTRIBUTE_RDMA_CAPABLE] = WORD("rdmaCapable"),
    [ATTRIBUTE_RDMA_DEVICE] = WORD("rdmaDevice"),
    [ATTRIBUTE_IF_NAME] = WORD("ifName"),
    [ATTRIBUTE_INTERFACE_NAME] = WORD("interfaceName"),
    [ATTRIBUTE_MAC] = WORD("mac"),
    [ATTRIBUTE_ENCAPSULATION] = WORD("encapsulation"),
    [ATTRIBUTE_PORT] = WORD("port"),
    [ATTRIBUTE_RAIL] = WORD("rail"),
};

static const struct word domains[DOMAIN_DRIVER] = {
    [DOMAIN_STANDARD] = WORD("resource.kubernetes.io"),
    [DOMAIN_DRARUN] = WORD("drarun.dev"),
    [DOMAIN_NVIDIA] = WORD("gpu.nvidia.com"),
    [DOMAIN_DRANET] = WORD("dra.net"),
};

/* Returns the index of the word, or count if it is not among the words. */
static size_t find(const struct word *words, size_t count, const char *text, size_t length)
{
    size_t i = 0;
    while (i < count && (words[i].length != length || memcmp(words[i].text, text, length) != 0))
        i++;
    return i;
}

static void place(struct attributes *attributes, struct word driver, const char *key,
                  const json_t *value)
{
    const char *slash = strchr(key, '/');
    const char *text = slash ? slash + 1 : key;
    struct word domain = slash ? (struct word){key, (size_t)(slash - key)} : driver;
    size_t name = find(names, ARRAY_LEN(names), text, strlen(text));
    if (name == ATTRIBUTE_COUNT)
        return;
    const json_t **values = attributes->values[name];
    size_t d = find(domains, ARRAY_LEN(domains), domain.text, domain.length);
    /* "driver/name" is meant where a driver writes "name" as well */
    if (d < DOMAIN_DRIVER && (slash || !values[d]))
        values[d] = value;
    if (find(&driver, 1, domain.text, domain.length) == 0 && (slash || !values[DOMAIN_DRIVER]))
        values[DOMAIN_DRIVER] = value;
}

/* Attributes that we have no use for are left out. */
static void read_attributes(const struct slice_device *slice, struct attributes *ret_attributes)
{
    struct word driver = {slice->driver, strlen(slice->driver)};
    const char *key;
    const json_t *value;
    *ret_attributes = (struct attributes){.slice = slice};
    value_foreach(slice->attributes, key, value) place(ret_attributes, driver, key, value);
}

/* The value's text; NULL when it is absent, empty or something else. */
static const char *attribute_text(const struct attributes *attributes, enum attribute_name name,
                                  enum attribute_domain domain)
{
    const json_t *value = attributes->values[name][domain];
    const char *text = value ? value_text(value, "string") : NULL;
    return text && text[0] ? text : NULL;
}

/* ---- values, which may have several names and domains ---- */

/* The first of any domain; NULL. */
static const char *any_text(const struct attributes *a, enum attribute_name name)
{
    const char *text = NULL;
    for (size_t d = 0; d < DOMAIN_COUNT && !text; d++)
        text = attribute_text(a, name, d);
    return text;
}

static bool any_value(const struct attributes *a, enum attribute_name name)
{
    for (size_t d = 0; d < DOMAIN_COUNT; d++)
        if (a->values[name][d])
            return true;
    return false;
}

static bool flag_of(const struct attributes *a, enum attribute_name name)
{
    for (size_t d = 0; d < DOMAIN_COUNT; d++)
        if (a->values[name][d] && json_is_true(json_object_get(a->values[name][d], "bool")))
            return true;
    return false;
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

/* NULL, or the first of the names; -EINVAL when two keys disagree. */
static int text_of(const struct attributes *a, const enum attribute_name list[], size_t count,
                   const char **ret_text, struct drarun_error *err)
{
    const char *found = NULL, *found_name = NULL;
    for (size_t n = 0; n < count; n++)
        for (size_t d = 0; d < DOMAIN_COUNT; d++) {
            const char *text = attribute_text(a, list[n], d);
            if (!text)
                continue;
            if (found && strcasecmp(found, text) != 0)
                return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                                  "device %s of %s: %s is %.80s but %s is %.80s", a->slice->name,
                                  a->slice->driver, found_name, found, names[list[n]].text, text);
            if (!found) {
                found = text;
                found_name = names[list[n]].text;
            }
        }
    *ret_text = found;
    return 0;
}

/* What our own driver says; another's number of that name may be of anything. */
static bool own_number(const struct attributes *a, enum attribute_name name, uint32_t *ret_number)
{
    int64_t number = 0;
    const json_t *value = a->values[name][DOMAIN_DRARUN];
    if (!value || !int_of(value, &number) || number < 0 || number > UINT16_MAX)
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

static int number_of(const struct attributes *a, enum attribute_name name, int64_t max,
                     int32_t *ret_number, struct drarun_error *err)
{
    bool known = false;
    int64_t found = -1;
    for (size_t d = 0; d < DOMAIN_COUNT; d++) {
        int64_t number = 0;
        if (!a->values[name][d] || !int_of(a->values[name][d], &number))
            continue;
        if (known && number != found)
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                              "device %s of %s: %s is %lld in one domain and %lld in another",
                              a->slice->name, a->slice->driver, names[name].text, (long long)found,
                              (long long)number);
        if (number < -1 || number > max)
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                              "device %s of %s: %s: expected 0 to %lld, got %lld", a->slice->name,
                              a->slice->driver, names[name].text, (long long)max,
                              (long long)number);
        known = true;
        found = number;
    }
    *ret_number = (int32_t)found;
    return 0;
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
static uint64_t pci_of_parts(const struct attributes *a)
{
    const char *parts[4];
    char text[64];
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        parts[i] = attribute_text(a, ATTRIBUTE_PCI_ADDRESS_DOMAIN + i, DOMAIN_DRANET);
        if (!parts[i])
            return PCI_NONE;
    }
    snprintf(text, sizeof text, "%.8s:%.2s:%.2s.%.1s", parts[0], parts[1], parts[2], parts[3]);
    return pci_parse(text);
}

static int read_pci(const struct attributes *a, uint64_t *ret_pci, struct drarun_error *err)
{
    static const enum attribute_name list[] = {ATTRIBUTE_PCI_BUS_ID, ATTRIBUTE_PCIE_BUS_ID,
                                               ATTRIBUTE_PCI_ADDRESS, ATTRIBUTE_PCI_ADDR};
    const char *text = NULL;
    int rc = text_of(a, list, ARRAY_LEN(list), &text, err);
    if (rc < 0)
        return rc;
    uint64_t parts = pci_of_parts(a);
    *ret_pci = text ? pci_parse(text) : parts;
    if (text && *ret_pci == PCI_NONE)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "device %s of %s: \"%.40s\" is no PCI address (expected 0000:8f:00.0)",
                          a->slice->name, a->slice->driver, text);
    if (text && parts != PCI_NONE && parts != *ret_pci)
        return error_kind(
            err, DRARUN_ERR_SPEC, EINVAL,
            "device %s of %s: pciAddress %.40s contradicts pciAddressBus and the like",
            a->slice->name, a->slice->driver, text);
    return 0;
}

/* ---- the device ---- */

/* By what it publishes: a NIC is what has an attribute that only NICs have; then by its type, whose
 * words are each driver's own; then by the driver's name. */
static enum device_kind kind_of(const struct attributes *a)
{
    static const enum attribute_name of_nics[] = {ATTRIBUTE_RDMA,    ATTRIBUTE_RDMA_DEVICE,
                                                  ATTRIBUTE_IF_NAME, ATTRIBUTE_RDMA_CAPABLE,
                                                  ATTRIBUTE_MAC,     ATTRIBUTE_INTERFACE_NAME};
    const char *type = attribute_text(a, ATTRIBUTE_TYPE, DOMAIN_DRIVER);
    if (!type)
        type = attribute_text(a, ATTRIBUTE_TYPE, DOMAIN_NVIDIA);
    for (size_t i = 0; i < ARRAY_LEN(of_nics); i++)
        if (any_value(a, of_nics[i]))
            return DEVICE_NIC;
    if (type && strcmp(type, "mig") == 0)
        return DEVICE_MIG;
    if (type && strcmp(type, "channel") == 0)
        return DEVICE_CHANNEL;
    if (type && device_role(type) != DEVICE_OTHER) /* "gpu", "amdgpu", "amdgpu-partition" */
        return device_role(type);
    /* a GPU that the driver gives to virtual machines, a compute domain's daemon */
    if (type && (strcmp(type, "vfio") == 0 || strcmp(type, "daemon") == 0))
        return DEVICE_OTHER;
    if (attribute_text(a, ATTRIBUTE_UUID, DOMAIN_DRIVER) && !type)
        return DEVICE_GPU;
    enum device_kind kind = device_role(a->slice->driver);
    return kind == DEVICE_CHANNEL ? DEVICE_OTHER : kind;
}

static void read_nic(const struct attributes *a, struct device *device)
{
    const char *encapsulation = any_text(a, ATTRIBUTE_ENCAPSULATION);
    device->ibdev = any_text(a, ATTRIBUTE_RDMA_DEVICE);
    device->ifname = any_text(a, ATTRIBUTE_IF_NAME);
    if (!device->ifname)
        device->ifname = any_text(a, ATTRIBUTE_INTERFACE_NAME);
    device->rdma =
        flag_of(a, ATTRIBUTE_RDMA) || flag_of(a, ATTRIBUTE_RDMA_CAPABLE) || device->ibdev;
    device->encap_ib = encapsulation && strcmp(encapsulation, "infiniband") == 0;
    own_number(a, ATTRIBUTE_PORT, &device->port);
    device->has_rail = own_number(a, ATTRIBUTE_RAIL, &device->rail);
}

int device_read(const struct slice_device *slice, struct device *ret_device,
                struct drarun_error *err)
{
    static const enum attribute_name root[] = {ATTRIBUTE_PCIE_ROOT};
    struct attributes a;
    read_attributes(slice, &a);
    struct device device = {.slice = slice, .name = slice->name, .kind = kind_of(&a)};
    int rc = read_pci(&a, &device.pci, err);
    if (rc == 0)
        rc = text_of(&a, root, 1, &device.root, err);
    if (rc == 0)
        rc = number_of(&a, ATTRIBUTE_NUMA_NODE, 1023, &device.numa, err);
    if (rc == 0)
        rc = number_of(&a, ATTRIBUTE_INDEX, 1023, &device.index, err);
    if (rc == 0 && device.index < 0)
        rc = number_of(&a, ATTRIBUTE_MINOR, 1023, &device.index, err);
    if (rc < 0)
        return rc;
    const char *mode = any_text(&a, ATTRIBUTE_ADDRESSING_MODE);
    device.ats = mode && strcmp(mode, "ATS") == 0;
    device.uuid = any_text(&a, ATTRIBUTE_UUID);
    device.parent = any_text(&a, ATTRIBUTE_PARENT_UUID);
    device.product = any_text(&a, ATTRIBUTE_PRODUCT_NAME);
    if (device.kind == DEVICE_NIC)
        read_nic(&a, &device);
    if (device.kind == DEVICE_GPU || device.kind == DEVICE_MIG)
        device.vendor = device_vendor(slice->driver);
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
    device->vendor = either(device->vendor, other->vendor);
    device->ibdev = either(device->ibdev, other->ibdev);
    device->ifname = either(device->ifname, other->ifname);
    device->pod_name = either(device->pod_name, other->pod_name);
    device->addressed |= other->addressed;
    device->ats |= other->ats;
    device->rdma |= other->rdma;
    device->encap_ib |= other->encap_ib;
    if (device->port == 0)
        device->port = other->port;
    if (!device->has_rail)
        device->rail = other->rail;
    device->has_rail |= other->has_rail;
}
