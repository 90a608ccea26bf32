/* SPDX-License-Identifier: Apache-2.0 */
/* What goes together in a spec, and names. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/spec/k8s_name.h"
#include "lib/dra/known_class.h"
#include "jobs/spec/node_spread.h"
#include "jobs/ranks/rankmap.h"
#include "jobs/spec/spec_fields.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/signal_name.h"

static void check_config(const struct reader_node *node, struct spec_devices *d)
{
    struct reader_node at;
    if (!d->config && d->config_driver) {
        reader_fail_key(node, "driver", "names the driver of config, but config is missing");
        d->config_driver = NULL;
    }
    if (!d->config || d->resource)
        return;
    if (!d->config_driver && d->class)
        d->config_driver = known_class(d->class) ? known_class(d->class)->driver : NULL;
    if (!d->config_driver && d->class)
        reader_fail_key(
            node, "config",
            "the driver of the class %s is not known: add driver, such as driver: dra.net",
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
    static const char *const claimed[] = {"profile", "selector",    "capacity", "firstAvailable",
                                          "match",   "tolerations", "config"};
    struct reader_node at;
    if (!k8s_is_qualified(d->resource) || !strchr(d->resource, '/')) {
        if (reader_get(node, "resource", &at))
            reader_expected(&at, "a resource such as nvidia.com/gpu");
    }
    if (d->all && reader_get(node, "count", &at))
        reader_fail(&at, "all needs a class: a resource needs a number");
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

/* One name would have two amounts in the choice's request. */
static void check_choice_capacity(const struct reader_node *item, const struct spec_devices *d)
{
    struct reader_node at;
    const char *name;
    json_t *amount;
    if (!reader_get(item, "capacity", &at) || !json_is_object(at.value))
        return;
    json_object_foreach(at.value, name, amount)
    {
        if (json_object_get(d->capacity, name))
            reader_fail_key(&at, name, "is also in the capacity of all choices: give it once");
    }
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
        check_choice_capacity(&item, d);
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
                        "class and resource exclude each other: give class (claimed) or resource "
                        "(from a device plugin)");
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

/* dra-driver-cpu hands out CPUs as a capacity of their group, which is a NUMA node where its
 * settings say nothing else. */
static void check_cpus(const struct reader_node *devices, struct spec_role *role)
{
    struct spec_devices *cpus = &role->cpus;
    struct reader_node node, at;
    if (!reader_get(devices, "cpus", &node) || !json_is_object(node.value))
        return;
    if (!reader_get(&node, "count", &at))
        reader_missing(&node, "count is missing: how many CPUs for each worker");
    if (!cpus->class)
        cpus->class = SPEC_CPU_CLASS;
    if (!k8s_is_subdomain(cpus->class) && reader_get(&node, "class", &at))
        reader_expected(&at, "a DeviceClass' name such as " SPEC_CPU_CLASS);
    if (role->cpu_count % cpus->count != 0 && reader_get(&node, "groups", &at))
        reader_fail(&at, "%u CPUs cannot be split into %u equal parts", role->cpu_count,
                    cpus->count);
    if (cpus->count > 1 && strlist_has(&role->match, "resource.kubernetes.io/numaNode"))
        reader_fail_key(
            devices, "match",
            "wants all devices on one NUMA node, and cpus.groups wants CPUs of several");
    cpus->capacity =
        json_pack("{s:o}", SPEC_CPU_CAPACITY, json_sprintf("%u", role->cpu_count / cpus->count));
    node.reader->texts.failed |= !cpus->capacity;
}

/* Which claims there are is the same for all workers. */
static void check_claims_of_role(const struct spec_role_nodes *at,
                                 const struct reader_node *devices)
{
    if (at->own != at->above && devices->parent == at->own &&
        json_object_get(devices->value, "claims"))
        reader_fail_key(devices, "claims",
                        "applies to the whole job: put it into spec.devices.claims");
}

/* Fills in class and config_driver. */
static void check_devices(const struct spec_role_nodes *at, struct spec_role *role)
{
    struct reader_node devices;
    if (!spec_role_get(at, "devices", &devices) || !json_is_object(devices.value))
        return;
    check_claims_of_role(at, &devices);
    check_kind(&devices, "gpus", &role->gpus, "gpu.nvidia.com");
    check_kind(&devices, "nics", &role->nics, NULL);
    check_cpus(&devices, role);
    int kinds =
        (role->gpus.class != NULL) + (role->nics.class != NULL) + (role->cpus.class != NULL);
    if (role->match.count > 0 && kinds < 2)
        reader_fail_key(&devices, "match",
                        "covers GPUs, NICs and CPUs of one claim: request both by class, or give "
                        "gpus.match or nics.match");
}

