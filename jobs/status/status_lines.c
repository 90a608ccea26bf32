/* SPDX-License-Identifier: Apache-2.0 */
/* One line for each worker, or for workers that are alike. */
#include <stdlib.h>
#include <string.h>

#include "jobs/status/status_private.h"
#include "jobs/ranks/worker_ranges.h"
#include "lib/base/cleanup.h"
#include "lib/base/plain.h"
#include "lib/base/timestamp.h"
#include "lib/base/unconst.h"

#define GROUPS_MAX 200  /* lines of folded workers */
#define RANGES_MAX 2000 /* in one of them */
#define MESSAGE_MAX 200 /* bytes of a worker's message */

static int set_text(json_t *object, const char *key, const char *text)
{
    return text ? json_object_set_new(object, key, json_string(text)) : 0;
}

static int set_time(json_t *object, const char *key, int64_t ms)
{
    char text[TIMESTAMP_SIZE];
    if (ms <= 0)
        return 0;
    timestamp_format(ms, text, sizeof text);
    return json_object_set_new(object, key, json_string(text));
}

/* The beginning of it, cut at a character. */
static int set_message(json_t *object, const char *text)
{
    size_t length = text ? utf8_cut(text, strlen(text), MESSAGE_MAX) : 0;
    return length > 0 ? json_object_set_new(object, "message", json_stringn(text, length)) : 0;
}

/* "2 devices", unless the caller has better words. */
static int set_devices(json_t *object, const struct status_input *input, uint32_t worker)
{
    uint32_t devices = input->workers[worker].devices;
    if (input->devices && input->devices[worker])
        return set_text(object, "devices", input->devices[worker]);
    return devices == 0
               ? 0
               : json_object_set_new(object, "devices",
                                     json_sprintf("%u device%s", devices, devices == 1 ? "" : "s"));
}

/* What workers that are alike have in common. */
static json_t *common(const struct status_input *input, uint32_t worker)
{
    const struct pod_state *w = &input->workers[worker];
    /* the job's objects go with its end, and what is kept of it is read later */
    enum pod_phase phase = input->result && w->phase == POD_RUNNING ? POD_ENDED : w->phase;
    json_t *line = json_pack("{s:s, s:s}", "phase", pod_phase_name(phase), "claim",
                             claim_phase_name(w->claim));
    int rc = line ? 0 : -1;
    if (rc == 0)
        rc = set_devices(line, input, worker) | set_text(line, "reason", w->reason);
    if (rc == 0 && w->end != POD_END_NONE)
        rc = set_text(line, "end", pod_end_name(w->end));
    if (rc == 0 && w->exit_code >= 0)
        rc = json_object_set_new(line, "exit", json_integer(w->exit_code));
    if (rc == 0)
        return line;
    json_decref(line);
    return NULL;
}

static json_t *one_line(const struct status_input *input, uint32_t worker,
                        enum status_detail detail)
{
    const struct pod_state *w = &input->workers[worker];
    json_t *line = common(input, worker);
    int rc = line ? json_object_set_new(line, "index", json_integer(worker)) : -1;
    if (rc == 0)
        rc = set_text(line, "node", w->node) | set_time(line, "since", w->since_ms);
    if (rc == 0 && detail == STATUS_DETAIL_ALL)
        rc = set_text(line, "pod", w->name) | set_text(line, "ip", w->ip) |
             set_message(line, w->message);
    if (rc == 0)
        return line;
    json_decref(line);
    return NULL;
}

/* ---- groups ---- */

