/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/bench_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/bench/machine.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/bench/planned.h"
#include "lib/bench/report_html.h"
#include "lib/bench/result_csv.h"
#include "lib/doc/load.h"

struct options {
    struct bench_machine machine; /* first: BENCH_MACHINE_OPTIONS */
    const char *format, *theme, *file, *title, *plan;
    bool help;
};

#define OF_REPORT "The report"

static const struct option_spec option_list[] = {
    {.name = "output",
     .letter = 'o',
     .aliases = "--format",
     .value = "FORMAT",
     .choices = "html svg svg-latency svg-ranks svg-hosts csv",
     .group = OF_REPORT,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, format),
     .help = "html (the default): a self-contained page; for one\nrun: svg (bandwidth over "
             "size), svg-latency (time over\nsize), svg-ranks, svg-hosts, csv"},
    {.name = "theme",
     .value = "THEME",
     .choices = "both light dark",
     .group = OF_REPORT,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, theme),
     .help = "both (the default): follow the reader's system; light;\ndark"},
    {.name = "file",
     .value = "FILE",
     .choices = "FILE",
     .group = OF_REPORT,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, file),
     .help = "write FILE (default: to stdout)"},
    {.name = "plan",
     .value = "FILE",
     .choices = "FILE",
     .group = OF_REPORT,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, plan),
     .help = "GPUs and NICs of the ranks, if the results lack them:\noutput of drarun plan "
             "--slices FILE -o json"},
    {.name = "title",
     .value = "TEXT",
     .group = OF_REPORT,
     .kind = OPTION_TEXT,
     .offset = offsetof(struct options, title),
     .help = "the page's heading"},
    BENCH_MACHINE_OPTIONS,
    VERB_LEVEL_OPTIONS,
    VERB_HELP_OPTION(struct options),
};
static const struct option_table options_table = {option_list, ARRAY_LEN(option_list)};

static enum plot_theme theme_of(const struct options *o)
{
    return !o->theme                        ? PLOT_BOTH
           : strcmp(o->theme, "light") == 0 ? PLOT_LIGHT
           : strcmp(o->theme, "dark") == 0  ? PLOT_DARK
                                            : PLOT_BOTH;
}

/* What stands alone: a picture, a table. */
static int add_part(const struct options *o, const struct verdict *v, struct buf *out,
                    struct drarun_error *err)
{
    enum plot_theme theme = theme_of(o);
    const struct result *r = &v->run->result;
    if (v->failures.count) /* there is no place for it there */
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "-o %s: %s; a page (-o html) "
                          "shows what was measured",
                          o->format, v->failures.items[0]);
    if (strcmp(o->format, "csv") == 0) {
        result_csv_text(r, out);
        return 0;
    }
    bool drawn = strcmp(o->format, "svg") == 0           ? plot_bandwidth(v, theme, out)
                 : strcmp(o->format, "svg-latency") == 0 ? plot_latency(v, theme, out)
                 : strcmp(o->format, "svg-ranks") == 0   ? plot_ranks(r, theme, out)
                                                         : plot_hosts(r, theme, out);
    return drawn ? 0
                 : error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                              "-o %s: there is nothing to draw: no row was measured, or "
                              "times of ranks or their hosts are not known",
                              o->format);
}

static int take_plan(const struct options *o, struct result *r, struct drarun_error *err)
{
    struct doc *doc = NULL;
    int rc = o->plan ? doc_load_one(o->plan, &doc, err) : 0;
    if (rc == 0 && o->plan)
        rc = planned_take(doc_root(doc, 0), o->plan, r, err);
    doc_free(doc);
    return rc;
}

/* All runs of all files, judged. */
struct judged {
    struct runs *files; /* verdicts borrow from them */
    size_t file_count;
    struct verdict *verdicts;
    struct strlist names; /* of each, "out" or "out-2" where a file has several */
    size_t count;
};

static void judged_done(struct judged *j)
{
    for (size_t i = 0; i < j->count; i++)
        verdict_done(&j->verdicts[i]);
    for (size_t i = 0; i < j->file_count; i++)
        runs_done(&j->files[i]);
    strlist_done(&j->names);
    free(j->verdicts);
    free(j->files);
}

static void add_name(struct judged *j, const char *file, size_t of_file, size_t count)
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    const char *dot = strrchr(name, '.');
    int length = (int)(dot && dot > name ? (size_t)(dot - name) : strlen(name));
    if (count > 1)
        strlist_addf(&j->names, "%.*s-%zu", length, name, of_file + 1);
    else
        strlist_addf(&j->names, "%.*s", length, name);
}

