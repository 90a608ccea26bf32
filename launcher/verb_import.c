/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verb_import.h"

#include <errno.h>

#include "jobs/import.h"
#include "jobs/spec.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/doc/load.h"
#include "lib/doc/yaml_write.h"

struct options {
    bool help;
};

static const struct option_spec option_list[] = {
    {"help", 'h', NULL, NULL, NULL, "Options", "this help", OPTION_FLAG,
     offsetof(struct options, help)},
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static int usage(const char *text)
{
    log_error("import: %s", text);
    return error_exit_status(DRARUN_ERR_USAGE);
}

/* The new spec must be one for ourselves. */
static int write_job(const json_t *job, const char *file, struct buf *out, struct drarun_error *err)
{
    struct job_spec spec;
    int rc = yaml_write(job, out, err);
    if (rc == 0)
        rc = spec_parse(file, out->data, out->len, &spec, err);
    if (rc < 0)
        return error_prefix(err, "the imported job is not complete");
    job_spec_done(&spec);
    return 0;
}

static int import_file(const char *file, char *const program[], struct buf *out,
                       struct drarun_error *err)
{
    CLEANUP(doc_freep) struct doc *doc = NULL;
    struct reader notes;
    json_t *job = NULL;
    int rc = doc_load(file, NULL, &doc, err);
    if (rc < 0)
        return rc;
    reader_init(&notes, doc, true);
    notes.max = READER_MAX;
    rc = import_job(&notes, program, &job, err);
    if (rc == 0)
        rc = write_job(job, "imported.yaml", out, err);
    for (size_t i = 0; i < notes.texts.count; i++)
        log_note("%s", notes.texts.items[i]);
    reader_done(&notes);
    json_decref(job);
    return rc;
}

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    int used = options_parse(&options_table, argc, argv, false, &options, &err);
    if (used < 0)
        return usage(err.text);
    if (options.help)
        verb_help(&verb_import, &out);
    else if (used == argc)
        return usage("expected a file: drarun import FILE [PROGRAM [ARGUMENTS]]");
    else
        import_file(argv[used], used + 1 < argc ? argv + used + 1 : NULL, &out, &err);
    if (err.code) {
        log_error("%s", err.text);
        buf_done(&out);
        return error_exit_status(err.kind);
    }
    return verb_write("import", &out);
}

const struct verb verb_import = {"import", "FILE [PROGRAM [ARGUMENTS]]",
                                 "Makes a job spec of an MPIJob, StatefulSet, Job or Pod with its "
                                 "claims, and says what was left "
                                 "out.",
                                 &options_table, run};
