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
#include "lib/kube/list.h"

#define MANAGERS_MAX 64 /* of an object: how many are looked at */
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
    timestamp_format(lease_renewed_ms(lease), since, sizeof since);
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

void controller_trim_writes(json_t *object)
{
    static const char *const of_manager[] = {"manager", "time", NULL};
    json_t *metadata = json_object_get(object, "metadata"), *entry;
    size_t i;
    value_cut_at(metadata, "managedFields", MANAGERS_MAX);
    json_array_foreach(json_object_get(metadata, "managedFields"), i, entry)
        value_keep(entry, of_manager);
}

void controller_trim_lease(json_t *lease)
{
    static const char *const members[] = {"name", "namespace", "managedFields", NULL};
    value_keep_at(lease, "metadata", members);
    controller_trim_writes(lease);
}

/* ---- a check ---- */

static void on_leases(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct silence_check *check = arg;
    check->listing = NULL;
    if (err)
        check->unread = *err;
    else
        check->leases = json_incref(json_object_get(answer->body, "items"));
}

static void begin(struct controller *c)
{
    size_t led = 0;
    struct silence_check *check = &c->check;
    const struct kube_target target = {.resource = &kube_leases,
                                       .namespace_ = c->options->namespace};
    const struct kube_select select = {.labels = CONTROLLER_LABEL, .trim = controller_trim_lease};
    c->check_ms = clock_ms() + CHECK_MS;
    check->found = json_object();
    kube_watch_each(c->drajobs, count_led, &led);
    if (led > 0 && check->found)
        kube_list(c->cluster->client, &target, &select, on_leases, check, &check->listing,
                  &check->unread);
}

void controller_stop_checking(struct controller *c)
{
    struct silence_check *check = &c->check;
    kube_list_cancel(check->listing);
    cluster_read_drop(&check->pod);
    launcher_silence_done(&check->silence);
    json_decref(check->leases);
    json_decref(check->found);
    *check = (struct silence_check){0};
}

static bool is_silent(struct controller *c, const json_t *lease)
{
    int64_t now = kube_client_now(c->cluster->client);
    launcher_silence_done(&c->check.silence);
    return is_led(kube_watch_find(c->drajobs, kube_namespace(lease), kube_name(lease))) && now &&
           launcher_silence_of_lease(lease, now, &c->check.silence);
}

/* False: it has none, or cannot be asked for. */
static bool ask_for_pod(struct controller *c, const json_t *lease)
{
    struct drarun_error err = {0};
    struct silence_check *check = &c->check;
    const struct kube_target target = {
        .resource = &kube_pods, .namespace_ = kube_namespace(lease), .name = check->silence.holder};
    check->asked = launcher_silence_has_pod(&check->silence) &&
                   cluster_read_start(c->cluster, &target, &check->pod, &err) == 0;
    return check->asked;
}

/* A launcher that is silent for the first time is one once another list has confirmed it. */
static void note_silent(struct controller *c, const json_t *lease)
{
    struct silence_check *check = &c->check;
    struct buf key = BUF_INIT;
    controller_key(kube_namespace(lease), kube_name(lease), &key);
    const json_t *before = key.data ? json_object_get(c->silent, key.data) : NULL;
    if (key.data)
        json_object_set_new(check->found, key.data,
                            before ? silent_entry(lease, &check->silence, before)
                                   : new_entry(c, lease));
    check->confirm |= key.data && !before;
    buf_done(&key);
}

/* What the pod of a silent launcher says of its node has come. */
static void take_pod(struct silence_check *check)
{
    if (check->asked && check->pod.body)
        launcher_silence_add_pod(&check->silence, check->pod.body);
    cluster_read_drop(&check->pod);
    check->asked = false;
}

/* One after the other; false: an answer is awaited. */
static bool look_at_leases(struct controller *c)
{
    struct silence_check *check = &c->check;
    for (; check->next < json_array_size(check->leases); check->next++) {
        const json_t *lease = json_array_get(check->leases, check->next);
        if (check->pod.call)
            return false;
        if (!check->asked && !is_silent(c, lease))
            continue;
        if (!check->asked && ask_for_pod(c, lease))
            return false;
        take_pod(check);
        note_silent(c, lease);
    }
    return true;
}

static void end(struct controller *c)
{
    struct silence_check *check = &c->check;
    c->check_ms = clock_ms() + (check->confirm ? CONFIRM_MS : CHECK_MS);
    if (check->unread.code)
        log_verbose("cannot check whether launchers renew their Leases: %s", check->unread.text);
    else
        replace_book(c, TAKE_PTR(check->found));
    controller_stop_checking(c);
}

void controller_check_launchers(struct controller *c)
{
    if (!c->check.found && clock_ms() >= c->check_ms)
        begin(c);
    if (c->check.found && !c->check.listing && look_at_leases(c))
        end(c);
}

int64_t controller_check_due(const struct controller *c)
{
    return c->check.found ? INT64_MAX : c->check_ms;
}
