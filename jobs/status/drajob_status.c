/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/status/drajob.h"

#include <ctype.h>
#include <string.h>

#include "jobs/status/reason.h"
#include "jobs/status/status_doc.h"
#include "lib/base/cleanup.h"
#include "lib/base/plain.h"
#include "lib/base/timestamp.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"

#define MESSAGE_MAX 1000
#define BY_SPEC "Spec"        /* status.expirationReason */
#define BY_SITE "SiteDefault" /* likewise */

static const json_t *status_of(const json_t *object)
{
    return json_object_get(object, "status");
}

static bool is(const char *text, const char *other)
{
    return text && strcmp(text, other) == 0;
}

/* ---- what a status says ---- */

static bool is_end(const char *state)
{
    return is(state, "Succeeded") || is(state, "Failed") || is(state, "Cancelled");
}

bool drajob_status_has_ended(const json_t *status)
{
    return is_end(value_text(status, "state"));
}

bool drajob_has_ended(const json_t *object)
{
    return drajob_status_has_ended(status_of(object));
}

int64_t drajob_end_ms(const json_t *object)
{
    int64_t at = 0;
    const char *text = value_text(status_of(object), "completionTime");
    return text && timestamp_parse(text, &at) ? at : 0;
}

/* spec.ttlSecondsAfterFinished, or NULL. */
static const json_t *ttl_of(const json_t *object)
{
    const json_t *ttl = json_object_get(json_object_get(object, "spec"), "ttlSecondsAfterFinished");
    return json_is_integer(ttl) ? ttl : NULL;
}

int64_t drajob_expiration_ms(const json_t *object, int64_t site_ttl_ms)
{
    const json_t *ttl = ttl_of(object);
    int64_t end = drajob_end_ms(object);
    if (end == 0 || (!ttl && site_ttl_ms == 0))
        return 0;
    return end + (ttl ? json_integer_value(ttl) * 1000 : site_ttl_ms);
}

const char *drajob_launcher(const json_t *object)
{
    return value_text(status_of(object), "launcherUID");
}

static json_int_t generation_of(const json_t *object)
{
    return json_integer_value(json_object_get(json_object_get(object, "metadata"), "generation"));
}

static const json_t *condition_of(const json_t *object, const char *type)
{
    return value_find(json_object_get(status_of(object), "conditions"), "type", type);
}

/* The status of another manager may be of its own copy, which has other generations. */
static bool is_judged(const json_t *object, bool accepted)
{
    const json_t *condition = condition_of(object, "Accepted");
    return condition && is(value_text(condition, "status"), accepted ? "True" : "False") &&
           (drajob_manager(object) ||
            json_integer_value(json_object_get(condition, "observedGeneration")) ==
                generation_of(object));
}

bool drajob_is_accepted(const json_t *object)
{
    return is_judged(object, true);
}

bool drajob_is_refused(const json_t *object)
{
    return is_judged(object, false);
}

static json_int_t workers_or(const json_t *holder, json_int_t fallback)
{
    json_int_t count = json_integer_value(json_object_get(holder, "workers"));
    return count >= 1 && count <= SPEC_WORKERS_MAX ? count : fallback;
}

/* Of all roles, also where the spec was refused: a role without a number has that of the top. */
static json_int_t asked_workers(const json_t *object)
{
    const json_t *spec = json_object_get(object, "spec"), *roles, *role;
    json_int_t top = workers_or(spec, 1), sum = 0;
    size_t i;
    roles = json_object_get(spec, "roles");
    json_array_foreach(roles, i, role) sum += workers_or(role, top);
    return json_array_size(roles) > 0 ? sum : top;
}

/* Of one kind, as a text; NULL: none, or out of memory. */
static json_t *asked_devices(const json_t *object, const char *kind)
{
    const json_t *spec = json_object_get(object, "spec"), *roles = json_object_get(spec, "roles");
    json_int_t top = workers_or(spec, 1), sum = 0;
    bool all = false;
    size_t count = json_array_size(roles);
    for (size_t i = 0; i < (count ? count : 1); i++) {
        const json_t *role = count ? json_array_get(roles, i) : spec;
        const json_t *own = json_object_get(role, "devices");
        const json_t *devices = own ? own : json_object_get(spec, "devices");
        const json_t *number = json_object_get(json_object_get(devices, kind), "count");
        json_int_t each = json_integer_value(number);
        all = all || is(json_string_value(number), "all");
        if (each > 0 && each <= SPEC_DEVICES_MAX)
            sum += each * workers_or(role, top);
    }
    if (sum > 0)
        return json_sprintf("%lld%s", (long long)sum, all ? "+all" : "");
    return all ? json_string("all") : NULL;
}

