/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/status/status_doc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/placement/cliques.h"
#include "jobs/status/status_private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/timestamp.h"
#include "lib/base/unconst.h"

#define HISTORY_MAX 10 /* earlier attempts that are told */

/* ---- building ---- */

/* A member that may be missing is there as null, so that a merge knows it from one of another
 * version. */
static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

static json_t *time_or_null(int64_t ms)
{
    char text[TIMESTAMP_SIZE];
    if (ms <= 0)
        return json_null();
    timestamp_format(ms, text, sizeof text);
    return json_string(text);
}

static json_t *value_or_null(const json_t *value)
{
    return value ? json_deep_copy(value) : json_null();
}

static json_t *launcher_json(const struct status_launcher *l)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:I, s:o*}", "pod", text_or_null(l->pod), "uid",
                     text_or_null(l->uid), "node", text_or_null(l->node), "version",
                     text_or_null(l->version), "lease", (json_int_t)l->lease, "lines",
                     l->lines > 0 ? json_integer(l->lines) : NULL);
}

/* Every phase that was, the present one until now. */
static json_t *timings_json(const struct gang *gang, int64_t now_ms)
{
    json_t *object = json_object();
    for (int p = GANG_QUEUED; object && p < GANG_ENDED; p++) {
        int64_t ms = gang->timings_ms[p];
        if ((int)gang->phase == p && now_ms > gang->phase_since_ms)
            ms += now_ms - gang->phase_since_ms;
        if (ms > 0)
            json_object_set_new(object, gang_phase_name((enum gang_phase)p), json_integer(ms));
    }
    return object;
}

static json_t *workers_json(const struct status_input *input, enum status_detail detail)
{
    uint32_t claims = 0, allocated = 0, running = 0;
    for (uint32_t i = 0; input->workers && i < input->count; i++) {
        claims += input->workers[i].claim != CLAIM_NONE;
        allocated += input->workers[i].claim == CLAIM_ALLOCATED;
        running += !input->result && input->workers[i].phase == POD_RUNNING;
    }
    return json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "count", (json_int_t)input->count, "claims",
                     (json_int_t)claims, "allocated", (json_int_t)allocated, "running",
                     (json_int_t)running, "dropped", text_or_null(status_dropped(detail)), "lines",
                     status_lines(input, detail));
}

static json_t *waiting_or_null(const struct waiting *waiting)
{
    return waiting && waiting->count > 0 ? waiting_json(waiting) : json_null();
}

static json_t *order_or_null(const struct status_input *in)
{
    json_t *order = in->rank_order ? json_array() : json_null();
    for (uint32_t i = 0; in->rank_order && i < in->count; i++)
        json_array_append_new(order, json_integer(in->rank_order[i]));
    return order;
}

static json_t *cliques_or_null(const struct status_input *in)
{
    return in->cliques && in->count > 0
               ? cliques_json(in->cliques, in->rank_order, in->count, in->ranks / in->count)
               : json_null();
}

/* Of very many workers the counts and what is wrong remain. */
static json_t *fabric_or_null(const json_t *fabric, enum status_detail detail)
{
    json_t *copy = value_or_null(fabric);
    if (detail == STATUS_DETAIL_GROUPS) {
        json_object_del(json_object_get(copy, "opened"), "matrix");
        json_object_del(json_object_get(copy, "reach"), "matrix");
    }
    return copy;
}

