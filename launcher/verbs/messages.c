/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/verbs/messages.h"

#include <stdio.h>
#include <string.h>

#include "jobs/derive/warnings/warnings.h"
#include "jobs/outcome/cause.h"
#include "jobs/preflight/preflight.h"
#include "jobs/status/reason.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/number.h"

struct message {
    const char *code, *also; /* also: another way in which it is written; NULL: none */
    const char *extra;       /* in the table's third column; NULL: it has none */
    const char *meaning, *cure;
};

typedef void (*message_fn)(const struct message *message, void *arg);

/* ---- the tables ---- */

static void each_warning(message_fn fn, void *arg)
{
    for (int i = WARNING_NONE + 1; i < WARNING_COUNT; i++)
        fn(&(struct message){.code = warning_name((enum warning_code)i),
                             .meaning = warning_meaning((enum warning_code)i),
                             .cure = warning_cure((enum warning_code)i)},
           arg);
}

static void each_check(message_fn fn, void *arg)
{
    for (int i = PREFLIGHT_NONE + 1; i < PREFLIGHT_COUNT; i++)
        fn(&(struct message){.code = preflight_name((enum preflight_code)i),
                             .meaning = preflight_meaning((enum preflight_code)i),
                             .cure = preflight_cure((enum preflight_code)i)},
           arg);
}

static void each_cause(message_fn fn, void *arg)
{
    for (int i = CAUSE_NONE + 1; i < CAUSE_DONE; i++) {
        enum cause_kind kind = (enum cause_kind)i;
        char reason[REASON_SIZE];
        reason_of_words(cause_kind_name(kind), reason, sizeof reason);
        fn(&(struct message){cause_kind_name(kind), reason, cause_kind_status(kind),
                             cause_kind_meaning(kind), cause_kind_cure(kind)},
           arg);
    }
}

static void each_pod_end(message_fn fn, void *arg)
{
    for (int i = POD_END_NONE + 1; i <= POD_END_UNKNOWN; i++) {
        enum pod_end end = (enum pod_end)i;
        char status[16], meaning[160];
        snprintf(status, sizeof status, "%d", cause_pod_end_status(end));
        snprintf(meaning, sizeof meaning, "the worker %s", cause_pod_deed(end));
        fn(&(struct message){.code = pod_end_name(end),
                             .extra = status,
                             .meaning = meaning,
                             .cure = cause_pod_cure(end)},
           arg);
    }
}

static void each_reason(message_fn fn, void *arg, unsigned int places)
{
    for (int i = REASON_NONE + 1; i < REASON_COUNT; i++) {
        enum reason reason = (enum reason)i;
        unsigned int in = reason_places(reason) & places;
        const char *where = in == REASON_OF_LAUNCHER ? "Job"
                            : in == REASON_OF_DRAJOB ? "DraJob"
                                                     : "Job, DraJob";
        if (in)
            fn(&(struct message){.code = reason_name(reason),
                                 .extra = places == REASON_OF_STATUS ? NULL : where,
                                 .meaning = reason_meaning(reason),
                                 .cure = reason_cure(reason)},
               arg);
    }
}

static void each_event(message_fn fn, void *arg)
{
    each_reason(fn, arg, REASON_OF_LAUNCHER | REASON_OF_DRAJOB);
}

static void each_condition(message_fn fn, void *arg)
{
    each_reason(fn, arg, REASON_OF_STATUS);
}

/* In the order of the numbers; what has no kind stands where it belongs. */
static void each_status(message_fn fn, void *arg)
{
    fn(&(struct message){.code = "0",
                         .extra = "",
                         .meaning = "every rank succeeded, or those that spec.success names",
                         .cure = "nothing"},
       arg);
    for (int status = 1; status < 256; status++) {
        char code[16];
        snprintf(code, sizeof code, "%d", status);
        if (status == 1) /* also CAUSE_NO_FINALIZE, CAUSE_NO_INIT */
            fn(&(struct message){.code = code,
                                 .extra = "",
                                 .meaning = "a check of doctor, accept, bench or one of its verbs "
                                            "failed; of a job, a rank exited with it, or without "
                                            "MPI_Finalize or MPI_Init",
                                 .cure = "the line that failed says why; of a job, read the rank's "
                                         "last lines, which the report shows"},
               arg);
        if (status == 66) /* verb_exit_status */
            fn(&(struct message){.code = code,
                                 .extra = "",
                                 .meaning = "something that was named does not exist: a job, a "
                                            "namespace, a kubeconfig",
                                 .cure = "drarun list -A shows the jobs"},
               arg);
        for (int i = DRARUN_ERR_USAGE; i <= DRARUN_ERR_TIMEOUT; i++) {
            enum drarun_errkind kind = (enum drarun_errkind)i;
            if (error_exit_status(kind) == status)
                fn(&(struct message){.code = code,
                                     .extra = error_kind_name(kind),
                                     .meaning = error_kind_meaning(kind),
                                     .cure = error_kind_cure(kind)},
                   arg);
        }
    }
}

