/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/expire.h"

#include <errno.h>
#include <stdio.h>

#include "jobs/spec/k8s_name.h"
#include "launcher/cluster/client/job_clock.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/timestamp.h"
#include "lib/kube/object.h"

int expire_keep(struct cluster *cluster, const char *job, const char *namespace, const char *secret,
                int64_t seconds, struct drarun_error *err)
{
    char map[K8S_LABEL_MAX + 8], when[TIMESTAMP_SIZE];
    int64_t now = kube_client_now(cluster->client);
    const struct kube_delete background = {.propagation = "Background"};
    snprintf(map, sizeof map, "%s-status", job);
    timestamp_format((now ? now : lead_now()) + seconds * 1000, when, sizeof when);
    const struct kube_target targets[] = {
        {.resource = &kube_config_maps, .namespace_ = namespace, .name = map},
        {.resource = &kube_secrets, .namespace_ = namespace, .name = secret},
        {.resource = &kube_leases, .namespace_ = namespace, .name = job},
    };
    CLEANUP(json_decrefp)
    json_t *patch = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", EXPIRE_ANNOTATION, when);
    int rc = patch ? cluster_merge_patch(cluster, &targets[0], patch, err)
                   : error_set(err, ENOMEM, "out of memory");
    for (size_t i = 1; rc == 0 && i < ARRAY_LEN(targets); i++)
        rc = cluster_delete(cluster, &targets[i], &background, err);
    return rc;
}

/* now: by the API server's clock; 0: not known. */
static bool is_over(const json_t *map, int64_t now)
{
    const json_t *metadata = json_object_get(map, "metadata");
    const char *text = json_string_value(
        json_object_get(json_object_get(metadata, "annotations"), EXPIRE_ANNOTATION));
    int64_t end = 0;
    return now && text && timestamp_parse(text, &end) && now >= end;
}

size_t expire_reap(struct cluster *cluster, const char *namespace)
{
    struct drarun_error err = {0};
    const struct kube_target all = {.resource = &kube_config_maps, .namespace_ = namespace};
    const struct kube_select select = {.labels = "drarun.dev/job", .metadata_only = true};
    CLEANUP(json_decrefp) json_t *list = NULL;
    size_t i, count = 0;
    json_t *map;
    if (cluster_list(cluster, &all, &select, &list, &err) < 0)
        log_verbose("cannot look for the documents of expired jobs: %s", err.text);
    json_array_foreach(json_object_get(list, "items"), i, map)
    {
        const struct kube_target target = {
            .resource = &kube_config_maps, .namespace_ = namespace, .name = kube_name(map)};
        const struct kube_delete this = {.propagation = "Background", .uid = kube_uid(map)};
        if (!is_over(map, kube_client_now(cluster->client)))
            continue;
        if (cluster_delete(cluster, &target, &this, &err) < 0)
            log_verbose("%s has expired and cannot be deleted: %s", kube_name(map), err.text);
        else
            count++;
    }
    return count;
}
