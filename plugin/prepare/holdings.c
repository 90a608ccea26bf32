/* SPDX-License-Identifier: Apache-2.0 */
/* Which claim has which device: what all checkpoints say. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "plugin/prepare/preparer_private.h"
#include "plugin/prepare/salvage.h"

#define ANY_DEVICE "*" /* held by a claim of which nothing is known any more */

const struct holding *preparer_holder(const struct preparer *preparer, const char *device,
                                      const char *but)
{
    for (const struct holding *h = preparer->holdings.list; h; h = h->next)
        if ((strcmp(h->device, device) == 0 || strcmp(h->device, ANY_DEVICE) == 0) &&
            (!but || strcmp(h->uid, but) != 0))
            return h;
    return NULL;
}

const struct holding *preparer_holding(const struct preparer *preparer, const char *uid)
{
    for (const struct holding *h = preparer->holdings.list; h; h = h->next)
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
    h->next = preparer->holdings.list;
    preparer->holdings.list = h;
    return true;
}

bool preparer_hold(struct preparer *preparer, const char *device, const struct task *task)
{
    return hold(preparer, device, task->uid, task->namespace_, task->name);
}

void preparer_lose(struct preparer *preparer, const char *uid)
{
    for (struct holding *h = preparer->holdings.list; h; h = h->next)
        h->stuck = h->stuck || strcmp(h->uid, uid) == 0;
}

int64_t preparer_gone_since(struct preparer *preparer, const char *uid)
{
    int64_t since = clock_ms();
    for (struct holding *h = preparer->holdings.list; h; h = h->next) {
        if (strcmp(h->uid, uid) != 0)
            continue;
        if (h->gone_ms)
            since = h->gone_ms;
        h->gone_ms = since;
    }
    return since;
}

void preparer_release(struct preparer *preparer, const char *uid)
{
    for (struct holding **p = &preparer->holdings.list; *p;) {
        struct holding *h = *p;
        if (strcmp(h->uid, uid) == 0) {
            *p = h->next;
            free(h);
        } else {
            p = &h->next;
        }
    }
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
    return seen_look(&preparer->holdings.seen, preparer->dir, on_seen, preparer, err);
}

int preparer_lock(const struct preparer *preparer, int *ret_fd, struct drarun_error *err)
{
    cleanup_close int fd = open(preparer->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return error_set(err, errno, "lock %s: %s", preparer->dir, strerror(errno));
    *ret_fd = take_fd(&fd);
    return 0;
}
