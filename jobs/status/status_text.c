/* SPDX-License-Identifier: Apache-2.0 */
/* A status document for people. */
#include <stdio.h>
#include <string.h>

#include "jobs/derive/placement/cliques.h"
#include "jobs/preflight/fabric.h"
#include "jobs/status/status_doc.h"
#include "lib/base/cleanup.h"
#include "lib/base/timestamp.h"
#include "lib/doc/value.h"

static json_int_t number_at(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const char *or_dash(const char *text)
{
    return text && text[0] ? text : "-";
}

/* How long ago the time of the key was; "-" where it is not known. */
static void ago(const json_t *object, const char *key, int64_t now_ms, char *text, size_t size)
{
    int64_t at;
    if (timestamp_parse(value_text(object, key), &at) && at <= now_ms)
        duration_format(now_ms - at, text, size);
    else
        snprintf(text, size, "-");
}

/* ---- drarun list ---- */

static void add_state(const json_t *doc, struct buf *out)
{
    int exit = status_doc_exit(doc);
    const char *result = value_text(doc, "result");
    const char *waiting = value_text(json_object_get(doc, "waiting"), "text");
    const char *silence = value_text(json_object_get(doc, "silence"), "text");
    if (silence && !result)
        waiting = silence; /* what the launcher said is not so any more */
    if (result)
        buf_add_str(out, result);
    if (result && exit > 0)
        buf_printf(out, " (%d)", exit);
    if (!result && waiting)
        buf_add_str(out, waiting);
    if (!result && !waiting)
        buf_add_str(out, "-");
}

static void add_wide(const json_t *doc, struct buf *out)
{
    const char *pod = value_text(json_object_get(doc, "launcher"), "pod");
    const json_t *devices = json_object_get(doc, "devices");
    if (!doc)
        buf_printf(out, "%6s %7s %7s  %-30s ", "RANKS", "GPUS", "NICS", "LAUNCHER");
    else
        buf_printf(out, "%6" JSON_INTEGER_FORMAT " %7s %7s  %-30s ", number_at(doc, "ranks"),
                   or_dash(value_text(devices, "gpus")), or_dash(value_text(devices, "nics")),
                   or_dash(pod));
}

static void add_heads(bool all_namespaces, bool wide, struct buf *out)
{
    if (all_namespaces)
        buf_printf(out, "%-24s ", "NAMESPACE");
    buf_printf(out, "%-24s %-10s %9s %8s %14s  ", "NAME", "PHASE", "WORKERS", "RESTARTS", "AGE");
    if (wide)
        add_wide(NULL, out);
    buf_add_str(out, "STATE\n");
}

static void add_row(const json_t *doc, bool all_namespaces, bool wide, int64_t now_ms,
                    struct buf *out)
{
    char age[40], workers[40];
    const json_t *counts = json_object_get(doc, "workers");
    if (all_namespaces)
        buf_printf(out, "%-24s ", or_dash(value_text(doc, "namespace")));
    ago(doc, "created", now_ms, age, sizeof age);
    snprintf(workers, sizeof workers, "%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT,
             number_at(counts, "running"), number_at(counts, "count"));
    buf_printf(out, "%-24s %-10s %9s %8" JSON_INTEGER_FORMAT " %14s  ",
               or_dash(value_text(doc, "name")), or_dash(value_text(doc, "phase")), workers,
               number_at(doc, "restarts"), age);
    if (wide)
        add_wide(doc, out);
    add_state(doc, out);
    if (value_text(doc, "managedBy"))
        buf_printf(out, " (managed by %s)", value_text(doc, "managedBy"));
}

/* A refused spec has a line for each finding; and who may write a job's status could write what
 * looks like the row of another job. */
static void add_as_line(const char *text, struct buf *out)
{
    const char *separator = "";
    for (size_t length; *text; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        buf_add_str(out, separator);
        buf_add(out, text, length);
        separator = "; ";
    }
    buf_add_str(out, "\n");
}

void status_doc_row(const json_t *doc, bool all_namespaces, bool wide, int64_t now_ms,
                    struct buf *out)
{
    struct buf row = BUF_INIT;
    if (!doc) {
        add_heads(all_namespaces, wide, out);
        return;
    }
    add_row(doc, all_namespaces, wide, now_ms, &row);
    add_as_line(row.data ? row.data : "", out);
    out->failed |= row.failed;
    buf_done(&row);
}

/* ---- drarun status ---- */

void status_doc_end(const json_t *doc, int64_t now_ms, struct buf *out)
{
    char since[40];
    ago(doc, "phaseSince", now_ms, since, sizeof since);
    add_state(doc, out);
    buf_printf(out, ", %s ago", since);
}

static void add_heading(const json_t *doc, int64_t now_ms, struct buf *out)
{
    char since[40];
    const char *namespace = value_text(doc, "namespace");
    const char *phase = value_text(doc, "phase");
    ago(doc, "phaseSince", now_ms, since, sizeof since);
    buf_printf(out, "%s%s%s: ", namespace ? namespace : "", namespace ? "/" : "",
               or_dash(value_text(doc, "name")));
    if (value_text(doc, "result")) {
        status_doc_end(doc, now_ms, out);
    } else {
        buf_printf(out, "%s for %s", or_dash(phase), since);
    }
    buf_printf(out, ", attempt %" JSON_INTEGER_FORMAT, number_at(doc, "attempt"));
    if (number_at(doc, "restarts") > 0)
        buf_printf(out, ", restarts %" JSON_INTEGER_FORMAT, number_at(doc, "restarts"));
    if (number_at(doc, "tries") > 0)
        buf_printf(out, ", given back and tried again %" JSON_INTEGER_FORMAT " times",
                   number_at(doc, "tries"));
    buf_add_str(out, "\n");
}

static void add_manager(const json_t *doc, struct buf *out)
{
    const char *manager = value_text(doc, "managedBy");
    if (manager)
        buf_printf(out,
                   "  managed by %s, not by drarun's controller: what follows is what it reports\n",
                   manager);
}

static void add_silence(const json_t *doc, struct buf *out)
{
    const char *silence = value_text(json_object_get(doc, "silence"), "text");
    if (silence)
        buf_printf(out, "  %s; what follows is what it knew; drarun cancel %s ends the job\n",
                   silence, or_dash(value_text(doc, "name")));
}

static void add_cause(const json_t *doc, struct buf *out)
{
    const json_t *cause = json_object_get(json_object_get(doc, "report"), "cause");
    if (value_text(cause, "text"))
        buf_printf(out, "  %s\n", value_text(cause, "text"));
    if (value_text(cause, "advice"))
        buf_printf(out, "    %s\n", value_text(cause, "advice"));
}

/* "will be deleted in 59 min (the site's default time to live)" */
static void add_expiration(const json_t *doc, int64_t now_ms, struct buf *out)
{
    static const char by_site[] = "the site's default time to live, drarun controller --ttl";
    const json_t *expiration = json_object_get(doc, "expiration");
    const char *time = value_text(expiration, "time"), *reason = value_text(expiration, "reason");
    char left[40];
    int64_t at;
    if (!timestamp_parse(time, &at))
        return;
    duration_format(at - now_ms, left, sizeof left);
    buf_printf(out, "  will be deleted %s%s, at %s (%s)\n", at > now_ms ? "in " : "soon",
               at > now_ms ? left : "", time,
               reason && strcmp(reason, "site") == 0 ? by_site : "spec.ttlSecondsAfterFinished");
}

static void add_waiting(const json_t *doc, int64_t now_ms, struct buf *out)
{
    const json_t *waiting = json_object_get(doc, "waiting");
    size_t i;
    json_t *reason;
    json_array_foreach(json_object_get(waiting, "reasons"), i, reason)
    {
        char since[40];
        const char *workers = value_text(reason, "workers"), *node = value_text(reason, "node");
        ago(reason, "since", now_ms, since, sizeof since);
        buf_add_str(out, i == 0 ? "waiting:\n" : "");
        buf_printf(out, "  %s%s%s%s%s, %s: %s\n", workers ? "workers " : "the job",
                   workers ? workers : "", node ? " on " : "", node ? node : "",
                   json_is_true(json_object_get(reason, "stuck")) ? " (stuck)" : "", since,
                   or_dash(value_text(reason, "text")));
    }
    if (number_at(waiting, "more") > 0)
        buf_printf(out, "  and %" JSON_INTEGER_FORMAT " other reasons\n",
                   number_at(waiting, "more"));
}

/* Whether the lines say the same of workers that follow one another. */
static bool alike(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"node",   "phase", "claim", "devices",
                                       "reason", "end",   "exit"};
    if (!b || json_object_get(a, "workers") || json_object_get(b, "workers"))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const json_t *x = json_object_get(a, keys[i]), *y = json_object_get(b, keys[i]);
        if (x != y && !(x && y && json_equal(x, y)))
            return false;
    }
    return true;
}

