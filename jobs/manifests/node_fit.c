/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/node_fit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/dra/extended_resource.h"
#include "lib/dra/node_selector.h"
#include "jobs/manifests/pod_amounts.h"
#include "lib/dra/taint.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

#define PODS "pods"
#define CORDONED "node.kubernetes.io/unschedulable"

struct node_fit {
    const json_t *pod;
    json_t *nodes;   /* name -> Node, borrowed references of our own */
    json_t *request; /* resource -> a real number, of one pod */
    const json_t *classes;
    unsigned minor;
    json_t *devices; /* resource -> node -> devices of its class */
    json_t *used;    /* node -> the same, of the job's other pods */
};

/* ---- nodes ---- */

static int requests_of(const json_t *pod, json_t *requests, struct drarun_error *err)
{
    int rc = pod_requests(pod, requests, err);
    if (rc == 0 && json_object_set_new(requests, PODS, json_real(1)) < 0)
        rc = error_set(err, ENOMEM, "out of memory");
    return rc;
}

int node_fit_new(const json_t *nodes, const json_t *pod, struct node_fit **ret_fit,
                 struct drarun_error *err)
{
    CLEANUP(node_fit_freep) struct node_fit *fit = calloc(1, sizeof *fit);
    size_t i;
    json_t *node;
    if (!fit || !(fit->nodes = json_object()) || !(fit->request = json_object()) ||
        !(fit->used = json_object()) || !(fit->devices = json_object()))
        return error_set(err, ENOMEM, "out of memory");
    fit->pod = pod;
    json_array_foreach(nodes, i, node)
    {
        const char *name = value_text(json_object_get(node, "metadata"), "name");
        if (name && json_object_set(fit->nodes, name, node) < 0)
            return error_set(err, ENOMEM, "out of memory");
    }
    int rc = requests_of(pod, fit->request, err);
    if (rc == 0)
        *ret_fit = TAKE_PTR(fit);
    return rc;
}

void node_fit_use_classes(struct node_fit *fit, const json_t *classes, unsigned minor)
{
    if (!fit)
        return;
    fit->classes = classes;
    fit->minor = minor;
}

int node_fit_use_devices(struct node_fit *fit, const char *resource, json_t *nodes,
                         struct drarun_error *err)
{
    return json_object_set(fit->devices, resource, nodes) < 0
               ? error_set(err, ENOMEM, "out of memory")
               : 0;
}

const json_t *node_fit_request(const struct node_fit *fit)
{
    return fit->request;
}

void node_fit_free(struct node_fit *fit)
{
    if (!fit)
        return;
    json_decref(fit->nodes);
    json_decref(fit->request);
    json_decref(fit->used);
    json_decref(fit->devices);
    free(fit);
}

static int use(json_t *used, const char *node, const json_t *requests)
{
    json_t *sums = json_object_get(used, node), *request;
    const char *name;
    if (!sums && json_object_set_new(used, node, sums = json_object()) < 0)
        return -1;
    value_foreach(requests, name, request)
    {
        double sum = json_real_value(json_object_get(sums, name)) + json_real_value(request);
        if (json_object_set_new(sums, name, json_real(sum)) < 0)
            return -1;
    }
    return 0;
}

int node_fit_add_pods(struct node_fit *fit, const json_t *pod, const struct predict_worker *workers,
                      uint32_t count, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *requests = json_object();
    int rc = requests ? requests_of(pod, requests, err) : error_set(err, ENOMEM, "out of memory");
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        if (workers[i].node && use(fit->used, workers[i].node, requests) < 0)
            rc = error_set(err, ENOMEM, "out of memory");
    return rc;
}

static bool is_cordoned(const json_t *spec, const json_t *tolerations)
{
    if (!json_is_true(json_object_get(spec, "unschedulable")))
        return false;
    json_t *taint = json_pack("[{s:s, s:s}]", "key", CORDONED, "effect", "NoSchedule");
    bool repels = taint_repelling(taint, tolerations) != NULL;
    json_decref(taint);
    return repels;
}

