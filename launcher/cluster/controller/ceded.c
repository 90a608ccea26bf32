/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces that have a controller of their own (drarun controller without --all-namespaces): that
 * of all namespaces leaves their DraJobs to it. Each of two that both created a job's objects would
 * delete those of the other one as half made. */
#include <errno.h>
#include <string.h>

#include "launcher/cluster/client/lease_life.h"
#include "launcher/cluster/controller/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/kube/list.h"

#define CHECK_MS 5000 /* between two lists of the Leases */
#define AGAIN_MS 1000 /* after one that failed */

/* One that was renewed not long ago has a controller, or one that is just restarted. */
static bool is_alive(const struct controller *c, const json_t *lease)
{
    int64_t now = controller_now(c);
    return strcmp(kube_name(lease), CONTROLLER_LEASE) == 0 &&
           strcmp(kube_namespace(lease), c->options->lease_namespace) != 0 &&
           now - lease_last_write(lease, now) < CONTROLLER_QUIET_MS;
}

static json_t *find_ceded(const struct controller *c, const json_t *leases)
{
    json_t *found = json_object(), *lease;
    size_t i;
    json_array_foreach(leases, i, lease)
    {
        if (is_alive(c, lease))
            json_object_set_new(found, kube_namespace(lease), json_true());
    }
    return found;
}

/* ---- what changes with that ---- */

struct touching {
    struct controller *c;
    const char *namespace;
};

static void touch(const json_t *object, void *arg)
{
    const struct touching *touching = arg;
    if (strcmp(kube_namespace(object), touching->namespace) == 0)
        controller_note_change(touching->c, touching->namespace, kube_name(object));
}

static void announce(struct controller *c, json_t *from, const json_t *to, const char *text)
{
    const char *namespace;
    json_t *value;
    json_object_foreach(from, namespace, value)
    {
        if (json_object_get(to, namespace))
            continue;
        struct touching touching = {c, namespace};
        log_note("namespace %s %s", namespace, text);
        if (c->drajobs)
            kube_watch_each(c->drajobs, touch, &touching);
    }
}

static void replace(struct controller *c, json_t *found_take)
{
    CLEANUP(json_decrefp) json_t *before = c->ceded;
    c->ceded = found_take;
    announce(c, c->ceded, before, "has a controller of its own: its DraJobs are left to that");
    announce(c, before, c->ceded, "has no controller of its own any more: manages its DraJobs");
}

/* ---- the list ---- */

/* Without the right to list Leases none has one. */
static void fail(struct controller *c, const struct drarun_error *err)
{
    static const char cannot[] = "cannot find out which namespaces have a controller of their own";
    int64_t again = clock_ms() + AGAIN_MS;
    c->ceded_ms = c->ceded_ms > again ? c->ceded_ms : again;
    c->ceded_barred = err->code == EACCES;
    if (c->ceded_barred && !c->ceded)
        c->ceded = json_object();
    if (c->ceded_barred || c->ceded_late || controller_knows_namespaces(c)) {
        log_verbose("%s: %s", cannot, err->text);
        return;
    }
    c->ceded_late = true;
    log_note("%s, and creates no job until then: %s", cannot, err->text);
}

static void take(struct controller *c, json_t *found_take)
{
    replace(c, found_take);
    c->known_ms = c->ceding_ms;
    c->ceded_barred = false;
    if (c->ceded_late)
        log_note("knows which namespaces have a controller of their own");
    c->ceded_late = false;
}

static void on_leases(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    static const struct drarun_error no_memory = {.code = ENOMEM, .text = "out of memory"};
    struct controller *c = arg;
    c->controllers = NULL;
    json_t *found = err ? NULL : find_ceded(c, json_object_get(answer->body, "items"));
    if (found)
        take(c, found);
    else
        fail(c, err ? err : &no_memory);
}

void controller_check_namespaces(struct controller *c)
{
    static const struct kube_target all = {.resource = &kube_leases};
    static const struct kube_select select = {.labels = CONTROLLER_LEASE_LABEL "=" CONTROLLER_LEASE,
                                              .trim = controller_trim_lease};
    struct drarun_error err = {0};
    if (clock_ms() < controller_check_namespaces_due(c))
        return;
    c->ceding_ms = clock_ms();
    c->ceded_ms = c->ceding_ms + CHECK_MS;
    if (kube_list(c->cluster->client, &all, &select, on_leases, c, &c->controllers, &err) < 0)
        fail(c, &err);
}

int64_t controller_check_namespaces_due(const struct controller *c)
{
    return c->options->namespace || c->controllers ? INT64_MAX : c->ceded_ms;
}
