/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/status/drajob_metrics.h"

#include <inttypes.h>
#include <string.h>

#include "jobs/status/drajob.h"
#include "lib/base/cleanup.h"
#include "lib/base/timestamp.h"
#include "lib/doc/value.h"
#include "lib/metrics/metrics_text.h"

#define NOT_SEEN "New" /* of an object without a status */
#define PENDING "Pending"

/* ---- counting ---- */

/* One more in table[namespace][state]. */
static bool count(json_t *table, const char *namespace, const char *state)
{
    json_t *states = json_object_get(table, namespace);
    if (!states && json_object_set_new(table, namespace, states = json_object()) < 0)
        return false;
    json_int_t before = json_integer_value(json_object_get(states, state));
    return json_object_set_new(states, state, json_integer(before + 1)) == 0;
}

static const char *state_of(const json_t *status)
{
    const char *state = json_string_value(json_object_get(status, "state"));
    return state && *state ? state : NOT_SEEN;
}

static bool waits_for_objects(const char *state)
{
    return strcmp(state, NOT_SEEN) == 0 || strcmp(state, PENDING) == 0;
}

/* When this condition became what it is, in this status; 0: it is not. */
static int64_t condition_since(const json_t *object, const char *type, const char *status)
{
    int64_t at = 0;
    const json_t *conditions = json_object_get(json_object_get(object, "status"), "conditions");
    const json_t *condition = value_find(conditions, "type", type);
    bool holds = strcmp(value_text_or(condition, "status", ""), status) == 0;
    return holds && timestamp_parse(value_text(condition, "lastTransitionTime"), &at) ? at : 0;
}

/* Since when it waits for its objects: since it was created, or was corrected or resumed after
 * that, which changes its generation. 0: not known. */
static int64_t waits_since(const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    int64_t made = 0;
    if (!timestamp_parse(value_text(metadata, "creationTimestamp"), &made))
        return 0;
    if (json_integer_value(json_object_get(metadata, "generation")) <= 1)
        return made;
    int64_t accepted = condition_since(object, "Accepted", "True");
    int64_t resumed = condition_since(object, "Suspended", "False");
    int64_t changed = accepted > resumed ? accepted : resumed;
    return changed > made ? changed : made;
}

void drajob_census_add(struct drajob_census *census, const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const char *namespace = json_string_value(json_object_get(metadata, "namespace"));
    const char *state = state_of(json_object_get(object, "status"));
    if (drajob_manager(object))
        return;
    if (!census->states)
        census->states = json_object();
    if (!count(census->states, namespace ? namespace : "", state))
        census->failed = true;
    /* one that is deleted gets none */
    if (drajob_launcher(object) || !waits_for_objects(state) ||
        json_object_get(metadata, "deletionTimestamp"))
        return;
    int64_t since = waits_since(object);
    if (since > 0 && (census->oldest_ms == 0 || since < census->oldest_ms))
        census->oldest_ms = since;
}

void drajob_census_done(struct drajob_census *census)
{
    json_decref(census->states);
    census->states = NULL;
}

void drajob_tally_end(struct drajob_tally *tally, const char *namespace, const json_t *status)
{
    if (!tally->ended)
        tally->ended = json_object();
    count(tally->ended, namespace, state_of(status));
}

/* ---- text ---- */

static void add_table(const json_t *table, const char *name, struct buf *out)
{
    const char *namespace, *state;
    json_t *states, *number;
    value_foreach(table, namespace, states)
    {
        json_object_foreach(states, state, number)
        {
            buf_printf(out, "%s{namespace=\"", name);
            metrics_add_escaped(out, namespace);
            buf_add_str(out, "\",state=\"");
            metrics_add_escaped(out, state);
            buf_printf(out, "\"} %" JSON_INTEGER_FORMAT "\n", json_integer_value(number));
        }
    }
}