static const struct table {
    const char *title, *intro;
    const char *columns[4]; /* up to NULL */
    void (*each)(message_fn fn, void *arg);
} tables[] = {
    {"Warnings about devices and the network",
     "`drarun plan`, `drarun env` and the launcher's log print these as `CODE: details`, with the "
     "worker. A warning means that the allocated devices will not give the job its best speed or "
     "safety. Where the line says `refused`, the job ends with status 65 or 76. Code: "
     "`jobs/derive`; rules: [011](design/011-derivation.md).",
     {"code", "meaning", "what to do"},
     each_warning},
    {"Checks before the ranks start",
     "The launcher checks what each worker's agent finds in its pod. A refusal ends the job with "
     "status 76; a warning is printed, and `onPreflightWarning: fail` makes it a refusal. `drarun "
     "describe JOB` shows the findings with their codes. Code: `jobs/preflight`; limits and "
     "sentences: [018](design/018-inspection.md).",
     {"code", "meaning", "what to do"},
     each_check},
    {"Why a job ended",
     "The first cause, as `cause.kind` of the report (`--output json`, `--report`, `drarun status "
     "-o json`), and in the second form as `status.reason` of a DraJob. Code: `jobs/outcome`; "
     "which of several events counts: [006](design/006-ends.md).",
     {"cause", "exit status", "meaning", "what to do"},
     each_cause},
    {"How the cluster ended a worker",
     "`cause.end` of the report where `cause.kind` is `pod`; `failurePolicy.rules` of a spec "
     "names the same words. Code: `jobs/outcome`; what the next attempt keeps: "
     "[006](design/006-ends.md).",
     {"end", "exit status", "meaning", "what to do"},
     each_pod_end},
    {"Reasons of Events",
     "`kubectl describe` and `kubectl get events` show them, of the launcher's Job or of the "
     "DraJob. Code: `jobs/status/reason`.",
     {"reason", "of", "meaning", "what to do"},
     each_event},
    {"Reasons of conditions",
     "In the conditions of a DraJob, and in its `status.reason`. After the end the reason is the "
     "cause of the end (above). Code: `jobs/status`; "
     "the controller: [035](design/035-drajob-objects.md).",
     {"reason", "meaning", "what to do"},
     each_condition},
    {"Exit statuses",
     "Any other status from 1 to 255 is that of the first rank that failed, and 128 + N means "
     "that signal N ended it. The word is `cause.error` of the report. Code: `lib/base/error`.",
     {"status", "error", "meaning", "what to do"},
     each_status},
};

/* ---- the page ---- */

static void add_cell(const char *text, struct buf *out)
{
    buf_add_str(out, " ");
    for (; *text; text++)
        buf_printf(out, *text == '|' || *text == '<' ? "\\%c" : "%c", *text);
    buf_add_str(out, " |");
}

static void add_row(const struct message *message, void *arg)
{
    struct buf *out = arg;
    buf_printf(out, "| `%s`", message->code);
    if (message->also)
        buf_printf(out, ", `%s`", message->also);
    buf_add_str(out, " |");
    if (message->extra)
        add_cell(message->extra, out);
    add_cell(message->meaning, out);
    add_cell(message->cure, out);
    buf_add_str(out, "\n");
}

void messages_page(struct buf *out)
{
    buf_add_str(out,
                "# Messages\n\nWritten by `scripts/message-page` from the program's own tables; "
                "`drarun help CODE` shows the entry of one code, such as `NO_RDMA_NIC`, "
                "`TcpFallback`, `no-finalize` or `76`.\n");
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        const struct table *table = &tables[i];
        buf_printf(out, "\n## %s\n\n%s\n\n|", table->title, table->intro);
        for (size_t k = 0; k < ARRAY_LEN(table->columns) && table->columns[k]; k++)
            add_cell(table->columns[k], out);
        buf_add_str(out, "\n|");
        for (size_t k = 0; k < ARRAY_LEN(table->columns) && table->columns[k]; k++)
            buf_add_str(out, "---|");
        buf_add_str(out, "\n");
        table->each(add_row, out);
    }
}

/* ---- one code ---- */

struct search {
    const char *code;
    const struct table *table;
    struct buf *out;
    bool found;
};

static void add_found(const struct message *message, void *arg)
{
    struct search *search = arg;
    if (strcasecmp(message->code, search->code) != 0 &&
        (!message->also || strcasecmp(message->also, search->code) != 0))
        return;
    buf_printf(search->out, "%s%s (%s)\n", search->found ? "\n" : "", message->code,
               search->table->title);
    if (message->extra && *message->extra)
        buf_printf(search->out, "  %s: %s\n", search->table->columns[1], message->extra);
    buf_printf(search->out, "  meaning: %s\n  what to do: %s\n", message->meaning, message->cure);
    search->found = true;
}

/* A rank's own status, which no table has. */
static bool add_status_of_rank(const char *code, struct buf *out)
{
    int64_t status = 0;
    if (number_parse("", code, 1, 255, &status, NULL) < 0)
        return false;
    int signo = status > 128 ? (int)status - 128 : 0;
    const char *name = signo ? sigabbrev_np(signo) : NULL;
    const char *advice = name ? cause_signal_advice(signo) : NULL;
    buf_printf(out, "%s (Exit statuses)\n  meaning: ", code);
    if (name)
        buf_printf(out, "signal %d (SIG%s) ended the first rank that failed\n", signo, name);
    else
        buf_add_str(out, "the first rank that failed exited with it\n");
    if (advice)
        buf_printf(out, "  how it happens: %s\n", advice);
    buf_add_str(out, "  what to do: read the rank's last lines, which the report shows\n");
    return true;
}

bool messages_help(const char *code, struct buf *out)
{
    struct search search = {.code = code, .out = out};
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        search.table = &tables[i];
        search.table->each(add_found, &search);
    }
    return search.found || add_status_of_rank(code, out);
}
