/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jobs/spec/k8s_name.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define OWN_PREFIX "drarun.dev/"
#define KUEUE_PREFIX "kueue.x-k8s.io/"

#define refuse(err, ...) error_kind(err, DRARUN_ERR_SPEC, EINVAL, __VA_ARGS__)

/* ---- names ---- */

static bool is_subdomain(const char *text, size_t max)
{
    return strlen(text) <= max && k8s_is_subdomain(text);
}

static int check_name(const struct job_spec *spec, struct drarun_error *err)
{
    size_t len = strlen(spec->name);
    if (!k8s_is_label(spec->name))
        return refuse(err,
                      "metadata.name: expected at most %d lower case letters, digits and \"-\", "
                      "beginning and ending with a letter or digit, got \"%.80s\"",
                      SPEC_NAME_MAX, spec->name);
    if (len > SPEC_NAME_MAX)
        return refuse(
            err,
            "metadata.name: %zu bytes: expected at most %d, because derived names, such as "
            "NAME-channel, have at most %d",
            len, SPEC_NAME_MAX, LIMIT_LABEL);
    if (spec->namespace && !k8s_is_label(spec->namespace))
        return refuse(err, "metadata.namespace: \"%.80s\" is no name of a namespace",
                      spec->namespace);
    if (spec->queue && !is_subdomain(spec->queue, LIMIT_LABEL))
        return refuse(err, "spec.queue: \"%.80s\" is no name of a LocalQueue", spec->queue);
    return 0;
}

/* ---- labels and annotations ---- */

static int check_label(const char *path, const char *key, const char *value,
                       struct drarun_error *err)
{
    if (!k8s_is_qualified(key))
        return refuse(err,
                      "%s: \"%.80s\" is no key: expected [PREFIX/]NAME with a name of at most "
                      "%u bytes",
                      path, key, LIMIT_LABEL);
    if (strncmp(key, OWN_PREFIX, strlen(OWN_PREFIX)) == 0)
        return refuse(err, "%s[\"%s\"]: keys of %s are set by drarun; choose another", path, key,
                      OWN_PREFIX);
    if (value && !k8s_is_label_value(value))
        return refuse(err,
                      "%s[\"%s\"]: \"%.80s\" is no label's value: expected at most %u letters, "
                      "digits, \"-\", \"_\" and \".\"; longer text belongs into annotations",
                      path, key, value, LIMIT_LABEL);
    return 0;
}

bool limits_has_other_size(const char *annotation)
{
    static const char *const names[] = {"job-min-parallelism", "job-completions-equal-parallelism",
                                        "elastic-job"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strncmp(annotation, KUEUE_PREFIX, strlen(KUEUE_PREFIX)) == 0 &&
            strcmp(annotation + strlen(KUEUE_PREFIX), names[i]) == 0)
            return true;
    return false;
}

static int check_annotation(const struct job_spec *spec, const char *key, struct drarun_error *err)
{
    if (spec->queue && limits_has_other_size(key))
        return refuse(err,
                      "metadata.annotations[\"%s\"]: Kueue would start fewer workers than the job "
                      "waits for: the size of a job is fixed; leave it out",
                      key);
    return check_label("metadata.annotations", key, NULL, err);
}

static int check_labels(const struct job_spec *spec, struct drarun_error *err)
{
    const char *key;
    json_t *value;
    size_t size = 0;
    int rc = 0;
    json_object_foreach(spec->labels, key, value)
    {
        const char *text = json_string_value(value);
        if (rc == 0)
            rc = check_label("metadata.labels", key, text ? text : "", err);
    }
    json_object_foreach(spec->annotations, key, value)
    {
        if (rc == 0)
            rc = check_annotation(spec, key, err);
        size += strlen(key) + json_string_length(value);
    }
    if (rc == 0 && size > LIMIT_ANNOTATIONS)
        rc = refuse(err, "metadata.annotations: %zu bytes; at most %u", size, LIMIT_ANNOTATIONS);
    return rc;
}

