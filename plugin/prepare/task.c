/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the kubelet, and whose turn it is. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "plugin/prepare/cdi_spec.h"
#include "plugin/prepare/claim_metadata.h"
#include "plugin/prepare/preparer_private.h"

static void task_free(struct task *task)
{
    kube_call_cancel(task->call);
    if (task->unanswered)
        event_free(task->unanswered);
    if (task->patience.clock)
        event_free(task->patience.clock);
    child_free(task->restoring);
    free(task->restores);
    claimed_done(&task->claimed);
    host_use_done(&task->used);
    json_decref(task->claim);
    checkpoint_free(task->checkpoint);
    free(task->namespace_);
    free(task->name);
    free(task->uid);
    free(task);
}

/* Each begins when no earlier one is about the same claim. One at a time, from the front: a task
 * that ends at once comes back here. */
static struct task *find_ready(const struct preparer *preparer)
{
    for (struct task *task = preparer->queue.tasks; task; task = task->next) {
        bool first = !task->running;
        for (const struct task *t = preparer->queue.tasks; first && t != task; t = t->next)
            first = strcmp(t->uid, task->uid) != 0;
        if (first)
            return task;
    }
    return NULL;
}

static void run_ready(struct preparer *preparer)
{
    struct task *task;
    if (preparer->queue.starting)
        return;
    preparer->queue.starting = true;
    while (!preparer->queue.ending && (task = find_ready(preparer))) {
        task->running = true;
        (task->prepares ? preparer->queue.prepare : preparer->queue.unprepare)(task);
    }
    preparer->queue.starting = false;
}

static void task_end(struct task *task)
{
    struct preparer *preparer = task->preparer;
    for (struct task **p = &preparer->queue.tasks; *p; p = &(*p)->next) {
        if (*p == task) {
            *p = task->next;
            break;
        }
    }
    task_free(task);
    run_ready(preparer); /* the claim's next call may have waited for this one */
}

/* Only calls count, not what the plugin does by itself. */
static void count(const struct task *task, bool done)
{
    struct preparer_counts *counts = &task->preparer->counts;
    if (!task->reply)
        return;
    if (task->prepares)
        *(done ? &counts->prepared : &counts->not_prepared) += 1;
    else
        *(done ? &counts->unprepared : &counts->not_unprepared) += 1;
    *(task->prepares ? &counts->prepare_ms : &counts->unprepare_ms) += clock_ms() - task->begun_ms;
}

void task_failed(struct task *task, const struct drarun_error *err)
{
    count(task, false);
    log_error("%s: %s", task->preparer->config->driver, err->text);
    if (task->reply)
        dra_reply_failed_take(TAKE_PTR(task->reply), err);
    task_end(task);
}

#define IDS_MAX 4 /* of a device: its own, NVIDIA's, its request's metadata, the agent */

/* The CDI ids of a device, which the kubelet hands to the container; how many. */
static size_t ids_of(const struct checkpoint *c, const struct checkpoint_device *device,
                     char (*ids)[CDI_ID_MAX])
{
    size_t count = 0;
    cdi_id(c->driver, c->uid, device->device, ids[count++], sizeof *ids);
    if (device->cdi)
        snprintf(ids[count++], sizeof *ids, "%s", device->cdi);
    if (claim_metadata_find(c->metadata, device->request))
        cdi_metadata_id(c->driver, c->uid, device->request, ids[count++], sizeof *ids);
    /* of each device, since a container may list one request of several */
    count += cdi_agent_id(c->cdi, c->driver, c->uid, ids[count], sizeof *ids);
    return count;
}

