/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verb_validate.h"

#include <errno.h>
#include <string.h>

#include "launcher/profile_file.h"
#include "launcher/spec_file.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

struct options {
    const char *output, *profiles;
    bool help;
};

static const struct option_spec option_list[] = {
    {"output", 'o', NULL, "FORMAT", "text json", "Options", "text or json (text)", OPTION_TEXT,
     offsetof(struct options, output)},
    {"profiles", 0, NULL, "FILE", NULL, "Options", "further profiles of the site, tried first",
     OPTION_TEXT, offsetof(struct options, profiles)},
    {"help", 'h', NULL, NULL, NULL, "Options", "this help", OPTION_FLAG,
     offsetof(struct options, help)},
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static void add_devices(struct buf *out, const struct spec_devices *d, const char *kind)
{
    if (d->all)
        buf_printf(out, ", all %ss", kind);
    else if (d->count)
        buf_printf(out, ", %u %s%s each", d->count, kind, d->count == 1 ? "" : "s");
}

/* "job NAME, 2 workers, 8 GPUs each, 8 NICs each". */
static void describe(const struct job_spec *spec, struct buf *out)
{
    buf_printf(out, "job %s, %u worker%s", spec->name, spec->workers,
               spec->workers == 1 ? "" : "s");
    add_devices(out, &spec->gpus, "GPU");
    add_devices(out, &spec->nics, "NIC");
    if (spec->compute_domain)
        buf_add_str(out, ", a ComputeDomain");
}

static json_t *json_result(const char *file, const struct job_spec *spec,
                           const struct strlist *findings, size_t total)
{
    json_t *list = json_array();
    for (size_t i = 0; i < findings->count; i++)
        json_array_append_new(list, json_string(findings->items[i]));
    json_t *result = json_object();
    json_object_set_new(result, "file", json_string(file));
    json_object_set_new(result, "ok", json_boolean(spec));
    if (spec)
        json_object_set_new(result, "job", json_string(spec->name));
    if (spec)
        json_object_set_new(result, "workers", json_integer(spec->workers));
    json_object_set_new(result, "findings", list);
    json_object_set_new(result, "total", json_integer((json_int_t)total));
    return result;
}

/* Findings go to stdout: they are what was asked for. */
static int validate_file(const char *file, const struct profiles *profiles, json_t *results,
                         struct buf *out)
{
    struct job_spec spec = {0};
    struct strlist findings = STRLIST_INIT;
    struct drarun_error err = {0};
    size_t total = 0;
    int rc = spec_file_read(file, profiles, &spec, &findings, &total, &err);
    if (results) {
        json_array_append_new(results, json_result(file, rc == 0 ? &spec : NULL, &findings, total));
    } else if (rc == 0) {
        buf_printf(out, "%s: ok (", file);
        describe(&spec, out);
        buf_add_str(out, ")\n");
    }
    for (size_t i = 0; !results && i < findings.count; i++)
        buf_printf(out, "%s\n", findings.items[i]);
    if (!results && total > findings.count)
        buf_printf(out, "%s: %zu more\n", file, total - findings.count);
    strlist_done(&findings);
    if (rc == 0)
        job_spec_done(&spec);
    return rc < 0 ? error_exit_status(err.kind) : 0;
}

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct profiles profiles = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    int status = 0;
    int used = options_parse(&options_table, argc, argv, false, &options, &err);
    if (used >= 0 && used == argc && !options.help)
        used =
            error_kind(&err, DRARUN_ERR_USAGE, EINVAL, "expected a file: drarun validate FILE...");
    if (used >= 0 && profile_file_load(options.profiles, &profiles, &err) < 0)
        used = -err.code;
    if (used < 0) {
        log_error("validate: %s", err.text);
        return error_exit_status(err.kind);
    }
    bool json = options.output && strcmp(options.output, "json") == 0;
    json_t *results = json ? json_array() : NULL;
    if (options.help)
        verb_help(&verb_validate, &out);
    for (int i = used; !options.help && i < argc; i++) {
        int failed = validate_file(argv[i], &profiles, results, &out);
        status = status ? status : failed;
    }
    profiles_done(&profiles);
    if (json && !options.help)
        verb_add_json_take(results, &out);
    else
        json_decref(results);
    int written = verb_write("validate", &out);
    return written ? written : status;
}

const struct verb verb_validate = {
    "validate", "FILE...", "Says whether job specs would be taken, and all that is wrong in them.",
    &options_table, run};
