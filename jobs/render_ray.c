/* SPDX-License-Identifier: Apache-2.0 */
/* A RayCluster of KubeRay (ray.io/v1): a head, and one group of workers. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "jobs/objects.h"
#include "jobs/render_foreign_parts.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define NAME_MAX_RAY 53 /* KubeRay's MaxRayClusterNameLength */
#define GROUP "workers"
#define HEAD_CONTAINER "ray-head"
/* KubeRay's own command line stays out of the way of ours, and is told in a variable. Its quotes
 * are for a shell; its limit is what Ray's files and sockets need. */
#define OVERWRITE "ray.io/overwrite-container-cmd"
#define START "ulimit -n 65536; eval exec \"$KUBERAY_GEN_RAY_START_CMD\""

static int no_memory(struct drarun_error *err)
{
    return error_set(err, ENOMEM, "RayCluster: out of memory");
}

/* KubeRay reads the GPUs off the limits, where claimed ones are not. */
static json_t *start_params(const struct job_spec *spec, bool head, bool devices)
{
    json_t *params = json_object();
    int rc = 0;
    if (head)
        rc = json_object_set_new(params, "dashboard-host", json_string("0.0.0.0"));
    if (rc == 0 && devices && spec->gpus.class && spec->gpus.count)
        rc = json_object_set_new(params, "num-gpus", json_sprintf("%" PRIu32, spec->gpus.count));
    if (rc == 0)
        return params;
    json_decref(params);
    return NULL;
}

static json_t *head_ports(void)
{
    return json_pack("[{s:s, s:i}, {s:s, s:i}, {s:s, s:i}]", "name", "gcs-server", "containerPort",
                     6379, "name", "dashboard", "containerPort", 8265, "name", "client",
                     "containerPort", 10001);
}

static int worker_pod(const struct job_spec *spec, const struct render_foreign *how,
                      json_t **ret_template, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *command = json_pack("[s, s, s]", "/bin/bash", "-c", START);
    CLEANUP(json_decrefp) json_t *template = NULL;
    if (!command)
        return no_memory(err);
    int rc = foreign_pod(spec, how, command, &template, err);
    if (rc < 0)
        return rc;
    json_t *metadata = json_object_get(template, "metadata");
    json_t *annotations = json_object_get(metadata, "annotations");
    if (!annotations) {
        annotations = json_object();
        rc = json_object_set_new(metadata, "annotations", annotations);
    }
    if (rc == 0)
        rc = json_object_set_new(annotations, OVERWRITE, json_string("true"));
    if (rc < 0)
        return no_memory(err);
    *ret_template = TAKE_PTR(template);
    return 0;
}

/* One of the workers, with the head's ports. */
static int working_head(const struct job_spec *spec, const struct render_foreign *how,
                        json_t **ret_template, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *template = NULL;
    CLEANUP(json_decrefp) json_t *ports = head_ports();
    int rc = worker_pod(spec, how, &template, err);
    if (rc < 0)
        return rc;
    json_t *pod = json_object_get(template, "spec");
    json_t *first = json_array_get(json_object_get(pod, "containers"), 0);
    json_t *own = json_object_get(first, "ports");
    if (own ? json_array_extend(own, ports) < 0 : json_object_set(first, "ports", ports) < 0)
        return no_memory(err);
    *ret_template = TAKE_PTR(template);
    return 0;
}

/* The workers' image, and what it takes to pull it: all else of their template is for devices. */
static int plain_head(const struct job_spec *spec, const struct render_foreign *how,
                      json_t **ret_template, struct drarun_error *err)
{
    const json_t *pod = json_object_get(spec->template, "spec");
    const json_t *first = json_array_get(json_object_get(pod, "containers"), 0);
    json_t *head =
        json_pack("{s:{s:o}, s:{s:O*, s:[{s:s, s:O, s:o}]}}", "metadata", "labels",
                  object_labels(spec, &how->options), "spec", "imagePullSecrets",
                  json_object_get(pod, "imagePullSecrets"), "containers", "name", HEAD_CONTAINER,
                  "image", json_object_get(first, "image"), "ports", head_ports());
    if (!head)
        return no_memory(err);
    *ret_template = head;
    return 0;
}

static json_t *worker_groups(const struct job_spec *spec, int workers, json_t *template_take)
{
    if (workers == 0) {
        json_decref(template_take);
        return json_array();
    }
    return json_pack("[{s:s, s:i, s:i, s:i, s:o, s:o}]", "groupName", GROUP, "replicas", workers,
                     "minReplicas", workers, "maxReplicas", workers, "rayStartParams",
                     start_params(spec, false, true), "template", template_take);
}

static json_t *cluster_spec(const struct job_spec *spec, bool working, json_t *head_take,
                            json_t *worker_take)
{
    json_t *cluster =
        json_pack("{s:{s:o, s:o}, s:o}", "headGroupSpec", "rayStartParams",
                  start_params(spec, true, working), "template", head_take, "workerGroupSpecs",
                  worker_groups(spec, (int)(spec->workers - (working ? 1 : 0)), worker_take));
    if (!spec->suspend && !spec->queue) /* Kueue admits by taking it away */
        return cluster;
    if (json_object_set_new(cluster, "suspend", json_true()) == 0)
        return cluster;
    json_decref(cluster);
    return NULL;
}

static const char *word(const json_t *container, const char *list, size_t i)
{
    return json_string_value(json_array_get(json_object_get(container, list), i));
}

/* The pods start Ray themselves: the ranks' program has no place, unless it does just that. */
static void tell_command(const struct job_spec *spec, struct strlist *told)
{
    const json_t *document = json_object_get(spec->document, "spec");
    const json_t *pod = json_object_get(spec->template, "spec");
    const json_t *first = json_array_get(json_object_get(pod, "containers"), 0);
    const char *program = word(first, "command", 0), *verb = word(first, "command", 1);
    if (program && strcmp(program, "ray") == 0 && verb && strcmp(verb, "start") == 0)
        return;
    strlist_addf(told,
                 "LEFT_OUT: %s: the pods run ray start, which KubeRay writes; hand the program to "
                 "ray job submit",
                 json_object_get(document, "template") ? "spec.template.spec.containers[0].command"
                                                       : "spec.command");
}

int render_raycluster(const struct job_spec *spec, const struct render_foreign *how,
                      struct strlist *told, json_t **ret_manifests, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *list = NULL, *head = NULL, *worker = NULL;
    bool working = how->head == RENDER_HEAD_WORKER;
    int rc =
        foreign_check_name(spec, NAME_MAX_RAY, "KubeRay names pods and Services after it", err);
    tell_command(spec, told);
    if (rc == 0)
        rc = foreign_begin(spec, how, LEFT_OUT_RAYCLUSTER, told, &list, err);
    if (rc == 0)
        rc = worker_pod(spec, how, &worker, err);
    if (rc == 0)
        rc = (working ? working_head : plain_head)(spec, how, &head, err);
    if (rc < 0)
        return rc;
    json_t *cluster = cluster_spec(spec, working, TAKE_PTR(head), TAKE_PTR(worker));
    if (!cluster)
        return no_memory(err);
    rc = foreign_add(list, spec, how, "ray.io/v1", "RayCluster", true, cluster, err);
    if (rc == 0)
        *ret_manifests = TAKE_PTR(list);
    return rc;
}