json_t *drajob_devices(const json_t *object)
{
    return json_pack("{s:o*, s:o*}", "gpus", asked_devices(object, "gpus"), "nics",
                     asked_devices(object, "nics"));
}

/* ---- words ---- */

/* Cut between characters. */
static json_t *message_json(const char *text)
{
    text = text ? text : "";
    return json_stringn(text, utf8_cut(text, strlen(text), MESSAGE_MAX));
}

/* metav1.Time has no fraction. */
static json_t *seconds_json(int64_t ms)
{
    char text[TIMESTAMP_SIZE];
    timestamp_format(ms, text, sizeof text);
    memcpy(text + strlen("2026-01-01T00:00:00"), "Z", sizeof "Z");
    return json_string(text);
}

/* ---- when it goes ---- */

/* Of a status with an end. */
static void set_expiration(const json_t *object, int64_t site_ttl_ms, json_t *status)
{
    json_t *ended =
        json_pack("{s:O?, s:O}", "spec", json_object_get(object, "spec"), "status", status);
    int64_t at = ended ? drajob_expiration_ms(ended, site_ttl_ms) : 0;
    json_object_del(status, "expirationTime");
    json_object_del(status, "expirationReason");
    if (at > 0) {
        json_object_set_new(status, "expirationTime", seconds_json(at));
        json_object_set_new(status, "expirationReason",
                            json_string(ttl_of(object) ? BY_SPEC : BY_SITE));
    }
    json_decref(ended);
}

/* A change of the spec changes nothing any more, and who waits until it was seen need not wait on.
 */
static void observe(const json_t *object, json_t *status)
{
    if (json_object_get(status, "observedGeneration"))
        json_object_set_new(status, "observedGeneration", json_integer(generation_of(object)));
}

json_t *drajob_dated_status(const json_t *object, int64_t site_ttl_ms)
{
    json_t *status = json_copy(unconst(status_of(object)));
    if (!status)
        return NULL;
    observe(object, status);
    set_expiration(object, site_ttl_ms, status);
    return status;
}

/* ---- the view: what the input comes to ---- */

struct view {
    char state[64], reason[64];
    const char *text;
    bool accepted, suspended, allocated, running, ended;
    bool silent; /* what the document says may have changed since */
    const json_t *doc, *cause;
    json_int_t exit;
};

static void view_set(struct view *v, const char *state, const char *reason, const char *text)
{
    snprintf(v->state, sizeof v->state, "%s", state);
    snprintf(v->reason, sizeof v->reason, "%s", reason);
    v->text = text;
}

static const char *phase_of(const json_t *doc)
{
    const char *phase = value_text(doc, "phase");
    return phase && *phase ? phase : "created";
}

/* "succeeded", "failed" or "cancelled". */
static void view_end(struct view *v, const char *result, const char *text)
{
    char reason[64] = "";
    reason_of_words(value_text(v->cause, "kind"), reason, sizeof reason);
    reason_of_words(result ? result : "failed", v->state, sizeof v->state);
    snprintf(v->reason, sizeof v->reason, "%s", reason[0] ? reason : v->state);
    v->text = text;
    v->ended = true;
}

static void view_led(struct view *v, const struct drajob_input *in)
{
    const char *phase = phase_of(in->doc);
    const json_t *workers = json_object_get(in->doc, "workers");
    const json_t *waiting = json_object_get(in->doc, "waiting");
    v->doc = in->doc;
    v->cause = json_object_get(json_object_get(in->doc, "report"), "cause");
    v->running = is(phase, "running");
    v->allocated = v->running || is(phase, "pulling") || is(phase, "starting") ||
                   (json_integer_value(json_object_get(workers, "claims")) > 0 &&
                    json_integer_value(json_object_get(workers, "allocated")) ==
                        json_integer_value(json_object_get(workers, "claims")));
    if (status_doc_exit(in->doc) >= 0) {
        const char *text = value_text(v->cause, "text");
        v->exit = status_doc_exit(in->doc);
        view_end(v, value_text(in->doc, "result"), text ? text : "all ranks have ended");
        v->allocated = v->running = false;
        return;
    }
    v->cause = NULL;
    reason_of_words(is(phase, "created") ? "pending" : phase, v->state, sizeof v->state);
    snprintf(v->reason, sizeof v->reason, "%s", v->state);
    v->text = v->running                    ? "the ranks run"
              : value_text(waiting, "text") ? value_text(waiting, "text")
              : in->text                    ? in->text
                                            : "the launcher has not reported yet why it waits";
    v->silent = in->silence;
    if (!v->silent)
        return;
    snprintf(v->reason, sizeof v->reason, "%s", reason_name(REASON_LAUNCHER_SILENT));
    v->text = in->silence;
}