void task_prepared(struct task *task)
{
    const struct checkpoint *c = task->checkpoint;
    struct dra_device *devices = calloc(c->count + 1, sizeof *devices);
    char(*ids)[CDI_ID_MAX] = calloc(IDS_MAX * c->count + 1, sizeof *ids);
    const char **id_of = calloc(IDS_MAX * c->count + 1, sizeof *id_of);
    struct drarun_error err = {0};
    if (!devices || !ids || !id_of) {
        error_set(&err, ENOMEM, "out of memory");
        task_failed(task, &err);
    } else {
        for (size_t i = 0; i < c->count; i++) {
            const struct checkpoint_device *device = &c->devices[i];
            size_t count = ids_of(c, device, &ids[IDS_MAX * i]);
            for (size_t id = 0; id < IDS_MAX; id++)
                id_of[IDS_MAX * i + id] = ids[IDS_MAX * i + id];
            devices[i] = (struct dra_device){
                &device->request, 1, device->pool, device->device, &id_of[IDS_MAX * i], count};
        }
        count(task, true);
        dra_reply_prepared_take(TAKE_PTR(task->reply), devices, c->count);
        task_end(task);
    }
    free(devices);
    free(ids);
    free(id_of);
}

/* Those that wait for a device that has perhaps come back. */
static void wake_waiting(struct preparer *preparer)
{
    for (struct task *task = preparer->queue.tasks; task; task = task->next)
        if (task->patience.clock)
            event_active(task->patience.clock, EV_READ, 0);
}

void task_unprepared(struct task *task)
{
    struct preparer *preparer = task->preparer;
    count(task, true);
    if (preparer->config->held_changed)
        preparer->config->held_changed(preparer->config->arg);
    if (task->reply)
        dra_reply_unprepared_take(TAKE_PTR(task->reply));
    task_end(task);
    wake_waiting(preparer);
}

/* NULL: out of memory. */
static struct task *task_new(struct preparer *preparer, const struct dra_claim *claim,
                             bool prepares)
{
    struct task *task = calloc(1, sizeof *task);
    if (!task)
        return NULL;
    task->preparer = preparer;
    task->prepares = prepares;
    task->begun_ms = clock_ms();
    task->namespace_ = strdup(claim->namespace_);
    task->name = strdup(claim->name);
    task->uid = strdup(claim->uid);
    if (task->namespace_ && task->name && task->uid)
        return task;
    task_free(task);
    return NULL;
}

static void queue(struct task *task)
{
    struct task **end = &task->preparer->queue.tasks;
    while (*end)
        end = &(*end)->next;
    *end = task;
}

void task_start(struct preparer *preparer, const struct dra_claim *claim, struct dra_reply *reply,
                bool prepares)
{
    struct drarun_error err = {0};
    struct task *task = NULL;
    if (!checkpoint_uid_valid(claim->uid))
        error_set(&err, EINVAL, "claim %s/%s: \"%.64s\" is no UID", claim->namespace_, claim->name,
                  claim->uid);
    else if (!(task = task_new(preparer, claim, prepares)))
        error_set(&err, ENOMEM, "out of memory");
    if (!task) {
        dra_reply_failed_take(reply, &err);
        return;
    }
    task->reply = reply;
    queue(task);
    run_ready(preparer);
}

void task_unprepare_first(struct task *task)
{
    struct preparer *preparer = task->preparer;
    const struct dra_claim claim = {task->namespace_, task->name, task->uid};
    struct drarun_error err = {0};
    struct task *first = task_new(preparer, &claim, false), **p = &preparer->queue.tasks;
    if (!first) {
        error_set(&err, ENOMEM, "out of memory");
        task_failed(task, &err);
        return;
    }
    while (*p != task)
        p = &(*p)->next;
    first->next = task;
    *p = first;
    task->running = false;
    run_ready(preparer);
}

bool preparer_is_given_back(const struct preparer *preparer, const char *uid)
{
    for (const struct task *task = preparer->queue.tasks; task; task = task->next)
        if (!task->prepares && strcmp(task->uid, uid) == 0)
            return true;
    return false;
}

void preparer_take_back(struct preparer *preparer, const struct holding *holding)
{
    const struct dra_claim claim = {holding->namespace_, holding->name, holding->uid};
    struct task *task = task_new(preparer, &claim, false);
    if (!task)
        return; /* the kubelet will ask for it */
    queue(task);
    run_ready(preparer);
}
