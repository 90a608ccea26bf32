/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/controller/sight.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jobs/spec/k8s_name.h"
#include "jobs/status/reason.h"
#include "launcher/cluster/client/api_event.h"
#include "launcher/cluster/client/job_clock.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"

#define AGAIN_MIN_MS 1000 /* after what could not be done; doubles */
#define AGAIN_MAX_MS 60000

static json_t *find(const struct kube_watch *watch, const char *namespace, const char *name)
{
    return json_incref(unconst(kube_watch_find(watch, namespace, name)));
}

void sight_see(struct controller *c, const char *namespace, const char *name, struct sight *s)
{
    char map[K8S_LABEL_MAX + 8];
    snprintf(map, sizeof map, "%s-status", name);
    *s = (struct sight){.c = c, .namespace = namespace, .name = name};
    s->object = find(c->drajobs, namespace, name);
    s->job = find(c->jobs, namespace, name);
    s->map = find(c->maps, namespace, map);
    s->own_job = s->job && kube_is_owned_by(s->job, kube_uid(s->object));
    s->own_map = s->map && s->own_job && kube_is_owned_by(s->map, kube_uid(s->job));
}

void sight_done(struct sight *s)
{
    json_decref(s->object);
    json_decref(s->job);
    json_decref(s->map);
}

void sight_again(const struct sight *s, int64_t ms)
{
    controller_again(s->c, s->namespace, s->name, ms);
}

/* ---- what is remembered of it ---- */

const json_t *sight_noted(const struct sight *s, const json_t *book)
{
    struct buf key = BUF_INIT;
    controller_key(s->namespace, s->name, &key);
    const json_t *value = key.data ? json_object_get(book, key.data) : NULL;
    buf_done(&key);
    return value;
}

void sight_note(const struct sight *s, json_t *book, json_t *value_take)
{
    struct buf key = BUF_INIT;
    controller_key(s->namespace, s->name, &key);
    if (key.data)
        json_object_set_new(book, key.data, value_take);
    else
        json_decref(value_take);
    buf_done(&key);
}

void sight_unnote(const struct sight *s, json_t *book)
{
    struct buf key = BUF_INIT;
    controller_key(s->namespace, s->name, &key);
    if (key.data)
        json_object_del(book, key.data);
    buf_done(&key);
}

bool sight_is_noted(const struct sight *s, const json_t *book, const char *text)
{
    const char *value = json_string_value(sight_noted(s, book));
    return value && text && strcmp(value, text) == 0;
}

void sight_forget(const struct sight *s)
{
    const struct controller *c = s->c;
    json_t *const books[] = {c->outdated, c->pauses,      c->made,        c->refused,
                             c->silent,   c->large.turns, c->small.turns, c->late};
    for (size_t i = 0; i < ARRAY_LEN(books); i++)
        sight_unnote(s, books[i]);
}

int64_t sight_pause_ms(const struct sight *s)
{
    json_int_t last = json_integer_value(sight_noted(s, s->c->pauses));
    int64_t ms = last > 0 ? last * 2 : AGAIN_MIN_MS;
    ms = ms < AGAIN_MAX_MS ? ms : AGAIN_MAX_MS;
    sight_note(s, s->c->pauses, json_integer(ms));
    return ms;
}

/* ---- its status ---- */

bool sight_is_leader(const struct sight *s)
{
    return s->c->lost.code == 0;
}

int sight_write_status(const struct sight *s, json_t *status_take, struct drarun_error *err)
{
    const struct kube_target target = {.resource = &kube_dra_jobs,
                                       .namespace_ = s->namespace,
                                       .name = s->name,
                                       .subresource = "status"};
    CLEANUP(json_decrefp) json_t *object = json_copy(s->object);
    if (!object || json_object_set_new(object, "status", status_take) < 0)
        return error_set(err, ENOMEM, "out of memory");
    CLEANUP(json_decrefp) json_t *written = NULL;
    if (!sight_is_leader(s))
        return error_set(err, ECANCELED, "%s", s->c->lost.text);
    int rc = cluster_replace(s->c->cluster, &target, object, &written, err);
    const char *before = kube_resource_version(s->object);
    if (rc == 0 && strcmp(kube_resource_version(written), before) != 0)
        sight_note(s, s->c->outdated, json_string(before));
    return rc;
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
static void written(const struct sight *s, const json_t *status)
{
    if (drajob_status_has_ended(status))
        drajob_tally_end(&s->c->tally, s->namespace, status);
    write_event(s, status);
}

int sight_tell(const struct sight *s, const struct drajob_input *said)
{
    struct drarun_error err = {0};
    struct drajob_input input = *said;
    input.object = s->object;
    input.now_ms = lead_now();
    input.site_ttl_ms = s->c->options->site_ttl_ms;
    CLEANUP(json_decrefp) json_t *status = drajob_status(&input);
    if (status && json_equal(status, json_object_get(s->object, "status")))
        return 0;
    int rc = status ? sight_write_status(s, json_incref(status), &err)
                    : error_set(&err, ENOMEM, "out of memory");
    if (rc == 0)
        written(s, status);
    if (rc == 0 || rc == -ENOENT)
        return rc;
    s->c->tally.not_written += rc != -EBUSY;
    if (rc != -EBUSY)
        log_note("%s/%s: cannot write its status: %s", s->namespace, s->name, err.text);
    sight_again(s, rc == -EBUSY ? SIGHT_CONFLICT_MS : AGAIN_MIN_MS);
    return rc;
}

int sight_tell_stage(const struct sight *s, enum drajob_stage stage, const char *reason,
                     const char *text)
{
    const struct drajob_input input = {.stage = stage, .reason = reason, .text = text};
    return sight_tell(s, &input);
}