static json_t *document(const struct status_input *in, enum status_detail detail)
{
    const struct gang *gang = in->gang;
    json_t *exit = json_object_get(in->report, "status");
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:s, s:o, s:I, s:I, s:{s:I, s:I}, s:I, s:I, s:o, s:I, "
        "s:o, s:o, "
        "s:o, "
        "s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "apiVersion", SPEC_API_VERSION, "kind", STATUS_DOC_KIND, "name", in->name, "namespace",
        text_or_null(in->namespace), "uid", text_or_null(in->uid), "created",
        time_or_null(in->created_ms), "updated", time_or_null(in->now_ms), "phase",
        gang_phase_name(gang->phase), "phaseSince", time_or_null(gang->phase_since_ms), "attempt",
        (json_int_t)in->attempt, "restarts", (json_int_t)in->restarts, "counted", "restarts",
        (json_int_t)in->counted, "infrastructureRestarts", (json_int_t)in->infrastructure, "tries",
        (json_int_t)gang->tries, "step", (json_int_t)gang->step, "rung", text_or_null(in->rung),
        "ranks", (json_int_t)in->ranks, "launcher", launcher_json(&in->launcher), "workers",
        workers_json(in, detail), "timings", timings_json(gang, in->now_ms), "waiting",
        waiting_or_null(in->waiting), "report", value_or_null(in->report), "result",
        text_or_null(in->result), "exit", in->result && exit ? json_deep_copy(exit) : json_null(),
        "gang", gang_save(gang), "cliques", cliques_or_null(in), "rankOrder", order_or_null(in),
        "fabric", fabric_or_null(in->fabric, detail), "roles", value_or_null(in->roles), "devices",
        value_or_null(in->asked));
}

/* A line has so many bytes at least: no time is spent on what cannot fit. */
static enum status_detail first_detail(const struct status_input *input)
{
    size_t lines = input->workers ? input->count : 0;
    if (lines * 70 > STATUS_DOC_MAX)
        return STATUS_DETAIL_GROUPS;
    return lines * 110 > STATUS_DOC_MAX ? STATUS_DETAIL_SHORT : STATUS_DETAIL_ALL;
}

int status_doc_build(const struct status_input *input, json_t **ret_doc, struct drarun_error *err)
{
    for (int detail = first_detail(input); detail < STATUS_DETAIL_COUNT; detail++) {
        CLEANUP(json_decrefp) json_t *doc = document(input, (enum status_detail)detail);
        if (!doc)
            return error_set(err, ENOMEM, "status document: out of memory");
        size_t size = json_dumpb(doc, NULL, 0, JSON_COMPACT);
        if (size > 0 && size <= STATUS_DOC_MAX) {
            *ret_doc = TAKE_PTR(doc);
            return 0;
        }
    }
    return error_set(err, EFBIG, "status document of %s: more than %zu bytes", input->name,
                     STATUS_DOC_MAX);
}

char *status_doc_text(const json_t *doc)
{
    return json_dumps(doc, JSON_COMPACT);
}

/* ---- reading ---- */

static const struct {
    const char *key;
    json_type type;
} members[] = {
    {"name", JSON_STRING},       {"namespace", JSON_STRING}, {"uid", JSON_STRING},
    {"created", JSON_STRING},    {"updated", JSON_STRING},   {"phase", JSON_STRING},
    {"phaseSince", JSON_STRING}, {"attempt", JSON_INTEGER},  {"restarts", JSON_INTEGER},
    {"tries", JSON_INTEGER},     {"step", JSON_INTEGER},     {"rung", JSON_STRING},
    {"ranks", JSON_INTEGER},     {"launcher", JSON_OBJECT},  {"workers", JSON_OBJECT},
    {"timings", JSON_OBJECT},    {"waiting", JSON_OBJECT},   {"report", JSON_OBJECT},
    {"result", JSON_STRING},     {"exit", JSON_INTEGER},     {"gang", JSON_OBJECT},
    {"history", JSON_ARRAY},     {"cliques", JSON_ARRAY},    {"rankOrder", JSON_ARRAY},
    {"fabric", JSON_OBJECT},     {"counted", JSON_OBJECT},   {"roles", JSON_ARRAY},
    {"devices", JSON_OBJECT},
};

