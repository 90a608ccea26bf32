/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/lead/gates.h"

#include <errno.h>
#include <string.h>

#include "jobs/manifests/objects.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define GATE "drarun.dev/suspended"

struct resuming {
    size_t left;
    int rc;
    struct drarun_error *err; /* the first */
};

static void on_opened(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct resuming *r = arg;
    (void)answer;
    r->left--;
    /* 422: the gate is no longer where it was; 404: the pod has gone */
    if (err && err->code != EINVAL && err->code != ENOENT && r->rc == 0)
        r->rc = error_kind(r->err, err->kind, err->code, "%s", err->text);
}

static int64_t gate_index(const struct pod_state *worker)
{
    size_t i;
    json_t *gate;
    json_array_foreach(worker->gates, i, gate)
    {
        const char *name = json_string_value(json_object_get(gate, "name"));
        if (name && strcmp(name, GATE) == 0)
            return (int64_t)i;
    }
    return -1;
}

static int open_gate(struct cluster *cluster, const char *namespace, const struct pod_state *worker,
                     struct resuming *r, struct drarun_error *err)
{
    static const struct kube_write again = {.repeat = true}; /* an open gate is fine */
    int64_t index = worker->phase == POD_GATED ? gate_index(worker) : -1;
    if (index < 0 || !worker->name)
        return 0;
    const struct kube_target target = {
        .resource = &kube_pods, .namespace_ = namespace, .name = worker->name};
    CLEANUP(json_decrefp)
    json_t *patch =
        json_pack("[{s:s, s:o, s:s}, {s:s, s:o}]", "op", "test", "path",
                  json_sprintf("/spec/schedulingGates/%d/name", (int)index), "value", GATE, "op",
                  "remove", "path", json_sprintf("/spec/schedulingGates/%d", (int)index));
    if (!patch)
        return error_set(err, ENOMEM, "out of memory");
    int rc = kube_json_patch(cluster->client, &target, patch, &again, on_opened, r, NULL, err);
    r->left += rc == 0;
    return rc;
}

static int start_job(struct cluster *cluster, const char *namespace, const json_t *job,
                     struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *patch = json_pack("{s:{s:b}}", "spec", "suspend", 0);
    const struct kube_target target = {
        .resource = &kube_jobs, .namespace_ = namespace, .name = kube_name(job)};
    return patch ? cluster_merge_patch(cluster, &target, patch, err)
                 : error_set(err, ENOMEM, "out of memory");
}

static int open_gates(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
                      const struct pod_state *workers, struct drarun_error *err)
{
    struct resuming r = {.err = err};
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < spec->workers; i++)
        rc = open_gate(cluster, namespace, &workers[i], &r, err);
    while (r.left > 0)
        cluster_turn(cluster, KUBE_CALL_MS);
    return rc < 0 ? rc : r.rc;
}

int resume_workers(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
                   const struct pod_state *workers, const json_t *worker_job,
                   struct drarun_error *err)
{
    if (spec->claims != SPEC_CLAIMS_TEMPLATE)
        return open_gates(cluster, spec, namespace, workers, err);
    bool queued = spec->queue || object_queue(worker_job);
    return object_is_suspended(worker_job) && !queued
               ? start_job(cluster, namespace, worker_job, err)
               : 0;
}
