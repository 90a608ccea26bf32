/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/inventory/probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/inventory/device.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"
#include "lib/topo/data_nics.h"
#include "lib/topo/rdma_text.h"

void probe_done(struct probe *probe)
{
    for (size_t i = 0; i < probe->ibdev_count; i++) {
        for (size_t p = 0; p < probe->ibdevs[i].port_count; p++)
            free(probe->ibdevs[i].ports[p].gids);
        free(probe->ibdevs[i].ports);
    }
    free(probe->ibdevs);
    free(probe->pairs);
    strlist_done(&probe->visible);
    *probe = (struct probe){0};
}

DEFINE_CLEANUP(struct probe, probe_done)

enum probe_flag probe_file(const struct probe *probe, const char *path)
{
    if (!probe->present || !probe->files)
        return PROBE_UNKNOWN;
    return json_is_true(json_object_get(probe->files, path)) ? PROBE_YES : PROBE_NO;
}

static int wrong(struct drarun_error *err, const char *path, const char *expected)
{
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "probe: %s: expected %s", path, expected);
}

/* A member of the type, NULL where it is missing or null. */
static int member(const json_t *object, const char *key, json_type type, const char *expected,
                  const json_t **ret_value, struct drarun_error *err)
{
    const json_t *value = json_object_get(object, key);
    *ret_value = NULL;
    if (!value || json_is_null(value))
        return 0;
    if (json_typeof(value) != type)
        return wrong(err, key, expected);
    *ret_value = value;
    return 0;
}

static uint64_t pci_at(const json_t *object, const char *key)
{
    const char *text = value_text(object, key);
    return text ? pci_parse(text) : PCI_NONE;
}

static int32_t small_at(const json_t *object, const char *key, int32_t fallback)
{
    const json_t *value = json_object_get(object, key);
    json_int_t number = json_integer_value(value);
    return json_is_integer(value) && number >= 0 && number <= INT32_MAX ? (int32_t)number
                                                                        : fallback;
}

/* ---- RDMA devices ---- */