_Static_assert(SPEC_NAME_MAX == 55, "check_name says so");

#define DRAWN 5 /* characters of a made name behind its beginning */

/* As the API server makes names: what must be a label in the end. */
static void check_beginning(const struct reader_node *node, const char *begin)
{
    char name[K8S_LABEL_MAX + DRAWN + 1];
    snprintf(name, sizeof name, "%.*sx", K8S_LABEL_MAX, begin);
    if (!k8s_is_label(name) && strlen(begin) < K8S_LABEL_MAX)
        reader_expected(node, "what a DNS label begins with (a-z, 0-9 and inner -)");
    else if (strlen(begin) + DRAWN > SPEC_NAME_MAX)
        reader_fail(node,
                    "at most %d characters, because %d are drawn and a job's name has at most %d; "
                    "got %zu",
                    SPEC_NAME_MAX - DRAWN, DRAWN, SPEC_NAME_MAX, strlen(begin));
}

static void check_name(const struct reader_node *metadata, const struct job_spec *s)
{
    struct reader_node node;
    if (s->generate_name && reader_get(metadata, "generateName", &node))
        check_beginning(&node, s->generate_name);
    if (!s->name || !reader_get(metadata, "name", &node))
        return;
    if (!k8s_is_label(s->name))
        reader_expected(&node, "a DNS label (a-z, 0-9 and inner -, at most 55)");
    else if (strlen(s->name) > SPEC_NAME_MAX)
        reader_fail(
            &node,
            "at most %d characters, because derived names, such as NAME-channel, have at most "
            "%d; got %zu",
            SPEC_NAME_MAX, K8S_LABEL_MAX, strlen(s->name));
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

/* What `drarun import` takes (jobs/import/import.h). version: NULL or "" where it is not given. */
static bool is_imported(const char *kind, const char *version)
{
    static const char batch[] = "batch/"; /* Volcano has a Job, too */
    static const char *const kinds[] = {"Job", "JobSet",     "LeaderWorkerSet", "MPIJob",
                                        "Pod", "PyTorchJob", "StatefulSet",     "TrainJob"};
    if (strcmp(kind, "Job") == 0 && version && strchr(version, '/') &&
        strncmp(version, batch, strlen(batch)) != 0 && strcmp(version, SPEC_API_VERSION) != 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kind, kinds[i]) == 0)
            return true;
    return false;
}

static void check_document(const struct reader_node *root, const struct spec_raw *raw)
{
    static const char group[] = "drarun.dev/";
    struct reader_node node, name;
    bool ours = raw->api_version && strncmp(raw->api_version, group, strlen(group)) == 0;
    bool other = raw->api_version && strcmp(raw->api_version, SPEC_API_VERSION) != 0;
    if (other && reader_get(root, "apiVersion", &node) && ours)
        reader_fail(&node, "expected %s, got \"%.60s\": another release of drarun reads it",
                    SPEC_API_VERSION, raw->api_version);
    else if (other && reader_get(root, "apiVersion", &node))
        reader_expected(&node, SPEC_API_VERSION);
    if (raw->kind && strcmp(raw->kind, SPEC_KIND) != 0 && reader_get(root, "kind", &node))
        reader_fail(
            &node, "expected %s, got \"%.60s\"%s", SPEC_KIND, raw->kind,
            is_imported(raw->kind, raw->api_version) ? ": drarun import makes a DraJob of it" : "");
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
    int rc = 0;
    for (uint32_t r = 0; rc == 0 && r < s->role_count; r++)
        rc = node_spread_is_refused(s, &s->roles[r], NULL);
    if (rc < 0)
        spec->reader->texts.failed = true;
    else if (rc > 0)
        reader_fail_key(
            &placement, "spread",
            "node contradicts spec.template.spec.affinity.podAffinity, which requires all "
            "workers to be on one node (" NODE_SPREAD_TOPOLOGY "): drop that term, or use none");
}

