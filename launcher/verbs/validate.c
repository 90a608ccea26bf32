/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/validate.h"

#include <errno.h>
#include <string.h>

#include "drarun/spec.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/doc/value.h"

struct options {
    const char *output, *profiles;
    bool help;
};

static const struct option_spec option_list[] = {
    {.name = "output",
     .letter = 'o',
     .value = "FORMAT",
     .choices = "text json",
     .group = "Options",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, output),
     .help = "text (default) or json"},
    VERB_PROFILES_OPTION("Options", offsetof(struct options, profiles)),
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static json_t *json_finding(const char *file, const struct drarun_finding *finding)
{
    return json_pack("{s:o, s:i, s:i, s:s, s:s, s:s}", "file", value_of_words(file), "line",
                     (int)finding->line, "column", (int)finding->column, "path", finding->path,
                     "code", finding->code, "message", finding->message);
}

static json_t *json_result(const char *file, const struct drarun_spec *spec,
                           const struct drarun_findings *findings)
{
    json_t *list = json_array();
    for (size_t i = 0; findings && i < drarun_findings_count(findings); i++)
        json_array_append_new(list, json_finding(file, drarun_findings_at(findings, i)));
    json_t *result = json_object();
    json_object_set_new(result, "file", value_of_words(file)); /* a name need not be UTF-8 */
    json_object_set_new(result, "ok", json_boolean(spec));
    if (spec)
        json_object_set_new(result, "job", json_string(drarun_spec_name(spec)));
    if (spec)
        json_object_set_new(result, "workers", json_integer(drarun_spec_workers(spec)));
    size_t total = findings ? drarun_findings_total(findings) : 0;
    json_object_set_new(result, "findings", list);
    json_object_set_new(result, "total", json_integer((json_int_t)total));
    return result;
}

static void add_findings(const char *file, const struct drarun_findings *findings, struct buf *out)
{
    size_t count = drarun_findings_count(findings), total = drarun_findings_total(findings);
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s\n", drarun_findings_at(findings, i)->text);
    if (total > count)
        buf_printf(out, "%s: %zu more\n", file, total - count);
}

/* Findings go to stdout: they are what was asked for. */
static int validate_file(const char *file, const char *profiles, json_t *results, struct buf *out)
{
    struct drarun_spec *spec = NULL;
    struct drarun_findings *findings = NULL;
    struct drarun_error err = {0};
    const struct drarun_spec_options options = {.size = sizeof options, .profiles = profiles};
    int rc = drarun_spec_load(file, &options, &spec, &findings, &err);
    if (rc < 0 && !findings) {
        log_error("validate: %s", err.text);
    } else if (results) {
        json_array_append_new(results, json_result(file, spec, findings));
    } else if (rc == 0) {
        cleanup_free char *summary = drarun_spec_summary(spec);
        out->failed |= !summary;
        buf_printf(out, "%s: ok (%s)\n", file, summary ? summary : "?");
    } else {
        add_findings(file, findings, out);
    }
    drarun_findings_free(findings);
    drarun_spec_free(spec);
    return rc < 0 ? error_exit_status(err.kind) : 0;
}

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    int status = 0;
    CLEANUP(strlist_done) struct strlist files = STRLIST_INIT;
    int rc = verb_parse_files(&verb_validate, argc, argv, &options, &files, &err);
    if (rc == 0 && files.count == 0 && !options.help)
        rc = error_kind(&err, DRARUN_ERR_USAGE, EINVAL, "expected a file: drarun validate FILE...");
    if (rc < 0)
        return verb_fail("validate", &err);
    bool json = options.output && strcmp(options.output, "json") == 0;
    json_t *results = json ? json_array() : NULL;
    if (options.help)
        verb_help(&verb_validate, &out);
    for (size_t i = 0; !options.help && i < files.count; i++) {
        int failed = validate_file(files.items[i], options.profiles, results, &out);
        status = status ? status : failed;
    }
    if (json && !options.help)
        verb_add_json_take(results, &out);
    else
        json_decref(results);
    int written = verb_write("validate", &out);
    return written ? written : status;
}

const struct verb verb_validate = {
    "validate",     "FILE...", "Checks job specs without a cluster, and reports all errors found.",
    &options_table, run,       "check job specs"};
