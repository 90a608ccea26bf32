/* SPDX-License-Identifier: Apache-2.0 */
#include "drarun/bench.h"

#include <errno.h>

#include "launcher/files/api_options.h"
#include "launcher/api/text.h"
#include "launcher/bench/machine.h"
#include "lib/base/c_numbers.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/bench/report_html.h"
#include "lib/bench/runs.h"

struct judged {
    struct bench_machine machine; /* nothing is said of it but what is known of all */
    struct verdict_demands demands;
    struct runs runs;
};

static void judged_done(struct judged *judged)
{
    runs_done(&judged->runs);
    bench_machine_done(&judged->machine);
}

static int demanded(const char *name, double value, double *ret_demand, struct drarun_error *err)
{
    if (!(value >= 0 && value < 1e12))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "%s: expected 0 or more, got %g", name,
                          value);
    *ret_demand = value > 0 ? value : -1;
    return 0;
}

static int demands_of(const struct drarun_bench_options *o, struct verdict_demands *ret_demands,
                      struct drarun_error *err)
{
    struct verdict_demands demands = {.require_rdma = o->require_rdma};
    int rc = demanded("min_busbw", o->min_busbw, &demands.min_busbw, err);
    if (rc == 0)
        rc = demanded("min_best_busbw", o->min_best_busbw, &demands.min_best_busbw, err);
    if (rc == 0)
        rc = demanded("min_percent", o->min_percent, &demands.min_percent, err);
    if (rc == 0)
        *ret_demands = demands;
    return rc;
}

/* judged: zeroed, done by the caller. */
static int read_runs(const char *text, size_t length, const struct drarun_bench_options *options,
                     struct drarun_bench_options *o, struct judged *judged,
                     struct drarun_error *err)
{
    int rc = api_options(options, o, sizeof *o, err);
    if (rc == 0)
        rc = demands_of(o, &judged->demands, err);
    if (rc == 0)
        rc = bench_machine_ready(&judged->machine, err);
    return rc < 0 ? rc : runs_read(text, length, "results", &judged->runs, err);
}

/* What becomes of one run; false: without memory. */
typedef bool (*verdict_fn)(void *arg, const struct verdict *verdict);

static int judge_each(struct judged *judged, verdict_fn add, void *arg, struct drarun_error *err)
{
    for (size_t i = 0; i < judged->runs.count; i++) {
        struct verdict verdict;
        int rc = bench_machine_judge(&judged->machine, judged->runs.list[i], &judged->demands,
                                     &verdict, err);
        if (rc < 0)
            return rc;
        bool added = add(arg, &verdict);
        verdict_done(&verdict);
        if (!added)
            return error_set(err, ENOMEM, "out of memory");
    }
    return 0;
}

static bool add_verdict(void *list, const struct verdict *verdict)
{
    return json_array_append_new(list, verdict_json(verdict)) == 0;
}

int drarun_bench_verdicts(const char *text, size_t length,
                          const struct drarun_bench_options *options, char **ret_json,
                          struct drarun_error *err)
{
    C_NUMBERS;
    struct drarun_bench_options o;
    CLEANUP(judged_done) struct judged judged = {0};
    CLEANUP(json_decrefp) json_t *list = json_array();
    int rc = read_runs(text, length, options, &o, &judged, err);
    if (rc == 0)
        rc = judge_each(&judged, add_verdict, list, err);
    char *json = rc == 0 ? text_of_json_take(TAKE_PTR(list)) : NULL;
    if (rc == 0 && !json)
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc == 0)
        *ret_json = json;
    return rc;
}

static bool add_page(void *page, const struct verdict *verdict)
{
    report_run(verdict, "results", PLOT_BOTH, page);
    return true; /* text_take tells when there was no memory */
}

int drarun_bench_report(const char *text, size_t length, const struct drarun_bench_options *options,
                        char **ret_html, struct drarun_error *err)
{
    C_NUMBERS;
    struct drarun_bench_options o;
    CLEANUP(judged_done) struct judged judged = {0};
    CLEANUP(buf_done) struct buf page = BUF_INIT;
    int rc = read_runs(text, length, options, &o, &judged, err);
    if (rc < 0)
        return rc;
    report_begin(o.title ? o.title : "Collectives", PLOT_BOTH, &page);
    rc = judge_each(&judged, add_page, &page, err);
    report_end(&page);
    char *html = rc == 0 ? text_take(&page) : NULL;
    if (rc == 0 && !html)
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc == 0)
        *ret_html = html;
    return rc;
}
