/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/controller/sight.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/status/reason.h"
#include "launcher/cluster/client/api_event.h"
#include "launcher/cluster/client/job_map.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"

#define AGAIN_MIN_MS 1000 /* after what could not be done; doubles */
#define AGAIN_MAX_MS 60000
#define GOING_MAX_MS 5000 /* between two looks at what is to go */

static json_t *find(const struct kube_watch *watch, const char *namespace, const char *name)
{
    return json_incref(unconst(kube_watch_find(watch, namespace, name)));
}

static void see(struct sight *s)
{
    char map[JOB_MAP_NAME_SIZE];
    job_map_name(s->name, map);
    s->object = find(s->c->drajobs, s->namespace, s->name);
    s->job = find(s->c->jobs, s->namespace, s->name);
    s->map = find(s->c->maps, s->namespace, map);
    s->own_job = s->job && kube_is_owned_by(s->job, kube_uid(s->object));
    s->own_map = s->map && s->own_job && kube_is_owned_by(s->map, kube_uid(s->job));
}

struct sight *sight_new(struct controller *c, const char *key)
{
    struct sight *s = calloc(1, sizeof *s);
    char *slash = NULL;
    bool fits = s && (size_t)snprintf(s->key, sizeof s->key, "%s", key) < sizeof s->key;
    if (fits) {
        snprintf(s->names, sizeof s->names, "%s", key);
        slash = strchr(s->names, '/');
    }
    if (!slash) {
        free(s);
        return NULL;
    }
    *slash = '\0';
    s->c = c;
    s->namespace = s->names;
    s->name = slash + 1;
    s->begin_ms = clock_ms();
    see(s);
    return s;
}

void sight_free(struct sight *s)
{
    kube_call_cancel(s->call);
    kube_list_cancel(s->listing);
    bounded_cancel(s->reader);
    kube_call_cancel(s->deletion);
    kube_call_cancel(s->writing);
    for (size_t i = 0; i < ARRAY_LEN(s->answers); i++)
        json_decref(s->answers[i].body);
    job_spec_done(&s->spec);
    json_decref(s->status);
    json_decref(s->object);
    json_decref(s->job);
    json_decref(s->map);
    free(s);
}

bool sight_has_place(const struct sight *s)
{
    return sight_noted(s, s->c->large.waiting) || sight_noted(s, s->c->small.waiting);
}

bool sight_is_outdated(const struct sight *s)
{
    const json_t *now = kube_watch_find(s->c->drajobs, s->namespace, s->name);
    return !now != !s->object ||
           (now && strcmp(kube_resource_version(now), kube_resource_version(s->object)) != 0);
}

bool sight_is_under_way(const struct sight *s)
{
    return s->call || s->listing || s->reader || s->deletion || s->writing;
}

const char *sight_told_reason(const struct sight *s)
{
    return json_string_value(json_object_get(json_object_get(s->object, "status"), "reason"));
}

void sight_again(const struct sight *s, int64_t ms)
{
    controller_again(s->c, s->namespace, s->name, ms);
}

/* ---- what is remembered of it ---- */

const json_t *sight_noted(const struct sight *s, const json_t *book)
{
    return json_object_get(book, s->key);
}

void sight_note(const struct sight *s, json_t *book, json_t *value_take)
{
    json_object_set_new(book, s->key, value_take);
}

void sight_unnote(const struct sight *s, json_t *book)
{
    json_object_del(book, s->key);
}

bool sight_is_noted(const struct sight *s, const json_t *book, const char *text)
{
    const char *value = json_string_value(sight_noted(s, book));
    return value && text && strcmp(value, text) == 0;
}

void sight_forget(const struct sight *s)
{
    controller_forget(s->c, s->key);
}

static int64_t next_pause_ms(const struct sight *s, json_t *book, int64_t least, int64_t most)
{
    json_int_t last = json_integer_value(sight_noted(s, book));
    int64_t ms = last > 0 ? last * 2 : least;
    ms = ms < most ? ms : most;
    sight_note(s, book, json_integer(ms));
    return ms;
}

int64_t sight_pause_ms(struct sight *s)
{
    s->paused = true;
    return next_pause_ms(s, s->c->pauses, AGAIN_MIN_MS, AGAIN_MAX_MS);
}

void sight_await_end(struct sight *s)
{
    s->paused = true;
    sight_again(s, next_pause_ms(s, s->c->going, SIGHT_GOING_MS, GOING_MAX_MS));
}

/* ---- what it writes ---- */

bool sight_is_leader(const struct sight *s)
{
    return s->c->lost.code == 0;
}

static void on_deleted(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct sight *s = arg;
    (void)answer;
    s->deletion = NULL;
    s->deleted(s, err && err->code == ENOENT ? NULL : err);
}

