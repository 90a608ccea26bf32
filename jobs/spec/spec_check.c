/* SPDX-License-Identifier: Apache-2.0 */
/* What goes together in a spec, and names. */
#include <stdio.h>
#include <string.h>

#include "jobs/spec/k8s_name.h"
#include "lib/dra/known_class.h"
#include "jobs/spec/node_spread.h"
#include "jobs/ranks/rankmap.h"
#include "jobs/spec/spec_fields.h"

static void check_config(const struct reader_node *node, struct spec_devices *d)
{
    struct reader_node at;
    if (!d->config && d->config_driver) {
        reader_fail_key(node, "driver", "names whose config it is, but there is no config");
        d->config_driver = NULL;
    }
    if (!d->config || d->resource)
        return;
    if (!d->config_driver && d->class)
        d->config_driver = known_class(d->class) ? known_class(d->class)->driver : NULL;
    if (!d->config_driver && d->class)
        reader_fail_key(node, "config",
                        "whose configuration it is isn't known for the class %s: add driver, such "
                        "as driver: dra.net",
                        d->class);
    if (d->config_driver && !k8s_is_subdomain(d->config_driver) && reader_get(node, "driver", &at))
        reader_expected(&at, "a driver's name such as dra.net");
    json_t *name = json_object_get(json_object_get(d->config, "interface"), "name");
    if (name && (d->count > 1 || d->all))
        reader_fail_key(node, "config",
                        "interface.name would give several NICs of a pod one name: leave it out, "
                        "or ask for one NIC");
}

/* A device plugin's resource is a number and nothing else. */
static void check_resource(const struct reader_node *node, const struct spec_devices *d)
{
    static const char *const claimed[] = {"profile", "selector",    "firstAvailable",
                                          "match",   "tolerations", "config"};
    struct reader_node at;
    if (!k8s_is_qualified(d->resource) || !strchr(d->resource, '/')) {
        if (reader_get(node, "resource", &at))
            reader_expected(&at, "a resource such as nvidia.com/gpu");
    }
    if (d->all && reader_get(node, "count", &at))
        reader_fail(&at, "all needs a class: a resource is asked for by number");
    for (size_t i = 0; i < sizeof claimed / sizeof claimed[0]; i++)
        if (reader_get(node, claimed[i], &at))
            reader_fail_key(node, claimed[i],
                            "devices of a resource cannot be chosen or configured: use class");
}

/* "1g.10gb", "1c.2g.20gb", "1g.10gb+me": nothing that CEL would read otherwise. */
static bool is_mig_profile(const char *text)
{
    const char *part = strstr(text, "g.");
    return text[0] >= '0' && text[0] <= '9' && strlen(text) <= 32 &&
           strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz.+-") == strlen(text) && part &&
           strstr(part + 2, "gb");
}

/* Parts of a GPU, by the profile that NVIDIA's driver publishes them with. Devices of the class
 * that have none match nothing, and are no error. */
static void take_profile(const struct reader_node *node, const char *profile, const char **class,
                         struct strlist *selectors)
{
    struct reader_node at;
    if (!profile)
        return;
    if (!is_mig_profile(profile) && reader_get(node, "profile", &at)) {
        reader_expected(&at, "a MIG profile such as 1g.10gb");
        return;
    }
    if (!*class)
        *class = "mig.nvidia.com";
    strlist_addf(selectors,
                 "\"profile\" in device.attributes[\"gpu.nvidia.com\"] && "
                 "device.attributes[\"gpu.nvidia.com\"].profile == \"%s\"",
                 profile);
    node->reader->texts.failed |= selectors->failed;
}

static void check_choices(const struct reader_node *node, struct spec_devices *d)
{
    struct reader_node list, at;
    if (!reader_get(node, "firstAvailable", &list))
        return;
    for (size_t i = 0; i < d->choice_count; i++) {
        struct spec_choice *choice = &d->choices[i];
        struct reader_node item = reader_item(&list, i);
        take_profile(&item, choice->profile, &choice->class, &choice->selectors);
        if (choice->class && !k8s_is_subdomain(choice->class) && reader_get(&item, "class", &at))
            reader_expected(&at, "a DeviceClass' name such as gpu.nvidia.com");
        if (!choice->class)
            choice->class = d->class;
    }
}