static void view_make(struct view *v, const struct drajob_input *in)
{
    const char *text = in->text, *reason = in->reason;
    *v = (struct view){.accepted = in->stage != DRAJOB_INVALID_SPEC};
    switch (in->stage) {
    case DRAJOB_INVALID_SPEC:
        view_set(v, "Invalid", reason_name(REASON_INVALID_SPEC), text);
        break;
    case DRAJOB_PENDING:
        view_set(v, "Pending", reason ? reason : reason_name(REASON_ACCEPTED),
                 text ? text : "creating the job's objects");
        break;
    case DRAJOB_SUSPENDED:
        view_set(v, "Suspended", reason_name(REASON_SUSPENDED),
                 "suspended (spec.suspend): the job holds no pods or claims");
        v->suspended = true;
        break;
    case DRAJOB_SUSPENDING:
        view_set(v, "Suspending", reason_name(REASON_SUSPENDING),
                 "suspending (spec.suspend): deleting the job's pods and claims");
        break;
    case DRAJOB_LED:
        view_led(v, in);
        break;
    case DRAJOB_LOST:
        view_end(v, in->result, text);
        snprintf(v->reason, sizeof v->reason, "%s", reason ? reason : v->state);
        v->exit = in->exit;
        v->doc = in->doc;
        break;
    }
}

/* ---- conditions ---- */

static void add_condition_word(const struct drajob_input *in, json_t *list, const char *type,
                               const char *word, const char *reason, const char *text)
{
    const json_t *before = condition_of(in->object, type);
    json_t *since = is(value_text(before, "status"), word)
                        ? json_incref(json_object_get(before, "lastTransitionTime"))
                        : seconds_json(in->now_ms);
    json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:o, s:s, s:o}", "type", type, "status",
                                          word, "observedGeneration", generation_of(in->object),
                                          "lastTransitionTime", since, "reason", reason, "message",
                                          message_json(text)));
}

static void add_condition(const struct drajob_input *in, json_t *list, const char *type, bool holds,
                          const char *reason, const char *text)
{
    add_condition_word(in, list, type, holds ? "True" : "False", reason, text);
}

static json_t *conditions_json(const struct drajob_input *in, const struct view *v)
{
    json_t *list = json_array();
    const char *why = v->reason;
    if (!v->accepted) {
        add_condition(in, list, "Accepted", false, reason_name(REASON_INVALID_SPEC), v->text);
        return list;
    }
    add_condition(in, list, "Accepted", true, reason_name(REASON_CHECKED), "the spec was checked");
    add_condition(in, list, "Suspended", v->suspended,
                  reason_name(v->suspended ? REASON_SUSPENDED : REASON_NOT_SUSPENDED),
                  v->suspended ? v->text : "");
    add_condition(in, list, "Allocated", v->allocated,
                  v->allocated ? reason_name(REASON_ALLOCATED) : why,
                  v->allocated ? "every worker has its devices and its node" : v->text);
    if (v->silent)
        add_condition_word(in, list, "Running", "Unknown", why, v->text);
    else
        add_condition(in, list, "Running", v->running,
                      v->running ? reason_name(REASON_RUNNING) : why, v->text);
    if (!v->ended)
        return list;
    add_condition(in, list, "Succeeded", is(v->state, "Succeeded"), why, v->text);
    add_condition(in, list, "Failed", !is(v->state, "Succeeded"), why, v->text);
    return list;
}

/* ---- the whole ---- */

static json_t *workers_json(const json_t *object, const json_t *doc)
{
    const json_t *told = json_object_get(doc, "workers");
    const json_t *count = json_object_get(told, "count");
    return json_pack("{s:I, s:I, s:I}", "count",
                     json_is_integer(count) ? json_integer_value(count) : asked_workers(object),
                     "allocated", json_integer_value(json_object_get(told, "allocated")), "ready",
                     json_integer_value(json_object_get(told, "running")));
}

