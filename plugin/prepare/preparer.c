/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/preparer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/trusted.h"
#include "plugin/prepare/device_record.h"
#include "plugin/prepare/preparer_private.h"

void preparer_count(const struct preparer *preparer, struct preparer_counts *ret_counts)
{
    *ret_counts = preparer->counts;
    for (const struct holding *h = preparer->holdings.list; h; h = h->next)
        ret_counts->claims += preparer_holding(preparer, h->uid) == h; /* its first device */
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

bool preparer_is_stuck(const struct preparer *preparer, const char *device)
{
    for (const struct holding *h = preparer->holdings.list; h; h = h->next)
        if (h->stuck && strcmp(h->device, device) == 0)
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
    task_start(preparer, claim, reply, true);
}

void preparer_unprepare(struct preparer *preparer, const struct dra_claim *claim,
                        struct dra_reply *reply)
{
    task_start(preparer, claim, reply, false);
}

/* Another user who could write there would tell root what to do. */
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
    preparer->queue.prepare = prepare_run;
    preparer->queue.unprepare = unprepare_run;
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
    return preparer->queue.tasks || status_later_is_busy(preparer->statuses);
}

void preparer_free(struct preparer *preparer)
{
    struct drarun_error err = {0};
    if (!preparer)
        return;
    preparer->queue.ending = true;
    error_set(&err, ECANCELED, "the plugin is ending");
    while (preparer->queue.tasks)
        task_failed(preparer->queue.tasks, &err);
    for (struct holding *h; (h = preparer->holdings.list);) {
        preparer->holdings.list = h->next;
        free(h);
    }
    seen_done(&preparer->holdings.seen);
    status_later_free(preparer->statuses);
    free(preparer);
}
