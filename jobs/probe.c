/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/device.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

void probe_done(struct probe *probe)
{
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
    json_object_foreach((json_t *)ibdevs, name, entry)
    {
        if (!json_is_object(entry))
            return wrong(err, "ibdevs", "an object for each device");
        p->ibdevs[p->ibdev_count++] = (struct probe_ibdev){
            .name = name,
            .pci = pci_at(entry, "pci"),
            .port = (uint32_t)small_at(entry, "port", 1),
            .link_layer = value_text(entry, "linkLayer"),
            .mbps = (uint32_t)small_at(entry, "speedMbps", 0),
            .gid = small_at(entry, "gidIndex", -1),
            .numa = small_at(entry, "numa", -1),
            .root = value_text(entry, "root"),
            .netdev = value_text(entry, "netdev"),
        };
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
    json_array_foreach((json_t *)list, i, entry)
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
    json_array_foreach((json_t *)list, i, entry)
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
    json_object_foreach((json_t *)lists, key, entry)
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
    json_array_foreach((json_t *)p->metadata_errors, i, entry)
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
    json_object_foreach((json_t *)env, name, value)
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
