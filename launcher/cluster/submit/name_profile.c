/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/submit/name_profile.h"

#include <string.h>

#include "jobs/manifests/agent_way.h"
#include "jobs/predict/job_profile.h"
#include "lib/base/cleanup.h"
#include "lib/base/log.h"

/* NULL: they may not be read, or are not served. */
static json_t *items(struct cluster *cluster, const struct kube_resource *kind, bool metadata_only)
{
    struct kube_resource resource = *kind;
    struct drarun_error err = {0};
    const struct kube_target target = {.resource = &resource};
    const struct kube_select select = {.metadata_only = metadata_only};
    CLEANUP(json_decrefp) json_t *body = NULL;
    if (strcmp(resource.group, "resource.k8s.io") == 0)
        resource.version = cluster_claims_version(cluster);
    if (cluster_list(cluster, &target, &select, &body, &err) < 0) {
        log_verbose("the machine type of the workers is derived without them: %s", err.text);
        return NULL;
    }
    return json_incref(json_object_get(body, "items"));
}

/* Nodes may be older than their API server. Who led the job later would not know it. */
static void choose_delivery(struct cluster *cluster, const json_t *nodes,
                            const struct spec_role *role)
{
    if (!cluster->image_volume || cluster->delivery || !agent_way_is_copy(nodes, role))
        return;
    cluster->image_volume = false;
    cluster->delivery = "copy";
    log_verbose("an init container copies the agent, since not all nodes can mount its image");
}

/* Of Nodes, which are long, what devices of a plugin they have is in their status alone. */
static int settle(struct cluster *cluster, struct job_spec *spec, const struct profiles *profiles,
                  struct nodes_profile *ret_found, struct drarun_error *err)
{
    const struct spec_role *role = &spec->roles[0];
    bool labels_alone = !role->gpus.resource && !role->nics.resource;
    CLEANUP(json_decrefp) json_t *list = NULL;
    CLEANUP(json_decrefp) json_t *classes = NULL;
    CLEANUP(json_decrefp) json_t *nodes = NULL;
    struct slices slices = {0};
    if (cluster->api) {
        list = items(cluster, &kube_resource_slices, false);
        classes = list ? items(cluster, &kube_device_classes, false) : NULL;
    }
    nodes = list ? items(cluster, &kube_nodes, labels_alone) : NULL;
    if (!labels_alone)
        choose_delivery(cluster, nodes, role);
    bool known = list && slices_read(list, &slices, NULL) == 0;
    const struct job_profile_cluster found = {
        .slices = &slices, .nodes = nodes, .classes = classes, .minor = cluster->minor};
    int rc = job_profile_settle(spec, profiles, known ? &found : NULL, ret_found, err);
    if (known)
        slices_done(&slices);
    return rc;
}

static void say(const struct nodes_profile *found)
{
    char text[512];
    if (found->found) {
        log_verbose("profile %s: %s", found->found->name, found->why);
        return;
    }
    job_profile_ask(found, text, sizeof text);
    log_note("%s", text);
}

int name_profile(struct cluster *cluster, struct job_spec *spec, struct drarun_error *err)
{
    struct profiles profiles = {0};
    struct nodes_profile found = {0};
    if (!job_profile_is_open(spec))
        return 0;
    int rc = profiles_builtin(&profiles, err);
    if (rc < 0)
        return rc;
    rc = settle(cluster, spec, &profiles, &found, err);
    if (rc == 0)
        say(&found);
    profiles_done(&profiles);
    return rc;
}
