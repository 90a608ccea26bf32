/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a wait, for people and as JSON. */
#include "jobs/gang/waiting.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/ranks/worker_ranges.h"
#include "lib/base/cleanup.h"
#include "lib/base/timestamp.h"

#define RANGES_MAX 8        /* in a line */
#define REASONS_MAX 20      /* in a document */
#define RANGES_JSON_MAX 100 /* in a document */

static void add_counts(const struct waiting *w, struct buf *out)
{
    if (w->claims > 0)
        buf_printf(out, "claims %u/%u allocated, ", w->allocated, w->claims);
    buf_printf(out, "pods %u/%u running", w->running, w->workers);
}

static void add_since(const struct waiting *w, const struct waiting_reason *reason, struct buf *out)
{
    char text[40];
    if (!reason->since_ms || reason->since_ms > w->now_ms)
        return;
    duration_format(w->now_ms - reason->since_ms, text, sizeof text);
    buf_printf(out, " %s", text);
}

/* "node-3" where one node is all there is to wait for, else the workers. */
static void add_whom(const struct waiting_reason *reason, struct buf *out)
{
    if (reason->whole)
        return;
    buf_add_str(out, " for ");
    if (reason->node) {
        buf_add_str(out, reason->node);
    } else if (reason->count == 1) {
        buf_printf(out, "worker %u", reason->workers[0]);
    } else {
        buf_printf(out, "%u workers (", reason->count);
        worker_ranges(reason->workers, reason->count, RANGES_MAX, out);
        buf_add_str(out, ")");
    }
}

void waiting_line(const struct waiting *waiting, struct buf *out)
{
    if (waiting->count > 0) {
        const struct waiting_reason *reason = &waiting->reasons[0];
        buf_add_str(out, "waiting");
        add_since(waiting, reason, out);
        add_whom(reason, out);
        buf_printf(out, ": %s", reason->text);
        if (waiting->count > 1)
            buf_printf(out, " (and %u other reason%s)", waiting->count - 1,
                       waiting->count > 2 ? "s" : "");
        buf_add_str(out, "; ");
    }
    add_counts(waiting, out);
}

/* ---- one line for each reason ---- */

#define FIRST_PAUSE_MS 5000
#define LAST_PAUSE_MS 60000

/* Up to the first parenthesis, without numbers and quoted names: a kubelet's and a registry's words
 * change with each try. NULL without memory. */
static char *what_stays(const char *reason)
{
    const char *end = strstr(reason, " (");
    char *key = strndup(reason, end ? (size_t)(end - reason) : strlen(reason)), *to = key;
    bool quoted = false;
    for (const char *from = key; from && *from; from++) {
        quoted ^= *from == '"';
        if (!quoted && (*from < '0' || *from > '9'))
            *to++ = *from;
    }
    if (to)
        *to = '\0';
    return key;
}

bool waiting_tell(struct waiting_told *told, const char *reason, int64_t now_ms,
                  int64_t *ret_next_ms)
{
    *ret_next_ms = 0;
    cleanup_free char *key = reason ? what_stays(reason) : NULL;
    if (!key || (told->reason && strcmp(told->reason, key) == 0))
        return false;
    if (told->reason && now_ms < told->at_ms + told->pause_ms) {
        *ret_next_ms = told->at_ms + told->pause_ms;
        return false;
    }
    int64_t twice = told->pause_ms ? 2 * told->pause_ms : FIRST_PAUSE_MS;
    told->pause_ms = twice < LAST_PAUSE_MS ? twice : LAST_PAUSE_MS;
    told->at_ms = now_ms;
    free(told->reason);
    told->reason = TAKE_PTR(key);
    return true;
}

void waiting_told_done(struct waiting_told *told)
{
    free(told->reason);
    *told = (struct waiting_told){0};
}

/* ---- as JSON ---- */

static int set_built(json_t *object, const char *key, struct buf *text)
{
    int rc = text->failed ? -1 : json_object_set_new(object, key, json_string(text->data));
    buf_done(text);
    return rc;
}

static json_t *reason_json(const struct waiting_reason *reason)
{
    char since[TIMESTAMP_SIZE];
    struct buf ranges = BUF_INIT;
    json_t *object = json_pack("{s:s, s:b}", "text", reason->text, "stuck", reason->stuck);
    int rc = object ? 0 : -1;
    if (rc == 0 && !reason->whole) {
        worker_ranges(reason->workers, reason->count, RANGES_JSON_MAX, &ranges);
        rc |= set_built(object, "workers", &ranges);
        rc |= json_object_set_new(object, "count", json_integer(reason->count));
    }
    if (rc == 0 && reason->node)
        rc |= json_object_set_new(object, "node", json_string(reason->node));
    if (rc == 0 && reason->since_ms) {
        timestamp_format(reason->since_ms, since, sizeof since);
        rc |= json_object_set_new(object, "since", json_string(since));
    }
    if (rc == 0)
        return object;
    json_decref(object);
    return NULL;
}

json_t *waiting_json(const struct waiting *waiting)
{
    struct buf line = BUF_INIT;
    CLEANUP(json_decrefp) json_t *object = json_object();
    CLEANUP(json_decrefp) json_t *reasons = json_array();
    waiting_line(waiting, &line);
    int rc = object && reasons ? set_built(object, "text", &line) : -1;
    buf_done(&line);
    for (uint32_t r = 0; rc == 0 && r < waiting->count && r < REASONS_MAX; r++)
        rc = json_array_append_new(reasons, reason_json(&waiting->reasons[r]));
    if (rc == 0)
        rc = json_object_set(object, "reasons", reasons);
    if (rc == 0 && waiting->count > REASONS_MAX)
        rc = json_object_set_new(object, "more", json_integer(waiting->count - REASONS_MAX));
    return rc < 0 ? NULL : TAKE_PTR(object);
}
