/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/preparer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/trusted.h"
#include "plugin/prepare/cdi_spec.h"
#include "plugin/prepare/claim_metadata.h"
#include "plugin/prepare/device_record.h"
#include "plugin/prepare/preparer_private.h"
#include "plugin/prepare/salvage.h"

#define ANY_DEVICE "*" /* held by a claim of which nothing is known any more */

void preparer_order_path(const struct preparer *preparer, const char *uid, const char *device,
                         char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/%s.%s.json", preparer->config->orders_dir, uid, device);
}

void preparer_metadata_path(const struct preparer *preparer, const char *uid, const char *request,
                            char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/%s.%.*s.metadata", preparer->config->orders_dir, uid,
             (int)strcspn(request, "/"), request);
}

const struct holding *preparer_holder(const struct preparer *preparer, const char *device,
                                      const char *but)
{
    for (const struct holding *h = preparer->held; h; h = h->next)
        if ((strcmp(h->device, device) == 0 || strcmp(h->device, ANY_DEVICE) == 0) &&
            (!but || strcmp(h->uid, but) != 0))
            return h;
    return NULL;
}

const struct holding *preparer_holding(const struct preparer *preparer, const char *uid)
{
    for (const struct holding *h = preparer->held; h; h = h->next)
        if (strcmp(h->uid, uid) == 0)
            return h;
    return NULL;
}

void holding_describe(const struct holding *holding, char *ret_text, size_t size)
{
    if (holding->known)
        snprintf(ret_text, size, "%s/%s", holding->namespace_, holding->name);
    else
        snprintf(ret_text, size, "of UID %s", holding->uid);
}

/* namespace_ and name: NULL where they are not known. */
static bool hold(struct preparer *preparer, const char *device, const char *uid,
                 const char *namespace_, const char *name)
{
    struct holding *h = calloc(1, sizeof *h);
    if (!h)
        return false;
    snprintf(h->device, sizeof h->device, "%s", device);
    snprintf(h->uid, sizeof h->uid, "%s", uid);
    h->known = name;
    if (name) {
        snprintf(h->namespace_, sizeof h->namespace_, "%s", namespace_);
        snprintf(h->name, sizeof h->name, "%s", name);
    }
    h->next = preparer->held;
    preparer->held = h;
    return true;
}

bool preparer_hold(struct preparer *preparer, const char *device, const struct task *task)
{
    return hold(preparer, device, task->uid, task->namespace_, task->name);
}

void preparer_lose(struct preparer *preparer, const char *uid)
{
    for (struct holding *h = preparer->held; h; h = h->next)
        h->astray = h->astray || strcmp(h->uid, uid) == 0;
}

void preparer_release(struct preparer *preparer, const char *uid)
{
    for (struct holding **p = &preparer->held; *p;) {
        struct holding *h = *p;
        if (strcmp(h->uid, uid) == 0) {
            *p = h->next;
            free(h);
        } else {
            p = &h->next;
        }
    }
}

static void task_free(struct task *task)
{
    kube_call_cancel(task->call);
    if (task->patience)
        event_free(task->patience);
    restores_free(task);
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
    for (struct task *task = preparer->tasks; task; task = task->next) {
        bool first = !task->running;
        for (const struct task *t = preparer->tasks; first && t != task; t = t->next)
            first = strcmp(t->uid, task->uid) != 0;
        if (first)
            return task;
    }
    return NULL;
}

static void run_ready(struct preparer *preparer)
{
    struct task *task;
    if (preparer->starting)
        return;
    preparer->starting = true;
    while (!preparer->ending && (task = find_ready(preparer))) {
        task->running = true;
        task->run(task);
    }
    preparer->starting = false;
}

