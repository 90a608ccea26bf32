/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/bench/failure_lines.h"
#include "lib/bench/marked.h"
#include "lib/bench/nccl_tests_text.h"
#include "lib/bench/plain_text.h"
#include "lib/bench/result_json.h"
#include "lib/bench/runs.h"
#include "lib/doc/value.h"

static int no_memory(const char *name, struct drarun_error *err)
{
    return error_set(err, ENOMEM, "%s: out of memory", name);
}

static void miss(struct run *run, const char *what)
{
    snprintf(run->missing, sizeof run->missing, "%s", what);
}

/* ---- JSON ---- */

/* One document, as -J writes it. */
static int read_document(const json_t *value, const char *name, struct runs *runs,
                         struct drarun_error *err)
{
    struct run *run = runs_add(runs);
    if (!run)
        return no_memory(name, err);
    int rc = result_json_read(value, name, 0, &run->result, err);
    if (rc == 0 && !run->result.ended)
        miss(run, "its end_time is missing");
    return rc;
}

static int read_line(const char *line, size_t length, const char *name, unsigned number, bool last,
                     struct runs *runs, struct run **run, struct drarun_error *err)
{
    json_error_t where;
    json_t *value = json_loadb(line, length, 0, &where);
    if (!value && last && *run) {
        miss(*run, "its last line is cut off");
        return 0;
    }
    if (!value)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s:%u:%d: %s", name, number, where.column,
                          where.text);
    const char *kind = value_text(value, "kind");
    int rc = 0;
    if (kind && strcmp(kind, "begin") == 0) {
        rc = (*run = runs_add(runs)) ? 0 : no_memory(name, err);
    } else if (!*run) {
        rc = error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                        "%s:%u: expected a line with \"kind\": \"begin\" first", name, number);
    }
    rc = rc < 0 ? rc : result_json_read(value, name, number, &(*run)->result, err);
    json_decref(value);
    return rc;
}

static int read_lines(const char *text, size_t length, const char *name, struct runs *runs,
                      struct drarun_error *err)
{
    const char *end = text + length;
    struct run *run = NULL;
    unsigned number = 0;
    int rc = 0;
    for (const char *at = text, *next; rc == 0 && at < end; at = next) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        next = newline ? newline + 1 : end;
        number++;
        if (next - at > 1)
            rc = read_line(at, (size_t)((newline ? newline : end) - at), name, number, !newline,
                           runs, &run, err);
    }
    for (size_t i = 0; rc == 0 && i < runs->count; i++)
        if (!runs->list[i]->result.ended && !runs->list[i]->missing[0])
            miss(runs->list[i], "its line of kind end is missing");
    return rc;
}

static int read_json(const char *text, size_t length, const char *name, struct runs *runs,
                     struct drarun_error *err)
{
    json_error_t where;
    json_t *value = json_loadb(text, length, 0, &where);
    bool cut = !value && json_error_code(&where) == json_error_premature_end_of_input;
    if (!value || value_text(value, "kind")) { /* a line alone is a document too */
        const char *newline = memchr(text, '\n', length);
        json_t *first = json_loadb(text, newline ? (size_t)(newline - text) : length, 0, NULL);
        bool lines = value_text(first, "kind") != NULL;
        json_decref(first);
        json_decref(value);
        if (lines)
            return read_lines(text, length, name, runs, err);
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s:%d:%d: %s%s", name, where.line,
                          where.column, where.text,
                          cut ? ": it is cut off: the run that wrote it did not end" : "");
    }
    int rc = read_document(value, name, runs, err);
    json_decref(value);
    return rc;
}

/* What only the text knows stays: a failure, and the end where the line with it was lost. */
static void take_line_result(struct result *line, struct result *shown)
{
    if (!line->failure.kind[0])
        line->failure = shown->failure;
    if (!line->ended && shown->ended) {
        line->ended = true;
        line->average = shown->average;
        line->wrong_rows = shown->wrong_rows;
    }
    line->below_least = line->below_least || shown->below_least;
    result_done(shown);
    *shown = *line;
    result_init(line);
}

