/* SPDX-License-Identifier: Apache-2.0 */
/* A RayCluster of KubeRay (ray.io/v1): a head, and one group of workers. A RayJob has one. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "jobs/manifests/objects.h"
#include "jobs/render_as/parts.h"
#include "jobs/spec/spec_words.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/expand.h"

#define NAME_MAX_RAY 53    /* KubeRay's MaxRayClusterNameLength */
#define NAME_MAX_RAYJOB 47 /* MaxRayJobNameLength: its cluster is called NAME-xxxxx */
#define MS_PER_S 1000
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
    if (rc == 0 && devices && spec->roles[0].gpus.class && spec->roles[0].gpus.count)
        rc = json_object_set_new(params, "num-gpus",
                                 json_sprintf("%" PRIu32, spec->roles[0].gpus.count));
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

static int refuse_port(const json_t *own, const char *name, struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                      "spec.template.spec.containers[0].ports: port %" JSON_INTEGER_FORMAT
                      " of a Ray head is called %s, with protocol TCP: KubeRay makes a Service of "
                      "the numbers, and finds ports by these names",
                      json_integer_value(json_object_get(own, "containerPort")), name);
}

/* A port of the container with the number of that one of Ray's gets its name. */
static int name_port(json_t *own, const json_t *port, struct drarun_error *err)
{
    json_t *name = json_object_get(port, "name");
    const char *protocol = json_string_value(json_object_get(own, "protocol"));
    bool other = protocol && strcmp(protocol, "TCP") != 0;
    if (other || (json_object_get(own, "name") && !json_equal(json_object_get(own, "name"), name)))
        return refuse_port(own, json_string_value(name), err);
    return json_object_set(own, "name", name) < 0 ? no_memory(err) : 0;
}

static json_t *find_port(const json_t *ports, const json_t *number)
{
    json_t *own;
    size_t i;
    json_array_foreach(ports, i, own)
    {
        if (json_equal(json_object_get(own, "containerPort"), number))
            return own;
    }
    return NULL;
}