static void check_nccl(const struct spec_role_nodes *at, const struct spec_role *role)
{
    struct reader_node node, nccl;
    if (!spec_role_get(at, "nccl", &nccl) || !json_is_object(nccl.value))
        return;
    if (role->nccl_profile && !k8s_is_label(role->nccl_profile) &&
        reader_get(&nccl, "profile", &node))
        reader_expected(&node, "auto or a profile's name such as a4");
    if (role->nccl_version && !is_version(role->nccl_version) &&
        reader_get(&nccl, "version", &node))
        reader_expected(&node, "NCCL's version such as \"2.27.5\"");
}

static void check_texts(const struct reader_node *spec, const struct job_spec *s)
{
    struct reader_node node, devices;
    if (s->queue && !(k8s_is_subdomain(s->queue) && strlen(s->queue) <= K8S_LABEL_MAX) &&
        reader_get(spec, "queue", &node))
        reader_expected(&node, "the name of a LocalQueue");
    if (s->managed_by &&
        !(k8s_is_domain_path(s->managed_by) && strlen(s->managed_by) <= SPEC_MANAGER_MAX) &&
        reader_get(spec, "managedBy", &node))
        reader_expected(&node, "a controller such as example.com/name, of at most 63 characters");
    if (s->oversubscribe && s->launch && s->launch != SPEC_LAUNCH_PMIX)
        reader_fail_key(spec, "oversubscribe",
                        "is for ranks that ranks start through PMIx: leave it out, or use launch: "
                        "pmix");
    if (s->queue && s->claims == SPEC_CLAIMS_DIRECT && reader_get(spec, "devices", &devices))
        reader_fail_key(&devices, "claims",
                        "queue needs claims: template, which is what Kueue counts");
}

/* ---- roles ---- */

/* Each key of the role's own, or else of the top. What NCCL is told is about devices: a role that
 * asks for none has its own words alone, else a machine's files would be mounted where it never
 * runs. */
static void read_keys(const struct spec_role_nodes *at, struct spec_role *role)
{
    fields_default(&spec_role_fields, role);
    for (size_t i = 0; i < spec_role_fields.count; i++) {
        const struct field *f = &spec_role_fields.list[i];
        if (strcmp(f->key, "nccl") == 0)
            continue;
        bool of_roles = strcmp(f->key, "name") == 0;
        fields_read_one(f, of_roles ? at->own : spec_role_holder(at, f->key), role);
    }
    bool asks = spec_role_has_devices(role) || role->shared.count > 0;
    fields_read_one(fields_find(&spec_role_fields, "nccl"),
                    asks ? spec_role_holder(at, "nccl") : at->own, role);
}

/* Ranks that ranks start are placed by drarun with PMIx alone. */
static void check_slots(const struct spec_role_nodes *at, const struct job_spec *s,
                        const struct spec_role *role)
{
    struct reader_node node;
    if (role->slots == 0 || !spec_role_get(at, "slots", &node))
        return;
    if (role->slots < role->ranks_per_worker)
        reader_fail(&node, "%u slots are fewer than the %u ranks that each worker starts with",
                    role->slots, role->ranks_per_worker);
    if (s->launch == SPEC_LAUNCH_ENV)
        reader_fail(&node, "launch: env has no PMIx, by which ranks start others: leave it out");
}

static void check_role(const struct spec_role_nodes *at, const struct job_spec *s,
                       struct spec_role *role)
{
    check_slots(at, s, role);
    check_devices(at, role);
    spec_check_template(at, role);
    check_labels(spec_role_holder(at, "labels"), "labels", true);
    check_labels(spec_role_holder(at, "annotations"), "annotations", false);
    check_nccl(at, role);
}

static void check_role_name(const struct reader_node *own, const struct job_spec *s, uint32_t index)
{
    struct reader_node node;
    const char *name = s->roles[index].name;
    if (!json_object_get(own->value, "name"))
        reader_missing(own, "name is missing: what the role is called");
    if (!name || !reader_get(own, "name", &node))
        return;
    if (!k8s_is_label(name) || strlen(name) > SPEC_ROLE_NAME_MAX)
        reader_expected(&node, "a DNS label of at most 40 characters (a-z, 0-9 and inner -)");
    else if (strcmp(name, "all") == 0 || strcmp(name, "rank0") == 0)
        reader_fail(&node, "all and rank0 have a meaning in spec.success: use another name");
    for (uint32_t i = 0; i < index; i++)
        if (s->roles[i].name && strcmp(s->roles[i].name, name) == 0)
            reader_fail(&node, "a second role called \"%.60s\"", name);
}

