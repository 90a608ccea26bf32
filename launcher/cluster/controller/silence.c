/* SPDX-License-Identifier: Apache-2.0 */
/* Launchers that do not renew their Leases (docs/design/015-cluster.md, "A launcher that is
 * silent"): no client may follow the job, and the launcher itself can report nothing. */
#include "jobs/status/drajob.h"
#include "launcher/cluster/client/job_map.h"
#include "launcher/cluster/client/launcher_silence.h"
#include "launcher/cluster/client/lease_life.h"
#include "launcher/cluster/controller/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/timestamp.h"
#include "lib/doc/value.h"

#define MANAGERS_MAX 64 /* of a Lease: how many are looked at */
#define CHECK_MS 15000  /* between two lists of the Leases */
/* The same, if a launcher is silent: after an outage of the API server it renews in this time. */
#define CONFIRM_MS 12000

static bool is_led(const json_t *object)
{
    return object && drajob_launcher(object) && !drajob_has_ended(object) &&
           !drajob_manager(object);
}

static void count_led(const json_t *object, void *arg)
{
    size_t *count = arg;
    *count += is_led(object);
}

/* "launcher a-x2k8f on n1 has not renewed its Lease since 2026-11-21T15:24:42Z: its node does not
 * answer": the same at each look, because each new text is written to the status. */
static json_t *describe(const struct launcher_silence *silence, const json_t *lease)
{
    char since[TIMESTAMP_SIZE];
    timestamp_format(lease_life_sign(lease), since, sizeof since);
    return json_sprintf("launcher %s%s%s has not renewed its Lease since %.19sZ%s", silence->holder,
                        silence->node ? " on " : "", silence->node ? silence->node : "", since,
                        silence->lost ? ": its node does not answer" : "");
}

/* Of its status document, which it may write before it renews its Lease. */
static const char *map_version(const struct controller *c, const json_t *lease)
{
    char name[JOB_MAP_NAME_SIZE];
    job_map_name(kube_name(lease), name);
    const json_t *map = kube_watch_find(c->maps, kube_namespace(lease), name);
    return map ? kube_resource_version(map) : NULL;
}

static json_t *new_entry(const struct controller *c, const json_t *lease)
{
    return json_pack("{s:I, s:s*}", "since", (json_int_t)clock_ms(), "map", map_version(c, lease));
}

/* What the book has of a launcher that is silent by this Lease, and was by the list before. */
static json_t *silent_entry(const json_t *lease, const struct launcher_silence *silence,
                            const json_t *before)
{
    int64_t since = json_integer_value(json_object_get(before, "since"));
    bool over = silence->lost && silence->deleting && silence->silent_ms >= silence->life_ms &&
                clock_ms() - since >= LAUNCHER_OVER_MS;
    return json_pack("{s:I, s:O?, s:o*, s:b}", "since", (json_int_t)since, "map",
                     json_object_get(before, "map"), "text", describe(silence, lease), "over",
                     over);
}

/* true: its launcher is silent for the first time, and another list decides. */
static bool take_lease(struct controller *c, const json_t *lease, json_t *fresh)
{
    struct launcher_silence silence = {0};
    struct buf key = BUF_INIT;
    const char *namespace = kube_namespace(lease), *name = kube_name(lease);
    bool first = false;
    controller_key(namespace, name, &key);
    if (key.data && is_led(kube_watch_find(c->drajobs, namespace, name)) &&
        launcher_silence_look_at(c->cluster, lease, &silence)) {
        const json_t *before = json_object_get(c->silent, key.data);
        first = !before;
        json_object_set_new(fresh, key.data,
                            first ? new_entry(c, lease) : silent_entry(lease, &silence, before));
    }
    launcher_silence_done(&silence);
    buf_done(&key);
    return first;
}

/* Those of which the book says something else than before are reconciled. */
static void announce(struct controller *c, json_t *before, const json_t *after)
{
    const char *key;
    json_t *entry;
    json_object_foreach(before, key, entry)
    {
        if (!json_equal(entry, json_object_get(after, key)))
            controller_again_key(c, key, 0);
    }
}

static void replace_book(struct controller *c, json_t *fresh_take)
{
    json_t *before = c->silent;
    c->silent = fresh_take;
    announce(c, before, c->silent);
    announce(c, c->silent, before);
    json_decref(before);
}

/* Anybody who may create Leases may label them. */
static void trim_lease(json_t *lease)
{
    static const char *const members[] = {"name", "namespace", "managedFields", NULL};
    static const char *const of_manager[] = {"manager", "time", NULL};
    json_t *metadata, *entry;
    size_t i;
    value_keep_at(lease, "metadata", members);
    metadata = json_object_get(lease, "metadata");
    value_cut_at(metadata, "managedFields", MANAGERS_MAX);
    json_array_foreach(json_object_get(metadata, "managedFields"), i, entry)
        value_keep(entry, of_manager);
}

void controller_check_launchers(struct controller *c)
{
    size_t led = 0, i;
    struct drarun_error err = {0};
    const struct kube_target target = {.resource = &kube_leases,
                                       .namespace_ = c->options->namespace};
    const struct kube_select select = {.labels = CONTROLLER_LABEL, .trim = trim_lease};
    CLEANUP(json_decrefp) json_t *list = NULL, *fresh = json_object();
    json_t *lease;
    bool confirm = false;
    kube_watch_each(c->drajobs, count_led, &led);
    int rc = led > 0 && fresh ? cluster_list(c->cluster, &target, &select, &list, &err) : 0;
    if (rc < 0)
        log_verbose("cannot check whether launchers renew their Leases: %s", err.text);
    json_array_foreach(json_object_get(list, "items"), i, lease)
    {
        confirm |= take_lease(c, lease, fresh);
    }
    c->check_ms = clock_ms() + (confirm ? CONFIRM_MS : CHECK_MS);
    if (fresh && rc == 0)
        replace_book(c, TAKE_PTR(fresh));
}