static void keep_member(json_t *status, const json_t *before, const char *key)
{
    if (json_object_get(before, key))
        json_object_set(status, key, json_object_get(before, key));
}

/* Of a job that has none of its objects nothing is told of the last ones. */
static void add_course(const struct drajob_input *in, const struct view *v, json_t *status)
{
    const json_t *before = status_of(in->object);
    static const char *const counts[] = {"attempt", "restarts", "ranks", NULL};
    if (!in->launcher)
        return;
    json_object_set_new(status, "launcherUID", json_string(in->launcher));
    keep_member(status, before, "startTime");
    if (!json_object_get(status, "startTime"))
        json_object_set_new(status, "startTime", seconds_json(in->now_ms));
    for (const char *const *key = counts; *key; key++) {
        if (json_is_integer(json_object_get(v->doc, *key)))
            json_object_set(status, *key, json_object_get(v->doc, *key));
        else
            keep_member(status, before, *key);
    }
}

/* The launcher's own clock may be wrong, and the time to live begins here. Without its word of the
 * end, its last one may be long ago. */
static int64_t ended_at(const struct drajob_input *in, const struct view *v)
{
    int64_t at = 0;
    bool told = status_doc_exit(v->doc) >= 0;
    if (told && in->written_ms)
        return in->written_ms;
    return told && timestamp_parse(value_text(v->doc, "updated"), &at) ? at : in->now_ms;
}

static void add_end(const struct drajob_input *in, const struct view *v, json_t *status)
{
    if (!v->ended)
        return;
    keep_member(status, status_of(in->object), "completionTime");
    if (!json_object_get(status, "completionTime"))
        json_object_set_new(status, "completionTime", seconds_json(ended_at(in, v)));
    json_object_set_new(status, "exitStatus", json_integer(v->exit));
    if (json_is_object(v->cause))
        json_object_set(status, "cause", unconst(v->cause));
    set_expiration(in->object, in->site_ttl_ms, status);
}

json_t *drajob_status(const struct drajob_input *input)
{
    struct view v;
    view_make(&v, input);
    json_t *all = workers_json(input->object, v.doc);
    json_t *status = json_pack(
        "{s:s, s:s, s:o, s:I, s:o, s:o, s:o, s:o}", "state", v.state, "reason", v.reason, "message",
        message_json(v.text), "observedGeneration", generation_of(input->object), "ready",
        json_sprintf("%lld/%lld", (long long)json_integer_value(json_object_get(all, "ready")),
                     (long long)json_integer_value(json_object_get(all, "count"))),
        "workers", json_incref(all), "devices", drajob_devices(input->object), "conditions",
        conditions_json(input, &v));
    json_decref(all);
    if (!status)
        return NULL;
    add_course(input, &v, status);
    add_end(input, &v, status);
    return status;
}

/* ---- events ---- */

static bool becomes(const json_t *before, const json_t *next, const char *key, const char *value)
{
    return is(value_text(next, key), value) && !is(value_text(before, key), value);
}

static bool is_suspended(const json_t *status)
{
    const char *state = value_text(status, "state");
    return is(state, "Suspended") || is(state, "Suspending");
}

static struct drajob_event event_of(const json_t *before, const json_t *next)
{
    const char *state = value_text(next, "state"), *text = value_text(next, "message");
    bool reworded = !is(value_text(before, "message"), text ? text : "");
    if (is_end(state) && !is_end(value_text(before, "state")))
        return (struct drajob_event){state, text, !is(state, "Succeeded")};
    if (is(value_text(next, "reason"), reason_name(REASON_INVALID_SPEC)) &&
        (reworded || !is(value_text(before, "reason"), reason_name(REASON_INVALID_SPEC))))
        return (struct drajob_event){reason_name(REASON_INVALID_SPEC), text, true};
    if (becomes(before, next, "reason", reason_name(REASON_CANNOT_CREATE)))
        return (struct drajob_event){reason_name(REASON_CANNOT_CREATE), text, true};
    if (becomes(before, next, "reason", reason_name(REASON_LAUNCHER_SILENT)))
        return (struct drajob_event){reason_name(REASON_LAUNCHER_SILENT), text, true};
    if (becomes(before, next, "state", "Suspended"))
        return (struct drajob_event){state, text, false};
    if (value_text(next, "launcherUID") && !value_text(before, "launcherUID"))
        return (struct drajob_event){reason_name(REASON_CREATED), "the job's objects are made",
                                     false};
    if (is_suspended(before) && !is_suspended(next))
        return (struct drajob_event){reason_name(REASON_RESUMED), "the job is no longer suspended",
                                     false};
    return (struct drajob_event){0};
}