static void number_workers(const struct reader_node *spec, struct job_spec *s)
{
    struct reader_node node;
    uint64_t workers = 0, ranks = 0;
    for (uint32_t r = 0; r < s->role_count; r++) {
        struct spec_role *role = &s->roles[r];
        role->first = (uint32_t)workers;
        workers += role->workers;
        ranks += (uint64_t)role->workers * role->ranks_per_worker;
    }
    s->workers = (uint32_t)workers;
    bool listed = reader_get(spec, "roles", &node);
    if (workers > SPEC_WORKERS_MAX && listed)
        reader_fail(&node, "%" PRIu64 " workers are more than the %d of a job", workers,
                    SPEC_WORKERS_MAX);
    if (ranks > RANKMAP_RANKS_MAX && (listed || reader_get(spec, "ranksPerWorker", &node)))
        reader_fail(&node,
                    "%" PRIu64 " ranks on %" PRIu64 " workers are more than the %u ranks of a job",
                    ranks, workers, RANKMAP_RANKS_MAX);
}

/* The items of `roles`; a spec without is a role itself. */
static void read_roles(const struct reader_node *spec, struct spec_raw *raw)
{
    struct job_spec *s = &raw->s;
    struct reader_node list, item;
    bool listed = reader_get(spec, "roles", &list) && json_is_array(list.value);
    size_t count = listed ? json_array_size(list.value) : 1;
    count = count > SPEC_ROLES_MAX ? SPEC_ROLES_MAX : count;
    s->roles = calloc(count + 1, sizeof *s->roles);
    if (!s->roles) {
        spec->reader->texts.failed = true;
        return;
    }
    for (uint32_t r = 0; r < count; r++) {
        struct spec_role *role = &s->roles[s->role_count++];
        const struct reader_node *own = spec;
        if (listed) {
            item = reader_item(&list, r);
            own = &item;
        }
        const struct spec_role_nodes at = {own, spec};
        if (reader_object(own) < 0)
            continue;
        if (listed)
            fields_known(&spec_role_fields, own);
        read_keys(&at, role);
        check_role(&at, s, role);
        if (listed)
            check_role_name(own, s, r);
        else
            role->name = SPEC_ROLE;
    }
    number_workers(spec, s);
}

static bool same_priority(const struct spec_role *a, const struct spec_role *b)
{
    const json_t *own = json_object_get(spec_role_pod(a), "priorityClassName");
    const json_t *other = json_object_get(spec_role_pod(b), "priorityClassName");
    return own == other || json_equal(own, other);
}

/* What is not built for several roles, by the key that asks for it. */
static void refuse_with_roles(const struct reader_node *spec, const struct job_spec *s)
{
    struct reader_node group;
    if (s->role_count < 2)
        return;
    if (s->claims == SPEC_CLAIMS_TEMPLATE && !s->queue && reader_get(spec, "devices", &group))
        reader_fail_key(&group, "claims",
                        "template is not supported yet for several roles: leave it out");
    if (s->queue)
        reader_fail_key(spec, "queue",
                        "is not supported yet for several roles: a queue counts one Indexed Job");
    if (s->compute_domain)
        reader_fail_key(spec, "computeDomain",
                        "is not supported yet for several roles: its order of ranks is over all "
                        "workers");
    for (uint32_t r = 1; r < s->role_count && s->gang_scheduling == SPEC_GANG_AUTO; r++)
        if (!same_priority(&s->roles[0], &s->roles[r]))
            reader_fail_key(
                spec, "roles",
                "%s and %s have different priorities, which the scheduler rejects in one gang: "
                "give all roles one priorityClassName, or set gangScheduling: never",
                s->roles[0].name ? s->roles[0].name : "?",
                s->roles[r].name ? s->roles[r].name : "?");
    for (uint32_t r = 0; r < s->role_count; r++)
        if (s->launch == SPEC_LAUNCH_ENV && !s->own_worlds &&
            spec_role_starts_torchrun(&s->roles[r])) /* it counts its nodes over the whole world */
            reader_fail_key(spec, "launch",
                            "torchrun (%s) would count the workers of all roles: set world: own, "
                            "or run the program itself, a rank for each GPU",
                            s->roles[r].name ? s->roles[r].name : "?");
    if (s->launch == SPEC_LAUNCH_MPIRUN)
        reader_fail_key(spec, "launch",
                        "mpirun is not supported yet for several roles: one program starts all "
                        "ranks there; use pmix or env");
}

