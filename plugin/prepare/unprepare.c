/* SPDX-License-Identifier: Apache-2.0 */
/* NodeUnprepareResources for one claim, from the files alone: the claim and its pod may be gone,
 * and the pod's network namespace may live on, be dying or be dead. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "plugin/attach/order.h"
#include "plugin/attach/restore.h"
#include "plugin/prepare/cdi_spec.h"
#include "plugin/prepare/preparer_private.h"

#define ORDER ".json"
#define RETURNING ".json.returning"
#define RESTORES_MAX 64  /* a claim has at most 32 devices */
#define RESTORE_MS 25000 /* the program's own deadlines are shorter, and say more */

struct restore {
    struct task *task;
    char device[ATTACH_NAME_MAX];
    char path[512]; /* of its order, while it is taken back */
};

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
    struct drarun_error err = {0};
    if (forget(task, &err) < 0) {
        fail(task, &err);
        return;
    }
    log_note("%s: claim %s/%s: unprepared", task->preparer->config->driver, task->namespace_,
             task->name);
    preparer_release(task->preparer, task->uid);
    task_unprepared(task);
}

/* A line for each device that is gone. */
static void note_gone(const struct task *task, const struct buf *out)
{
    for (const char *line = out->data; line && *line; line += strcspn(line, "\n") + 1) {
        log_note("%s: not to be taken back: %.*s", task->preparer->config->driver,
                 (int)strcspn(line, "\n"), line);
        if (!strchr(line, '\n'))
            break;
    }
}

static void on_restored(const struct child_end *end, const struct drarun_error *failure, void *arg)
{
    struct task *task = arg;
    struct drarun_error err = {0};
    task->restoring = NULL;
    note_gone(task, end->out);
    if (failure)
        error_set(&err, failure->code, "take its devices back: %s", failure->text);
    else if (!end->known || (end->status != 0 && end->status != RESTORE_EXIT_GONE))
        error_set(&err, EIO, "%s", *end->said ? end->said : "drarun-attach failed without a word");
    if (err.code) {
        preparer_lose(task->preparer, task->uid);
        fail(task, &err);
    } else {
        finish(task);
    }
}

static void start_restore(struct task *task, char *paths[], size_t count)
{
    CLEANUP(strlist_done) struct strlist argv = STRLIST_INIT;
    struct drarun_error err = {0};
    char *env[] = {NULL};
    strlist_add(&argv, task->preparer->config->hook);
    strlist_add(&argv, "restore");
    for (size_t i = 0; i < count; i++)
        strlist_add(&argv, paths[i]);
    const struct child_program program = {
        .argv = argv.items, .env = env, .deadline_ms = RESTORE_MS};
    int rc = argv.failed
                 ? -ENOMEM
                 : child_start(task->preparer->base, &program, on_restored, task, &task->restoring);
    if (rc < 0) {
        error_set(&err, -rc, "run %s: %s", task->preparer->config->hook, strerror(-rc));
        preparer_lose(task->preparer, task->uid);
        fail(task, &err);
    }
}

/* From here on no hook finds the order; one that has it now is waited for by its lock, which a file
 * keeps over a change of its name. False: there is none, so that no hook has run. */
static bool take_order(const struct restore *restore)
{
    char path[512];
    preparer_order_path(restore->task->preparer, restore->task->uid, restore->device, path,
                        sizeof path);
    return rename(path, restore->path) == 0 || access(restore->path, F_OK) == 0;
}

static void add_restore(struct task *task, size_t i, const char *device)
{
    struct restore *restore = &task->restores[i];
    restore->task = task;
    snprintf(restore->device, sizeof restore->device, "%s", device);
    snprintf(restore->path, sizeof restore->path, "%s/%s.%s" RETURNING,
             task->preparer->config->orders_dir, task->uid, device);
}

/* Of the checkpoint's devices those with orders that are there: without it no hook has run, and the
 * device is as it was. So it is when the checkpoint is of an earlier boot. */
static int list_from_checkpoint(struct task *task)
{
    size_t n = 0;
    task->restores = calloc(task->checkpoint->count + 1, sizeof *task->restores);
    if (!task->restores)
        return -ENOMEM;
    if (!checkpoint_of_boot(task->checkpoint, task->preparer->boot))
        return 0;
    for (size_t i = 0; i < task->checkpoint->count; i++)
        if (task->checkpoint->devices[i].order)
            add_restore(task, n++, task->checkpoint->devices[i].device);
    return 0;
}

static size_t length_before(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0 ? length - tail : 0;
}

static bool is_listed(const struct task *task, const char *device)
{
    for (const struct restore *restore = task->restores; restore->task; restore++)
        if (strcmp(restore->device, device) == 0)
            return true;
    return false;
}

/* The checkpoint is damaged: the orders say what was attached. */
static int list_from_orders(struct task *task, struct drarun_error *err)
{
    const char *dir = task->preparer->config->orders_dir;
    size_t n = 0, uid = strlen(task->uid);
    cleanup_dir DIR *open_dir = opendir(dir);
    struct dirent *entry;
    task->restores = calloc(RESTORES_MAX + 1, sizeof *task->restores);
    if (!open_dir || !task->restores)
        return error_set(err, errno, "%s: %s", dir, strerror(errno));
    while (n < RESTORES_MAX && (entry = readdir(open_dir))) {
        char device[ATTACH_NAME_MAX];
        const char *rest = entry->d_name + uid + 1;
        if (strncmp(entry->d_name, task->uid, uid) != 0 || rest[-1] != '.')
            continue;
        size_t length = length_before(rest, ORDER);
        if (length == 0)
            length = length_before(rest, RETURNING);
        snprintf(device, sizeof device, "%.*s", (int)length, rest);
        if (length > 0 && !is_listed(task, device))
            add_restore(task, n++, device);
    }
    return 0;
}

/* Nothing was promised, but a kill may have left what was being written. */
static void forget_unwritten(struct task *task)
{
    struct drarun_error err = {0};
    if (forget(task, &err) < 0) {
        fail(task, &err);
        return;
    }
    preparer_release(task->preparer, task->uid);
    task_unprepared(task);
}

static void restore_all(struct task *task)
{
    char *paths[RESTORES_MAX];
    size_t count = 0;
    for (size_t i = 0; task->restores[i].task && count < RESTORES_MAX; i++)
        if (take_order(&task->restores[i]))
            paths[count++] = task->restores[i].path;
    if (count > 0)
        start_restore(task, paths, count);
    else
        finish(task);
}

void unprepare_run(struct task *task)
{
    struct drarun_error err = {0}, damage = {0};
    int rc = checkpoint_load(task->preparer->dir, task->uid, &task->checkpoint, &damage);
    if (rc == -ENOENT) {
        forget_unwritten(task);
        return;
    }
    if (rc == -EPROTO) {
        fail(task, &damage);
        return;
    }
    if (rc < 0)
        log_error("%s: undone by its orders: %s", task->preparer->config->driver, damage.text);
    rc = rc == 0 ? list_from_checkpoint(task) : list_from_orders(task, &err);
    if (rc < 0) {
        if (!err.code)
            error_set(&err, ENOMEM, "out of memory");
        fail(task, &err);
        return;
    }
    restore_all(task);
}
