/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/bench/verdict_lines.h"

#include <string.h>

#include "launcher/cli/verb.h"
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

/* Returns whether it failed, or -errno. */
static int judge(const struct bench_asked *asked, struct run *run,
                 struct verdict_figures *ret_figures, struct buf *out, struct drarun_error *err)
{
    struct verdict verdict;
    struct buf text = BUF_INIT;
    int rc = bench_machine_judge(&asked->machine, run, &asked->demands, &verdict, err);
    if (rc < 0)
        return rc;
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

int verdict_none(const struct drarun_error *why)
{
    log_error("bench: no verdict: %s", why->text);
    return error_exit_status(why->kind);
}

int verdict_lines(const struct runs *runs, const struct bench_asked *asked,
                  struct verdict_figures *ret_figures)
{
    struct buf out = BUF_INIT;
    struct drarun_error err = {0};
    bool failed = false;
    int rc = 0;
    for (size_t i = 0; rc >= 0 && i < runs->count; i++) {
        rc = judge(asked, runs->list[i], ret_figures, &out, &err);
        failed |= rc > 0;
    }
    int none = rc < 0 ? verdict_none(&err) : 0;
    int status = verb_write("bench", &out);
    return none ? none : status ? status : failed;
}