static void add_line(const json_t *line, json_int_t last, int64_t now_ms, struct buf *out)
{
    char which[48], since[40];
    json_int_t first = number_at(line, "index");
    const char *folded = value_text(line, "workers"), *reason = value_text(line, "reason");
    if (last > first)
        snprintf(which, sizeof which, "%" JSON_INTEGER_FORMAT "-%" JSON_INTEGER_FORMAT, first,
                 last);
    else
        snprintf(which, sizeof which, "%" JSON_INTEGER_FORMAT, first);
    ago(line, "since", now_ms, since, sizeof since);
    buf_printf(out, "  %-9s %-20s %-12s %12s  %-10s %s", folded ? folded : which,
               or_dash(value_text(line, "node")), or_dash(value_text(line, "phase")), since,
               or_dash(value_text(line, "claim")), or_dash(value_text(line, "devices")));
    if (reason)
        buf_printf(out, "  %s", reason);
    if (json_is_integer(json_object_get(line, "exit")))
        buf_printf(out, " (%" JSON_INTEGER_FORMAT ")", number_at(line, "exit"));
    buf_add_str(out, "\n");
}

static void add_workers(const json_t *doc, int64_t now_ms, struct buf *out)
{
    const json_t *workers = json_object_get(doc, "workers");
    const json_t *lines = json_object_get(workers, "lines");
    size_t count = json_array_size(lines);
    if (count == 0)
        return;
    buf_printf(out, "  %-9s %-20s %-12s %12s  %-10s %s\n", "WORKER", "NODE", "PHASE", "SINCE",
               "CLAIM", "DEVICES");
    for (size_t i = 0, n; i < count; i += n) {
        const json_t *line = json_array_get(lines, i);
        for (n = 1; alike(line, json_array_get(lines, i + n)); n++)
            ;
        add_line(line, number_at(json_array_get(lines, i + n - 1), "index"), now_ms, out);
    }
    if (value_text(workers, "dropped"))
        buf_printf(out, "  (%s)\n", value_text(workers, "dropped"));
}