bool drajob_event(const json_t *object, const json_t *next, struct drajob_event *ret_event)
{
    const struct drajob_event event = event_of(status_of(object), next);
    if (!event.reason || !event.text)
        return false;
    *ret_event = event;
    return true;
}

/* ---- for verbs ---- */

/* "Suspended" is the phase "suspended". */
static json_t *phase_word(const json_t *object)
{
    char word[64] = "created";
    const char *state = value_text(status_of(object), "state");
    if (state)
        snprintf(word, sizeof word, "%s", drajob_has_ended(object) ? "ended" : state);
    for (char *at = word; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    return json_string(word);
}

static void add_result(const json_t *object, json_t *doc)
{
    char result[64];
    const json_t *status = status_of(object);
    snprintf(result, sizeof result, "%s", value_text(status, "state"));
    result[0] = (char)tolower((unsigned char)result[0]);
    json_object_set_new(doc, "result", json_string(result));
    json_object_set(doc, "exit", json_object_get(status, "exitStatus"));
    json_object_set_new(doc, "report",
                        json_pack("{s:O?, s:{s:s, s:O?}}", "status",
                                  json_object_get(status, "exitStatus"), "cause", "kind", "failure",
                                  "text", json_object_get(status, "message")));
    if (json_object_get(status, "cause"))
        json_object_set(json_object_get(doc, "report"), "cause", json_object_get(status, "cause"));
}

/* What another manager reports of the job's course: no launcher's document here does. */
static void add_reported(const json_t *object, json_t *doc)
{
    static const char *const counts[] = {"attempt", "restarts", "ranks", NULL};
    const json_t *status = status_of(object), *workers = json_object_get(status, "workers");
    if (!drajob_manager(object))
        return;
    json_object_set_new(doc, "managedBy", json_string(drajob_manager(object)));
    for (const char *const *key = counts; *key; key++)
        keep_member(doc, status, *key);
    if (json_object_get(workers, "ready"))
        json_object_set(json_object_get(doc, "workers"), "running",
                        json_object_get(workers, "ready"));
}

const char *drajob_words(const json_t *object)
{
    const char *words = value_text(status_of(object), "message");
    if (words)
        return words;
    return drajob_manager(object) ? "it has reported no status yet"
                                  : "no drarun controller has seen it";
}

json_t *drajob_doc(const json_t *object)
{
    const json_t *status = status_of(object), *metadata = json_object_get(object, "metadata");
    const char *created = value_text(metadata, "creationTimestamp");
    const char *words = drajob_words(object), *end = value_text(status, "completionTime");
    bool ended = drajob_has_ended(object);
    json_t *doc = json_pack(
        "{s:s, s:s, s:s*, s:s*, s:s*, s:s*, s:o, s:i, s:{s:I}, s:o}", "kind", STATUS_DOC_KIND,
        "name", value_text(metadata, "name") ? value_text(metadata, "name") : "?", "namespace",
        value_text(metadata, "namespace"), "created", created, "phaseSince", end ? end : created,
        "updated", end ? end : created, "phase", phase_word(object), "attempt", 1, "workers",
        "count", asked_workers(object), "devices", drajob_devices(object));
    if (doc)
        add_reported(object, doc);
    if (doc && ended)
        add_result(object, doc);
    else if (doc)
        json_object_set_new(doc, "waiting",
                            json_pack("{s:s, s:[{s:s}]}", "text", words, "reasons", "text", words));
    return doc;
}

void drajob_date_doc(const json_t *object, int64_t ttl_s, json_t *doc)
{
    char text[TIMESTAMP_SIZE];
    int64_t end = 0;
    const char *time = value_text(status_of(object), "expirationTime"), *reason = "spec";
    if (status_doc_exit(doc) < 0 || drajob_manager(object)) /* drarun does not delete it */
        return;
    if (time) {
        reason = is(value_text(status_of(object), "expirationReason"), BY_SITE) ? "site" : reason;
    } else if (ttl_s >= 0 && timestamp_parse(value_text(doc, "phaseSince"), &end)) {
        timestamp_format(end + ttl_s * 1000, text, sizeof text);
        time = text;
    }
    if (time)
        json_object_set_new(doc, "expiration",
                            json_pack("{s:s, s:s}", "time", time, "reason", reason));
}