/* ---- devices ---- */

/* further: that the request has beside the list. */
static int check_selectors(const char *path, const struct strlist *list, size_t further,
                           struct drarun_error *err)
{
    if (list->count + further > LIMIT_SELECTORS)
        return refuse(err, "%s: %zu selectors%s; a request takes %u: join some with &&", path,
                      list->count + further, further ? " with those of all and of capacity" : "",
                      LIMIT_SELECTORS);
    for (size_t i = 0; i < list->count; i++)
        if (strlen(list->items[i]) > LIMIT_CEL_BYTES)
            return refuse(err, "%s.selectors[%zu]: %zu bytes; an expression takes %u", path, i,
                          strlen(list->items[i]), LIMIT_CEL_BYTES);
    return 0;
}

/* Its request has the selectors of the kind, too. */
static int check_choice(const char *path, const struct spec_devices *devices, size_t index,
                        struct drarun_error *err)
{
    const struct spec_choice *choice = &devices->choices[index];
    char at[120];
    snprintf(at, sizeof at, "%s.firstAvailable[%zu]", path, index);
    return check_selectors(at, &choice->selectors,
                           devices->selectors.count + (devices->capacity || choice->capacity), err);
}

static int check_match(const char *path, const struct strlist *list, struct drarun_error *err)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *item = list->items[i];
        if (!strchr(item, '/') || !k8s_is_device_name(item))
            return refuse(err,
                          "%s.match[%zu]: expected DOMAIN/ATTRIBUTE, as "
                          "gpu.nvidia.com/partition4, got \"%.120s\"",
                          path, i, item);
    }
    return 0;
}

static int check_config(const char *path, const struct spec_devices *devices,
                        struct drarun_error *err)
{
    if (!devices->config)
        return 0;
    if (!devices->config_driver || !is_subdomain(devices->config_driver, LIMIT_DRIVER_NAME))
        return refuse(err, "%s.config: needs the name of the driver that it is for, got \"%.80s\"",
                      path, devices->config_driver ? devices->config_driver : "");
    size_t size = json_dumpb(devices->config, NULL, 0, JSON_COMPACT);
    if (size > LIMIT_OPAQUE_BYTES)
        return refuse(err, "%s.config: %zu bytes as JSON; a driver's configuration takes %u", path,
                      size, LIMIT_OPAQUE_BYTES);
    return 0;
}

static int check_devices(const char *path, const struct spec_devices *devices,
                         struct drarun_error *err)
{
    if (devices->class && !is_subdomain(devices->class, LIMIT_SUBDOMAIN))
        return refuse(err, "%s.class: \"%.80s\" is no name of a DeviceClass", path, devices->class);
    if (devices->resource &&
        (!strchr(devices->resource, '/') || !k8s_is_qualified(devices->resource)))
        return refuse(err,
                      "%s.resource: expected an extended resource, as nvidia.com/gpu, got "
                      "\"%.80s\"",
                      path, devices->resource);
    if (devices->count > LIMIT_CLAIM_RESULTS && devices->class)
        return refuse(err, "%s.count: %u devices; a claim holds %u: use more workers", path,
                      devices->count, LIMIT_CLAIM_RESULTS);
    int rc = check_selectors(path, &devices->selectors, devices->capacity != NULL, err);
    for (size_t i = 0; rc == 0 && i < devices->choice_count; i++)
        rc = check_choice(path, devices, i, err);
    if (rc == 0)
        rc = check_match(path, &devices->match, err);
    return rc < 0 ? rc : check_config(path, devices, err);
}

static uint32_t claimed(const struct spec_devices *devices)
{
    return devices->class && !devices->all ? devices->count : 0;
}