/* Its table and its marked lines are of the same runs: the lines know more, the table's text has
 * what NCCL said. Where a line of a run was lost, its table stays. */
static bool take_lines(struct runs *lines, struct run **shown, size_t count)
{
    bool whole = lines->count == count;
    for (size_t i = 0; whole && i < count; i++)
        whole = lines->list[i]->result.row_count >= shown[i]->result.row_count;
    for (size_t i = 0; whole && i < count; i++)
        take_line_result(&lines->list[i]->result, &shown[i]->result);
    return whole;
}

static int read_marked(const struct buf *lines, const struct buf *rest, const char *name,
                       struct runs *runs, struct drarun_error *err)
{
    struct runs marked = {0};
    struct drarun_error of_table = {0};
    int rc = read_lines(lines->data ? lines->data : "", lines->len, name, &marked, err);
    int table =
        nccl_tests_text_read(rest->data ? rest->data : "", rest->len, name, runs, &of_table);
    if (table < 0 && rc == 0 && marked.count > 0) {
        runs_done(runs);
        *runs = marked;
        return 0;
    }
    if (table == 0 && (rc < 0 || !take_lines(&marked, runs->list, runs->count)))
        strlist_add(&runs->list[0]->notes,
                    "lines of its results are missing: only its table is known");
    runs_done(&marked);
    if (table < 0 && err)
        *err = of_table;
    return table;
}

static int read_text(const char *text, size_t length, const char *name, struct runs *runs,
                     struct drarun_error *err)
{
    struct buf lines = BUF_INIT, rest = BUF_INIT;
    bool marked = marked_split(text, length, &lines, &rest);
    int rc = lines.failed || rest.failed ? no_memory(name, err)
             : marked                    ? read_marked(&lines, &rest, name, runs, err)
                                         : nccl_tests_text_read(text, length, name, runs, err);
    buf_done(&lines);
    buf_done(&rest);
    return rc;
}

static int read_any(const char *text, size_t length, const char *name, struct runs *runs,
                    struct drarun_error *err)
{
    size_t at = 0;
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        at = 3;
    while (at < length && isspace((unsigned char)text[at]))
        at++;
    if (at == length)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: it is empty", name);
    if (text[at] == '{')
        return read_json(text + at, length - at, name, runs, err);
    return read_text(text, length, name, runs, err);
}

static void run_clean(struct run *run)
{
    result_clean(&run->result);
    result_clean_text(run->missing);
    for (size_t i = 0; i < run->notes.count; i++)
        result_clean_text(run->notes.items[i]);
}

int runs_read(const char *text, size_t length, const char *name, struct runs *runs,
              struct drarun_error *err)
{
    struct plain_text plain;
    if (!plain_text_of(text, length, &plain))
        return no_memory(name, err);
    int rc = read_any(plain.data, plain.length, name, runs, err);
    plain_text_done(&plain);
    for (size_t i = 0; i < runs->count; i++) {
        run_clean(runs->list[i]);
        nccl_log_settle(&runs->list[i]->log, &runs->list[i]->result);
    }
    return rc;
}

int runs_read_log(const char *text, size_t length, const char *name, struct run *run,
                  struct drarun_error *err)
{
    struct plain_text plain;
    struct failure_lines failure = {0};
    if (!plain_text_of(text, length, &plain))
        return no_memory(name, err);
    const char *end = plain.data + plain.length;
    for (const char *at = plain.data, *next; at < end; at = next) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t line = (size_t)((newline ? newline : end) - at);
        next = newline ? newline + 1 : end;
        nccl_log_line(&run->log, &run->result, at, line);
        failure_lines_warn(&failure, at, line);
    }
    failure_lines_explain(&failure, &run->result);
    nccl_log_settle(&run->log, &run->result);
    plain_text_done(&plain);
    return 0;
}