static void check_success(const struct reader_node *spec, struct spec_raw *raw)
{
    struct job_spec *s = &raw->s;
    struct reader_node node;
    struct buf names = BUF_INIT;
    if (!raw->success)
        return;
    s->success = strcmp(raw->success, "all") == 0     ? SPEC_SUCCESS_ALL
                 : strcmp(raw->success, "rank0") == 0 ? SPEC_SUCCESS_RANK0
                                                      : 0;
    for (uint32_t r = 0; r < s->role_count; r++) {
        const char *name = s->roles[r].name ? s->roles[r].name : "";
        buf_printf(&names, ", %s", name);
        if (s->success || strcmp(name, raw->success) != 0)
            continue;
        s->success = SPEC_SUCCESS_ROLE;
        s->success_role = r;
    }
    if (!s->success && reader_get(spec, "success", &node))
        reader_fail(&node, "expected all, rank0 or a role (%s), got \"%.60s\"",
                    names.data ? names.data + 2 : "", raw->success);
    spec->reader->texts.failed |= names.failed;
    buf_done(&names);
}

/* Which signal it is, so far by its place in the list, and whether it comes before the end. */
static void check_signal(const struct reader_node *spec, struct spec_timeouts *timeouts)
{
    struct reader_node node, before;
    if (!reader_get(spec, "timeouts", &node) || !json_is_object(node.value))
        return;
    bool has_before = reader_get(&node, "signalBefore", &before);
    double before_s = (double)timeouts->signal_before / 1000;
    double total_s = (double)timeouts->total / 1000;
    if (timeouts->signal == 0) {
        if (has_before)
            reader_fail_key(&node, "signalBefore",
                            "is for signal, which is missing: add one, such as SIGUSR1");
        return;
    }
    timeouts->signal = signal_at((size_t)timeouts->signal - 1);
    if (timeouts->total <= 0)
        reader_fail_key(&node, "signal",
                        "is sent before timeouts.total, which sets no limit: set it, too");
    else if (timeouts->signal_before <= 0)
        reader_fail_key(&node, "signalBefore",
                        "must be above 0: at timeouts.total itself ranks get SIGTERM");
    else if (timeouts->signal_before >= timeouts->total)
        reader_fail_key(&node, has_before ? "signalBefore" : "signal",
                        "the signal is to come %g s before timeouts.total, which is %g s: give a "
                        "shorter signalBefore or a longer total",
                        before_s, total_s);
}

static void check_agent_timeout(const struct reader_node *spec, int64_t ms)
{
    struct reader_node timeouts, node;
    if (!reader_get(spec, "timeouts", &timeouts) || !json_is_object(timeouts.value) ||
        !reader_get(&timeouts, "agent", &node))
        return;
    if (ms < SPEC_AGENT_TIMEOUT_MIN_MS || ms > SPEC_AGENT_TIMEOUT_MAX_MS)
        reader_fail(&node, "expected %d s to %d s for timeouts.agent, got %g s",
                    SPEC_AGENT_TIMEOUT_MIN_MS / 1000, SPEC_AGENT_TIMEOUT_MAX_MS / 1000,
                    (double)ms / 1000);
}

static bool any_asks_for_nics(const struct job_spec *s)
{
    bool any = false;
    for (uint32_t r = 0; r < s->role_count; r++)
        any |= spec_role_has_nics(&s->roles[r]);
    return any;
}

void spec_check(const struct reader_node *root, const struct reader_node *spec,
                struct spec_raw *raw)
{
    struct job_spec *s = &raw->s;
    s->claims = raw->above.claims;
    read_roles(spec, raw);
    if (root != spec)
        check_document(root, raw);
    check_placement(spec, s);
    spec_check_failure_policy(spec, raw);
    check_signal(spec, &s->timeouts);
    check_agent_timeout(spec, s->timeouts.agent);
    check_texts(spec, s);
    check_success(spec, raw);
    refuse_with_roles(spec, s);
    if (!s->claims)
        s->claims = s->queue ? SPEC_CLAIMS_TEMPLATE : SPEC_CLAIMS_DIRECT;
    s->network_given = s->network != 0;
    if (!s->network)
        s->network = any_asks_for_nics(s) ? SPEC_NETWORK_RDMA : SPEC_NETWORK_ANY;
    if (!s->fabric) {
        bool reach = s->network == SPEC_NETWORK_RDMA && s->workers > 1 && s->role_count == 1;
        s->fabric = reach ? SPEC_FABRIC_REACH : SPEC_FABRIC_OPEN;
    }
}