static void check_kind(const struct reader_node *devices, const char *key, struct spec_devices *d,
                       const char *fallback_class)
{
    struct reader_node node, at;
    if (!reader_get(devices, key, &node) || !json_is_object(node.value))
        return;
    if (!reader_get(&node, "count", &at))
        reader_missing(&node, "count is missing: how many for each worker, or all");
    if (d->class && d->resource)
        reader_fail_key(&node, "resource",
                        "class and resource are two ways to one device: give "
                        "class (claimed) or resource (from a device plugin)");
    if (!d->resource)
        take_profile(&node, d->profile, &d->class, &d->selectors);
    if (!d->class && !d->resource && !reader_get(&node, "class", &at) &&
        !reader_get(&node, "resource", &at))
        d->class = fallback_class;
    if (!d->class && !d->resource && !reader_get(&node, "class", &at) &&
        !reader_get(&node, "resource", &at))
        reader_missing(&node, "class is missing: the DeviceClass of the NICs, such as dranet or "
                              "mrdma.google.com");
    if (d->class && !k8s_is_subdomain(d->class) && reader_get(&node, "class", &at))
        reader_expected(&at, "a DeviceClass' name such as gpu.nvidia.com");
    if (d->resource)
        check_resource(&node, d);
    else
        check_choices(&node, d);
    check_config(&node, d);
}

void spec_check_devices(const struct reader_node *spec, struct job_spec *s)
{
    struct reader_node devices;
    if (!reader_get(spec, "devices", &devices) || !json_is_object(devices.value))
        return;
    check_kind(&devices, "gpus", &s->gpus, "gpu.nvidia.com");
    check_kind(&devices, "nics", &s->nics, NULL);
    if (s->match.count > 0 && (!s->gpus.class || !s->nics.class))
        reader_fail_key(&devices, "match",
                        "is over GPUs and NICs of one claim: ask for both by class, or give "
                        "gpus.match or nics.match");
    if (s->queue && s->claims == SPEC_CLAIMS_DIRECT)
        reader_fail_key(&devices, "claims",
                        "queue needs claims: template, which is what Kueue counts");
}

#define DRAWN 5 /* characters of a made name behind its beginning */

/* As the API server makes names: what must be a label in the end. */
static void check_beginning(const struct reader_node *node, const char *begin, size_t room)
{
    char name[K8S_LABEL_MAX + DRAWN + 1];
    snprintf(name, sizeof name, "%.*sx", K8S_LABEL_MAX, begin);
    if (!k8s_is_label(name) && strlen(begin) < K8S_LABEL_MAX)
        reader_expected(node, "what a DNS label begins with (a-z, 0-9 and inner -)");
    else if (strlen(begin) + DRAWN > room)
        reader_fail(node,
                    "at most %zu characters, so that the last worker's name, with %d that are "
                    "drawn, has no more than %d; got %zu",
                    room - DRAWN, DRAWN, K8S_LABEL_MAX, strlen(begin));
}

/* NAME-w-I must be a DNS label. */
static void check_name(const struct reader_node *metadata, const struct job_spec *s)
{
    char last[32];
    int taken = snprintf(last, sizeof last, "-w-%u", s->workers ? s->workers - 1 : 0);
    size_t room = K8S_LABEL_MAX - (size_t)taken;
    struct reader_node node;
    if (s->generate_name && reader_get(metadata, "generateName", &node))
        check_beginning(&node, s->generate_name, room);
    if (!s->name || !reader_get(metadata, "name", &node))
        return;
    if (!k8s_is_label(s->name))
        reader_expected(&node, "a DNS label (a-z, 0-9 and inner -, at most 63)");
    else if (strlen(s->name) > room)
        reader_fail(&node,
                    "at most %zu characters, so that the last worker's name NAME%s has no more "
                    "than %d; got %zu",
                    room, last, K8S_LABEL_MAX, strlen(s->name));
}

static void check_labels(const struct reader_node *metadata, const char *key, bool values)
{
    struct reader_node map;
    if (!reader_get(metadata, key, &map) || !json_is_object(map.value))
        return;
    for (void *it = json_object_iter(map.value); it; it = json_object_iter_next(map.value, it)) {
        const char *name = json_object_iter_key(it);
        const char *value = json_string_value(json_object_iter_value(it));
        if (!k8s_is_qualified(name))
            reader_fail_key(&map, name, "expected a key such as example.com/name");
        else if (strncmp(name, "drarun.dev/", strlen("drarun.dev/")) == 0)
            reader_fail_key(&map, name, "keys of drarun.dev are drarun's own");
        else if (values && value && !k8s_is_label_value(value))
            reader_fail_key(&map, name,
                            "expected at most 63 letters, digits and inner -, _, . as its value");
    }
}

