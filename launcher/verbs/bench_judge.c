/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/bench_judge.h"

#include <string.h>

#include "launcher/bench/asked.h"
#include "lib/base/cleanup.h"

struct options {
    struct bench_asked asked; /* first, for its options */
    const char *output;
    bool help;
};

static const struct option_spec option_list[] = {
    BENCH_MACHINE_OPTIONS,
    BENCH_ASKED_MIN_BUSBW,
    BENCH_ASKED_OPTIONS,
    {.name = "output",
     .letter = 'o',
     .value = "FORMAT",
     .choices = "text json",
     .group = "Others",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, output),
     .help = "text (the default) or json"},
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

/* Adds the verdict to out, or to list; returns whether it failed, or -errno. */
static int judge_run(const struct options *o, struct run *run, struct buf *out, json_t *list,
                     struct drarun_error *err)
{
    struct verdict verdict;
    int rc = bench_machine_judge(&o->asked.machine, run, &o->asked.demands, &verdict, err);
    if (rc < 0)
        return rc;
    json_t *json = list ? verdict_json(&verdict) : NULL;
    if (!list)
        verdict_text(&verdict, out);
    else if (!json || json_array_append_new(list, json) < 0)
        out->failed = true;
    rc = verdict.failures.count > 0;
    verdict_done(&verdict);
    return rc;
}

/* NCCL's log without a table: how ranks are connected. Returns as judge_run. */
static int judge_log(const struct options *o, const struct nccl_report *report, struct buf *out,
                     json_t *list)
{
    CLEANUP(strlist_done) struct strlist failures = STRLIST_INIT;
    nccl_report_demand(report, &o->asked.demands, &failures);
    json_t *json = list ? nccl_report_json(report, &failures) : NULL;
    if (!list)
        nccl_report_text(report, &failures, out);
    else if (!json || json_array_append_new(list, json) < 0)
        out->failed = true;
    out->failed = out->failed || failures.failed;
    return failures.count > 0;
}

static int judge(struct options *o, const char *file, struct buf *out, struct drarun_error *err)
{
    struct runs runs = {0};
    struct nccl_report report = {0};
    bool failed = false;
    json_t *list = o->output && strcmp(o->output, "json") == 0 ? json_array() : NULL;
    int rc = bench_machine_ready(&o->asked.machine, err);
    rc = rc < 0 ? rc : results_read_or_log(file, &runs, &report, err);
    if (rc >= 0 && report.lines > 0)
        failed = judge_log(o, &report, out, list) > 0;
    for (size_t i = 0; rc >= 0 && i < runs.count; i++) {
        rc = judge_run(o, runs.list[i], out, list, err);
        failed = failed || rc > 0;
    }
    if (list && rc >= 0)
        verb_add_json_take(list, out);
    else
        json_decref(list);
    runs_done(&runs);
    nccl_report_done(&report);
    return rc < 0 ? rc : failed;
}

static int run(int argc, char *const argv[])
{
    struct options options = {.asked = BENCH_ASKED_INIT};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    const char *file = NULL;
    int rc = verb_parse_file(&verb_bench_judge, argc, argv, &options, &options.help, &file, &err);
    if (rc == 0 && options.help)
        verb_help(&verb_bench_judge, &out);
    else if (rc == 0)
        rc = judge(&options, file, &out, &err);
    bench_machine_done(&options.asked.machine);
    if (rc < 0) {
        buf_done(&out);
        return verb_fail("bench judge", &err);
    }
    bool json = options.output && strcmp(options.output, "json") == 0;
    int status = json || options.help ? verb_write("bench judge", &out)
                                      : verb_write_prose("bench judge", &out);
    return status ? status : rc;
}

const struct verb verb_bench_judge = {
    "bench judge", "FILE",
    "Checks the output of nccl-tests or drarun-bench, or NCCL's own log, against the machine's "
    "limit; - is stdin.",
    &options_table, run};
