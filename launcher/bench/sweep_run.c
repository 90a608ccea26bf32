/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "launcher/bench/on_cluster.h"
#include "launcher/bench/sweep.h"
#include "launcher/cli/verb.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

struct reached {
    int status;
    struct verdict_figures figures;
};

static void add_figure(double value, const char *unit, struct buf *out)
{
    if (value >= 0)
        buf_printf(out, " %10.2f%s", value, unit);
    else
        buf_printf(out, " %10s%*s", "-", (int)strlen(unit), "");
}

/* The first of them is what the others are held against. */
static void show(const struct sweep *sweep, const struct reached *reached, size_t count,
                 struct buf *out)
{
    buf_printf(out, "#\n# %10s %10s %11s %11s  claims\n", "best GB/s", "avg GB/s", "of limit",
               "of first");
    for (size_t i = 0; i < count; i++) {
        const struct verdict_figures *f = &reached[i].figures, *first = &reached[0].figures;
        bool both = f->best > 0 && first->best > 0;
        buf_add_str(out, "#");
        add_figure(f->best, "", out);
        add_figure(f->average, "", out);
        add_figure(f->percent, " %", out);
        add_figure(both ? 100 * f->best / first->best : -1, " %", out);
        buf_add_str(out, "  ");
        sweep_label(sweep, i, out);
        if (reached[i].status)
            buf_printf(out, " (status %d)", reached[i].status);
        buf_add_str(out, "\n");
    }
}

static bool is_the_end(int status)
{
    return status == error_exit_status(DRARUN_ERR_USAGE) ||
           status == error_exit_status(DRARUN_ERR_SPEC) || status == EX_NOINPUT ||
           status == 128 + SIGINT || status == 128 + SIGTERM;
}

static void run_case(const struct bench_choice *choice, const struct sweep *sweep, size_t index,
                     struct reached *ret)
{
    char begins[64];
    struct buf label = BUF_INIT;
    struct bench_choice one = *choice;
    snprintf(begins, sizeof begins, "%.40s-%zu-", choice->name ? choice->name : "bench", index);
    sweep_choose(sweep, index, &one);
    sweep_label(sweep, index, &label);
    one.name = NULL;
    one.name_begins = begins;
    one.more = index > 0;
    log_note("job %zu of %zu: %s", index + 1, sweep->cases, label.data ? label.data : "");
    buf_done(&label);
    ret->figures = (struct verdict_figures){-1, -1, -1};
    ret->status = bench_on_cluster(&one, &ret->figures);
}

int sweep_run(const struct bench_choice *choice)
{
    struct reached reached[SWEEP_CASES_MAX];
    CLEANUP(sweep_done) struct sweep sweep = {0};
    struct drarun_error err = {0};
    struct buf out = BUF_INIT;
    size_t count = 0;
    int status = 0;
    if (sweep_read(&choice->sweep, &sweep, &err) < 0)
        return verb_fail("bench", &err);
    while (count < sweep.cases && !is_the_end(status)) {
        run_case(choice, &sweep, count, &reached[count]);
        status = status && !is_the_end(reached[count].status) ? status : reached[count].status;
        count++;
    }
    if (count > 1 || !is_the_end(status))
        show(&sweep, reached, count, &out);
    int written = verb_write("bench", &out);
    return status ? status : written;
}
