/* SPDX-License-Identifier: Apache-2.0 */
/* NodeUnprepareResources for one claim, from the files alone: the claim and its pod may be gone, and
 * the pod's network namespace may live on, be dying or be dead. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "plugin/attach/order.h"
#include "plugin/attach/restore.h"
#include "plugin/prepare/cdi_spec.h"
#include "plugin/prepare/preparer_private.h"

#define RESTORE_MS 10000 /* the program's own deadline is shorter, and says more */

struct restore {
    struct task *task;
    struct child *child;
    char device[ATTACH_NAME_MAX];
    char path[512]; /* of its order */
};

void restores_free(struct task *task)
{
    for (size_t i = 0; task->restores && task->restores[i].task; i++)
        child_free(task->restores[i].child);
    free(task->restores);
    task->restores = NULL;
}

static void fail(struct task *task, struct drarun_error *err)
{
    error_prefix(err, "unprepare claim %s/%s", task->namespace_, task->name);
    task_failed(task, err);
}

/* Orders and metadata: all that begins with the claim's UID. */
static int remove_files(const struct task *task, struct drarun_error *err)
{
    const char *dir = task->preparer->config->orders_dir;
    size_t uid = strlen(task->uid);
    cleanup_dir DIR *open_dir = opendir(dir);
    struct dirent *entry;
    if (!open_dir)
        return error_set(err, errno, "%s: %s", dir, strerror(errno));
    while ((entry = readdir(open_dir))) {
        if (strncmp(entry->d_name, task->uid, uid) != 0 || entry->d_name[uid] != '.')
            continue;
        if (unlinkat(dirfd(open_dir), entry->d_name, 0) < 0 && errno != ENOENT)
            return error_set(err, errno, "remove %s/%s: %s", dir, entry->d_name, strerror(errno));
    }
    return 0;
}

/* The checkpoint last: until then the next call starts again. */
static int forget(struct task *task, struct drarun_error *err)
{
    const struct preparer *preparer = task->preparer;
    int rc = cdi_spec_remove(preparer->config->cdi_dir, preparer->config->driver, task->uid, err);
    if (rc == 0)
        rc = remove_files(task, err);
    return rc < 0 ? rc : checkpoint_remove(preparer->dir, task->uid, err);
}

static void finish(struct task *task)
{
    struct drarun_error err = task->first;
    int rc = err.code ? -err.code : forget(task, &err);
    if (rc < 0) {
        fail(task, &err);
        return;
    }
    log_note("%s: claim %s/%s: unprepared", task->preparer->config->driver, task->namespace_,
             task->name);
    preparer_release(task->preparer, task->uid);
    task_unprepared(task);
}

static void on_restored(const struct child_end *end, const struct drarun_error *failure, void *arg)
{
    struct restore *restore = arg;
    struct task *task = restore->task;
    struct drarun_error err = {0};
    restore->child = NULL;
    if (failure)
        error_set(&err, failure->code, "device %s: take it back: %s", restore->device,
                  failure->text);
    else if (end->known && end->status == RESTORE_EXIT_GONE)
        log_note("%s: device %s has died with its pod", task->preparer->config->driver,
                 restore->device);
    else if (!end->known || end->status != 0)
        error_set(&err, EIO, "device %s: %s", restore->device,
                  *end->said ? end->said : "drarun-attach failed without a word");
    if (err.code && !task->first.code)
        task->first = err;
    if (--task->restores_left == 0)
        finish(task);
}

static void start_restore(struct task *task, struct restore *restore)
{
    char *argv[] = {(char *)task->preparer->config->hook, (char *)"restore", restore->path, NULL};
    char *env[] = {NULL};
    const struct child_program program = {.argv = argv, .env = env, .deadline_ms = RESTORE_MS};
    int rc = child_start(task->preparer->base, &program, on_restored, restore, &restore->child);
    if (rc == 0)
        task->restores_left++;
    else if (!task->first.code)
        error_set(&task->first, -rc, "run %s: %s", argv[0], strerror(-rc));
}

static void add_restore(struct task *task, size_t i, const char *device)
{
    struct restore *restore = &task->restores[i];
    restore->task = task;
    snprintf(restore->device, sizeof restore->device, "%s", device);
    preparer_order_path(task->preparer, task->uid, device, restore->path, sizeof restore->path);
}

/* Of the checkpoint's devices those with orders that are there: without it (a reboot empties its
 * tmpfs) no hook has run, and the device is as it was. */
static int list_from_checkpoint(struct task *task)
{
    size_t n = 0;
    task->restores = calloc(task->checkpoint->count + 1, sizeof *task->restores);
    if (!task->restores)
        return -ENOMEM;
    for (size_t i = 0; i < task->checkpoint->count; i++)
        if (task->checkpoint->devices[i].order)
            add_restore(task, n++, task->checkpoint->devices[i].device);
    return 0;
}

/* The checkpoint is damaged: the orders say what was attached. */
static int list_from_orders(struct task *task, struct drarun_error *err)
{
    const char *dir = task->preparer->config->orders_dir;
    size_t n = 0, uid = strlen(task->uid);
    cleanup_dir DIR *open_dir = opendir(dir);
    struct dirent *entry;
    task->restores = calloc(33, sizeof *task->restores); /* a claim has at most 32 devices */
    if (!open_dir || !task->restores)
        return error_set(err, errno, "%s: %s", dir, strerror(errno));
    while (n < 32 && (entry = readdir(open_dir))) {
        char device[ATTACH_NAME_MAX];
        size_t length = strlen(entry->d_name);
        if (strncmp(entry->d_name, task->uid, uid) != 0 || entry->d_name[uid] != '.' ||
            length <= uid + 1 + sizeof ".json" - 1 ||
            strcmp(entry->d_name + length - 5, ".json") != 0)
            continue;
        snprintf(device, sizeof device, "%.*s", (int)(length - uid - 6), entry->d_name + uid + 1);
        add_restore(task, n++, device);
    }
    return 0;
}

void unprepare_run(struct task *task)
{
    struct drarun_error err = {0};
    int rc = checkpoint_load(task->preparer->dir, task->uid, &task->checkpoint, &err);
    if (rc == -ENOENT) {
        preparer_release(task->preparer, task->uid);
        task_unprepared(task);
        return;
    }
    if (rc < 0)
        log_error("%s: undone by its orders: %s", task->preparer->config->driver, err.text);
    err = (struct drarun_error){0};
    rc = rc == 0 ? list_from_checkpoint(task) : list_from_orders(task, &err);
    if (rc < 0) {
        if (!err.code)
            error_set(&err, ENOMEM, "out of memory");
        fail(task, &err);
        return;
    }
    task->restores_left = 1; /* ours, while they are started */
    for (size_t i = 0; task->restores[i].task; i++)
        if (access(task->restores[i].path, F_OK) == 0)
            start_restore(task, &task->restores[i]);
    if (--task->restores_left == 0)
        finish(task);
}