static bool read_address(const char *text, uint8_t ret_bytes[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    memcpy(ret_bytes, mapped, sizeof mapped);
    return text && (inet_pton(AF_INET, text, ret_bytes + sizeof mapped) == 1 ||
                    inet_pton(AF_INET6, text, ret_bytes) == 1);
}

static int read_gids(const json_t *entry, struct topo_port *port, struct drarun_error *err)
{
    const json_t *list = NULL;
    size_t i;
    json_t *gid;
    int rc = member(entry, "gids", JSON_ARRAY, "an array of GIDs", &list, err);
    if (rc < 0 || json_array_size(list) == 0)
        return rc;
    port->gids = calloc(json_array_size(list), sizeof *port->gids);
    if (!port->gids)
        return error_set(err, ENOMEM, "probe: out of memory");
    json_array_foreach(list, i, gid)
    {
        struct topo_gid *to = &port->gids[port->gid_count];
        const char *type = value_text(gid, "type"), *netdev = value_text(gid, "netdev");
        int32_t index = small_at(gid, "index", -1);
        if (index < 0 || !read_address(value_text(gid, "address"), to->bytes))
            return wrong(err, "ibdevs.ports.gids", "an index and an IP address for each GID");
        to->index = (uint32_t)index;
        to->type = gid_type_find(type);
        to->elsewhere = json_is_true(json_object_get(gid, "elsewhere"));
        snprintf(to->netdev, sizeof to->netdev, "%s", netdev ? netdev : "");
        port->gid_count++;
    }
    return 0;
}

static int read_port(const json_t *entry, struct topo_port *port, struct drarun_error *err)
{
    const char *state = value_text(entry, "state"), *link = value_text(entry, "linkLayer");
    int32_t number = small_at(entry, "number", 0);
    if (number < 1 || number > 255)
        return wrong(err, "ibdevs.ports", "a number from 1 to 255 for each port");
    port->number = (uint32_t)number;
    snprintf(port->state, sizeof port->state, "%s", state ? state : "");
    port->active = !state || !state[0]            ? TOPO_UNKNOWN
                   : strcmp(state, "ACTIVE") == 0 ? TOPO_YES
                                                  : TOPO_NO;
    port->link = rdma_link_parse(link ? link : "");
    port->rate_mbps = (uint32_t)small_at(entry, "rateMbps", 0);
    return read_gids(entry, port, err);
}

static int read_ports(const json_t *list, struct probe_ibdev *ib, struct drarun_error *err)
{
    size_t i;
    json_t *entry;
    if (json_array_size(list) == 0)
        return 0;
    ib->ports = calloc(json_array_size(list), sizeof *ib->ports);
    if (!ib->ports)
        return error_set(err, ENOMEM, "probe: out of memory");
    json_array_foreach(list, i, entry)
    {
        if (i == DATA_NIC_PORTS_MAX)
            break;
        ib->port_count++;
        int rc = read_port(entry, &ib->ports[i], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The older shape: what is known is of one port. */
static int read_one_port(const json_t *entry, struct probe_ibdev *ib, struct drarun_error *err)
{
    ib->gid = small_at(entry, "gidIndex", -1);
    ib->link_layer = value_text(entry, "linkLayer");
    ib->ports = calloc(1, sizeof *ib->ports);
    if (!ib->ports)
        return error_set(err, ENOMEM, "probe: out of memory");
    ib->port_count = 1;
    int32_t number = small_at(entry, "port", 1);
    ib->ports[0].number = number > 0 ? (uint32_t)number : 1;
    ib->ports[0].link = rdma_link_parse(ib->link_layer ? ib->link_layer : "");
    ib->ports[0].rate_mbps = (uint32_t)small_at(entry, "speedMbps", 0);
    return 0;
}

static int read_ibdev(const char *name, const json_t *entry, struct probe_ibdev *ib,
                      struct drarun_error *err)
{
    const json_t *ports = NULL;
    *ib = (struct probe_ibdev){
        .name = name,
        .pci = pci_at(entry, "pci"),
        .gid = -1,
        .numa = small_at(entry, "numa", -1),
        .root = value_text(entry, "root"),
        .netdev = value_text(entry, "netdev"),
        .uplink = value_text(entry, "uplink"),
        .iwarp = json_is_true(json_object_get(entry, "iwarp")),
    };
    int rc = member(entry, "ports", JSON_ARRAY, "an array of ports", &ports, err);
    if (rc < 0)
        return rc;
    return ports ? read_ports(ports, ib, err) : read_one_port(entry, ib, err);
}

static int read_ibdevs(const json_t *document, struct probe *p, struct drarun_error *err)
{
    const json_t *ibdevs = NULL;
    int rc = member(document, "ibdevs", JSON_OBJECT, "an object by device name", &ibdevs, err);
    if (rc < 0 || !ibdevs)
        return rc;
    p->ibdevs = calloc(json_object_size(ibdevs) + 1, sizeof *p->ibdevs);
    if (!p->ibdevs)
        return error_set(err, ENOMEM, "probe: out of memory");
    const char *name;
    json_t *entry;
    value_foreach(ibdevs, name, entry)
    {
        if (!json_is_object(entry))
            return wrong(err, "ibdevs", "an object for each device");
        rc = read_ibdev(name, entry, &p->ibdevs[p->ibdev_count++], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_visible(const json_t *document, struct probe *p, struct drarun_error *err)
{
    const json_t *list = NULL;
    size_t i;
    json_t *entry;
    int rc = member(document, "visibleIbdevs", JSON_ARRAY, "an array of names", &list, err);
    if (rc < 0)
        return rc;
    json_array_foreach(list, i, entry)
    {
        if (!json_is_string(entry))
            return wrong(err, "visibleIbdevs", "an array of names");
        strlist_add(&p->visible, json_string_value(entry));
    }
    return p->visible.failed ? error_set(err, ENOMEM, "probe: out of memory") : 0;
}

static int read_pairs(const json_t *document, struct probe *p, struct drarun_error *err)
{
    const json_t *list = NULL;
    size_t i;
    json_t *entry;
    int rc = member(document, "topoFilePairs", JSON_ARRAY, "an array of pairs", &list, err);
    if (rc < 0 || !list)
        return rc;
    p->pairs = calloc(json_array_size(list) + 1, sizeof *p->pairs);
    if (!p->pairs)
        return error_set(err, ENOMEM, "probe: out of memory");
    json_array_foreach(list, i, entry)
    {
        const char *gpu = json_string_value(json_array_get(entry, 0));
        const char *nic = json_string_value(json_array_get(entry, 1));
        if (!gpu || !nic || pci_parse(gpu) == PCI_NONE || pci_parse(nic) == PCI_NONE)
            return wrong(err, "topoFilePairs", "pairs of PCI addresses");
        p->pairs[p->pair_count++] = (struct probe_pair){pci_parse(gpu), pci_parse(nic)};
    }
    return 0;
}

static int read_numa_cpus(const json_t *document, struct probe *p, struct drarun_error *err)
{
    const json_t *lists = NULL;
    const char *key;
    json_t *entry;
    int rc = member(document, "numaCpus", JSON_OBJECT, "an object by NUMA node", &lists, err);
    if (rc < 0)
        return rc;
    value_foreach(lists, key, entry)
    {
        char *end = NULL;
        unsigned long node = strtoul(key, &end, 10);
        if (end == key || *end || node >= PROBE_NUMAS || !json_is_string(entry))
            return wrong(err, "numaCpus", "CPU lists by NUMA node");
        p->numa_cpus[node] = json_string_value(entry);
    }
    return 0;
}

static int read_metadata(const json_t *document, struct probe *p, struct drarun_error *err)
{
    size_t i;
    json_t *entry;
    int rc =
        member(document, "metadata", JSON_ARRAY, "an array of DeviceMetadata", &p->metadata, err);
    if (rc == 0)
        rc = member(document, "metadataErrors", JSON_ARRAY, "an array of texts",
                    &p->metadata_errors, err);
    if (rc < 0)
        return rc;
    json_array_foreach(p->metadata_errors, i, entry)
    {
        if (!json_is_string(entry))
            return wrong(err, "metadataErrors", "an array of texts");
    }
    return 0;
}

/* They end up in what a shell evaluates. */
static bool are_names(const json_t *env)
{
    static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    const char *name;
    json_t *value;
    value_foreach(env, name, value)
    {
        if (!name[0] || strspn(name, chars) != strlen(name) || (name[0] >= '0' && name[0] <= '9'))
            return false;
    }
    return true;
}

static int read_script(const json_t *document, struct probe *p, struct drarun_error *err)
{
    const json_t *script = NULL;
    int rc = member(document, "script", JSON_OBJECT, "an object", &script, err);
    if (rc < 0 || !script)
        return rc;
    p->script = value_text(script, "path");
    p->script_reason = value_text(script, "reason");
    if (!p->script)
        return wrong(err, "script.path", "a text");
    rc = member(script, "env", JSON_OBJECT, "an object by name", &p->script_env, err);
    if (rc == 0 && !p->script_env == !p->script_reason)
        rc = wrong(err, "script", "env, or the reason why there is none");
    if (rc == 0 && !are_names(p->script_env))
        rc = wrong(err, "script.env", "names of variables");
    return rc;
}

static enum probe_flag flag_at(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return !json_is_boolean(value) ? PROBE_UNKNOWN : json_is_true(value) ? PROBE_YES : PROBE_NO;
}

static int read_plain(const json_t *document, struct probe *p, struct drarun_error *err)
{
    const json_t *gdr = json_object_get(document, "gdr"), *channels = NULL;
    int rc = member(document, "files", JSON_OBJECT, "an object by path", &p->files, err);
    if (rc == 0)
        rc =
            member(document, "pciNuma", JSON_OBJECT, "an object by PCI address", &p->pci_numa, err);
    if (rc == 0)
        rc = member(document, "gpus", JSON_ARRAY, "an array of GPUs", &p->gpus, err);
    if (rc == 0)
        rc = member(document, "otherGpus", JSON_OBJECT, "numbers by vendor", &p->other_gpus, err);
    if (rc == 0)
        rc = member(document, "paths", JSON_OBJECT, "an object by PCI address", &p->paths, err);
    if (rc == 0)
        rc = member(document, "imexChannels", JSON_ARRAY, "an array of numbers", &channels, err);
    p->imex = !channels ? PROBE_UNKNOWN : json_array_size(channels) ? PROBE_YES : PROBE_NO;
    p->peermem = flag_at(gdr, "peermem");
    p->dmabuf = flag_at(gdr, "dmabuf");
    p->nvlink = flag_at(document, "nvlink");
    p->nested_switch = flag_at(document, "nestedSwitch");
    p->visible_gpus = small_at(document, "visibleGpus", -1);
    p->cpuset = value_text(document, "cpuset");
    p->interface = value_text(document, "podInterface");
    p->inter_socket = json_number_value(json_object_get(document, "interSocketGBs"));
    return rc;
}

int probe_read(const json_t *document, struct probe *ret_probe, struct drarun_error *err)
{
    struct probe p = {.visible_gpus = -1};
    CLEANUP(probe_donep) struct probe *undo = &p;
    if (document && !json_is_null(document)) {
        if (!json_is_object(document))
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "probe: expected an object");
        p.present = true;
        int rc = read_plain(document, &p, err);
        if (rc == 0)
            rc = read_ibdevs(document, &p, err);
        if (rc == 0)
            rc = read_visible(document, &p, err);
        if (rc == 0)
            rc = read_pairs(document, &p, err);
        if (rc == 0)
            rc = read_numa_cpus(document, &p, err);
        if (rc == 0)
            rc = read_metadata(document, &p, err);
        if (rc == 0)
            rc = read_script(document, &p, err);
        if (rc < 0)
            return rc;
    }
    undo = NULL;
    *ret_probe = p;
    return 0;
}
