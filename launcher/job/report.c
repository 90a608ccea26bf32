/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <jansson.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/plain.h"

/* As a log does it with its messages. */
static void indent(struct buf *text)
{
    size_t lines = 0;
    for (size_t i = 0; i < text->len; i++)
        lines += text->data[i] == '\n';
    if (buf_reserve(text, 2 * lines))
        text->len = plain_indent(text->data, text->len, text->len + 2 * lines);
}

static void show_text(const struct cause *cause, bool typed)
{
    struct buf text = BUF_INIT;
    buf_add_str(&text, "drarun: ");
    size_t prefix = text.len;
    cause_explain(cause, typed, &text);
    indent(&text);
    /* the loop is over: what must be said is said, however slow the reader */
    if (text.failed)
        log_error("out of memory for the reason why the job ended");
    else if (text.len > prefix)
        fd_write_all(STDERR_FILENO, text.data, text.len);
    buf_done(&text);
}

/* Arguments need not be UTF-8, which JSON must be. */
static json_t *text_of(const char *text)
{
    json_t *json = json_string(text);
    struct buf clean = BUF_INIT;
    if (json)
        return json;
    for (; *text; text++)
        buf_add(&clean, (unsigned char)*text < 0x80 ? text : "?", 1);
    json = clean.failed ? NULL : json_string(clean.data);
    buf_done(&clean);
    return json;
}

static json_t *programs(const struct job_request *request)
{
    json_t *list = json_array();
    for (size_t i = 0; i < request->program_count; i++) {
        json_t *argv = json_array();
        for (size_t k = 0; k < request->programs[i].argc; k++)
            json_array_append_new(argv, text_of(request->programs[i].argv[k]));
        json_array_append_new(list, argv);
    }
    return list;
}

json_t *report_json(const struct job_request *request, const struct job *job)
{
    json_t *json = cause_json(job_cause(job)), *fabric = job_fabric(job);
    struct job_facts of_job, *facts = &of_job;
    if (!json)
        return NULL;
    job_facts(job, facts);
    if (fabric)
        json_object_set_new(json, "fabric", fabric);
    json_t *files = job_left_files(job);
    if (files)
        json_object_set_new(json, "inspector", files);
    json_object_set_new(json, "job", json_string(facts->uid));
    json_object_set_new(json, "workers", json_integer(facts->workers));
    json_object_set_new(json, "ranks", json_integer(facts->ranks));
    json_object_set_new(json, "ran_s", json_real((double)facts->ran_us / 1e6));
    json_object_set_new(json, "user_s", json_real((double)facts->user_us / 1e6));
    json_object_set_new(json, "system_s", json_real((double)facts->system_us / 1e6));
    json_object_set_new(json, "max_rss_kib", json_integer((json_int_t)facts->max_rss_kib));
    json_object_set_new(json, "launcher_bytes", json_integer((json_int_t)facts->wire_bytes));
    json_object_set_new(json, "programs", programs(request));
    return json;
}

static char *write_json(const struct job_request *request, const struct job *job)
{
    CLEANUP(json_decrefp) json_t *json = report_json(request, job);
    return json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
}

static void tell_files(const struct job *job)
{
    CLEANUP(json_decrefp) json_t *files = job_left_files(job);
    json_int_t count = json_integer_value(json_object_get(files, "files"));
    if (files && json_integer_value(json_object_get(files, "bytes")) == 0)
        log_note("NCCL's inspector has written nothing: is the program's NCCL older than 2.28, or "
                 "did it make no communicator of more than one rank?");
    else if (files)
        log_note("NCCL's inspector: %lld file%s in %s%s", (long long)count, count == 1 ? "" : "s",
                 json_string_value(json_object_get(files, "folder")),
                 json_object_get(files, "cut") ? ", not all of what it wrote" : "");
}

int report_show(const struct job_request *request, const struct job *job, struct drarun_error *err)
{
    if (!request->json)
        show_text(job_cause(job), !request->timeout_of_spec);
    if (!request->json && !request->report_path)
        return 0;
    cleanup_free char *json = write_json(request, job);
    struct buf line = BUF_INIT;
    if (!json)
        return error_set(err, ENOMEM, "out of memory for the report");
    buf_printf(&line, "%s\n", json);
    int rc = line.failed ? error_set(err, ENOMEM, "out of memory for the report") : 0;
    if (rc == 0 && request->report_path)
        rc = file_write_named(request->report_path, line.data, line.len, err);
    if (rc == 0)
        tell_files(job);
    if (!line.failed && request->json) /* who reads it takes the last line */
        fd_write_all(STDERR_FILENO, line.data, line.len);
    buf_done(&line);
    return rc;
}
