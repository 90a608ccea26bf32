/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/follow/result.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/buf.h"
#include "lib/base/log.h"

static void say_cause(const struct follow_result_facts *f)
{
    const char *text = json_string_value(json_object_get(f->cause, "text"));
    const char *advice = json_string_value(json_object_get(f->cause, "advice"));
    if (!text || !text[0] || f->exit_status == 0)
        return;
    log_error("%s%s%s", text, advice ? "\n  " : "", advice ? advice : "");
}

int follow_interrupted(const char *job, struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_INTERRUPTED, ECANCELED,
                      "job %s: what followed it was interrupted", job);
}

int follow_timed_out(const char *job, int64_t timeout_ms, struct drarun_error *err)
{
    return error_kind(err, DRARUN_ERR_TIMEOUT, ETIMEDOUT, "the job %s has not ended within %g s",
                      job, (double)timeout_ms / 1000);
}

static void say_why_not_read(const struct follow_result_facts *f, struct buf *why)
{
    if (f->trouble.code)
        buf_add_str(why, f->trouble.text);
    else if (f->leader_is_gone)
        buf_printf(why, "pod %s, whose log has it, is gone", f->leader);
    else if (f->log_err.code)
        buf_add_str(why, f->log_err.text);
    else
        buf_printf(why, "no log data came from pod %s for %d s", f->leader ? f->leader : "?",
                   FOLLOW_END_SILENT_MS / 1000);
}

static int not_read(const struct follow_result_facts *f, struct drarun_error *err)
{
    struct buf why = BUF_INIT;
    say_why_not_read(f, &why);
    int rc = error_kind(err, DRARUN_ERR_INFRASTRUCTURE, EIO,
                        "the output of job %s was not read to its end: %s; drarun logs %s shows "
                        "what can still be read%s",
                        f->job, why.data ? why.data : "?", f->job,
                        f->ended && f->exit_status == 0 ? " (its ranks have succeeded)" : "");
    buf_done(&why);
    return rc;
}

/* A status of failure is told in any case: that of success goes for the output, too. */
static int result_of_end(const struct follow_result_facts *f, struct drarun_error *err)
{
    struct drarun_error lost = {0};
    bool whole = f->end == FOLLOW_END_READ;
    if (!whole && f->exit_status == 0 && !f->interrupted)
        return not_read(f, err);
    if (!whole && f->exit_status == 0)
        return follow_interrupted(f->job, err);
    say_cause(f);
    if (!whole && !f->interrupted && not_read(f, &lost) < 0)
        log_note("%s", lost.text);
    return 0;
}

static int result_of_log(const struct follow_result_facts *f, struct drarun_error *err)
{
    if (f->interrupted)
        return follow_interrupted(f->job, err);
    bool lost = f->ended ? f->end == FOLLOW_END_LOST : f->half_read;
    return lost ? not_read(f, err) : 0;
}

int follow_result_judge(const struct follow_result_facts *f, int *ret_status,
                        struct drarun_error *err)
{
    *ret_status = f->ended && !f->once ? f->exit_status : 0;
    if (f->runs)
        return 0;
    if (f->trouble.code && (f->once || !f->ended))
        return error_kind(err, f->trouble.kind, f->trouble.code, "%s", f->trouble.text);
    enum drarun_errkind kind = f->signo ? DRARUN_ERR_INTERRUPTED : DRARUN_ERR_INFRASTRUCTURE;
    int left = f->signo ? 128 + abs(f->signo) : error_exit_status(kind);
    int rc = 0;
    if (f->once)
        rc = result_of_log(f, err);
    else if (f->ended)
        rc = result_of_end(f, err);
    else if (f->gone)
        rc = error_kind(err, kind, ENOENT, "the job %s was deleted", f->job);
    else if (f->signo || f->interrupted)
        rc = follow_interrupted(f->job, err);
    else
        rc = follow_timed_out(f->job, f->timeout_ms, err);
    if (rc < 0)
        *ret_status = left;
    return rc;
}
