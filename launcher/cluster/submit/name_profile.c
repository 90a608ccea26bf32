/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/submit/name_profile.h"

#include "jobs/manifests/agent_way.h"
#include "jobs/predict/job_profile.h"
#include "lib/base/cleanup.h"
#include "lib/base/log.h"

#define WITHOUT "the machine type of the workers is derived without them"

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
static bool needs_labels_alone(const struct job_spec *spec)
{
    return !spec->roles[0].gpus.resource && !spec->roles[0].nics.resource;
}

static int settle(const struct survey *survey, struct job_spec *spec,
                  const struct profiles *profiles, struct nodes_profile *ret_found,
                  struct drarun_error *err)
{
    struct cluster *cluster = survey->cluster;
    json_t *list = survey->items[SURVEY_SLICES], *nodes = survey->items[SURVEY_NODES];
    struct slices slices = {0};
    if (!needs_labels_alone(spec))
        choose_delivery(cluster, nodes, &spec->roles[0]);
    bool known = list && slices_read(list, &slices, NULL) == 0;
    const struct job_profile_cluster found = {.slices = &slices,
                                              .nodes = nodes,
                                              .classes = survey->items[SURVEY_CLASSES],
                                              .minor = cluster->minor};
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

bool name_profile_is_ready(const struct job_spec *spec, struct survey *survey)
{
    if (!job_profile_is_open(spec) || !survey->cluster->api)
        return true;
    if (!survey_read(survey, SURVEY_SLICES, false, WITHOUT))
        return false;
    return !survey->items[SURVEY_SLICES] ||
           (survey_read(survey, SURVEY_CLASSES, false, WITHOUT) &&
            survey_read(survey, SURVEY_NODES, needs_labels_alone(spec), WITHOUT));
}

int name_profile_by(const struct survey *survey, struct job_spec *spec, struct drarun_error *err)
{
    struct profiles profiles = {0};
    struct nodes_profile found = {0};
    if (!job_profile_is_open(spec))
        return 0;
    int rc = profiles_builtin(&profiles, err);
    if (rc < 0)
        return rc;
    rc = settle(survey, spec, &profiles, &found, err);
    if (rc == 0)
        say(&found);
    profiles_done(&profiles);
    return rc;
}

int name_profile(struct cluster *cluster, struct job_spec *spec, struct drarun_error *err)
{
    CLEANUP(survey_done) struct survey survey = {.cluster = cluster};
    while (!name_profile_is_ready(spec, &survey))
        cluster_turn(cluster, KUBE_CALL_MS);
    return name_profile_by(&survey, spec, err);
}