static void add_jobs(const struct drajob_metrics *metrics, struct buf *out)
{
    static const char jobs[] = "drarun_controller_jobs";
    static const char pending[] = "drarun_controller_oldest_pending_seconds";
    static const char ceded[] = "drarun_controller_ceded_namespaces";
    const struct drajob_census *census = metrics->census;
    int64_t oldest = census->oldest_ms;
    metrics_add_head(out, jobs, "gauge", "DraJobs that it manages, by state.");
    add_table(census->states, jobs, out);
    metrics_add_head(out, pending, "gauge",
                     "Longest time that a DraJob has waited for its objects.");
    buf_printf(out, "%s %.3f\n", pending,
               oldest > 0 && metrics->now_ms > oldest ? (double)(metrics->now_ms - oldest) / 1000
                                                      : 0.0);
    metrics_add_head(out, ceded, "gauge",
                     "Namespaces whose DraJobs it leaves to a controller of their own.");
    buf_printf(out, "%s %zu\n", ceded, metrics->ceded);
}

static void add_counter(const char *name, const char *help, uint64_t value, struct buf *out)
{
    metrics_add_head(out, name, "counter", help);
    buf_printf(out, "%s %" PRIu64 "\n", name, value);
}

static bool add_zeros(json_t *table, const char *namespace)
{
    static const char *const ends[] = {"Succeeded", "Failed", "Cancelled"};
    json_t *states = json_object_get(table, namespace);
    if (!states && json_object_set_new(table, namespace, states = json_object()) < 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (!json_object_get(states, ends[i]) &&
            json_object_set_new(states, ends[i], json_integer(0)) < 0)
            return false;
    return true;
}

/* Also zeros, for each namespace with a job: Prometheus sees no increase in a series that begins
 * with 1, so that an alert would miss a namespace's first failure. */
static void add_ended(const struct drajob_metrics *metrics, struct buf *out)
{
    static const char ended[] = "drarun_controller_ended_total";
    const json_t *counted = metrics->tally->ended;
    CLEANUP(json_decrefp) json_t *table = counted ? json_deep_copy(counted) : json_object();
    const char *namespace;
    json_t *states;
    bool failed = !table;
    json_object_foreach(table, namespace, states) failed |= !add_zeros(table, namespace);
    if (metrics->census)
        json_object_foreach(metrics->census->states, namespace, states) failed |=
            !add_zeros(table, namespace);
    metrics_add_head(out, ended, "counter", "Jobs whose end was written, by state.");
    add_table(table, ended, out);
    out->failed |= failed;
}

static void add_tally(const struct drajob_tally *tally, struct buf *out)
{
    static const char seconds[] = "drarun_controller_look_seconds_total";
    add_counter("drarun_controller_created_total", "Jobs whose objects were made.", tally->created,
                out);
    add_counter("drarun_controller_refused_total", "Specs that were refused.", tally->refused, out);
    add_counter("drarun_controller_create_errors_total",
                "Attempts to make a job's objects that failed; they are repeated.",
                tally->not_created, out);
    add_counter("drarun_controller_status_errors_total",
                "Statuses that could not be written; that is repeated.", tally->not_written, out);
    add_counter("drarun_controller_expired_total",
                "DraJobs that were deleted after their time to live.", tally->expired, out);
    add_counter("drarun_controller_looks_total", "Looks at a DraJob.", tally->looks, out);
    metrics_add_head(out, seconds, "counter", "Time that these looks took together.");
    buf_printf(out, "%s %.3f\n", seconds, (double)tally->look_ms / 1000);
}

void drajob_metrics_text(const struct drajob_metrics *metrics, struct buf *out)
{
    static const char info[] = "drarun_controller_info";
    static const char leads[] = "drarun_controller_leads";
    static const char due[] = "drarun_controller_due";
    metrics_add_head(out, info, "gauge", "Which controller this is.");
    buf_printf(out, "%s{version=\"%s\",instance_name=\"", info, metrics->version);
    metrics_add_escaped(out, metrics->instance);
    buf_add_str(out, "\"} 1\n");
    metrics_add_head(out, leads, "gauge", "1 for the controller that holds the Lease.");
    buf_printf(out, "%s %d\n", leads, metrics->leads);
    metrics_add_head(out, due, "gauge", "DraJobs that it is to look at now.");
    buf_printf(out, "%s %zu\n", due, metrics->due);
    if (metrics->census)
        add_jobs(metrics, out);
    if (metrics->census && metrics->census->failed)
        out->failed = true;
    add_ended(metrics, out);
    add_tally(metrics->tally, out);
}
