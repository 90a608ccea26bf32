/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/status/metrics.h"

#include <string.h>

#include "jobs/gang/gang.h"
#include "lib/base/cleanup.h"
#include "lib/base/timestamp.h"
#include "lib/doc/value.h"
#include "lib/metrics/metrics_text.h"

/* label: NULL for none. */
static void add_value(const json_t *doc, const char *name, const char *label, const char *value,
                      double number, struct buf *out)
{
    buf_printf(out, "%s{namespace=\"", name);
    metrics_add_escaped(out, value_text_or(doc, "namespace", ""));
    buf_add_str(out, "\",job=\"");
    metrics_add_escaped(out, value_text_or(doc, "name", ""));
    if (label) {
        buf_printf(out, "\",%s=\"", label);
        metrics_add_escaped(out, value);
    }
    buf_printf(out, "\"} %.15g\n", number);
}

static void add_phase(const json_t *doc, struct buf *out)
{
    const char *phase = value_text_or(doc, "phase", "");
    metrics_add_head(out, "drarun_job_phase", "gauge", "1 for the phase that the job is in.");
    for (int p = GANG_QUEUED; p <= GANG_ENDED; p++) {
        const char *name = gang_phase_name((enum gang_phase)p);
        add_value(doc, "drarun_job_phase", "phase", name, strcmp(name, phase) == 0, out);
    }
}

static void add_timings(const json_t *doc, struct buf *out)
{
    const json_t *timings = json_object_get(doc, "timings");
    metrics_add_head(out, "drarun_job_phase_seconds", "gauge",
                     "Time that the job has spent in each phase.");
    for (int p = GANG_QUEUED; p < GANG_ENDED; p++) {
        const char *name = gang_phase_name((enum gang_phase)p);
        const json_t *ms = json_object_get(timings, name);
        if (json_is_number(ms))
            add_value(doc, "drarun_job_phase_seconds", "phase", name, json_number_value(ms) / 1000,
                      out);
    }
}

/* object.key of the document as a value of the metric. */
static const struct number {
    const char *metric, *type, *help; /* type NULL: another value of the metric before */
    const char *object, *key;
    const char *label, *value;
} numbers[] = {
    {"drarun_job_workers", "gauge", "Workers of the job, by state.", "workers", "count", "state",
     "wanted"},
    {"drarun_job_workers", NULL, NULL, "workers", "running", "state", "running"},
    {"drarun_job_claims", "gauge", "ResourceClaims of the job, by state.", "workers", "claims",
     "state", "wanted"},
    {"drarun_job_claims", NULL, NULL, "workers", "allocated", "state", "allocated"},
    {"drarun_job_ranks", "gauge", "Ranks of the job.", NULL, "ranks", NULL, NULL},
    {"drarun_job_restarts_total", "counter", "Attempts after ranks had started.", NULL, "restarts",
     NULL, NULL},
    {"drarun_job_releases_total", "counter",
     "How often devices were released because not all workers could be placed.", NULL, "tries",
     NULL, NULL},
    {"drarun_job_exit_status", "gauge", "Exit status of a job that has ended.", NULL, "exit", NULL,
     NULL},
};

static void add_numbers(const json_t *doc, struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        const struct number *n = &numbers[i];
        const json_t *object = n->object ? json_object_get(doc, n->object) : doc;
        const json_t *value = json_object_get(object, n->key);
        if (n->type && json_is_number(value))
            metrics_add_head(out, n->metric, n->type, n->help);
        if (json_is_number(value))
            add_value(doc, n->metric, n->label, n->value, json_number_value(value), out);
    }
}

/* The longest wait, so that an alert needs no sentence. */
static void add_waiting(const json_t *doc, int64_t now_ms, struct buf *out)
{
    int64_t longest = 0, since;
    size_t i;
    json_t *reason;
    json_array_foreach(json_object_get(json_object_get(doc, "waiting"), "reasons"), i, reason)
    {
        if (timestamp_parse(value_text_or(reason, "since", ""), &since) && now_ms - since > longest)
            longest = now_ms - since;
    }
    metrics_add_head(out, "drarun_job_waiting_seconds", "gauge",
                     "How long the job waits for the same thing.");
    add_value(doc, "drarun_job_waiting_seconds", NULL, NULL, (double)longest / 1000, out);
}

void metrics_text(const json_t *doc, int64_t now_ms, struct buf *out)
{
    int64_t created;
    add_phase(doc, out);
    add_timings(doc, out);
    add_numbers(doc, out);
    add_waiting(doc, now_ms, out);
    if (timestamp_parse(value_text_or(doc, "created", ""), &created)) {
        metrics_add_head(out, "drarun_job_created_timestamp_seconds", "gauge",
                         "When the job was created.");
        add_value(doc, "drarun_job_created_timestamp_seconds", NULL, NULL, (double)created / 1000,
                  out);
    }
}
