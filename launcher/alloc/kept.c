/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/alloc/kept.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/derive/inventory/allocation.h"
#include "launcher/job/identity.h"
#include "launcher/job/plan.h"
#include "launcher/job/local_agent.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/wire/key_file.h"

#define FILE_MAX (64u << 20)
#define WORD 6 /* letters that tell the jobs of an allocation apart */

struct kept {
    json_t *doc;
    struct job_spec spec;
    const struct spec_role *role; /* the spec's only one */
    bool have_spec, have_slices;
    struct tls_key key;
    struct event_base *base;
    struct local_agents limits;
    char uid[128];
    struct strlist addresses, dials, pods, nodes;
    struct slices slices;
    struct plan_worker_input *workers;
    uint32_t *rank_order;
    struct request_pods request;
};

void kept_free(struct kept *k)
{
    if (!k)
        return;
    if (k->have_spec)
        job_spec_done(&k->spec);
    if (k->have_slices)
        slices_done(&k->slices);
    if (k->base)
        event_base_free(k->base);
    strlist_done(&k->addresses);
    strlist_done(&k->dials);
    strlist_done(&k->pods);
    strlist_done(&k->nodes);
    explicit_bzero(&k->key, sizeof k->key);
    free(k->workers);
    free(k->rank_order);
    json_decref(k->doc);
    free(k);
}
DEFINE_CLEANUP(struct kept, kept_free)

bool kept_is_there(const char *folder)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/" KEPT_FILE, folder) < (int)sizeof path &&
           access(path, F_OK) == 0;
}

/* ---- the file ---- */

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int read_file(struct kept *k, const char *folder, struct drarun_error *err)
{
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    char path[PATH_MAX];
    json_error_t why;
    snprintf(path, sizeof path, "%s/" KEPT_FILE, folder);
    int rc = file_read(AT_FDCWD, path, FILE_MAX, &text, err);
    if (rc < 0)
        return rc;
    k->doc = json_loadb(text.data ? text.data : "", text.len, 0, &why);
    if (!json_array_size(json_object_get(k->doc, "workers")))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s is no allocation's file: %s", path,
                          k->doc ? "it has no workers" : why.text);
    snprintf(path, sizeof path, "%s/" KEPT_KEY_FILE, folder);
    return key_file_read(path, &k->key, err);
}

static int read_spec(struct kept *k, struct drarun_error *err)
{
    cleanup_free char *text = json_dumps(json_object_get(k->doc, "document"), JSON_COMPACT);
    if (!text)
        return error_set(err, EINVAL, "the allocation's file has no spec");
    int rc = spec_parse("the allocation's spec", text, strlen(text), &k->spec, err);
    k->have_spec = rc == 0;
    if (rc == 0)
        rc = spec_only_role(&k->spec, "an allocation", &k->role, err);
    if (rc == 0 && k->spec.workers != json_array_size(json_object_get(k->doc, "workers")))
        rc = error_set(err, EINVAL, "the allocation's file has not the workers of its spec");
    k->spec.fabric = SPEC_FABRIC_OFF; /* their NICs were checked when they had come up */
    return rc;
}

