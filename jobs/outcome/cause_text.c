/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a cause, for people and as JSON. */
#include "jobs/outcome/cause.h"

#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>

#include "jobs/outcome/cause_private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* docs/messages.md and `drarun help KIND` have all of it. */
static const struct {
    const char *name, *status, *meaning, *cure;
} kinds[] = {
    [CAUSE_NONE] = {.name = "none"},
    [CAUSE_EXIT] = {"exit", "the rank's", "a rank exited with a status that is not 0",
                    "read the rank's last lines, which the report shows, and drarun logs JOB"},
    [CAUSE_SIGNAL] = {"signal", "128 + signal", "a signal or the kernel's OOM killer ended a rank",
                      "look for a core file, the rank's last lines and the memory limit"},
    [CAUSE_ABORT] = {"abort", "the abort's", "a rank called MPI_Abort, PMIx_Abort or PMI_Abort",
                     "read the rank's last lines: the program says why it aborts"},
    [CAUSE_NO_FINALIZE] = {"no-finalize", "1",
                           "a rank exited with 0 after MPI_Init and without MPI_Finalize",
                           "call MPI_Finalize in every rank before it exits"},
    [CAUSE_NO_INIT] = {"no-init", "1",
                       "a rank exited with 0 without MPI_Init, which other ranks of its program "
                       "called",
                       "call MPI_Init in all ranks of a program or in none"},
    [CAUSE_FAILURE] = {"failure", "the error's",
                       "an agent, a connection or a start failed, or a check refused the job",
                       "the text names what failed, on which worker, and what to do"},
    [CAUSE_TIMEOUT] = {"timeout", "124", "the job did not end within --timeout or timeouts.total",
                       "allow more time, or look at what the ranks do: drarun status JOB"},
    [CAUSE_INTERRUPTED] = {"interrupted", "128 + signal",
                           "the user ended the job, by a signal or drarun cancel",
                           "nothing is wrong"},
    [CAUSE_POD] = {"pod", "depends on how the pod ended", "the cluster ended a worker's pod",
                   "see the next table for how the pod ended"},
    [CAUSE_LAUNCHER] = {"launcher-lost", "70",
                        "the launcher was gone for so long that the agents ended their ranks",
                        "look at the launcher's pod and node; restarts: N in the spec runs the "
                        "job again"},
    [CAUSE_DONE] = {.name = "done"},
};

const char *cause_kind_name(enum cause_kind kind)
{
    return kinds[kind].name;
}

const char *cause_kind_status(enum cause_kind kind)
{
    return kinds[kind].status;
}

const char *cause_kind_meaning(enum cause_kind kind)
{
    return kinds[kind].meaning;
}

const char *cause_kind_cure(enum cause_kind kind)
{
    return kinds[kind].cure;
}

/* ---- parts of sentences ---- */

static void add_signal(int signo, struct buf *out)
{
    const char *name = sigabbrev_np(signo);
    buf_printf(out, "signal %d", signo);
    if (name)
        buf_printf(out, " (SIG%s)", name);
}

static void add_duration(int64_t us, struct buf *out)
{
    if (us < 1000000)
        buf_printf(out, "%" PRId64 " ms", us / 1000);
    else if (us < 100 * INT64_C(1000000))
        buf_printf(out, "%.2f s", (double)us / 1e6);
    else
        buf_printf(out, "%" PRId64 " s", us / 1000000);
}

/* "rank 3 of program 2 on worker 1 (node-b)" */
static void add_rank(const struct cause *cause, const struct cause_story *story, struct buf *out)
{
    buf_printf(out, "rank %u", story->rank);
    if (cause->map->apps > 1)
        buf_printf(out, " of program %u", rankmap_place(cause->map, story->rank).app + 1);
    buf_printf(out, " on worker %u", story->worker);
    if (story->host)
        buf_printf(out, " (%s)", story->host);
}

/* " after 1.24 s" behind what comes before it, where that is known. */
static void add_after(const struct cause_story *story, const char *before, struct buf *out)
{
    if (story->ran_us <= 0)
        return;
    buf_printf(out, "%s after ", before);
    add_duration(story->ran_us, out);
}