/* Each number once, or KubeRay's API, or that of its Service, refuses it. */
static int add_head_ports(json_t *container, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *ports = head_ports();
    json_t *own = json_object_get(container, "ports"), *port;
    size_t i;
    int rc = 0;
    if (!ports || (!own && json_object_set(container, "ports", ports) < 0))
        return no_memory(err);
    json_array_foreach(own ? ports : NULL, i, port)
    {
        json_t *there = find_port(own, json_object_get(port, "containerPort"));
        if (there)
            rc = name_port(there, port, err);
        else if (json_array_append(own, port) < 0)
            rc = no_memory(err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* One of the workers, with the head's ports. */
static int working_head(const struct job_spec *spec, const struct render_foreign *how,
                        json_t **ret_template, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *template = NULL;
    int rc = worker_pod(spec, how, &template, err);
    if (rc < 0)
        return rc;
    json_t *pod = json_object_get(template, "spec");
    rc = add_head_ports(json_array_get(json_object_get(pod, "containers"), 0), err);
    if (rc < 0)
        return rc;
    *ret_template = TAKE_PTR(template);
    return 0;
}

/* The workers' image, and what it takes to pull it: all else of their template is for devices. */
static int plain_head(const struct job_spec *spec, const struct render_foreign *how,
                      json_t **ret_template, struct drarun_error *err)
{
    const json_t *pod = spec_role_pod(&spec->roles[0]);
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

static json_t *worker_groups(const struct job_spec *spec, const struct render_foreign *how,
                             int workers, json_t *template_take)
{
    if (workers == 0) {
        json_decref(template_take);
        return json_array();
    }
    int least = how->scales ? (int)how->replicas_min : workers;
    int most = how->scales ? (int)how->replicas_max : workers;
    return json_pack("[{s:s, s:i, s:i, s:i, s:o, s:o}]", "groupName", GROUP, "replicas", workers,
                     "minReplicas", least, "maxReplicas", most, "rayStartParams",
                     start_params(spec, false, true), "template", template_take);
}

static uint32_t workers_of_group(const struct job_spec *spec, const struct render_foreign *how)
{
    return spec->workers - (how->head == RENDER_HEAD_WORKER ? 1 : 0);
}

static json_t *cluster_spec(const struct job_spec *spec, const struct render_foreign *how,
                            json_t *head_take, json_t *worker_take)
{
    bool working = how->head == RENDER_HEAD_WORKER;
    json_t *groups = worker_groups(spec, how, (int)workers_of_group(spec, how), worker_take);
    return json_pack("{s:o*, s:{s:o, s:o}, s:o}", "enableInTreeAutoscaling",
                     how->scales ? json_true() : NULL, "headGroupSpec", "rayStartParams",
                     start_params(spec, true, working), "template", head_take, "workerGroupSpecs",
                     groups);
}

static const char *word(const json_t *container, const char *list, size_t i)
{
    return json_string_value(json_array_get(json_object_get(container, list), i));
}

/* The pods start Ray themselves: the ranks' program has no place, unless it does just that. */
static void tell_command(const struct job_spec *spec, struct strlist *told)
{
    const json_t *document = json_object_get(spec->document, "spec");
    const json_t *pod = spec_role_pod(&spec->roles[0]);
    const json_t *first = json_array_get(json_object_get(pod, "containers"), 0);
    const char *program = word(first, "command", 0), *verb = word(first, "command", 1);
    if (program && strcmp(program, "ray") == 0 && verb && strcmp(verb, "start") == 0)
        return;
    strlist_addf(told,
                 "LEFT_OUT: %s: the pods run ray start, which KubeRay writes; hand the program to "
                 "ray job submit",
                 json_object_get(document, "command") ? "spec.command"
                                                      : "spec.template.spec.containers[0].command");
}

static int check_replicas(const struct job_spec *spec, const struct render_foreign *how,
                          struct drarun_error *err)
{
    uint32_t workers = workers_of_group(spec, how);
    if (!how->scales || (how->replicas_min <= workers && workers <= how->replicas_max))
        return 0;
    return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                      "replicas: expected at most the group's %" PRIu32 " workers, and at least so "
                      "many, got %" PRIu32 ":%" PRIu32,
                      workers, how->replicas_min, how->replicas_max);
}

/* The claims and what else the pods need, and the cluster's spec. */
static int make_cluster(const struct job_spec *spec, const struct render_foreign *how,
                        enum left_out_by system, struct strlist *told, json_t **ret_list,
                        json_t **ret_cluster, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *list = NULL, *head = NULL, *worker = NULL;
    bool working = how->head == RENDER_HEAD_WORKER;
    int rc = check_replicas(spec, how, err);
    if (rc == 0)
        rc = foreign_begin(spec, how, system, told, &list, err);
    if (rc == 0)
        rc = worker_pod(spec, how, &worker, err);
    if (rc == 0)
        rc = (working ? working_head : plain_head)(spec, how, &head, err);
    if (rc < 0)
        return rc;
    json_t *cluster = cluster_spec(spec, how, TAKE_PTR(head), TAKE_PTR(worker));
    if (!cluster)
        return no_memory(err);
    *ret_cluster = cluster;
    *ret_list = TAKE_PTR(list);
    return 0;
}

int render_raycluster(const struct job_spec *spec, const struct render_foreign *how,
                      struct strlist *told, json_t **ret_manifests, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *list = NULL, *cluster = NULL;
    int rc =
        foreign_check_name(spec, NAME_MAX_RAY, "KubeRay names pods and Services after it", err);
    if (rc < 0)
        return rc;
    tell_command(spec, told);
    rc = make_cluster(spec, how, LEFT_OUT_RAYCLUSTER, told, &list, &cluster, err);
    if (rc < 0)
        return rc;
    json_t *suspend = foreign_suspended(spec);
    if (suspend && json_object_set_new(cluster, "suspend", suspend) < 0)
        return no_memory(err);
    rc = foreign_add(list, spec, how, "ray.io/v1", "RayCluster", true, TAKE_PTR(cluster), err);
    if (rc == 0)
        *ret_manifests = TAKE_PTR(list);
    return rc;
}

/* ---- a RayJob ---- */

/* As a shell reads it: KubeRay writes the entry point into the command line of one. */
static void add_quoted(struct buf *out, const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "%+,-./:=@_";
    buf_add_str(out, out->len ? " " : "");
    if (text[0] && text[strspn(text, plain)] == '\0') {
        buf_add_str(out, text);
        return;
    }
    buf_add_str(out, "'");
    for (; *text; text++)
        buf_printf(out, *text == '\'' ? "'\\''" : "%c", *text);
    buf_add_str(out, "'");
}

/* The pod that submits it has none of the job's variables: references to them are replaced here,
 * and nothing is left for its kubelet to replace. */
static void add_word(struct buf *out, const char *text, const struct strlist *env)
{
    CLEANUP(buf_done) struct buf replaced = BUF_INIT;
    CLEANUP(buf_done) struct buf escaped = BUF_INIT;
    expand_text_env(text, env, &replaced);
    if (!replaced.failed)
        expand_escape(replaced.data, &escaped);
    out->failed |= replaced.failed || escaped.failed;
    if (!out->failed)
        add_quoted(out, escaped.data);
}

/* The ranks' program, which runs once, as a driver that finds its cluster. */
static int entry_point(const struct job_spec *spec, struct buf *out, struct drarun_error *err)
{
    CLEANUP(strlist_done) struct strlist words = STRLIST_INIT;
    CLEANUP(strlist_done) struct strlist env = STRLIST_INIT;
    const json_t *pod = spec_role_pod(&spec->roles[0]);
    const json_t *first = json_array_get(json_object_get(pod, "containers"), 0);
    const char *program = word(first, "command", 0), *verb = word(first, "command", 1);
    if (!program)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "spec.command: expected the program of the RayJob, which drives its "
                          "cluster; got none");
    if (strcmp(program, "ray") == 0 && verb && strcmp(verb, "start") == 0)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "spec.command: expected the program of the RayJob; KubeRay writes \"ray "
                          "start\" itself (--as raycluster makes a cluster alone)");
    spec_words_add(&spec->roles[0], NULL, &words);
    spec_words_env(&spec->roles[0], &env);
    for (size_t i = 0; i < words.count; i++)
        add_word(out, words.items[i], &env);
    return out->failed || words.failed || env.failed ? no_memory(err) : 0;
}

/* What a program that runs on a plain head has not of what the job says. */
static void tell_head(const struct job_spec *spec, struct strlist *told)
{
    static const char *const keys[] = {"env", "envFrom", "volumeMounts", "workingDir",
                                       "securityContext"};
    const json_t *first = spec_role_container(&spec->roles[0]);
    CLEANUP(buf_done) struct buf list = BUF_INIT;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (json_object_get(first, keys[i]))
            buf_printf(&list, "%s%s", list.len ? ", " : "", keys[i]);
    told->failed |= list.failed;
    if (list.len > 0)
        strlist_addf(
            told,
            "HEAD_PLAIN: the program runs on the head, which has the image of the workers' "
            "container and not its %s: --head worker gives it all of them",
            list.data);
}

/* KubeRay deletes the cluster when the program ends, which frees its devices. It refuses to suspend
 * a RayJob that keeps its cluster. */
static json_t *rayjob_spec(const struct job_spec *spec, const char *entry, json_t *cluster_take)
{
    int64_t total = (spec->timeouts.total + MS_PER_S - 1) / MS_PER_S;
    json_t *ttl = spec->ttl_after_finished >= 0 ? json_integer(spec->ttl_after_finished) : NULL;
    return json_pack("{s:s, s:b, s:o*, s:o*, s:o*, s:o*, s:o}", "entrypoint", entry,
                     "shutdownAfterJobFinishes", 1, "ttlSecondsAfterFinished", ttl,
                     "activeDeadlineSeconds", total > 0 ? json_integer(total) : NULL,
                     "backoffLimit", spec->restarts ? json_integer(spec->restarts) : NULL,
                     "suspend", foreign_suspended(spec), "rayClusterSpec", cluster_take);
}

int render_rayjob(const struct job_spec *spec, const struct render_foreign *how,
                  struct strlist *told, json_t **ret_manifests, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *list = NULL, *cluster = NULL;
    CLEANUP(buf_done) struct buf entry = BUF_INIT;
    int rc = foreign_check_name(spec, NAME_MAX_RAYJOB,
                                "KubeRay names the cluster after it, and Services after that", err);
    if (rc == 0)
        rc = entry_point(spec, &entry, err);
    if (rc == 0 && how->head != RENDER_HEAD_WORKER)
        tell_head(spec, told);
    if (rc == 0)
        rc = make_cluster(spec, how, LEFT_OUT_RAYJOB, told, &list, &cluster, err);
    if (rc < 0)
        return rc;
    json_t *job = rayjob_spec(spec, entry.data, TAKE_PTR(cluster));
    if (!job)
        return no_memory(err);
    rc = foreign_add(list, spec, how, "ray.io/v1", "RayJob", true, job, err);
    if (rc == 0)
        *ret_manifests = TAKE_PTR(list);
    return rc;
}