static void task_end(struct task *task)
{
    struct preparer *preparer = task->preparer;
    for (struct task **p = &preparer->tasks; *p; p = &(*p)->next) {
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
    bool prepare = task->run == prepare_run;
    if (!task->reply)
        return;
    if (prepare)
        *(done ? &counts->prepared : &counts->not_prepared) += 1;
    else
        *(done ? &counts->unprepared : &counts->not_unprepared) += 1;
    *(prepare ? &counts->prepare_ms : &counts->unprepare_ms) += clock_ms() - task->begun_ms;
}

void preparer_count(const struct preparer *preparer, struct preparer_counts *ret_counts)
{
    *ret_counts = preparer->counts;
    for (const struct holding *h = preparer->held; h; h = h->next)
        ret_counts->claims += preparer_holding(preparer, h->uid) == h; /* its first device */
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
    for (struct task *task = preparer->tasks; task; task = task->next)
        if (task->patience)
            event_active(task->patience, EV_READ, 0);
}

void task_unprepared(struct task *task)
{
    struct preparer *preparer = task->preparer;
    count(task, true);
    if (task->reply)
        dra_reply_unprepared_take(TAKE_PTR(task->reply));
    task_end(task);
    wake_waiting(preparer);
}

/* NULL: out of memory. */
static struct task *task_new(struct preparer *preparer, const struct dra_claim *claim,
                             void (*run)(struct task *))
{
    struct task *task = calloc(1, sizeof *task);
    if (!task)
        return NULL;
    task->preparer = preparer;
    task->run = run;
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
    struct task **end = &task->preparer->tasks;
    while (*end)
        end = &(*end)->next;
    *end = task;
}

static void start(struct preparer *preparer, const struct dra_claim *claim, struct dra_reply *reply,
                  void (*run)(struct task *))
{
    struct drarun_error err = {0};
    struct task *task = NULL;
    if (!checkpoint_uid_valid(claim->uid))
        error_set(&err, EINVAL, "claim %s/%s: \"%.64s\" is no UID", claim->namespace_, claim->name,
                  claim->uid);
    else if (!(task = task_new(preparer, claim, run)))
        error_set(&err, ENOMEM, "out of memory");
    if (err.code) {
        dra_reply_failed_take(reply, &err);
        return;
    }
    task->reply = reply;
    queue(task);
    run_ready(preparer);
}

bool preparer_is_given_back(const struct preparer *preparer, const char *uid)
{
    for (const struct task *task = preparer->tasks; task; task = task->next)
        if (task->run == unprepare_run && strcmp(task->uid, uid) == 0)
            return true;
    return false;
}

void preparer_take_back(struct preparer *preparer, const struct holding *holding)
{
    const struct dra_claim claim = {holding->namespace_, holding->name, holding->uid};
    struct task *task = task_new(preparer, &claim, unprepare_run);
    if (!task)
        return; /* the kubelet will ask for it */
    queue(task);
    run_ready(preparer);
}

void preparer_refresh(struct preparer *preparer)
{
    struct drarun_error err = {0};
    if (preparer_look(preparer, &err) < 0)
        log_error("%s: %s", preparer->config->driver, err.text);
}

bool preparer_holds(const struct preparer *preparer, const char *device)
{
    return preparer_holder(preparer, device, NULL);
}

bool preparer_is_astray(const struct preparer *preparer, const char *device)
{
    for (const struct holding *h = preparer->held; h; h = h->next)
        if (h->astray && strcmp(h->device, device) == 0)
            return true;
    return false;
}

void preparer_each(const struct preparer *preparer,
                   void (*fn)(const struct node_device *device, void *arg), void *arg)
{
    struct strlist uids = STRLIST_INIT;
    checkpoint_list(preparer->dir, &uids, NULL);
    for (size_t i = 0; i < uids.count; i++) {
        CLEANUP(checkpoint_freep) struct checkpoint *c = NULL;
        if (checkpoint_load(preparer->dir, uids.items[i], &c, NULL) < 0 ||
            !checkpoint_of_boot(c, preparer->boot))
            continue; /* said at the start */
        for (size_t d = 0; d < c->count; d++) {
            struct node_device device;
            if (c->devices[d].record && device_record_read(c->devices[d].record, &device))
                fn(&device, arg);
        }
    }
    strlist_done(&uids);
}

void preparer_prepare(struct preparer *preparer, const struct dra_claim *claim,
                      struct dra_reply *reply)
{
    start(preparer, claim, reply, prepare_run);
}

void preparer_unprepare(struct preparer *preparer, const struct dra_claim *claim,
                        struct dra_reply *reply)
{
    start(preparer, claim, reply, unprepare_run);
}

/* Says once what a damaged checkpoint keeps from others. names: NULL where that is not known. */
static void say_damaged(const struct preparer *preparer, const char *uid, const char *names,
                        const char *damage)
{
    log_error("%s: %s; claim of UID %s: %s%s until the claim is taken back, which the kubelet asks "
              "for when its pod has ended; where pod and claim are gone for good, remove the file "
              "and start this plugin again",
              preparer->config->driver, damage, uid,
              !names
                  ? "its CDI specification is damaged too, so that no device is prepared for others"
              : *names ? "given to no other: "
                       : "nothing says that a container has a device of it; it stays",
              names ? names : "");
}

/* Each device that the claim may have is kept from others. */
static int hold_damaged(struct preparer *preparer, const char *uid,
                        const struct drarun_error *damage, struct drarun_error *err)
{
    const struct preparer_config *config = preparer->config;
    const struct salvage_place place = {.driver = config->driver,
                                        .uid = uid,
                                        .dir = preparer->dir,
                                        .orders_dir = config->orders_dir,
                                        .cdi_dir = config->cdi_dir};
    CLEANUP(strlist_done) struct strlist devices = STRLIST_INIT;
    struct buf names = BUF_INIT;
    int rc = salvage_devices(&place, &devices, NULL);
    bool ok = rc != -ENOMEM && !devices.failed &&
              (rc == 0 || hold(preparer, ANY_DEVICE, uid, NULL, NULL));
    for (size_t i = 0; ok && i < devices.count; i++) {
        ok = hold(preparer, devices.items[i], uid, NULL, NULL);
        buf_printf(&names, "%s%s", i > 0 ? ", " : "", devices.items[i]);
    }
    say_damaged(preparer, uid, rc < 0 ? NULL : names.data ? names.data : "", damage->text);
    buf_done(&names);
    return ok ? 0 : error_set(err, ENOMEM, "out of memory");
}

static int read_holding(struct preparer *preparer, const char *uid, struct drarun_error *err)
{
    CLEANUP(checkpoint_freep) struct checkpoint *c = NULL;
    struct drarun_error damage = {0};
    int rc = checkpoint_load(preparer->dir, uid, &c, &damage);
    if (rc < 0)
        return rc == -ENOENT ? 0 : hold_damaged(preparer, uid, &damage, err);
    if (!checkpoint_of_boot(c, preparer->boot)) {
        log_note("%s: claim %s/%s: prepared before the node's last boot; nothing of it is left",
                 preparer->config->driver, c->namespace_, c->name);
        return 0;
    }
    for (size_t d = 0; d < c->count; d++)
        if (!c->devices[d].admin &&
            !hold(preparer, c->devices[d].device, c->uid, c->namespace_, c->name))
            return error_set(err, ENOMEM, "out of memory");
    return 0;
}

int preparer_reread(struct preparer *preparer, const char *uid, struct drarun_error *err)
{
    preparer_release(preparer, uid);
    return read_holding(preparer, uid, err);
}

static int on_seen(void *arg, const char *uid, struct drarun_error *err)
{
    return preparer_reread(arg, uid, err);
}

int preparer_look(struct preparer *preparer, struct drarun_error *err)
{
    return seen_look(&preparer->seen, preparer->dir, on_seen, preparer, err);
}

int preparer_lock(const struct preparer *preparer, int *ret_fd, struct drarun_error *err)
{
    cleanup_close int fd = open(preparer->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return error_set(err, errno, "lock %s: %s", preparer->dir, strerror(errno));
    *ret_fd = take_fd(&fd);
    return 0;
}

/* Whoever else could write there would tell root what to do. */
static int make_own_dir(const char *path, struct drarun_error *err)
{
    int rc = dir_make_trusted(path, 0700, err);
    return rc < 0 ? rc : dir_check_own(path, err);
}

int preparer_new(struct event_base *base, struct kube_client *client,
                 const struct preparer_config *config, struct preparer **ret_preparer,
                 struct drarun_error *err)
{
    CLEANUP(preparer_freep) struct preparer *preparer = calloc(1, sizeof *preparer);
    if (!preparer)
        return error_set(err, ENOMEM, "out of memory");
    preparer->base = base;
    preparer->client = client;
    preparer->config = config;
    preparer->claims = kube_resource_claims;
    snprintf(preparer->dir, sizeof preparer->dir, "%s/%s", config->state_dir, config->driver);
    const struct status_later_place place = {base, client, &preparer->claims, preparer->dir};
    int rc = status_later_new(&place, &preparer->statuses, err);
    if (rc == 0)
        rc = boot_id_read(preparer->boot, err);
    if (rc == 0)
        rc = make_own_dir(preparer->dir, err);
    if (rc == 0)
        rc = make_own_dir(config->orders_dir, err);
    if (rc == 0) /* the container runtime's */
        rc = dir_make_trusted(config->cdi_dir, 0755, err);
    if (rc == 0)
        checkpoint_clean(preparer->dir);
    if (rc == 0)
        rc = preparer_look(preparer, err);
    if (rc == 0)
        *ret_preparer = TAKE_PTR(preparer);
    return rc;
}

bool preparer_is_busy(const struct preparer *preparer)
{
    return preparer->tasks || status_later_is_busy(preparer->statuses);
}

void preparer_free(struct preparer *preparer)
{
    struct drarun_error err = {0};
    if (!preparer)
        return;
    preparer->ending = true;
    error_set(&err, ECANCELED, "the plugin is ending");
    while (preparer->tasks)
        task_failed(preparer->tasks, &err);
    for (struct holding *h; (h = preparer->held);) {
        preparer->held = h->next;
        free(h);
    }
    seen_done(&preparer->seen);
    status_later_free(preparer->statuses);
    free(preparer);
}