static void add_death(const struct cause_story *story, struct buf *out)
{
    buf_add_str(out, story->oom ? " was ended by the kernel's OOM killer, " : " was killed by ");
    add_signal(story->signo, out);
    if (story->core)
        buf_add_str(out, ", core dumped");
    add_after(story, ",", out);
}

static const char *api_name(enum cause_api api)
{
    return api == CAUSE_API_PMI1 ? "PMI-1" : "PMIx";
}

static void add_deed(const struct cause *cause, const struct cause_story *story, struct buf *out)
{
    switch (story->kind) {
    case CAUSE_EXIT:
        buf_printf(out, " exited with status %d", story->code);
        add_after(story, "", out);
        return;
    case CAUSE_SIGNAL:
        add_death(story, out);
        return;
    case CAUSE_ABORT:
        buf_printf(out, " aborted the job with status %d", story->code);
        add_after(story, "", out);
        return;
    case CAUSE_NO_FINALIZE:
        buf_add_str(out, " exited with status 0");
        add_after(story, "", out);
        buf_add_str(out, " without finalizing");
        return;
    case CAUSE_NO_INIT:
        buf_add_str(out, " exited with status 0");
        add_after(story, "", out);
        buf_printf(out, " without connecting to %s, as other ranks did",
                   api_name(cause->apps[rankmap_place(cause->map, story->rank).app].api));
        return;
    default:
        return;
    }
}

static void add_launcher(const struct cause_story *story, struct buf *out)
{
    buf_add_str(out, "the launcher");
    if (story->pod)
        buf_printf(out, " %s", story->pod);
    buf_add_str(out, " was lost, and its ranks were ended");
}

/* One sentence without its newline. */
static void add_sentence(const struct cause *cause, const struct cause_story *story,
                         struct buf *out)
{
    if (cause_has_rank(story->kind)) {
        add_rank(cause, story, out);
        add_deed(cause, story, out);
        if (story->text)
            buf_printf(out, ": %s", story->text);
    } else if (story->kind == CAUSE_FAILURE) {
        buf_add_str(out, story->text ? story->text : "the job failed");
    } else if (story->kind == CAUSE_TIMEOUT) {
        buf_add_str(out, "the job did not end within ");
        add_duration(story->limit_ms * 1000, out);
    } else if (story->kind == CAUSE_INTERRUPTED) {
        buf_add_str(out, "the job was interrupted by ");
        add_signal(story->signo, out);
    } else if (story->kind == CAUSE_POD) {
        cause_pod_sentence(story, out);
    } else if (story->kind == CAUSE_LAUNCHER) {
        add_launcher(story, out);
    }
}

/* The first cause is one of the ranks that failed. */
static bool is_first(const struct cause *cause, const struct cause_story *failed)
{
    return cause_has_rank(cause->first.kind) && cause->first.rank == failed->rank;
}

static uint32_t count_others(const struct cause *cause)
{
    uint32_t others = cause->failed_count;
    for (uint32_t i = 0; i < cause->failed_count; i++)
        others -= is_first(cause, &cause->failed[i]);
    return others;
}

/* The sentence of the job's end. typed: with the option that has set its limit. */
static void add_first(const struct cause *cause, bool typed, struct buf *out)
{
    uint32_t others = count_others(cause);
    add_sentence(cause, &cause->first, out);
    if (typed && cause->first.kind == CAUSE_TIMEOUT)
        buf_add_str(out, " (--timeout)");
    if (others > 0 && others < cause->failed_count)
        buf_printf(out, ", and %u more rank%s failed", others, others > 1 ? "s" : "");
    else if (others > 0)
        buf_printf(out, "; before that, %u rank%s failed", others, others > 1 ? "s" : "");
}

/* ---- advice ---- */

