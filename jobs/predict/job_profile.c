/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/predict/job_profile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jobs/manifests/claims.h"
#include "jobs/manifests/node_fit.h"
#include "jobs/manifests/pod_amounts.h"
#include "jobs/predict/class_devices.h"
#include "lib/dra/extended_resource.h"
#include "lib/dra/predict.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

#define AUTO "auto"

static bool is_asked_for(const struct spec_devices *devices)
{
    return devices->class || devices->resource;
}

/* Which machine the workers of each role get is not looked for yet. */
bool job_profile_is_open(const struct job_spec *spec)
{
    const struct spec_role *role = &spec->roles[0];
    return !spec_has_roles(spec) && strcmp(role->nccl_profile, AUTO) == 0 &&
           is_asked_for(&role->nics);
}

/* ---- by nodeSelector ---- */

static bool has_no_attribute(const char *key, bool (*match)(const char *value, const void *arg),
                             const void *arg, const void *node)
{
    (void)key, (void)match, (void)arg, (void)node;
    return false;
}

static struct nodes_profile by_selector(const json_t *pod, const struct profiles *profiles)
{
    struct nodes_profile result = {0};
    const json_t *labels = json_object_get(pod, "nodeSelector");
    char fact[sizeof result.why - 32];
    const struct profile_facts facts = {
        .labels = labels,
        .has_attribute = has_no_attribute,
        .arch = value_text(labels, "kubernetes.io/arch"),
    };
    result.found = profiles_detect(profiles, &facts, fact, sizeof fact);
    if (result.found)
        snprintf(result.why, sizeof result.why, "nodeSelector: %s", fact);
    return result;
}

/* ---- by the nodes ---- */

struct kind {
    const struct spec_devices *devices;
    json_t *nodes; /* name -> count: of the devices that class and selectors admit; NULL: any */
    bool by_class; /* these serve a resource where no plugin does */
};

struct search {
    const json_t *pod; /* of the template */
    struct kind kinds[2];
};

static bool can_take(const json_t *node, const struct slice_device *devices, size_t count,
                     void *arg)
{
    const struct search *s = arg;
    const json_t *allocatable = json_object_get(json_object_get(node, "status"), "allocatable");
    const char *name = value_text_or(json_object_get(node, "metadata"), "name", "");
    (void)devices, (void)count;
    if (!node_fit_is_chosen(s->pod, node))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(s->kinds); i++) {
        const struct kind *kind = &s->kinds[i];
        bool has_devices = !kind->nodes || json_object_get(kind->nodes, name);
        double amount = 1;
        if (kind->devices->resource && allocatable &&
            pod_amount(allocatable, kind->devices->resource, &amount, NULL) < 0)
            return false;
        if (kind->devices->resource ? amount <= 0 && !(kind->by_class && has_devices)
                                    : !has_devices)
            return false;
    }
    return true;
}

/* Those of the cluster, and those that slices alone know. */
static json_t *all_nodes(const struct job_profile_cluster *cluster)
{
    json_t *list = json_array(), *node;
    CLEANUP(json_decrefp) json_t *known = json_object();
    size_t i;
    json_array_foreach(cluster->nodes, i, node)
    {
        json_array_append(list, node);
        json_object_set_new(known, value_text_or(json_object_get(node, "metadata"), "name", ""),
                            json_true());
    }
    for (size_t k = 0; k < cluster->slices->device_count; k++) {
        const char *name = cluster->slices->devices[k].node;
        if (!name || json_object_get(known, name))
            continue;
        json_object_set_new(known, name, json_true());
        json_array_append_new(list, json_pack("{s:{s:s}}", "metadata", "name", name));
    }
    return list;
}

static int read_kinds(struct search *s, const struct spec_role *role,
                      const struct job_profile_cluster *cluster, struct drarun_error *err)
{
    static const char *const names[] = {"gpu", "nic"};
    const struct predict_cluster of = {.slices = cluster->slices, .classes = cluster->classes};
    CLEANUP(json_decrefp) json_t *claim = NULL;
    int rc = claims_wanted_by(role)
                 ? claims_spec(role, CLAIMS_API_V1, claims_attempts_of(role) - 1, &claim, err)
                 : 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(s->kinds); i++) {
        struct kind *kind = &s->kinds[i];
        const char *serves =
            kind->devices->resource
                ? extended_resource_class(cluster->classes, kind->devices->resource, cluster->minor)
                : NULL;
        kind->by_class = serves != NULL;
        if (serves)
            rc = class_devices_serving(serves, &of, &kind->nodes, err);
        else if (kind->devices->class)
            rc = class_devices(claim, &of, names[i], &kind->nodes, err);
    }
    return rc;
}

static struct nodes_profile by_nodes(const struct spec_role *role, const struct profiles *profiles,
                                     const struct job_profile_cluster *cluster)
{
    struct nodes_profile result = {0};
    struct drarun_error err = {0};
    struct search search = {.pod = spec_role_pod(role),
                            .kinds = {{.devices = &role->gpus}, {.devices = &role->nics}}};
    if (read_kinds(&search, role, cluster, &err) == 0) {
        CLEANUP(json_decrefp) json_t *nodes = all_nodes(cluster);
        result = nodes_profile_find(profiles, nodes, cluster->slices, can_take, &search);
    } else {
        snprintf(result.why, sizeof result.why, "%.250s", err.text);
    }
    for (size_t i = 0; i < ARRAY_LEN(search.kinds); i++)
        json_decref(search.kinds[i].nodes);
    return result;
}

/* ---- both ---- */

static struct nodes_profile find_profile(const struct job_spec *spec,
                                         const struct profiles *profiles,
                                         const struct job_profile_cluster *cluster)
{
    struct nodes_profile result = by_selector(spec_role_pod(&spec->roles[0]), profiles);
    if (result.found)
        return result;
    if (cluster && cluster->slices)
        return by_nodes(&spec->roles[0], profiles, cluster);
    snprintf(result.why, sizeof result.why, "nodeSelector names none, and the nodes are not known");
    return result;
}

/* The document is what reaches the launcher: there and in the spec. */
static int write_name(struct job_spec *spec, const struct profiles *profiles, const char *name,
                      struct drarun_error *err)
{
    json_t *own = json_object_get(spec->document, "spec"), *nccl = json_object_get(own, "nccl");
    json_t *text = json_string(name);
    if (!nccl && json_object_set_new(own, "nccl", nccl = json_object()) < 0)
        nccl = NULL;
    if (!text || json_object_set_new(nccl, "profile", text) < 0)
        return error_set(err, ENOMEM, "out of memory");
    spec->roles[0].nccl_profile = json_string_value(text);
    return spec_use_profiles(spec, profiles, err);
}

int job_profile_settle(struct job_spec *spec, const struct profiles *profiles,
                       const struct job_profile_cluster *cluster, struct nodes_profile *ret_found,
                       struct drarun_error *err)
{
    struct nodes_profile found = {0};
    int rc = 0;
    if (job_profile_is_open(spec))
        found = find_profile(spec, profiles, cluster);
    if (found.found && found.found->machine)
        rc = write_name(spec, profiles, found.found->name, err);
    if (rc == 0 && ret_found)
        *ret_found = found;
    return rc;
}

void job_profile_ask(const struct nodes_profile *found, char *ret_text, size_t size)
{
    snprintf(ret_text, size,
             "which machine the workers get is not known before they have nodes (%s): nothing of "
             "its vendor is mounted into the pods; if they need that, set nccl: {profile: NAME}",
             found->why);
}