static void add_cliques(const json_t *doc, struct buf *out)
{
    const json_t *cliques = json_object_get(doc, "cliques");
    if (json_array_size(cliques) == 0)
        return;
    cliques_line(cliques, out);
    buf_add_str(out, "\n");
}

static void add_fabric(const json_t *doc, bool verbose, struct buf *out)
{
    const json_t *fabric = json_object_get(doc, "fabric");
    if (!fabric || json_is_null(fabric) || (!verbose && fabric_is_good(fabric)))
        return;
    if (verbose) {
        fabric_text(fabric, out);
        return;
    }
    fabric_line(fabric, out);
    buf_printf(out, "; drarun status -v %s shows which\n", or_dash(value_text(doc, "name")));
}

static void add_timings(const json_t *doc, struct buf *out)
{
    const char *phase;
    json_t *ms;
    const char *separator = "";
    json_t *timings = json_object_get(doc, "timings");
    if (json_object_size(timings) == 0)
        return;
    buf_add_str(out, "times: ");
    json_object_foreach(timings, phase, ms)
    {
        char text[40];
        duration_format(json_integer_value(ms), text, sizeof text);
        buf_printf(out, "%s%s %s", separator, phase, text);
        separator = ", ";
    }
    buf_add_str(out, "\n");
}

static void add_history(const json_t *doc, struct buf *out)
{
    size_t i;
    json_t *chapter;
    json_array_foreach(json_object_get(doc, "history"), i, chapter)
    {
        buf_printf(out, "attempt %" JSON_INTEGER_FORMAT ": %s\n", number_at(chapter, "attempt"),
                   or_dash(value_text(json_object_get(chapter, "cause"), "text")));
    }
}

/* "roles: coordinator (worker 0, 1 rank), trainer (workers 1-2, 16 ranks)". */
static void add_roles(const json_t *doc, struct buf *out)
{
    size_t i;
    json_t *role;
    json_array_foreach(json_object_get(doc, "roles"), i, role)
    {
        json_int_t first = number_at(role, "first"), count = number_at(role, "workers");
        json_int_t ranks = number_at(role, "ranks");
        buf_printf(out, "%s%s (worker%s %" JSON_INTEGER_FORMAT,
                   i ? ", " : "roles: ", or_dash(value_text(role, "name")), count > 1 ? "s" : "",
                   first);
        if (count > 1)
            buf_printf(out, "-%" JSON_INTEGER_FORMAT, first + count - 1);
        buf_printf(out, ", %" JSON_INTEGER_FORMAT " rank%s)", ranks, ranks == 1 ? "" : "s");
    }
    buf_add_str(out, i ? "\n" : "");
}

/* "devices asked for: 16 GPUs, 8 NICs", of all workers. */
static void add_asked(const json_t *devices, struct buf *out)
{
    const char *gpus = value_text(devices, "gpus"), *nics = value_text(devices, "nics");
    if (!gpus && !nics)
        return;
    buf_add_str(out, "devices asked for: ");
    if (gpus)
        buf_printf(out, "%s GPU%s", gpus, strcmp(gpus, "1") == 0 ? "" : "s");
    if (nics)
        buf_printf(out, "%s%s NIC%s", gpus ? ", " : "", nics, strcmp(nics, "1") == 0 ? "" : "s");
    buf_add_str(out, "\n");
}

static void add_counts(const json_t *workers, struct buf *out)
{
    if (number_at(workers, "claims") > 0)
        buf_printf(out, "claims %" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT " allocated, ",
                   number_at(workers, "allocated"), number_at(workers, "claims"));
    buf_printf(out, "pods %" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT " running\n",
               number_at(workers, "running"), number_at(workers, "count"));
}

void status_doc_render(const json_t *doc, bool verbose, int64_t now_ms, struct buf *out)
{
    add_heading(doc, now_ms, out);
    add_manager(doc, out);
    add_silence(doc, out);
    add_cause(doc, out);
    add_expiration(doc, now_ms, out);
    if (!value_text(doc, "result")) /* else there are none any more */
        add_counts(json_object_get(doc, "workers"), out);
    add_roles(doc, out);
    add_asked(json_object_get(doc, "devices"), out);
    add_waiting(doc, now_ms, out);
    add_workers(doc, now_ms, out);
    add_cliques(doc, out);
    add_fabric(doc, verbose, out);
    add_timings(doc, out);
    add_history(doc, out);
}