static int read_workers(struct kept *k, struct drarun_error *err)
{
    size_t i;
    json_t *worker;
    k->workers = calloc(k->spec.workers, sizeof *k->workers);
    if (!k->workers)
        return error_set(err, ENOMEM, "out of memory");
    json_array_foreach(json_object_get(k->doc, "workers"), i, worker)
    {
        const json_t *claims = json_object_get(worker, "claims");
        const char *lost = json_string_value(json_object_get(worker, "lost"));
        if (lost)
            return error_kind(
                err, DRARUN_ERR_INFRASTRUCTURE, ENOENT,
                "worker %zu (pod %s on %s) of the allocation %s is lost: %s; end this "
                "shell and begin another allocation",
                i, text_at(worker, "pod"), text_at(worker, "node"), k->spec.name, lost);
        strlist_add(&k->pods, text_at(worker, "pod"));
        strlist_add(&k->nodes, text_at(worker, "node"));
        strlist_add(&k->addresses, text_at(worker, "address"));
        strlist_add(&k->dials, text_at(worker, "dial"));
        k->workers[i] = (struct plan_worker_input){
            .pod = text_at(worker, "pod"),
            .node = text_at(worker, "node"),
            .claims = json_array_size(claims) > 0 ? claims : NULL,
        };
    }
    bool failed = k->pods.failed || k->nodes.failed || k->addresses.failed || k->dials.failed;
    return failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

/* The launcher's, which is a permutation; anything else is by number. */
static int read_order(struct kept *k, struct drarun_error *err)
{
    const json_t *order = json_object_get(k->doc, "rankOrder");
    size_t i;
    json_t *worker;
    if (json_array_size(order) != k->spec.workers)
        return 0;
    k->rank_order = calloc(k->spec.workers, sizeof *k->rank_order);
    if (!k->rank_order)
        return error_set(err, ENOMEM, "out of memory");
    json_array_foreach(order, i, worker) k->rank_order[i] = (uint32_t)json_integer_value(worker);
    return 0;
}

/* ---- the ranks ---- */

/* As many as the spec's own ranks would be; of mpirun's what it says alone. */
static uint32_t ranks_per_worker(const struct kept *k, const struct job_request *request)
{
    /* the worker's own claim stands in front of those that its pod names */
    CLEANUP(json_decrefp)
    json_t *own = json_pack("[O*]", json_array_get(k->workers[0].claims, 0));
    uint32_t gpus = k->role->gpus.all ? allocation_count_gpus(own) : k->role->gpus.count;
    return request->launch_mpirun
               ? k->role->ranks_per_worker
               : request_count_ranks(k->role, false, request->programs[0].argv, gpus);
}

/* As the most that a worker may have only where that is needed: it would leave no slot to ranks
 * that these start. */
static void count_ranks(const struct kept *k, struct job_request *request)
{
    uint32_t each = ranks_per_worker(k, request);
    if (request->launch_mpirun || request->per_host || request->hosts || request->hostfile)
        request->per_worker = each;
    else
        request->programs[0].ranks = each * k->spec.workers;
}

static int on_prepare(void *arg, struct job *job, struct drarun_error *err)
{
    struct kept *k = arg;
    const struct job_plan_input input = {
        .spec = &k->spec,
        .workers = k->workers,
        .slices = k->have_slices ? &k->slices : NULL,
        .slices_unknown = json_is_true(json_object_get(k->doc, "slicesUnknown")),
        .node_labels = json_object_get(k->doc, "nodeLabels"),
        .rank_order = k->rank_order,
    };
    return job_plan(job, &input, err);
}

static void fill(struct kept *k, struct job_request *request)
{
    k->request = (struct request_pods){
        .base = k->base,
        .key = &k->key,
        .uid = k->uid,
        .attempt = (uint32_t)json_integer_value(json_object_get(k->doc, "attempt")),
        .workers = k->spec.workers,
        .addresses = strlist_items(&k->addresses),
        .dials = strlist_items(&k->dials),
        .pods = strlist_items(&k->pods),
        .nodes = strlist_items(&k->nodes),
        .on_host = request_is_on_host(&k->spec),
        .rank_order = k->rank_order,
        .grace_ms = request_grace_ms(&k->spec),
        .prepare = on_prepare,
        .kept = true,
        .arg = k,
    };
    request->kept = k;
    request->pods = &k->request;
    if (!request->launch_env && !request->launch_mpirun) {
        request->launch_env = k->spec.launch == SPEC_LAUNCH_ENV;
        request->launch_mpirun = k->spec.launch == SPEC_LAUNCH_MPIRUN;
    }
    if (request->per_worker) /* the plan is for so many */
        k->spec.roles[0].ranks_per_worker = request->per_worker;
    if (request->program_count == 1 && !request->programs[0].ranks && !request->per_worker)
        count_ranks(k, request);
    if (!request->slots)
        request->slots = k->role->slots;
    request->oversubscribe |= k->spec.oversubscribe;
    request->report_bindings |= k->spec.report_bindings;
    request_decide_failure(request, &k->spec);
}

/* Each job of the allocation has a name of its own behind the allocation's. */
static int name_job(struct kept *k, struct drarun_error *err)
{
    char own[IDENTITY_UID_SIZE];
    int rc = identity_make(own, err);
    snprintf(k->uid, sizeof k->uid, "%.64s.%.*s", text_at(k->doc, "uid"), WORD, own);
    return rc;
}

int kept_use(const char *folder, struct job_request *request, struct drarun_error *err)
{
    CLEANUP(kept_freep) struct kept *k = calloc(1, sizeof *k);
    if (!k)
        return error_set(err, ENOMEM, "out of memory");
    int rc = read_file(k, folder, err);
    if (rc == 0)
        rc = read_spec(k, err);
    if (rc == 0)
        rc = read_workers(k, err);
    if (rc == 0)
        rc = read_order(k, err);
    if (rc == 0)
        rc = name_job(k, err);
    json_t *slices = json_object_get(k->doc, "slices");
    if (rc == 0 && json_is_array(slices)) {
        rc = slices_read(slices, &k->slices, err);
        k->have_slices = rc == 0;
    }
    if (rc < 0)
        return rc;
    local_agent_raise_limit(&k->limits);
    k->base = event_base_new();
    if (!k->base)
        return error_set(err, ENOMEM, "cannot make an event loop: out of memory");
    fill(TAKE_PTR(k), request);
    return 0;
}
