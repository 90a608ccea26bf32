/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/served.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/dra/device_class.h"
#include "lib/dra/known_class.h"
#include "jobs/predict/nodes_profile.h"
#include "jobs/profiles/profiles.h"
#include "lib/dra/slices.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

#define DRANET "dra.net"
#define DRANET_RDMA "dra.net/rdma"

struct kind {
    const char *word, *option;
    const char *const *classes;   /* by name, the first that is served */
    const char *const *drivers;   /* whose other classes count */
    const char *const *resources; /* of device plugins; one that ends in "/" is a prefix */
};

static const char *const gpu_classes[] = {"gpu.nvidia.com", "gpu.amd.com", "gpu.drarun.dev", NULL};
static const char *const gpu_drivers[] = {"gpu.nvidia.com", "gpu.amd.com", "gpu.drarun.dev", NULL};
static const char *const gpu_resources[] = {"nvidia.com/gpu", "amd.com/gpu", NULL};
static const char *const nic_classes[] = {"mrdma.google.com",
                                          "nic.drarun.dev",
                                          "rdma.drarun.dev",
                                          "dranet",
                                          "dranet.net",
                                          "dra.net",
                                          NULL};
static const char *const nic_drivers[] = {"mrdma.google.com", "nic.drarun.dev", DRANET, NULL};
static const char *const nic_resources[] = {"vpc.amazonaws.com/efa", "rdma/", NULL};

static const struct kind gpus = {"GPUs", "gpu", gpu_classes, gpu_drivers, gpu_resources};
static const struct kind nics = {"NICs", "nic", nic_classes, nic_drivers, nic_resources};

struct look {
    const struct served_objects *objects;
    struct slices slices;
    struct drarun_error *err;
};

/* ---- classes ---- */

static const json_t *meta(const json_t *object, const char *key)
{
    return json_object_get(json_object_get(object, "metadata"), key);
}

static const char *name_of(const json_t *object)
{
    const char *name = json_string_value(meta(object, "name"));
    return name ? name : "";
}

static bool selects(const json_t *class, const char *text)
{
    const json_t *selector;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(class, "spec"), "selectors"), i, selector)
    {
        const char *cel = value_text(json_object_get(selector, "cel"), "expression");
        if (cel && strstr(cel, text))
            return true;
    }
    return false;
}

/* The first of these drivers that its selectors name. */
static const char *selected_driver(const json_t *class, const char *const *drivers)
{
    for (; *drivers; drivers++) {
        char quoted[2][80];
        snprintf(quoted[0], sizeof quoted[0], "'%s'", *drivers);
        snprintf(quoted[1], sizeof quoted[1], "\"%s\"", *drivers);
        if (selects(class, quoted[0]) || selects(class, quoted[1]))
            return *drivers;
    }
    return NULL;
}

/* Whose devices it serves, of these drivers, by its selectors or by its name. */
static const char *driver_of(const json_t *class, const char *const *drivers)
{
    const struct known_class *known = known_class(name_of(class));
    const char *driver = selected_driver(class, drivers);
    for (; !driver && known && *drivers; drivers++)
        if (strcmp(known->driver, *drivers) == 0)
            driver = *drivers;
    return driver;
}

/* Parts of a GPU are another class's. */
static bool selects_parts(const json_t *class)
{
    return strstr(name_of(class), "mig") || selects(class, "'mig'") || selects(class, "\"mig\"") ||
           selects(class, "'vfio'");
}

static bool has_devices(const struct look *look, const char *driver)
{
    for (size_t i = 0; i < look->slices.device_count; i++)
        if (strcmp(look->slices.devices[i].driver, driver) == 0)
            return true;
    return false;
}

static bool is_rdma(const struct slice_device *device)
{
    return json_is_true(json_object_get(json_object_get(device->attributes, DRANET_RDMA), "bool"));
}

/* DraNet publishes every interface of a node. */
static void choose_rdma(const struct look *look, const json_t *class, struct served_source *source)
{
    if (selects(class, "rdma"))
        return;
    for (size_t i = 0; i < look->slices.device_count; i++)
        if (strcmp(look->slices.devices[i].driver, DRANET) == 0 &&
            is_rdma(&look->slices.devices[i])) {
            snprintf(source->selector, sizeof source->selector,
                     "device.attributes[\"" DRANET "\"].rdma == true");
            return;
        }
}

static void take_class(const struct look *look, const json_t *class, const char *driver,
                       struct served_source *source)
{
    snprintf(source->class, sizeof source->class, "%s", name_of(class));
    if (strcmp(driver, DRANET) == 0)
        choose_rdma(look, class, source);
}

