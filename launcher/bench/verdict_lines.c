/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/verdict_lines.h"

#include <string.h>

#include "launcher/bench/results.h"
#include "launcher/verb.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

static void add_lines(const struct buf *text, struct buf *out)
{
    for (const char *at = text->data, *next; at && *at; at = next) {
        size_t length = strcspn(at, "\n");
        next = at + length + (at[length] == '\n');
        buf_printf(out, "# %.*s\n", (int)length, at);
    }
    out->failed |= text->failed;
}

/* Returns whether it failed. */
static bool judge(const struct run *run, const struct known *known, const struct verdict_wish *wish,
                  struct verdict_figures *ret_figures, struct buf *out)
{
    struct verdict verdict;
    struct buf text = BUF_INIT;
    verdict_make(run, known_find(known, wish->machine, &run->result), &wish->given, &wish->demands,
                 &verdict);
    verdict_text(&verdict, &text);
    add_lines(&text, out);
    bool failed = verdict.failures.count > 0;
    if (ret_figures)
        *ret_figures = (struct verdict_figures){verdict.best ? verdict.best->busbw : -1,
                                                verdict.average, verdict.percent};
    buf_done(&text);
    verdict_done(&verdict);
    return failed;
}

int verdict_lines(const char *file, const struct verdict_wish *wish,
                  struct verdict_figures *ret_figures)
{
    struct runs runs = {0};
    struct known known = {0};
    struct buf out = BUF_INIT;
    struct drarun_error err = {0};
    bool failed = false;
    int rc = results_known(wish->known, &known, &err);
    rc = rc < 0 ? rc : results_read(file, &runs, &err);
    for (size_t i = 0; rc == 0 && i < runs.count; i++)
        failed |= judge(runs.list[i], &known, wish, ret_figures, &out);
    runs_done(&runs);
    known_done(&known);
    if (rc < 0)
        log_error("bench: no verdict: %s", err.text);
    int status = verb_write("bench", &out);
    return rc < 0 ? error_exit_status(err.kind) : status ? status : failed;
}
