/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/job_map.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jobs/k8s_name.h"
#include "jobs/status_doc.h"
#include "lib/base/error.h"

int job_map_get(struct cluster *cluster, const char *job, const char *namespace, json_t **ret_map,
                struct drarun_error *err)
{
    char name[K8S_LABEL_MAX + 8];
    snprintf(name, sizeof name, "%s-status", job);
    const struct kube_target target = {
        .resource = &kube_config_maps, .namespace_ = namespace, .name = name};
    int rc = cluster_get(cluster, &target, ret_map, err);
    if (rc != -ENOENT)
        return rc;
    *err = (struct drarun_error){0};
    return error_kind(err, DRARUN_ERR_USAGE, ENOENT,
                      "there is no job %s in namespace %s; drarun list shows those there are", job,
                      namespace);
}

static const char *data(const json_t *map, const char *key)
{
    return json_string_value(json_object_get(json_object_get(map, "data"), key));
}

int job_map_spec(const json_t *map, struct job_spec *ret_spec, struct drarun_error *err)
{
    const char *text = data(map, "job.json");
    if (!text)
        return error_kind(err, DRARUN_ERR_SPEC, ENOENT, "ConfigMap %s has no job.json",
                          kube_name(map));
    return spec_parse("job.json", text, strlen(text), ret_spec, err);
}

const char *job_map_status(const json_t *map)
{
    return data(map, STATUS_DOC_KEY);
}