static int check_claim(const struct spec_role *role, struct drarun_error *err)
{
    int rc = check_match("spec.devices", &role->match, err);
    if (rc < 0)
        return rc;
    uint32_t cpus = claimed(&role->cpus),
             results = claimed(&role->gpus) + claimed(&role->nics) + cpus;
    if (results > LIMIT_CLAIM_RESULTS)
        return refuse(err,
                      "spec.devices: %u GPUs and %u NICs%s are %u devices; a worker's claim holds "
                      "%u: use more workers with fewer devices each",
                      claimed(&role->gpus), claimed(&role->nics),
                      cpus > 0 ? " with groups of CPUs" : "", results, LIMIT_CLAIM_RESULTS);
    size_t constraints =
        claimed(&role->gpus) < claimed(&role->nics) ? claimed(&role->gpus) : claimed(&role->nics);
    constraints += role->gpus.match.count + role->nics.match.count + role->match.count + (cpus > 1);
    if (constraints > LIMIT_CLAIM_CONSTRAINTS)
        return refuse(err,
                      "spec.devices: %zu constraints (one for each pair of GPU and NIC and each "
                      "entry of match); a claim takes %u",
                      constraints, LIMIT_CLAIM_CONSTRAINTS);
    return 0;
}

/* What drarun makes for worker I is called NAME-w-I: it goes with the job, and is that worker's. */
static int check_shared(const struct job_spec *spec, const struct spec_role *role,
                        struct drarun_error *err)
{
    size_t length = strlen(spec->name);
    for (size_t i = 0; i < role->shared.count; i++) {
        const char *name = role->shared.items[i];
        if (strncmp(name, spec->name, length) == 0 && strncmp(name + length, "-w-", 3) == 0 &&
            name[length + 3] && !name[length + 3 + strspn(name + length + 3, "0123456789")])
            return refuse(err,
                          "spec.devices.shared[%zu].claim: %s is what this job's own claims are "
                          "called (%s-w-I): give the job or the claim another name",
                          i, name, spec->name);
    }
    return 0;
}

/* What the machine type that nccl.profile names cannot give. */
static int check_machine(const struct spec_role *role, struct drarun_error *err)
{
    const struct machine *machine = &role->machine;
    if (machine->whole_node && claimed(&role->nics) && role->nics.count != machine->nics)
        return refuse(err,
                      "spec.devices.nics.count: %u; %s hands out its %u NICs to one pod of a node "
                      "only: ask for %u, or for all",
                      role->nics.count, machine->profile, machine->nics, machine->nics);
    return 0;
}

static int check_document(const struct job_spec *spec, struct drarun_error *err)
{
    size_t size = spec->document ? json_dumpb(spec->document, NULL, 0, JSON_COMPACT) : 0;
    if (size > LIMIT_DOCUMENT)
        return refuse(err,
                      "the document takes %zu bytes as JSON; the ConfigMap that carries it to the "
                      "launcher holds %u: move long texts into ConfigMaps of your own",
                      size, LIMIT_DOCUMENT);
    return 0;
}

static int check_role(const struct job_spec *spec, const struct spec_role *role,
                      struct drarun_error *err)
{
    int rc = check_devices("spec.devices.gpus", &role->gpus, err);
    if (rc == 0)
        rc = check_devices("spec.devices.nics", &role->nics, err);
    if (rc == 0)
        rc = check_devices("spec.devices.cpus", &role->cpus, err);
    if (rc == 0)
        rc = check_claim(role, err);
    if (rc == 0)
        rc = check_shared(spec, role, err);
    if (rc == 0)
        rc = check_machine(role, err);
    return rc < 0 && spec->role_count > 1 ? error_prefix(err, "role %s", role->name) : rc;
}

int limits_check(const struct job_spec *spec, struct drarun_error *err)
{
    int rc = check_name(spec, err);
    if (rc == 0)
        rc = check_document(spec, err);
    if (rc == 0)
        rc = check_labels(spec, err);
    for (uint32_t r = 0; rc == 0 && r < spec->role_count; r++)
        rc = check_role(spec, &spec->roles[r], err);
    return rc;
}