static int judge_file(const struct options *o, const char *file, bool page, struct judged *j,
                      struct drarun_error *err)
{
    static const struct verdict_demands none = VERDICT_NO_DEMANDS;
    struct runs *runs = &j->files[j->file_count++];
    int rc = results_read(file, runs, err);
    struct verdict *more =
        rc < 0 ? NULL : realloc(j->verdicts, (j->count + runs->count + 1) * sizeof *more);
    if (rc < 0 || !more)
        return rc < 0 ? rc : error_set(err, ENOMEM, "out of memory");
    j->verdicts = more;
    for (size_t i = 0; rc == 0 && i < runs->count; i++) {
        struct verdict *v = &j->verdicts[j->count];
        rc = take_plan(o, &runs->list[i]->result, err);
        rc = rc < 0 ? rc : bench_machine_judge(&o->machine, runs->list[i], &none, v, err);
        if (rc < 0)
            break;
        j->count++;
        add_name(j, file, i, runs->count);
        for (size_t k = 0; page && k < v->failures.count; k++)
            log_error("bench report: %s: FAILED: %s", file, v->failures.items[k]);
    }
    return rc;
}

static int judge_files(const struct options *o, const struct strlist *files, bool page,
                       struct judged *j, struct drarun_error *err)
{
    j->files = calloc(files->count + 1, sizeof *j->files);
    if (!j->files)
        return error_set(err, ENOMEM, "out of memory");
    if (!page && files->count > 1)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "-o %s shows one run: expected one file, got %zu", o->format,
                          files->count);
    for (size_t i = 0; i < files->count; i++) {
        int rc = judge_file(o, files->items[i], page, j, err);
        if (rc == 0 && !page && j->count > 1)
            rc = error_kind(err, DRARUN_ERR_USAGE, EINVAL, "-o %s shows one run; %s holds %zu runs",
                            o->format, files->items[i], j->files[i].count);
        if (rc < 0)
            return rc;
    }
    return j->names.failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

static void add_page(const struct options *o, const struct judged *j, struct buf *out)
{
    enum plot_theme theme = theme_of(o);
    report_begin(o->title ? o->title : "Collectives", theme, out);
    if (j->count > 1) {
        buf_add_str(out, "<div class=\"wide\">\n");
        plot_runs(j->verdicts, j->names.items, j->count, theme, out);
        buf_add_str(out, "</div>\n");
    }
    for (size_t i = 0; i < j->count; i++)
        report_run(&j->verdicts[i], j->names.items[i], theme, out);
    report_end(out);
}

/* ret_failed: set where a run failed or did not end. */
static int report(struct options *o, const struct strlist *files, struct buf *out, bool *ret_failed,
                  struct drarun_error *err)
{
    bool page = !o->format || strcmp(o->format, "html") == 0;
    CLEANUP(judged_done) struct judged judged = {.names = STRLIST_INIT};
    int rc = bench_machine_ready(&o->machine, err);
    if (rc == 0)
        rc = judge_files(o, files, page, &judged, err);
    for (size_t i = 0; rc == 0 && i < judged.count; i++)
        *ret_failed = *ret_failed || judged.verdicts[i].failures.count > 0;
    if (rc == 0 && page)
        add_page(o, &judged, out);
    else if (rc == 0 && judged.count > 0)
        rc = add_part(o, &judged.verdicts[0], out, err);
    return rc;
}

static int parse(int argc, char *const argv[], struct options *o, struct strlist *files,
                 struct drarun_error *err)
{
    int rc = verb_parse_files(&verb_bench_report, argc, argv, o, files, err);
    if (rc == 0 && !o->help && files->count == 0)
        rc = error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                        "expected a file: drarun bench report [options] FILE...");
    return rc;
}

static int run(int argc, char *const argv[])
{
    struct options options = {0};
    struct strlist files = STRLIST_INIT;
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    bool failed = false;
    int rc = parse(argc, argv, &options, &files, &err);
    if (rc == 0 && options.help)
        verb_help(&verb_bench_report, &out);
    else if (rc == 0)
        rc = report(&options, &files, &out, &failed, &err);
    if (rc == 0 && out.failed)
        rc = error_set(&err, ENOMEM, "out of memory");
    if (rc == 0 && options.file && !options.help) {
        rc = file_write_named(options.file, out.data, out.len, &err);
        buf_reset(&out);
    }
    strlist_done(&files);
    bench_machine_done(&options.machine);
    if (rc < 0) {
        buf_done(&out);
        return verb_fail("bench report", &err);
    }
    int status = verb_write("bench report", &out);
    return status == 0 && failed ? 1 : status;
}

const struct verb verb_bench_report = {
    "bench report", "FILE...",
    "Makes a page, a picture or a table of the results of nccl-tests or drarun-bench.",
    &options_table, run};