static const struct {
    int signo;
    const char *text;
} signal_advice[] = {
    {SIGKILL, "drarun did not send it: a memory limit of the container, a limit of CPU time "
              "(ulimit -t), the container's runtime or another process did"},
    {SIGTERM, "drarun did not send it: another process or the container's runtime did"},
    {SIGPIPE, "it wrote to a pipe or socket whose reader had gone: a closed standard output, as "
              "with \"| head\", or a peer"},
    {SIGILL, "the program holds an instruction that this CPU lacks, as when it was built with "
             "-march=native on another machine, or jumped into data"},
    {SIGBUS, "often /dev/shm is full, where MPI libraries and NCCL keep shared memory, or a "
             "mapped file was cut short"},
    {SIGSYS, "a seccomp filter, such as the container's, forbids a system call that it made"},
    {SIGXCPU, "it used up its limit of CPU time (ulimit -t)"},
    {SIGXFSZ, "it reached the limit on the size of a file (ulimit -f)"},
};

const char *cause_signal_advice(int signo)
{
    for (size_t i = 0; i < ARRAY_LEN(signal_advice); i++)
        if (signal_advice[i].signo == signo)
            return signal_advice[i].text;
    return NULL;
}

static void advise_signal(const struct cause *cause, const struct cause_story *story,
                          struct buf *out)
{
    if (story->oom) {
        buf_add_str(out, "the ranks need more memory than their control group or machine has");
        return;
    }
    if (story->signo == cause->warned_signo) {
        buf_add_str(out, "drarun sent it ");
        add_duration(cause->warned_ms * 1000, out);
        buf_add_str(out, " before the job's timeout: the program must handle it");
        return;
    }
    const char *advice = cause_signal_advice(story->signo);
    buf_add_str(out, advice ? advice : "");
}

static void advise_exit(int code, struct buf *out)
{
    if (code == 126) {
        buf_add_str(out, "126 is a shell's status for a command that it found and could not "
                         "execute");
    } else if (code == 127) {
        buf_add_str(out, "127 is a shell's status for a command that it did not find, and the "
                         "dynamic linker's for a shared library");
    } else if (code > 128 && sigabbrev_np(code - 128)) {
        buf_printf(out, "%d is a shell's status for a program that was killed by ", code);
        add_signal(code - 128, out);
    }
}

/* One clause, without what surrounds it; nothing when no pattern is known. */
static void add_advice(const struct cause *cause, struct buf *out)
{
    const struct cause_story *first = &cause->first;
    if (first->advice)
        buf_add_str(out, first->advice);
    else if (first->kind == CAUSE_SIGNAL)
        advise_signal(cause, first, out);
    else if (first->kind == CAUSE_EXIT)
        advise_exit(first->code, out);
    else if (first->kind == CAUSE_NO_FINALIZE)
        buf_add_str(out, "every rank of an MPI program must call MPI_Finalize before it exits; the "
                         "job's status is 1");
    else if (first->kind == CAUSE_NO_INIT)
        buf_add_str(out, "the others would wait for it forever: either all ranks of a program "
                         "call MPI_Init or none does; the job's status is 1");
    else if (first->kind == CAUSE_POD && cause_pod_advice(first->end))
        buf_add_str(out, cause_pod_advice(first->end));
    if (out->len == 0 && cause->needed &&
        (first->kind == CAUSE_EXIT || first->kind == CAUSE_SIGNAL))
        buf_printf(out,
                   "other ranks could wait for it, so it ended the job: ranks may only fail (%s) "
                   "without MPI_Init or after MPI_Finalize",
                   cause->continues);
}

/* ---- for people ---- */

static void add_lines(const char *text, struct buf *out)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        buf_add_str(out, length > 0 ? "    " : "");
        buf_add(out, text, length);
        buf_add_str(out, "\n");
        text += length + (text[length] == '\n');
    }
}

static void explain_singletons(const struct cause *cause, struct buf *out)
{
    buf_printf(out,
               "%u of %u ranks had an MPI library loaded and none connected to drarun: each "
               "seems to have run as a job of one rank\n"
               "  was this MPI built without PMIx and PMI-1, or does the program hold an MPI of "
               "another kind than the one that it calls?\n",
               cause->singletons, cause->map->ranks);
}