/* 1: found, 0: none. */
static int find_class(const struct look *look, const struct kind *kind,
                      struct served_source *source)
{
    const json_t *classes = look->objects->classes, *class, *found = NULL;
    const char *driver, *found_driver = NULL;
    size_t i;
    for (const char *const *name = kind->classes; *name; name++) {
        class = device_class_find(classes, *name);
        driver = class ? driver_of(class, kind->drivers) : NULL;
        /* what a cloud's own class selects may be published nowhere */
        if (driver && (has_devices(look, driver) || !selected_driver(class, kind->drivers))) {
            take_class(look, class, driver, source);
            return 1;
        }
    }
    json_array_foreach(classes, i, class)
    {
        driver = driver_of(class, kind->drivers);
        if (!driver || selects_parts(class) || !has_devices(look, driver))
            continue;
        if (found)
            return error_kind(look->err, DRARUN_ERR_SPEC, EINVAL,
                              "the DeviceClasses %s and %s both serve %s: choose one with "
                              "--%s-class",
                              name_of(found), name_of(class), kind->word, kind->option);
        found = class;
        found_driver = driver;
    }
    if (found)
        take_class(look, found, found_driver, source);
    return found != NULL;
}

/* ---- device plugins ---- */

static const json_t *allocatable(const json_t *node)
{
    return json_object_get(json_object_get(node, "status"), "allocatable");
}

static bool has_some(const json_t *amount)
{
    const char *text = json_string_value(amount);
    return text ? strtoul(text, NULL, 10) > 0 : json_integer_value(amount) > 0;
}

static const char *matching(const json_t *node, const char *pattern)
{
    size_t length = strlen(pattern);
    bool prefix = pattern[length - 1] == '/';
    const char *key;
    json_t *amount;
    value_foreach(allocatable(node), key, amount)
    {
        if (has_some(amount) &&
            (prefix ? strncmp(key, pattern, length) == 0 : strcmp(key, pattern) == 0))
            return key;
    }
    return NULL;
}

static bool find_resource(const struct look *look, const struct kind *kind,
                          struct served_source *source)
{
    for (const char *const *pattern = kind->resources; *pattern; pattern++) {
        const json_t *node;
        size_t i;
        json_array_foreach(look->objects->nodes, i, node)
        {
            const char *key = matching(node, *pattern);
            if (key) {
                snprintf(source->resource, sizeof source->resource, "%s", key);
                return true;
            }
        }
    }
    return false;
}

/* ---- both ---- */

static int not_served(const struct look *look, const struct kind *kind)
{
    struct buf names = BUF_INIT;
    const json_t *class;
    size_t i;
    json_array_foreach(look->objects->classes, i, class)
    {
        buf_printf(&names, "%s%s", i ? ", " : "", name_of(class));
    }
    int rc = error_kind(look->err, DRARUN_ERR_SPEC, EINVAL,
                        "the cluster serves no %s that are known: no DeviceClass of a known "
                        "driver has devices (classes: %.200s), and no node has %s to allocate; "
                        "name what serves them with --%s-class or --%s-resource",
                        kind->word, names.len > 0 ? names.data : "none", kind->resources[0],
                        kind->option, kind->option);
    buf_done(&names);
    return rc;
}

static int find_kind(const struct look *look, const struct kind *kind, struct served_source *source)
{
    int rc = find_class(look, kind, source);
    if (rc < 0)
        return rc;
    return rc || find_resource(look, kind, source) ? 0 : not_served(look, kind);
}

/* ---- the profile ---- */

struct wanted {
    const struct look *look;
    const struct served *served;
};

/* Does the job's kind of GPU, or else of NIC, come from this node? */
static bool is_wanted(const json_t *node, const struct slice_device *devices, size_t count,
                      void *arg)
{
    const struct wanted *wanted = arg;
    const struct served *served = wanted->served;
    const struct served_source *source =
        served->gpus.class[0] || served->gpus.resource[0] ? &served->gpus : &served->nics;
    if (source->resource[0])
        return has_some(json_object_get(allocatable(node), source->resource));
    const char *driver = driver_of(device_class_find(wanted->look->objects->classes, source->class),
                                   source == &served->gpus ? gpu_drivers : nic_drivers);
    for (size_t i = 0; driver && i < count; i++)
        if (strcmp(devices[i].driver, driver) == 0)
            return true;
    return false;
}

static int find_profile(const struct look *look, struct served *served)
{
    struct profiles profiles = {0};
    struct wanted wanted = {look, served};
    int rc = profiles_builtin(&profiles, look->err);
    if (rc < 0)
        return rc;
    struct nodes_profile of =
        nodes_profile_find(&profiles, look->objects->nodes, &look->slices, is_wanted, &wanted);
    if (of.found)
        snprintf(served->profile, sizeof served->profile, "%s", of.found->name);
    if (of.found)
        snprintf(served->why, sizeof served->why, "%.190s", of.why);
    profiles_done(&profiles);
    return 0;
}

int served_find(const struct served_objects *objects, bool want_gpus, bool want_nics,
                struct served *ret_served, struct drarun_error *err)
{
    struct look look = {objects, {0}, err};
    struct served served = {0};
    int rc = slices_read(objects->slices, &look.slices, err);
    if (rc < 0)
        return rc;
    if (want_gpus)
        rc = find_kind(&look, &gpus, &served.gpus);
    if (rc == 0 && want_nics)
        rc = find_kind(&look, &nics, &served.nics);
    if (rc == 0 && (want_gpus || want_nics))
        rc = find_profile(&look, &served);
    slices_done(&look.slices);
    if (rc == 0)
        *ret_served = served;
    return rc;
}
