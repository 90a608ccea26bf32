/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/kube/object.h"
#include "plugin/attach/rdma.h"
#include "plugin/prepare/pod_processes.h"
#include "plugin/prepare/preparer_private.h"

#define ASK_AGAIN_MS 2000
#define KUBELET_MS 600000 /* for its Unprepare, before the pod's processes are looked for */

/* Whether the claim of this UID, of which this is the API's object, has the device. */
static bool has_device(const json_t *claim, const struct holding *holder, const char *driver,
                       const char *pool)
{
    const char *uid = NULL, *other_driver, *other_pool, *device;
    const json_t *results = NULL, *result;
    size_t i;
    json_unpack(unconst(claim), "{s:{s:s}, s?:{s?:{s?:{s?:o}}}}", "metadata", "uid", &uid, "status",
                "allocation", "devices", "results", &results);
    if (!uid || strcmp(uid, holder->uid) != 0)
        return false;
    json_array_foreach(results, i, result) if (json_unpack(unconst(result), "{s:s, s:s, s:s}",
                                                           "driver", &other_driver, "pool",
                                                           &other_pool, "device", &device) == 0 &&
                                               strcmp(other_driver, driver) == 0 &&
                                               strcmp(other_pool, pool) == 0 &&
                                               strcmp(device, holder->device) == 0) return true;
    return false;
}

bool reclaim_leaves_nothing(const struct checkpoint *checkpoint, bool rdma_moves)
{
    for (size_t i = 0; i < checkpoint->count; i++) {
        const struct checkpoint_device *device = &checkpoint->devices[i];
        bool stays = !device->order || (json_object_get(device->order, "rdma") && !rdma_moves);
        if (stays && !device->admin)
            return false;
    }
    return true;
}

/* The kubelet would have called Unprepare by now: it has lost its state. */
static bool is_forgotten(const struct preparer *preparer, int64_t gone_ms,
                         const struct checkpoint *checkpoint)
{
    struct drarun_error err = {0};
    const char *pod = json_string_value(json_object_get(checkpoint->document, "pod"));
    if (clock_ms() - gone_ms < KUBELET_MS || !pod || !*pod)
        return false;
    int rc = pod_processes("/proc", pod, &err);
    if (rc < 0)
        log_error("%s: %s", preparer->config->driver, err.text);
    return rc == 0;
}

/* Whether the pod, which may run on for as long as it likes, cannot use the devices afterwards. */
static bool may_take_back(struct preparer *preparer, const struct holding *holder)
{
    CLEANUP(checkpoint_freep) struct checkpoint *c = NULL;
    int64_t gone_ms = preparer_gone_since(preparer, holder->uid);
    if (checkpoint_load(preparer->dir, holder->uid, &c, NULL) < 0)
        return false;
    return reclaim_leaves_nothing(c, rdma_shared(NULL) == 0) || is_forgotten(preparer, gone_ms, c);
}

static void on_holders_claim(const struct kube_answer *reply, const struct drarun_error *failure,
                             void *arg)
{
    struct task *task = arg;
    struct preparer *preparer = task->preparer;
    const struct preparer_config *config = preparer->config;
    char claim[HOLDING_TEXT_MAX];
    task->call = NULL;
    const struct holding *holder = preparer_holding(preparer, task->reclaim.holder_uid);
    if (!holder || (failure && failure->code != ENOENT) ||
        (!failure && has_device(reply->body, holder, config->driver, config->node)))
        return;
    holding_describe(holder, claim, sizeof claim);
    if (!may_take_back(preparer, holder)) {
        if (!task->reclaim.kept)
            log_note("%s: device %s stays with claim %s, whose pod was deleted by force, until the "
                     "kubelet has ended its containers",
                     config->driver, holder->device, claim);
        task->reclaim.kept = true;
        return;
    }
    log_note("%s: device %s is taken back from claim %s, which has lost it to claim %s/%s: its pod "
             "was deleted by force",
             config->driver, holder->device, claim, task->namespace_, task->name);
    preparer_take_back(preparer, holder);
}

void reclaim_ask(struct task *task, const struct holding *holder)
{
    struct preparer *preparer = task->preparer;
    struct drarun_error err = {0};
    if (task->call || clock_ms() < task->reclaim.ask_ms || !holder->known ||
        preparer_is_given_back(preparer, holder->uid))
        return;
    task->reclaim.ask_ms = clock_ms() + ASK_AGAIN_MS;
    snprintf(task->reclaim.holder_uid, sizeof task->reclaim.holder_uid, "%s", holder->uid);
    const struct kube_target target = {
        .resource = &preparer->claims, .namespace_ = holder->namespace_, .name = holder->name};
    if (kube_get(preparer->client, &target, on_holders_claim, task, &task->call, &err) < 0)
        log_error("%s: claim %s/%s: %s", preparer->config->driver, holder->namespace_, holder->name,
                  err.text);
}