static int compare_texts(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* By all that common() says. */
static int compare_common(const struct status_input *input, uint32_t first, uint32_t second)
{
    const struct pod_state *a = &input->workers[first], *b = &input->workers[second];
    const char *const *devices = input->devices;
    int order = compare_numbers(a->phase, b->phase);
    order = order ? order : compare_numbers(a->claim, b->claim);
    order = order ? order : compare_numbers(a->end, b->end);
    order = order ? order : compare_numbers(a->exit_code, b->exit_code);
    order = order ? order : compare_numbers(a->devices, b->devices);
    order = order ? order : compare_texts(a->reason, b->reason);
    return order || !devices ? order : compare_texts(devices[first], devices[second]);
}

static int by_common(const void *a, const void *b, void *input)
{
    const uint32_t *x = a, *y = b;
    int order = compare_common(input, *x, *y);
    return order ? order : compare_numbers(*x, *y);
}

static int by_first(const void *a, const void *b)
{
    const json_t *const *x = a, *const *y = b;
    return compare_numbers(json_integer_value(json_object_get(*x, "index")),
                           json_integer_value(json_object_get(*y, "index")));
}

/* The workers have the same line: it says which, and how many. */
static int add_group(const struct status_input *input, const uint32_t *workers, uint32_t count,
                     json_t *groups)
{
    struct buf ranges = BUF_INIT;
    json_t *line = common(input, workers[0]);
    worker_ranges(workers, count, RANGES_MAX, &ranges);
    int rc = line && !ranges.failed ? set_text(line, "workers", ranges.data) : -1;
    if (rc == 0)
        rc = json_object_set_new(line, "index", json_integer(workers[0])) |
             json_object_set_new(line, "count", json_integer(count));
    buf_done(&ranges);
    if (rc == 0)
        return json_array_append_new(groups, line);
    json_decref(line);
    return rc;
}

/* In the order of their first workers; what is beyond the limit is one line more. */
static json_t *sorted(const json_t *groups, uint32_t workers)
{
    size_t count = json_array_size(groups);
    cleanup_free json_t **order = calloc(count + 1, sizeof(json_t *));
    json_t *list = order ? json_array() : NULL;
    for (size_t i = 0; list && i < count; i++)
        order[i] = json_array_get(groups, i);
    if (list)
        qsort(order, count, sizeof(json_t *), by_first);
    json_int_t told = 0;
    for (size_t i = 0; list && i < count && i < GROUPS_MAX; i++) {
        told += json_integer_value(json_object_get(order[i], "count"));
        json_array_append(list, order[i]);
    }
    if (list && told < workers)
        json_array_append_new(list, json_pack("{s:s, s:I, s:s, s:s}", "workers", "others", "count",
                                              (json_int_t)workers - told, "phase", "unknown",
                                              "claim", "unknown"));
    return list;
}

static json_t *grouped(const struct status_input *input)
{
    cleanup_free uint32_t *workers = calloc(input->count + 1, sizeof *workers);
    CLEANUP(json_decrefp) json_t *groups = json_array();
    int rc = workers && groups ? 0 : -1;
    for (uint32_t i = 0; rc == 0 && i < input->count; i++)
        workers[i] = i;
    if (rc == 0)
        qsort_r(workers, input->count, sizeof *workers, by_common, unconst(input));
    for (uint32_t i = 0, n; rc == 0 && i < input->count; i += n) {
        for (n = 1; i + n < input->count && compare_common(input, workers[i], workers[i + n]) == 0;)
            n++;
        rc = add_group(input, workers + i, n, groups);
    }
    return rc == 0 ? sorted(groups, input->count) : NULL;
}

json_t *status_lines(const struct status_input *input, enum status_detail detail)
{
    if (detail == STATUS_DETAIL_GROUPS)
        return input->workers ? grouped(input) : json_array();
    json_t *lines = json_array();
    for (uint32_t i = 0; lines && input->workers && i < input->count; i++)
        if (json_array_append_new(lines, one_line(input, i, detail)) < 0) {
            json_decref(lines);
            return NULL;
        }
    return lines;
}

const char *status_dropped(enum status_detail detail)
{
    switch (detail) {
    case STATUS_DETAIL_SHORT:
        return "pods' names, addresses and messages are left out: the document would be too large";
    case STATUS_DETAIL_GROUPS:
        return "workers that differ in their nodes and times alone are one line, and NICs are "
               "counted: the document would be too large";
    default:
        return NULL;
    }
}
