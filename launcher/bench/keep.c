/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/keep.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "launcher/bench/failure.h"
#include "launcher/bench/results.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/options.h"
#include "lib/bench/result_csv.h"

#define FILE_TO(option, short, field)                                                              \
    {                                                                                              \
        .name = option, .letter = short, .value = "FILE", .kind = OPTION_TEXT,                     \
        .offset = offsetof(struct keep_files, field)                                               \
    }

static const struct option_spec list[] = {
    FILE_TO("output_file", 'J', json),
    FILE_TO("json-lines", 0, lines),
    FILE_TO("csv", 0, csv),
};

int keep_pick(const struct strlist *words, struct strlist *remain, struct drarun_error *err)
{
    const struct option_table table = {list, ARRAY_LEN(list)};
    struct keep_files files = {0};
    int rc = options_pick(&table, (int)words->count, words->items, &files, remain, err);
    return rc < 0 ? rc : 0;
}

int keep_begin(const struct keep_files *files, bool more, struct keep *ret_keep,
               struct drarun_error *err)
{
    struct keep keep = {.csv_name = files->csv, .more = more, .lines = {.name = files->lines}};
    const char *mode = more ? "ae" : "we";
    int rc = 0;
    if (files->json)
        rc = written_open_new("-J", files->json, keep.json_name, &keep.json, err);
    if (rc == 0 && files->lines)
        rc = written_open("--json-lines", files->lines, mode, &keep.lines.out, err);
    if (rc == 0 && files->csv)
        rc = written_open("--csv", files->csv, mode, &keep.csv, err);
    if (rc < 0)
        keep_done(&keep);
    else
        *ret_keep = keep;
    return rc;
}

/* ---- secrets ---- */

/* What says nothing secret of an array of {"name", "value"}; else the name alone stays. */
static void clean_environment(json_t *environment)
{
    json_t *one;
    size_t i;
    json_array_foreach(environment, i, one)
    {
        struct buf assignment = BUF_INIT;
        const char *name = json_string_value(json_object_get(one, "name"));
        const char *value = json_string_value(json_object_get(one, "value"));
        buf_printf(&assignment, "%s=%s", name ? name : "", value ? value : "");
        if (!value || assignment.failed || !result_env_allowed(assignment.data))
            json_object_del(one, "value");
        buf_done(&assignment);
    }
}

/* Of a spec, or of one of its roles. */
static void clean_template(const json_t *holder)
{
    static const char *const lists[] = {"containers", "initContainers"};
    const json_t *pod = json_object_get(json_object_get(holder, "template"), "spec");
    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        json_t *container;
        size_t i;
        json_array_foreach(json_object_get(pod, lists[l]), i, container)
        {
            clean_environment(json_object_get(container, "env"));
        }
    }
}

/* The job was made of this command's words: of its containers the environment alone may have what
 * is nobody's business. */
static json_t *about(const json_t *kept)
{
    json_t *all = json_deep_copy(kept), *role;
    const json_t *spec = json_object_get(json_object_get(all, "job"), "spec");
    size_t i;
    clean_template(spec);
    json_array_foreach(json_object_get(spec, "roles"), i, role) clean_template(role);
    return all;
}

/* ---- writing ---- */

static int no_memory(struct drarun_error *err)
{
    return error_set(err, ENOMEM, "out of memory");
}

static int write_json(struct keep *keep, const struct result *r, struct drarun_error *err)
{
    if (!keep->json)
        return 0;
    json_t *document = result_json(r);
    if (!document)
        return no_memory(err);
    errno = 0;
    json_dumpf(document, keep->json, JSON_INDENT(1));
    fputc('\n', keep->json);
    json_decref(document);
    return written(keep->json, keep->json_name, err);
}

static int write_rows(struct keep *keep, const struct result *r, struct drarun_error *err)
{
    int rc = result_line_begin(&keep->lines, r, err);
    if (rc == 0 && keep->csv && !keep->more)
        rc = result_csv_begin(keep->csv, keep->csv_name, err);
    keep->more = true;
    for (size_t i = 0; rc == 0 && i < r->row_count; i++) {
        rc = result_line_row(&keep->lines, &r->rows[i], err);
        if (rc == 0 && keep->csv)
            rc = result_csv_row(keep->csv, keep->csv_name, &r->rows[i], err);
    }
    if (rc == 0 && r->ended)
        rc = result_line_end(&keep->lines, r, err);
    return rc < 0 || !r->failure.kind[0] ? rc : result_line_failed(&keep->lines, r, err);
}

static int write_run(struct keep *keep, struct result *r, json_t *kept, struct drarun_error *err)
{
    if (kept && !r->about && !(r->about = about(kept)))
        return no_memory(err);
    failure_take(json_object_get(json_object_get(kept, "status"), "report"), &r->failure);
    int rc = write_json(keep, r, err);
    return rc < 0 ? rc : write_rows(keep, r, err);
}

int keep_end(struct keep *keep, const struct buf *output, json_t *kept, struct drarun_error *err)
{
    struct runs runs = {0};
    if (!keep->json && !keep->lines.out && !keep->csv)
        return 0;
    int rc = results_read_text(output, RESULTS_JOB_OUTPUT, &runs, err);
    if (rc < 0 && keep->json)
        unlink(keep->json_name);
    if (rc == 0 && runs.count > 0) /* a job is one */
        rc = write_run(keep, &runs.list[0]->result, kept, err);
    if (rc == 0 && keep->json)
        log_note("the results are in %s", keep->json_name);
    runs_done(&runs);
    rc = rc < 0 ? rc : written_close(&keep->json, keep->json_name, err);
    rc = rc < 0 ? rc : written_close(&keep->lines.out, keep->lines.name, err);
    return rc < 0 ? rc : written_close(&keep->csv, keep->csv_name, err);
}

void keep_done(struct keep *keep)
{
    FILE *const files[] = {keep->json, keep->lines.out, keep->csv};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (files[i])
            fclose(files[i]);
    *keep = (struct keep){0};
}