static void explain_failures(const struct cause *cause, struct buf *out)
{
    uint32_t others = count_others(cause), shown = 0;
    if (others > 0)
        buf_add_str(out, "  other ranks that failed:\n");
    for (uint32_t i = 0; i < cause->failed_count && shown < CAUSE_FAILED_SHOWN; i++) {
        if (is_first(cause, &cause->failed[i]))
            continue;
        buf_add_str(out, "    ");
        add_sentence(cause, &cause->failed[i], out);
        buf_add_str(out, "\n");
        shown++;
    }
    if (others > shown)
        buf_printf(out, "    and %u more: --report FILE lists all of them\n", others - shown);
}

void cause_explain_failed(const struct cause *cause, uint32_t index, struct buf *out)
{
    if (index < cause->failed_count)
        add_sentence(cause, &cause->failed[index], out);
}

void cause_explain(const struct cause *cause, bool typed, struct buf *out)
{
    const struct cause_story *first = &cause->first;
    if (cause_were_singletons(cause))
        explain_singletons(cause, out);
    if (first->kind == CAUSE_NONE || first->kind == CAUSE_DONE)
        return;
    struct buf advice = BUF_INIT;
    add_first(cause, typed, out);
    buf_add_str(out, "\n");
    add_advice(cause, &advice);
    if (advice.len > 0)
        buf_printf(out, "  %s\n", advice.data);
    buf_done(&advice);
    if (cause->crash.kind != CAUSE_NONE) {
        buf_add_str(out, "  later became known: ");
        add_sentence(cause, &cause->crash, out);
        buf_add_str(out, "\n");
    }
    if (first->tail && first->tail[0]) {
        buf_add_str(out, "  its last lines on stderr:\n");
        add_lines(first->tail, out);
    }
    explain_failures(cause, out);
}

/* ---- as JSON ---- */

/* Sets a string unless it is NULL; -1 without memory, as jansson's setters. */
static int set_text(json_t *object, const char *key, const char *text)
{
    return text ? json_object_set_new(object, key, json_string(text)) : 0;
}

static int set_built(json_t *object, const char *key, struct buf *text)
{
    int rc = text->failed ? -1 : set_text(object, key, text->len > 0 ? text->data : NULL);
    buf_done(text);
    return rc;
}

static int set_rank(json_t *object, const struct cause_story *story)
{
    int rc = json_object_set_new(object, "rank", json_integer(story->rank));
    rc |= json_object_set_new(object, "worker", json_integer(story->worker));
    rc |= set_text(object, "host", story->host);
    if (story->kind == CAUSE_SIGNAL) {
        rc |= json_object_set_new(object, "core", json_boolean(story->core));
        rc |= json_object_set_new(object, "oom", json_boolean(story->oom));
    } else {
        rc |= json_object_set_new(object, "exit", json_integer(story->code));
    }
    if (story->ran_us > 0)
        rc |= json_object_set_new(object, "ran_s", json_real((double)story->ran_us / 1e6));
    return rc | set_text(object, "stderr", story->tail);
}

static int set_pod(json_t *object, const struct cause_story *story)
{
    int rc = json_object_set_new(object, "worker", json_integer(story->worker));
    rc |= set_text(object, "end", pod_end_name(story->end));
    rc |= set_text(object, "pod", story->pod);
    rc |= set_text(object, "host", story->host);
    if (story->code >= 0)
        rc |= json_object_set_new(object, "exit", json_integer(story->code));
    return rc;
}

static int fill_cause(json_t *object, const struct cause *cause)
{
    const struct cause_story *first = &cause->first;
    struct buf sentence = BUF_INIT, advice = BUF_INIT, crash = BUF_INIT;
    add_first(cause, false, &sentence);
    add_advice(cause, &advice);
    if (cause->crash.kind != CAUSE_NONE)
        add_sentence(cause, &cause->crash, &crash);
    int rc = set_text(object, "kind", kinds[first->kind].name);
    rc |= set_built(object, "text", &sentence);
    rc |= set_built(object, "advice", &advice);
    rc |= set_built(object, "also", &crash);
    if (first->signo != 0)
        rc |= json_object_set_new(object, "signal", json_integer(first->signo));
    if (first->kind == CAUSE_FAILURE)
        rc |= set_text(object, "error", error_kind_name(first->error));
    if (first->kind == CAUSE_FAILURE && first->of_worker) {
        rc |= json_object_set_new(object, "worker", json_integer(first->worker));
        rc |= set_text(object, "host", first->host);
    }
    if (cause_has_rank(first->kind))
        rc |= set_rank(object, first);
    if (first->kind == CAUSE_POD)
        rc |= set_pod(object, first);
    return rc;
}

