/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "lib/kube/object.h"
#include "plugin/prepare/preparer_private.h"

#define ASK_AGAIN_MS 2000

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
