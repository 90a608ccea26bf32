/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/inventory/device_attributes.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/doc/value.h"

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
};

static const struct word domains[DOMAIN_DRIVER] = {
    [DOMAIN_STANDARD] = WORD("resource.kubernetes.io"),
    [DOMAIN_DRARUN] = WORD("drarun.dev"),
    [DOMAIN_NVIDIA] = WORD("gpu.nvidia.com"),
    [DOMAIN_DRANET] = WORD("dra.net"),
};

/* The index of a word; count when it is none of them. */
static size_t find(const struct word *words, size_t count, const char *text, size_t length)
{
    size_t i = 0;
    while (i < count && (words[i].length != length || memcmp(words[i].text, text, length) != 0))
        i++;
    return i;
}

static void place(struct device_attributes *attributes, struct word driver, const char *key,
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

void device_attributes_read(const struct slice_device *slice,
                            struct device_attributes *ret_attributes)
{
    struct word driver = {slice->driver, strlen(slice->driver)};
    const char *key;
    const json_t *value;
    *ret_attributes = (struct device_attributes){.slice = slice};
    value_foreach(slice->attributes, key, value) place(ret_attributes, driver, key, value);
}

const char *attribute_name_text(enum attribute_name name)
{
    return names[name].text;
}

const char *attribute_text(const struct device_attributes *attributes, enum attribute_name name,
                           enum attribute_domain domain)
{
    const json_t *value = attributes->values[name][domain];
    const char *text = value ? value_text(value, "string") : NULL;
    return text && text[0] ? text : NULL;
}
