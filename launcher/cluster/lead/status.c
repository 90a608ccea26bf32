/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/manifests/claims.h"
#include "jobs/spec/node_spread.h"
#include "jobs/status/drajob.h"
#include "jobs/status/status_doc.h"
#include "jobs/gang/waiting.h"
#include "launcher/cluster/lead/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/timestamp.h"

#define SAY_MS 2000 /* of waiting, before anything is said of it */

static int build_waiting(struct lead *lead, struct waiting *ret_waiting, struct drarun_error *err)
{
    const struct waiting_input input = {
        .now_ms = lead_now(),
        .workers = board_workers(lead->board, lead->render.attempt),
        .count = lead->spec->workers,
        .decision = &lead->decision,
        .prediction = lead_prediction(lead),
        .spread = node_spread_is_ours_for_any(lead->spec),
        .launcher_job = board_launcher_job(lead->board),
        .worker_job = board_worker_job(lead->board),
        .job_news = board_job_news(lead->board),
        .group = pod_group_told(&lead->group),
        .trouble = board_trouble(lead->board),
        .refused = lead->refused.code ? lead->refused.text : NULL,
    };
    return waiting_build(&input, ret_waiting, err);
}

char *lead_waiting_words(struct lead *lead)
{
    struct waiting waiting;
    struct buf out = BUF_INIT;
    if (build_waiting(lead, &waiting, NULL) < 0)
        return NULL;
    buf_printf(&out, "%s %u/%u", gang_phase_name(lead->gang.phase), waiting.allocated,
               waiting.running);
    /* the pause between two tries is told by its length, which goes down */
    for (uint32_t i = 0; i < waiting.count && lead->gang.phase != GANG_RELEASING; i++)
        buf_printf(&out, "\n%u: %s", waiting.reasons[i].count, waiting.reasons[i].text);
    waiting_done(&waiting);
    char *words = out.failed ? NULL : buf_take(&out);
    buf_done(&out);
    return words;
}

int64_t lead_say_waiting(struct lead *lead)
{
    int64_t first = lead->gang.phase_since_ms + SAY_MS, next_ms = 0;
    struct waiting waiting;
    struct buf line = BUF_INIT;
    if (lead->console.line || lead->options->quiet || lead->options->framed)
        return INT64_MAX;
    if (first < lead->told.said_ms + LEAD_WORDS_MS)
        first = lead->told.said_ms + LEAD_WORDS_MS;
    if (first < lead_answer_ms(lead))
        first = lead_answer_ms(lead);
    if (lead_now() < first)
        return first;
    lead->told.said_ms = lead_now();
    if (build_waiting(lead, &waiting, NULL) < 0)
        return INT64_MAX;
    const char *reason = waiting.count > 0 ? waiting.reasons[0].text : NULL;
    if (waiting_tell(&lead->told.waiting, reason, lead_now(), &next_ms)) {
        waiting_line(&waiting, &line);
        log_note("%s", line.data ? line.data : reason);
    }
    waiting_done(&waiting);
    buf_done(&line);
    return next_ms ? next_ms : INT64_MAX;
}

/* With what only the document before knows: the history. */
static void put(struct lead *lead, json_t *doc)
{
    json_t *merged = lead->doc ? status_doc_merge(lead->doc, doc) : json_incref(doc);
    json_decref(doc);
    if (!merged)
        return;
    json_decref(lead->doc);
    lead->doc = merged;
    status_writer_put(lead->writer, json_incref(merged));
}

/* Who follows the job to its end, or until its workers are kept, reads so many lines of the log. */
static int64_t lines_to_read(const struct lead *lead, const char *result)
{
    bool awaited = result || lead->allocation.checked;
    return awaited && lead->options->framed ? (int64_t)lead->log.lines : 0;
}

