/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/bench_compare.h"

#include <errno.h>
#include <string.h>

#include "launcher/bench/results.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/strlist.h"
#include "lib/bench/compare.h"

struct options {
    const char *output;
    double percent;
    bool demanded, help;
};

static int set_percent(void *target, const char *shown, const char *value, struct drarun_error *err)
{
    struct options *o = target;
    char *end;
    double percent = strtod(value, &end);
    if (end == value || *end || !(percent >= 0) || percent > 1e6)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: expected a percentage such as 5, got \"%s\"", shown, value);
    o->percent = percent;
    o->demanded = true;
    return 0;
}

static const struct option_spec option_list[] = {
    {.name = "max-slower",
     .value = "P",
     .group = "Options",
     .kind = OPTION_CALL,
     .set = set_percent,
     .help = "exit with 1 if a measurement certainly takes more than P\npercent longer (default: "
             "only mark more than 5 percent)"},
    {.name = "output",
     .letter = 'o',
     .value = "FORMAT",
     .choices = "text json",
     .group = "Options",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, output),
     .help = "text (the default) or json"},
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static int parse(int argc, char *const argv[], struct options *o, struct strlist *files,
                 struct drarun_error *err)
{
    int rc = verb_parse_files(&verb_bench_compare, argc, argv, o, files, err);
    if (rc == 0 && !o->help && files->count != 2)
        rc = error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                        "expected two files: drarun bench compare [options] FIRST SECOND");
    return rc;
}

/* Files with several runs are compared run by run, in their order. */
static int compare_files(const struct options *o, char *const files[2], struct buf *out,
                         struct drarun_error *err)
{
    struct runs runs[2] = {{0}, {0}};
    bool json = o->output && strcmp(o->output, "json") == 0, slower = false, failed = false;
    json_t *list = json ? json_array() : NULL;
    int rc = results_read(files[0], &runs[0], err);
    rc = rc < 0 ? rc : results_read(files[1], &runs[1], err);
    if (rc == 0 && runs[0].count != runs[1].count)
        rc = error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s holds %zu runs, %s %zu", files[0],
                        runs[0].count, files[1], runs[1].count);
    for (size_t i = 0; rc == 0 && i < runs[0].count; i++) {
        struct compare c;
        rc = compare_runs(runs[0].list[i], files[0], runs[1].list[i], files[1], &c, err);
        if (rc < 0)
            break;
        for (size_t k = 0; k < c.count; k++)
            slower = slower || compared_slower(&c.list[k], o->percent);
        failed = failed || c.failures.count > 0;
        if (json && json_array_append_new(list, compare_json(&c, o->percent)) < 0)
            out->failed = true;
        else if (!json)
            compare_text(&c, o->percent, out);
        compare_done(&c);
    }
    if (json && rc == 0)
        verb_add_json_take(list, out);
    else
        json_decref(list);
    runs_done(&runs[0]);
    runs_done(&runs[1]);
    return rc < 0 ? rc : failed || (o->demanded && slower);
}

static int run(int argc, char *const argv[])
{
    struct options options = {.percent = 5};
    struct strlist files = STRLIST_INIT;
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    int rc = parse(argc, argv, &options, &files, &err);
    if (rc == 0 && options.help)
        verb_help(&verb_bench_compare, &out);
    else if (rc == 0)
        rc = compare_files(&options, files.items, &out, &err);
    strlist_done(&files);
    if (rc < 0) {
        buf_done(&out);
        return verb_fail("bench compare", &err);
    }
    int status = verb_write("bench compare", &out);
    return status ? status : rc;
}

const struct verb verb_bench_compare = {
    "bench compare", "FIRST SECOND",
    "Shows which sizes take longer in the second of two results, and how sure that is.",
    &options_table, run};