int status_doc_parse(const char *text, size_t len, json_t **ret_doc, struct drarun_error *err)
{
    json_error_t error;
    CLEANUP(json_decrefp) json_t *doc = json_loadb(text, len, 0, &error);
    if (!json_is_object(doc))
        return error_kind(err, DRARUN_ERR_CLUSTER, EINVAL, "status document: %s",
                          doc ? "no object" : error.text);
    const char *kind = json_string_value(json_object_get(doc, "kind"));
    if (!kind || strcmp(kind, STATUS_DOC_KIND) != 0)
        return error_kind(err, DRARUN_ERR_CLUSTER, EINVAL,
                          "status document: its kind is %s, not " STATUS_DOC_KIND,
                          kind ? kind : "not given");
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const json_t *value = json_object_get(doc, members[i].key);
        if (value && json_typeof(value) != members[i].type && !json_is_null(value))
            json_object_del(doc, members[i].key);
    }
    *ret_doc = TAKE_PTR(doc);
    return 0;
}

const json_t *status_doc_gang(const json_t *doc)
{
    const json_t *gang = json_object_get(doc, "gang");
    return json_is_object(gang) ? gang : NULL;
}

static uint32_t count_at(const json_t *object, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

void status_doc_counts(const json_t *doc, uint32_t *ret_restarts, uint32_t *ret_infrastructure)
{
    const json_t *counted = json_object_get(doc, "counted");
    /* of a launcher that had one number it is that of all */
    *ret_restarts = count_at(json_is_object(counted) ? counted : doc, "restarts");
    *ret_infrastructure = count_at(counted, "infrastructureRestarts");
}

int status_doc_exit(const json_t *doc)
{
    const json_t *exit = json_object_get(doc, "exit");
    return json_is_integer(exit) ? (int)json_integer_value(exit) : -1;
}

/* ---- merging ---- */

/* How an attempt went that is over. */
static json_t *chapter(const json_t *doc)
{
    const json_t *report = json_object_get(doc, "report");
    return json_pack("{s:O*, s:O*, s:O*, s:O*, s:O*}", "attempt", json_object_get(doc, "attempt"),
                     "updated", json_object_get(doc, "updated"), "timings",
                     json_object_get(doc, "timings"), "status", json_object_get(report, "status"),
                     "cause", json_object_get(report, "cause"));
}

static int merge_history(const json_t *earlier, json_t *merged, bool next_attempt)
{
    const json_t *before = json_object_get(earlier, "history");
    json_t *history = json_is_array(before) ? json_copy(unconst(before)) : json_array();
    int rc = history ? 0 : -1;
    if (rc == 0 && next_attempt)
        rc = json_array_append_new(history, chapter(earlier));
    while (rc == 0 && json_array_size(history) > HISTORY_MAX)
        rc = json_array_remove(history, 0);
    if (rc == 0 && json_array_size(history) > 0)
        return json_object_set_new(merged, "history", history);
    json_decref(history);
    return rc;
}

json_t *status_doc_merge(const json_t *earlier, const json_t *later)
{
    CLEANUP(json_decrefp) json_t *merged = json_copy(unconst(later));
    if (!merged)
        return NULL;
    json_int_t before = json_integer_value(json_object_get(earlier, "attempt"));
    json_int_t now = json_integer_value(json_object_get(later, "attempt"));
    const json_t *report = json_object_get(earlier, "report");
    int rc = json_object_update_missing(merged, unconst(earlier));
    if (rc == 0 && before == now && json_is_object(report) &&
        json_is_object(json_object_get(report, "cause")))
        rc = json_object_set(merged, "report", unconst(report));
    if (rc == 0 && json_is_null(json_object_get(merged, "created")) &&
        json_object_get(earlier, "created"))
        rc = json_object_set(merged, "created", json_object_get(earlier, "created"));
    if (rc == 0 && before == now && json_is_null(json_object_get(merged, "fabric")) &&
        json_object_get(earlier, "fabric"))
        rc = json_object_set(merged, "fabric", json_object_get(earlier, "fabric"));
    if (rc == 0 && json_is_null(json_object_get(merged, "roles")) &&
        json_object_get(earlier, "roles")) /* a job's are the same in all attempts */
        rc = json_object_set(merged, "roles", json_object_get(earlier, "roles"));
    if (rc == 0)
        rc = merge_history(earlier, merged, before > 0 && now > before);
    return rc < 0 ? NULL : TAKE_PTR(merged);
}
