/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/select.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "plugin/discover/device_json.h"
#include "plugin/discover/faults.h"

struct selection {
    const struct discover_config *config;
    struct node_devices *devices;
    struct drarun_error *err;
};

static int nomem(struct selection *s)
{
    return error_set(s->err, ENOMEM, "device selection: out of memory");
}

/* 1 or 0, `otherwise` without an expression; -EINVAL with a warning when it says nothing. */
static int holds(struct selection *s, const struct cel_program *program,
                 const struct cel_device *cel, const struct node_device *device, bool otherwise)
{
    struct drarun_error own = {0};
    bool match = false;
    if (!program)
        return otherwise;
    int rc = cel_eval_device(program, cel, &match, &own);
    if (rc == -ENOMEM)
        return nomem(s);
    if (rc == 0)
        return match;
    strlist_addf(&s->devices->warnings, "%s is not published: %s", device->name, own.text);
    return -EINVAL;
}

/* 1: offered. */
static int is_offered(struct selection *s, const struct cel_device *cel,
                      const struct node_device *device)
{
    const struct discover_config *config = s->config;
    const struct config_filter *filter =
        device->kind == NODE_DEVICE_NIC ? &config->nics : &config->gpus;
    if (device->netdev.name[0] && config_has_prefix(&config->exclude_prefixes, device->netdev.name))
        return 0;
    int rc = holds(s, filter->include, cel, device, true);
    if (rc == 1) {
        rc = holds(s, filter->exclude, cel, device, false);
        rc = rc < 0 ? rc : !rc;
    }
    return rc == -EINVAL ? 0 : rc;
}

/* ---- names ---- */

static void add_part(struct buf *out, const char *text)
{
    for (; *text; text++) {
        char c = (char)tolower((unsigned char)*text);
        buf_printf(out, "%c", isalnum((unsigned char)c) ? c : '-');
    }
}

/* False: the device lacks something of the template. */
static bool expand(const char *template, const struct node_device *device, struct buf *out)
{
    char rail[16];
    snprintf(rail, sizeof rail, "%d", device->rail);
    const struct {
        const char *name, *value;
    } parts[] = {
        {"{rail}", device->rail >= 0 ? rail : ""},
        {"{ifName}", device->netdev.name},
        {"{rdmaDevice}", device->rdma.name},
        {"{address}", device->pci.bus_id},
    };
    while (*template) {
        size_t i = 0;
        while (i < ARRAY_LEN(parts) && strncmp(template, parts[i].name, strlen(parts[i].name)) != 0)
            i++;
        if (i < ARRAY_LEN(parts) && !parts[i].value[0])
            return false;
        if (i == ARRAY_LEN(parts)) {
            buf_add(out, template ++, 1);
            continue;
        }
        add_part(out, parts[i].value);
        template += strlen(parts[i].name);
    }
    return true;
}

static bool is_label(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len < NODE_DEVICE_NAME_MAX && isalnum((unsigned char)name[0]) &&
           isalnum((unsigned char)name[len - 1]);
}

static void rename_device(struct selection *s, const char *template, size_t index)
{
    struct node_device *device = &s->devices->list[index];
    struct buf name = BUF_INIT;
    if (expand(template, device, &name) && !name.failed) {
        bool taken = node_devices_find(s->devices, node_device_driver(device), name.data);
        if (taken || !is_label(name.data))
            strlist_addf(&s->devices->warnings, "%s keeps its name: \"%.80s\" %s", device->name,
                         name.data, taken ? "is another device's" : "is no DNS label");
        else
            snprintf(device->name, sizeof device->name, "%s", name.data);
    }
    buf_done(&name);
}

static int apply_names(struct selection *s, const struct cel_device *cel, size_t index)
{
    for (size_t i = 0; i < s->config->name_count; i++) {
        const struct config_name_rule *rule = &s->config->names[i];
        struct drarun_error own = {0};
        bool match = !rule->match;
        if (rule->match && cel_eval_device(rule->match, cel, &match, &own) == -ENOMEM)
            return nomem(s);
        if (match) {
            rename_device(s, rule->name, index);
            return 0;
        }
    }
    return 0;
}

/* ---- the whole ---- */

static bool needs_cel(const struct discover_config *config)
{
    return config->nics.include || config->nics.exclude || config->gpus.include ||
           config->gpus.exclude || config->name_count > 0;
}

/* Devices of a configuration that names none are spared where the host does something over them.
 * An include names them, as its author knows the machines. */
static bool is_spared(struct selection *s, const struct node_device *device)
{
    if (!device->used[0] || device->included)
        return false;
    strlist_add(&s->devices->spared, device->name);
    strlist_add(&s->devices->spared_reasons, device->used);
    return true;
}

/* 1: it stays. */
static int select_one(struct selection *s, size_t index)
{
    struct node_device *device = &s->devices->list[index];
    CLEANUP(cel_device_freep) struct cel_device *cel = NULL;
    faults_of_link(s->config, device);
    if (needs_cel(s->config)) {
        json_t *json = device_json(device);
        cel = json ? cel_device_new(node_device_driver(device), json, s->err) : NULL;
        json_decref(json);
        if (!cel)
            return nomem(s);
    }
    int rc = is_offered(s, cel, device);
    if (rc == 1 && !device->away && !device->lost && !device->held) {
        int named = apply_names(s, cel, index);
        rc = named < 0 ? named : 1;
    }
    device->included = device->kind == NODE_DEVICE_NIC && s->config->nics.include;
    if (rc == 1 && is_spared(s, device))
        rc = 0;
    return rc;
}

int select_devices(const struct discover_config *config, struct node_devices *devices,
                   struct drarun_error *err)
{
    struct selection s = {config, devices, err};
    for (size_t i = 0; i < devices->count;) {
        int rc = select_one(&s, i);
        if (rc < 0)
            return rc;
        if (rc > 0)
            i++;
        else
            node_devices_remove(devices, i);
    }
    return devices->warnings.failed || devices->spared.failed || devices->spared_reasons.failed
               ? nomem(&s)
               : 0;
}