json_t *lead_document(struct lead *lead, const char *result)
{
    struct drarun_error err = {0};
    struct waiting waiting = {0};
    json_t *doc = NULL;
    bool waits = !result && lead->gang.phase < GANG_RUNNING;
    const struct spec_role *role = claims_aligned_role(lead->spec);
    bool aligned = claims_alignment(role) == CLAIMS_ALIGNED_BY_CLAIM;
    if (waits && build_waiting(lead, &waiting, &err) < 0)
        waits = false;
    CLEANUP(json_decrefp) json_t *asked = drajob_devices(lead->spec->document);
    const struct status_input input = {
        .now_ms = lead_now(),
        .name = lead->spec->name,
        .namespace = lead->options->namespace,
        .uid = lead->owner_uid,
        .created_ms = lead->created_ms,
        .attempt = lead->render.attempt,
        .restarts = lead->restarts.count,
        .counted = lead->restarts.counted[FAILURE_COUNT_RESTARTS],
        .infrastructure = lead->restarts.counted[FAILURE_COUNT_INFRASTRUCTURE],
        .gang = &lead->gang,
        .rung = aligned ? claims_rung_name(claims_rung(role, lead->gang.step)) : NULL,
        .workers = board_workers(lead->board, lead->render.attempt),
        .count = lead->spec->workers,
        .ranks = lead->attempt.ranks,
        .cliques = lead->attempt.ranks ? lead->domain.cliques : NULL,
        .rank_order = lead->domain.rank_order,
        .waiting = waits ? &waiting : NULL,
        .report = lead->attempt.report,
        .fabric = lead->attempt.fabric,
        .roles = lead->attempt.roles,
        .asked = asked,
        .result = result,
        .launcher = {.pod = lead->options->holder,
                     .version = DRARUN_VERSION,
                     .lease = lead->lease ? lease_generation(lead->lease) : 0,
                     .lines = lines_to_read(lead, result)},
    };
    if (status_doc_build(&input, &doc, &err) < 0)
        log_error("the status cannot be written: %s", err.text);
    if (waits)
        waiting_done(&waiting);
    return doc;
}

void lead_tell(struct lead *lead, const char *result)
{
    json_t *doc = lead_document(lead, result);
    if (doc)
        put(lead, doc);
}

json_t *lead_failure_report(const struct lead *lead, const struct drarun_error *err)
{
    return json_pack("{s:i, s:{s:s, s:s, s:s}}", "status", lead->status, "cause", "kind", "failure",
                     "text", err->text, "error", error_kind_name(err->kind));
}

/* A rank for each worker: how many they are is not known before they run. */
struct cause *lead_cause_new(const struct lead *lead, struct rankmap *map, struct drarun_error *err)
{
    uint32_t count = lead->spec->workers;
    if (rankmap_build(&count, 1, count, 1, map, err) < 0)
        return NULL;
    struct cause *cause = cause_new(map);
    if (!cause) {
        rankmap_done(map);
        error_set(err, ENOMEM, "out of memory");
    }
    return cause;
}

json_t *lead_interruption_report(const struct lead *lead)
{
    struct drarun_error err = {0};
    struct rankmap map;
    struct cause *cause = lead_cause_new(lead, &map, &err);
    if (!cause)
        return NULL;
    cause_interrupted(cause, abs(lead->stop.signo));
    json_t *report = cause_json(cause);
    cause_free(cause);
    rankmap_done(&map);
    return report;
}

void lead_status_line(void *arg, struct buf *text)
{
    struct lead *lead = arg;
    struct waiting waiting;
    if (!lead->board || !lead->lease || build_waiting(lead, &waiting, NULL) < 0)
        return;
    buf_add_str(text, "drarun: ");
    waiting_line(&waiting, text);
    waiting_done(&waiting);
}

static void write_log(struct lead *lead, const struct buf *lines)
{
    if (lines->len > 0 && !lines->failed &&
        fd_write_all(STDOUT_FILENO, lines->data, lines->len) == 0)
        framed_count(&lead->log, lines->data, lines->len);
}

void lead_mark_log(struct lead *lead)
{
    struct buf mark = BUF_INIT;
    framed_mark(&lead->log, &mark);
    write_log(lead, &mark);
    buf_done(&mark);
}

void lead_write_log(struct lead *lead, const struct buf *lines)
{
    lead_mark_log(lead);
    write_log(lead, lines);
}

/* Whose log has the output: of a job that had ended before, another one's. */
static const char *who_led(const struct lead *lead)
{
    const json_t *launcher = json_object_get(lead->doc, "launcher");
    const char *pod =
        lead->inherited.ended ? json_string_value(json_object_get(launcher, "pod")) : NULL;
    return pod ? pod : lead->options->holder;
}

void lead_say_end(struct lead *lead)
{
    const json_t *cause = json_object_get(lead->attempt.report, "cause");
    char now[TIMESTAMP_SIZE];
    timestamp_format(lead_now(), now, sizeof now);
    lead_mark_log(lead);
    CLEANUP(json_decrefp)
    json_t *line =
        json_pack("{s:s, s:s, s:s, s:s, s:i, s:O*, s:O*, s:O*, s:I, s:i, s:O?}", "time", now,
                  "event", "ended", "job", lead->spec->name, "launcher", who_led(lead), "attempt",
                  (int)lead->render.attempt, "worker", json_object_get(cause, "worker"), "rank",
                  json_object_get(cause, "rank"), "node", json_object_get(cause, "host"), "lines",
                  (json_int_t)lead->log.lines, "status", lead->status, "cause", cause);
    cleanup_free char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    struct buf out = BUF_INIT;
    buf_printf(&out, "%s\n", text ? text : "{\"event\":\"ended\"}");
    write_log(lead, &out);
    buf_done(&out);
}