/* The kubelet, which alone judges pods with a nodeName, looks at NoExecute only. */
static json_t *taints_of(const json_t *taints, bool kubelet_alone)
{
    json_t *list = json_array(), *taint;
    size_t i;
    json_array_foreach(taints, i, taint)
    {
        if (!kubelet_alone || strcmp(value_text_or(taint, "effect", ""), "NoExecute") == 0)
            json_array_append(list, taint);
    }
    return list;
}

/* The label of nodeSelector that the node has not; NULL: it has all. */
static const char *missing_label(const json_t *wanted, const json_t *labels)
{
    const char *key;
    json_t *value;
    value_foreach(wanted, key, value)
    {
        if (!json_equal(value, json_object_get(labels, key)))
            return key;
    }
    return NULL;
}

static bool is_wanted(const json_t *pod, const char *name, const json_t *labels)
{
    const json_t *affinity = json_object_get(json_object_get(pod, "affinity"), "nodeAffinity");
    const json_t *required =
        json_object_get(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    return !required || node_selector_matches(required, name, labels) == 1;
}

bool node_fit_is_chosen(const json_t *pod, const json_t *node)
{
    const json_t *metadata = json_object_get(node, "metadata");
    const json_t *labels = json_object_get(metadata, "labels");
    CLEANUP(json_decrefp) json_t *none = json_object();
    return !missing_label(json_object_get(pod, "nodeSelector"), labels) &&
           is_wanted(pod, value_text_or(metadata, "name", ""), labels ? labels : none);
}

static uint32_t room_of(const struct node_fit *fit, const char *node, const json_t *allocatable,
                        char *ret_why)
{
    const json_t *used = json_object_get(fit->used, node);
    uint32_t least = UINT32_MAX;
    const char *name;
    json_t *request;
    json_object_foreach(fit->request, name, request)
    {
        double all = 0, one = json_real_value(request);
        if (one <= 0 || pod_amount(allocatable, name, &all, NULL) < 0)
            continue;
        if (all <= 0 && extended_resource_class(fit->classes, name, fit->minor)) {
            const json_t *devices = json_object_get(fit->devices, name);
            if (!devices)
                continue;
            all = json_number_value(json_object_get(devices, node));
        }
        double others = json_real_value(json_object_get(used, name));
        double left = all > others ? all - others : 0;
        double count = left / one + 1e-9; /* 0.3 / 0.1 is less than 3 */
        uint32_t room = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
        if (room < least)
            snprintf(ret_why, NODE_FIT_WHY, "too little %.100s%s", name,
                     others > 0 ? " beside the job's other pods" : "");
        least = room < least ? room : least;
    }
    return least;
}

uint32_t node_fit_room(const struct node_fit *fit, const char *node, char ret_why[NODE_FIT_WHY])
{
    const json_t *object = json_object_get(fit->nodes, node);
    const json_t *spec = json_object_get(object, "spec");
    const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    const json_t *tolerations = json_object_get(fit->pod, "tolerations");
    const json_t *allocatable = json_object_get(json_object_get(object, "status"), "allocatable");
    CLEANUP(json_decrefp) json_t *none = json_object();
    const char *name = value_text_or(fit->pod, "nodeName", "");
    bool named = *name;
    ret_why[0] = '\0';
    if (named && strcmp(name, node) != 0) {
        snprintf(ret_why, NODE_FIT_WHY, "not the nodeName of the pods");
        return 0;
    }
    if (!object)
        return UINT32_MAX;
    CLEANUP(json_decrefp) json_t *taints = taints_of(json_object_get(spec, "taints"), named);
    const char *taint = taint_repelling(taints, tolerations);
    const char *label = missing_label(json_object_get(fit->pod, "nodeSelector"), labels);
    if (!named && is_cordoned(spec, tolerations))
        snprintf(ret_why, NODE_FIT_WHY, "cordoned");
    else if (taint)
        snprintf(ret_why, NODE_FIT_WHY, "taint %.100s not tolerated", taint);
    else if (label)
        snprintf(ret_why, NODE_FIT_WHY, "label %.100s of nodeSelector missing", label);
    else if (!is_wanted(fit->pod, node, labels ? labels : none))
        snprintf(ret_why, NODE_FIT_WHY, "nodeAffinity not met");
    else
        return allocatable ? room_of(fit, node, allocatable, ret_why) : UINT32_MAX;
    return 0;
}
