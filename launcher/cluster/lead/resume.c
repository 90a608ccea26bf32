/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "jobs/status/status_doc.h"
#include "launcher/cluster/client/job_map.h"
#include "launcher/cluster/lead/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

static uint32_t number(const json_t *doc, const char *key, uint32_t fallback)
{
    json_int_t value = json_integer_value(json_object_get(doc, key));
    return value > 0 && value <= UINT32_MAX ? (uint32_t)value : fallback;
}

/* A job of that name that was deleted may have left its document for a moment. */
static bool is_of_this_job(const struct lead *lead, const json_t *doc)
{
    const char *uid = json_string_value(json_object_get(doc, "uid"));
    return uid && strcmp(uid, lead->owner_uid) == 0;
}

/* What the attempts so far have taught. */
static void take_causes(struct lead *lead, const json_t *doc)
{
    const json_t *report = json_object_get(doc, "report");
    size_t i;
    json_t *chapter;
    json_array_foreach(json_object_get(doc, "history"), i, chapter)
        lead_note_end(lead, chapter, cause_restart_told(json_object_get(chapter, "cause")));
    lead_note_end(lead, report, cause_restart_told(json_object_get(report, "cause")));
    lead_avoid_nodes(lead);
}

static void take(struct lead *lead, const json_t *doc)
{
    const char *phase = json_string_value(json_object_get(doc, "phase"));
    bool ran = phase && strcmp(phase, "running") == 0;
    const json_t *report = json_object_get(doc, "report");
    lead->render.attempt = number(doc, "attempt", 1);
    lead->restarts.count = number(doc, "restarts", 0);
    status_doc_counts(doc, &lead->restarts.counted[FAILURE_COUNT_RESTARTS],
                      &lead->restarts.counted[FAILURE_COUNT_INFRASTRUCTURE]);
    lead->attempt.ranks = number(doc, "ranks", 0);
    gang_load(&lead->gang, status_doc_gang(doc));
    lead->render.step = lead->gang.step;
    take_causes(lead, doc);
    lead->inherited.ended = status_doc_exit(doc) >= 0;
    if (json_is_object(report))
        lead->attempt.report = json_deep_copy(report);
    if (lead->inherited.ended) {
        lead->status = status_doc_exit(doc);
        return;
    }
    lead->inherited.releasing = lead->attempt.report != NULL;
    lead->allocation.checked = ran && lead->options->keep_s > 0;
    lead->inherited.orphaned = ran && !lead->inherited.releasing && !lead->allocation.checked;
}

int lead_resume(struct lead *lead, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *map = NULL;
    struct drarun_error local = {0};
    json_t *doc = NULL;
    int rc = job_map_get(lead->cluster, lead->spec->name, lead->options->namespace, &map, &local);
    if (rc == -ENOENT) /* the client has not come to it */
        return 0;
    if (rc < 0)
        return error_kind(err, local.kind, local.code, "%s", local.text);
    if (job_map_status(map, &doc, &local) < 0)
        return 0;
    if (!is_of_this_job(lead, doc)) {
        json_decref(doc);
        return 0;
    }
    lead->doc = doc;
    take(lead, doc);
    if (!lead->inherited.ended)
        log_note("another launcher led this job before: attempt %u continues from \"%s\"",
                 lead->render.attempt, gang_phase_name(lead->gang.phase));
    return 0;
}

int lead_take_orphans(struct lead *lead, struct drarun_error *err)
{
    const json_t *launcher = json_object_get(lead->doc, "launcher");
    const char *pod = json_string_value(json_object_get(launcher, "pod"));
    struct rankmap map;
    struct cause *cause = lead_cause_new(lead, &map, err);
    if (!cause)
        return -err->code;
    cause_launcher_lost(cause, pod);
    lead->status = cause_status(cause);
    lead->attempt.report = cause_json(cause);
    lead_note_end(lead, lead->attempt.report, cause_restart(cause));
    cause_free(cause);
    rankmap_done(&map);
    return lead->attempt.report ? 0 : error_set(err, ENOMEM, "out of memory");
}