static json_t *failure_json(const struct cause *cause, const struct cause_story *failed)
{
    json_t *object = json_object();
    struct buf sentence = BUF_INIT;
    add_sentence(cause, failed, &sentence);
    int rc = set_text(object, "kind", kinds[failed->kind].name);
    rc |= set_built(object, "text", &sentence);
    rc |= set_text(object, "advice", failed->advice);
    if (failed->signo != 0)
        rc |= json_object_set_new(object, "signal", json_integer(failed->signo));
    rc |= set_rank(object, failed);
    if (rc == 0)
        return object;
    json_decref(object);
    return NULL;
}

static int add_failures(const struct cause *cause, json_t *report)
{
    json_t *list = json_array();
    int rc = json_object_set_new(report, "failed", json_integer(cause->failed_count));
    for (uint32_t i = 0; i < cause->failed_count; i++)
        rc |= json_array_append_new(list, failure_json(cause, &cause->failed[i]));
    return rc | json_object_set_new(report, "failures", list);
}

struct json_t *cause_json(const struct cause *cause)
{
    json_t *report = json_object();
    bool good = cause->first.kind == CAUSE_NONE || cause->first.kind == CAUSE_DONE;
    json_t *inner = good ? json_null() : json_object();
    int rc = json_is_object(inner) ? fill_cause(inner, cause) : 0;
    rc |= json_object_set_new(report, "status", json_integer(cause_status(cause)));
    rc |= json_object_set_new(report, "cause", inner);
    rc |= json_object_set_new(report, "ranks", json_integer(cause->map->ranks));
    rc |= json_object_set_new(report, "ended", json_integer(cause->ended_count));
    if (cause_were_singletons(cause))
        rc |= json_object_set_new(report, "singletons", json_integer(cause->singletons));
    if (cause->failed_count > 0)
        rc |= add_failures(cause, report);
    if (rc != 0) {
        json_decref(report);
        return NULL;
    }
    return report;
}

/* A kind of another release is one of infrastructure. */
static enum drarun_errkind error_of_name(const char *name)
{
    for (int kind = DRARUN_ERR_USAGE; name && kind <= DRARUN_ERR_TIMEOUT; kind++)
        if (strcmp(name, error_kind_name((enum drarun_errkind)kind)) == 0)
            return (enum drarun_errkind)kind;
    return DRARUN_ERR_INFRASTRUCTURE;
}

static bool is_reported(const json_t *cause, enum cause_kind kind)
{
    const char *name = json_string_value(json_object_get(cause, "kind"));
    return name && strcmp(name, kinds[kind].name) == 0;
}

enum drarun_errkind cause_reported_error(const json_t *cause)
{
    if (is_reported(cause, CAUSE_TIMEOUT))
        return DRARUN_ERR_TIMEOUT;
    if (is_reported(cause, CAUSE_INTERRUPTED))
        return DRARUN_ERR_INTERRUPTED;
    if (is_reported(cause, CAUSE_FAILURE))
        return error_of_name(json_string_value(json_object_get(cause, "error")));
    return DRARUN_ERR_NONE;
}

bool cause_reported_rank(const json_t *cause)
{
    static const enum cause_kind of_ranks[] = {CAUSE_EXIT, CAUSE_SIGNAL, CAUSE_ABORT,
                                               CAUSE_NO_FINALIZE, CAUSE_NO_INIT};
    for (size_t i = 0; i < ARRAY_LEN(of_ranks); i++)
        if (is_reported(cause, of_ranks[i]))
            return true;
    return false;
}

bool cause_reported_launcher(const json_t *cause)
{
    return is_reported(cause, CAUSE_LAUNCHER);
}
