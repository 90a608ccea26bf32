/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/submit/reap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jobs/spec/k8s_name.h"
#include "jobs/manifests/objects.h"
#include "launcher/cluster/submit/create.h"
#include "launcher/cluster/client/expire.h"
#include "launcher/cluster/client/lease.h"
#include "launcher/cluster/client/lease_life.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

/* The job whose owner the ConfigMap is; NULL: it is none, or one that is kept for its time. */
static const char *job_of(const json_t *map)
{
    const json_t *metadata = json_object_get(map, "metadata");
    const json_t *labels = json_object_get(metadata, "labels");
    const char *job = json_string_value(json_object_get(labels, "drarun.dev/job"));
    char name[K8S_LABEL_MAX + 8];
    if (!job || json_object_get(metadata, "ownerReferences") ||
        json_object_get(json_object_get(metadata, "annotations"), EXPIRE_ANNOTATION))
        return NULL;
    snprintf(name, sizeof name, "%s-status", job);
    return strcmp(name, kube_name(map)) == 0 ? job : NULL;
}

static bool is_older(int64_t then, int64_t seconds, const struct cluster *cluster)
{
    int64_t now = kube_client_now(cluster->client);
    return then > 0 && now > 0 && now - then > seconds * 1000;
}

/* 1: its launcher is gone. */
static int is_abandoned(struct cluster *cluster, const json_t *map, const char *job,
                        struct drarun_error *err)
{
    const struct kube_target target = {
        .resource = &kube_leases, .namespace_ = kube_namespace(map), .name = job};
    CLEANUP(json_decrefp) json_t *lease = NULL;
    int rc = cluster_get(cluster, &target, &lease, err);
    if (rc == -ENOENT)
        error_clear(err);
    else if (rc < 0)
        return rc;
    if (lease && kube_is_owned_by(lease, kube_uid(map)))
        return is_older(lease_life_sign(lease), LEASE_S, cluster);
    return is_older(kube_created_ms(map), REAP_YOUNG_S, cluster);
}

static int delete_abandoned(struct cluster *cluster, const json_t *map, const char *job,
                            struct drarun_error *err)
{
    int rc = is_abandoned(cluster, map, job, err);
    if (rc <= 0)
        return rc;
    rc = delete_job(cluster, job, kube_namespace(map), true, kube_uid(map), err);
    if (rc < 0)
        return rc;
    log_note("job %s: its launcher, a drarun run --here, is gone: deleting what it left", job);
    return 1;
}

/* Those of the maps whose launcher seems to be gone; a new reference. */
static json_t *abandoned(struct cluster *cluster, const json_t *maps)
{
    struct drarun_error err = {0};
    json_t *found = json_array(), *map;
    size_t i;
    json_array_foreach(maps, i, map)
    {
        const char *job = job_of(map);
        int rc = job ? is_abandoned(cluster, map, job, &err) : 0;
        if (rc > 0)
            json_array_append(found, map);
        if (rc < 0)
            log_verbose("cannot see whether job %s is led: %s", job, err.text);
    }
    return found;
}

void reap_look(struct cluster *cluster, const char *namespace, struct reap *ret_reap)
{
    struct drarun_error err = {0};
    const struct kube_target all = {.resource = &kube_config_maps, .namespace_ = namespace};
    const struct kube_select select = {
        .labels = "drarun.dev/job", .metadata_only = true, .older = true};
    CLEANUP(json_decrefp) json_t *list = NULL, *found = NULL;
    if (cluster_list(cluster, &all, &select, &list, &err) < 0)
        log_verbose("cannot look for what killed launchers have left: %s", err.text);
    found = abandoned(cluster, json_object_get(list, "items"));
    *ret_reap = (struct reap){.due_ms = clock_ms() + REAP_AGAIN_MS};
    if (json_array_size(found) > 0)
        ret_reap->found = TAKE_PTR(found);
}

void reap_done(struct reap *reap)
{
    json_decref(TAKE_PTR(reap->found));
}

size_t reap_next(struct cluster *cluster, struct reap *reap)
{
    struct drarun_error err = {0};
    CLEANUP(json_decrefp) json_t *map = json_incref(json_array_get(reap->found, 0));
    json_array_remove(reap->found, 0);
    if (json_array_size(reap->found) == 0)
        reap_done(reap);
    int rc = map ? delete_abandoned(cluster, map, job_of(map), &err) : 0;
    if (rc < 0)
        log_verbose("cannot delete what is left of job %s: %s", job_of(map), err.text);
    return rc > 0;
}

size_t reap_abandoned(struct cluster *cluster, const char *namespace)
{
    struct reap reap;
    size_t count = 0;
    reap_look(cluster, namespace, &reap);
    while (reap.found && clock_ms() < reap.due_ms)
        cluster_turn(cluster, reap.due_ms - clock_ms());
    while (reap.found)
        count += reap_next(cluster, &reap);
    return count;
}

int reap_create(struct cluster *cluster, const struct job_spec *spec,
                const struct render_options *options, char **ret_uid, struct drarun_error *err)
{
    const char *namespace = object_namespace(spec, options);
    struct drarun_error first = {0};
    int rc = create_job(cluster, spec, options, CREATE_GOING_MS, ret_uid, &first);
    if (rc == -EEXIST && expire_reap(cluster, namespace) + reap_abandoned(cluster, namespace) > 0)
        return create_job(cluster, spec, options, CREATE_GOING_MS, ret_uid, err);
    return rc < 0 ? error_kind(err, first.kind, first.code, "%s", first.text) : 0;
}