void sight_delete(struct sight *s, const struct kube_target *target, const char *uid,
                  sight_written_fn fn)
{
    struct drarun_error err = {0};
    const struct kube_delete options = {.propagation = "Background", .uid = uid};
    if (!sight_is_leader(s) || s->deletion)
        return;
    s->deleted = fn;
    if (kube_delete(s->c->cluster->client, target, &options, on_deleted, s, &s->deletion, &err) < 0)
        fn(s, &err);
}

static void on_written(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct sight *s = arg;
    const char *before = kube_resource_version(s->object);
    s->writing = NULL;
    if (!err)
        sight_unnote(s, s->c->untold);
    if (!err && strcmp(kube_resource_version(answer->body), before) != 0)
        sight_note(s, s->c->outdated, json_string(before));
    s->written(s, err);
}

void sight_write_status(struct sight *s, json_t *status_take, sight_written_fn fn)
{
    const struct kube_target target = {.resource = &kube_dra_jobs,
                                       .namespace_ = s->namespace,
                                       .name = s->name,
                                       .subresource = "status"};
    struct drarun_error err = {0};
    CLEANUP(json_decrefp) json_t *object = json_copy(s->object);
    json_decref(s->status);
    s->status = status_take;
    s->written = fn;
    if (!sight_is_leader(s))
        return;
    int rc = object && json_object_set(object, "status", s->status) == 0
                 ? kube_replace(s->c->cluster->client, &target, object, NULL, on_written, s,
                                &s->writing, &err)
                 : error_set(&err, ENOMEM, "out of memory");
    if (rc < 0)
        fn(s, &err);
}

void sight_write_again(const struct sight *s, const struct drarun_error *err)
{
    /* what is not refused was tried for a minute, and may do at once when the server is back */
    bool conflict = err->code == EBUSY, refused = !conflict && !kube_may_answer_later(err);
    sight_again(s, conflict  ? SIGHT_CONFLICT_MS
                   : refused ? next_pause_ms(s, s->c->untold, AGAIN_MIN_MS, AGAIN_MAX_MS)
                             : AGAIN_MIN_MS);
}

/* A job that cannot be made is tried again and again, with other states between: told once. */
static bool was_told(const struct sight *s, const struct drajob_event *what)
{
    if (strcmp(what->reason, reason_name(REASON_CANNOT_CREATE)) != 0)
        return false;
    if (sight_is_noted(s, s->c->refused, what->text))
        return true;
    sight_note(s, s->c->refused, json_string(what->text));
    return false;
}

/* Of a status that was written, which happens once, whichever controller leads. */
static void write_event(const struct sight *s, const json_t *status)
{
    struct drajob_event what;
    if (!drajob_event(s->object, status, &what) || was_told(s, &what))
        return;
    CLEANUP(json_decrefp)
    json_t *about =
        json_pack("{s:s, s:s, s:s, s:s, s:s}", "apiVersion", SPEC_API_VERSION, "kind", SPEC_KIND,
                  "name", s->name, "namespace", s->namespace, "uid", kube_uid(s->object));
    const struct api_event event = {
        .about = about,
        .job = s->name,
        .number = s->c->events++,
        .reason = what.reason,
        .message = what.text,
        .warning = what.warning,
        .controller = "drarun.dev/controller",
        .instance = s->c->options->holder,
    };
    api_event_write(s->c->cluster, &event);
}

/* A job ends once: what has ended is only looked at for its time to live. */
static void note_written(const struct sight *s)
{
    if (drajob_status_has_ended(s->status))
        drajob_tally_end(&s->c->tally, s->namespace, s->status);
    write_event(s, s->status);
}

static void on_told(struct sight *s, const struct drarun_error *err)
{
    if (!err)
        note_written(s);
    if (!err && s->told)
        s->told(s);
    if (!err || err->code == ENOENT)
        return;
    bool conflict = err->code == EBUSY;
    s->c->tally.not_written += !conflict;
    if (!conflict)
        log_note("%s/%s: cannot write its status: %s", s->namespace, s->name, err->text);
    sight_write_again(s, err);
}

void sight_tell(struct sight *s, const struct drajob_input *said, sight_told_fn told)
{
    static const struct drarun_error no_memory = {.code = ENOMEM, .text = "out of memory"};
    struct drajob_input input = *said;
    input.object = s->object;
    input.now_ms = controller_now(s->c);
    input.site_ttl_ms = s->c->options->site_ttl_ms;
    json_t *status = drajob_status(&input);
    bool same = status && json_equal(status, json_object_get(s->object, "status"));
    s->told = told;
    if (!status) {
        on_told(s, &no_memory);
    } else if (!same) {
        sight_write_status(s, status, on_told);
    } else {
        json_decref(status);
        if (told)
            told(s);
    }
}

void sight_tell_stage(struct sight *s, enum drajob_stage stage, const char *reason,
                      const char *text, sight_told_fn told)
{
    const struct drajob_input input = {.stage = stage, .reason = reason, .text = text};
    sight_tell(s, &input, told);
}