/* What `drarun import` takes (jobs/import/import.h). */
static bool is_imported(const char *kind)
{
    static const char *const kinds[] = {"Job", "JobSet",     "LeaderWorkerSet", "MPIJob",
                                        "Pod", "PyTorchJob", "StatefulSet"};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kind, kinds[i]) == 0)
            return true;
    return false;
}

static void check_document(const struct reader_node *root, const struct spec_raw *raw)
{
    struct reader_node node, name;
    if (raw->api_version && strcmp(raw->api_version, SPEC_API_VERSION) != 0 &&
        reader_get(root, "apiVersion", &node))
        reader_expected(&node, SPEC_API_VERSION);
    if (raw->kind && strcmp(raw->kind, SPEC_KIND) != 0 && reader_get(root, "kind", &node))
        reader_fail(&node, "expected %s, got \"%.60s\"%s", SPEC_KIND, raw->kind,
                    is_imported(raw->kind) ? ": drarun import makes a DraJob of it" : "");
    if (!reader_get(root, "metadata", &node) || !json_is_object(node.value))
        return;
    check_name(&node, &raw->s);
    if (raw->s.namespace && !k8s_is_label(raw->s.namespace) &&
        reader_get(&node, "namespace", &name))
        reader_expected(&name, "a namespace: a DNS label");
    check_labels(&node, "labels", true);
    check_labels(&node, "annotations", false);
}

/* Digits, at most three groups. */
static bool is_version(const char *text)
{
    for (int groups = 1; groups <= 3; groups++) {
        size_t digits = strspn(text, "0123456789");
        if (digits == 0 || digits > 5)
            return false;
        if (!text[digits])
            return groups >= 2;
        if (text[digits] != '.')
            return false;
        text += digits + 1;
    }
    return false;
}

/* Both would be required of every pod, and no node could have any. */
static void check_placement(const struct reader_node *spec, struct job_spec *s)
{
    struct reader_node placement;
    if (s->spread != SPEC_SPREAD_NODE || !reader_get(spec, "placement", &placement))
        return;
    int rc = node_spread_is_refused(s, NULL);
    if (rc < 0)
        spec->reader->texts.failed = true;
    else if (rc > 0)
        reader_fail_key(
            &placement, "spread",
            "node contradicts spec.template.spec.affinity.podAffinity, which requires all "
            "workers to be on one node (" NODE_SPREAD_TOPOLOGY "): drop that term, or say "
            "none");
}

static void check_texts(const struct reader_node *spec, const struct job_spec *s)
{
    struct reader_node node, nccl;
    if (s->queue && !(k8s_is_subdomain(s->queue) && strlen(s->queue) <= K8S_LABEL_MAX) &&
        reader_get(spec, "queue", &node))
        reader_expected(&node, "the name of a LocalQueue");
    if (!reader_get(spec, "nccl", &nccl) || !json_is_object(nccl.value))
        return;
    if (s->nccl_profile && !k8s_is_label(s->nccl_profile) && reader_get(&nccl, "profile", &node))
        reader_expected(&node, "auto or a profile's name such as a4");
    if (s->nccl_version && !is_version(s->nccl_version) && reader_get(&nccl, "version", &node))
        reader_expected(&node, "NCCL's version such as \"2.27.5\"");
}

void spec_check(const struct reader_node *root, const struct reader_node *spec,
                struct spec_raw *raw)
{
    struct job_spec *s = &raw->s;
    struct reader_node node;
    if (root != spec)
        check_document(root, raw);
    spec_check_devices(spec, s);
    spec_check_template(spec, raw);
    check_labels(spec, "labels", true);
    check_labels(spec, "annotations", false);
    check_placement(spec, s);
    spec_check_failure_policy(spec, raw);
    check_texts(spec, s);
    if ((uint64_t)s->workers * s->ranks_per_worker > RANKMAP_RANKS_MAX &&
        reader_get(spec, "ranksPerWorker", &node))
        reader_fail(&node, "%u workers of %u ranks are more than the %u ranks of a job", s->workers,
                    s->ranks_per_worker, RANKMAP_RANKS_MAX);
    if (!s->claims)
        s->claims = s->queue ? SPEC_CLAIMS_TEMPLATE : SPEC_CLAIMS_DIRECT;
    if (!s->network)
        s->network = s->nics.count || s->nics.all ? SPEC_NETWORK_RDMA : SPEC_NETWORK_ANY;
    if (!s->fabric)
        s->fabric = s->network == SPEC_NETWORK_RDMA && s->workers > 1 ? SPEC_FABRIC_REACH
                                                                      : SPEC_FABRIC_OPEN;
}
