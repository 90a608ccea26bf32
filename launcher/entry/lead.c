/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/entry/lead.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "jobs/outcome/cause.h"
#include "jobs/spec/spec_words.h"
#include "launcher/job/identity.h"
#include "launcher/job/job.h"
#include "launcher/job/plan.h"
#include "launcher/programs/remote.h"
#include "launcher/job/report.h"
#include "launcher/streams/console.h"
#include "launcher/job/request.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/inspect/inspect.h"
#include "lib/wire/dial.h"

#define RADIX 8
#define KILL_AFTER_MS 5000
#define GRACE_MS                                                                                   \
    28000 /* of the API's default of 30 s, so that the report of the end still gets out */
#define ROUND_MS                                                                                   \
    20000 /* then names are looked up again: a pod that was replaced has another address */
#define PAUSE_MS 500
#define UNKNOWN_SHOWN 8

struct lead {
    const struct entry_lead *in;
    uint32_t count;
    int64_t deadline_ms;
    struct event_base *base;
    struct job_spec spec;
    struct strlist look_for, scripts;
    char uid[IDENTITY_UID_SIZE];
    char (*numeric)[REMOTE_ADDRESS_SIZE]; /* by worker; "": not known yet */
    const char **addresses;
    const char **nodes; /* not known */
    struct plan_worker_input *workers;
    bool have_spec;
    bool waiting_told;
};

static void done(struct lead *l)
{
    if (l->have_spec)
        job_spec_done(&l->spec);
    strlist_done(&l->look_for);
    strlist_done(&l->scripts);
    free(l->numeric);
    free(l->addresses);
    free(l->nodes);
    free(l->workers);
    if (l->base)
        event_base_free(l->base);
}

/* ---- the job, as a spec ---- */

static json_t *spec_json(const struct lead *l, uint32_t gpus, bool rdma)
{
    const struct entry_options *o = l->in->options;
    const char *network = o->network ? o->network : rdma ? "rdma" : "any";
    json_t *command = json_array();
    for (char *const *word = o->argv; *word; word++)
        json_array_append_new(command, spec_words_literal(*word));
    const struct spec_role role = {.ranks_per_worker = o->per_worker};
    uint32_t each = request_count_ranks(&role, false, o->argv, gpus);
    json_t *spec = json_pack("{s:i, s:i, s:s, s:o, s:s, s:s}", "workers", (int)l->count,
                             "ranksPerWorker", (int)each, "image", "none", "command", command,
                             "network", network, "launch", o->launch ? o->launch : "pmix");
    if (gpus > 0)
        json_object_set_new(
            spec, "devices",
            json_pack("{s:{s:i, s:s}}", "gpus", "count", (int)gpus, "class", "any"));
    return json_pack("{s:s, s:s, s:{s:s}, s:o}", "apiVersion", SPEC_API_VERSION, "kind", SPEC_KIND,
                     "metadata", "name", "entry", "spec", spec);
}

/* What this pod shows; the others are to show the same, which the preflight sees to. Without GPU
 * and RDMA device nobody has asked for RDMA. */
static int look_here(const struct strlist *look_for, uint32_t *ret_gpus, bool *ret_rdma,
                     struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *probe = NULL;
    int rc = inspect_probe(NULL, look_for, &probe, err);
    if (rc < 0)
        return rc;
    *ret_gpus = (uint32_t)json_array_size(json_object_get(probe, "gpus"));
    *ret_rdma = *ret_gpus > 0 || json_array_size(json_object_get(probe, "visibleIbdevs")) > 0;
    return 0;
}

static int make_spec(struct lead *l, struct drarun_error *err)
{
    uint32_t gpus = 0;
    bool rdma = false;
    int rc = look_here(&l->look_for, &gpus, &rdma, err);
    if (rc < 0)
        return rc;
    CLEANUP(json_decrefp) json_t *json = spec_json(l, gpus, rdma);
    cleanup_free char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    if (!text)
        return error_set(err, ENOMEM, "out of memory, or the program's words are no UTF-8");
    rc = spec_parse("drarun join", text, strlen(text), &l->spec, err);
    l->have_spec = rc == 0;
    return rc;
}

static int make(struct lead *l, struct drarun_error *err)
{
    l->numeric = calloc(l->count, sizeof *l->numeric);
    l->addresses = calloc(l->count, sizeof *l->addresses);
    l->nodes = calloc(l->count, sizeof *l->nodes);
    l->workers = calloc(l->count, sizeof *l->workers);
    l->base = event_base_new();
    if (!l->numeric || !l->addresses || !l->nodes || !l->workers || !l->base)
        return error_set(err, ENOMEM, "out of memory");
    int rc = identity_make(l->uid, err);
    if (rc == 0)
        rc = job_plan_look_for(NULL, &l->look_for, &l->scripts, err);
    return rc < 0 ? rc : make_spec(l, err);
}

/* ---- until all are there ---- */

/* With hostNetwork, of which a pod does not know, a second job on a node needs another port than
 * the first: such a job needs ports of its own for all that its ranks share. */
static bool has_own_ports(const struct rendezvous *rendezvous)
{
    char host[256];
    for (size_t i = 0; i < rendezvous->addresses.count; i++) {
        uint16_t port = ENTRY_PORT;
        address_split(rendezvous->addresses.items[i], host, sizeof host, &port, NULL);
        if (port != ENTRY_PORT)
            return true;
    }
    return false;
}

static const char *peer(const struct lead *l, uint32_t worker)
{
    return l->in->rendezvous->addresses.items[worker];
}

/* The process may be the container's first, for which the kernel has no default: between two tries
 * these are blocked and waited for, and within one the engine has them. */
static sigset_t end_signals(void)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGHUP);
    return ends;
}

static void hold_signals(int how)
{
    const sigset_t ends = end_signals();
    sigprocmask(how, &ends, NULL);
}

/* Whether there is no time left, or a signal waits for rest(). */
static bool is_over(const struct lead *l)
{
    sigset_t pending;
    sigpending(&pending);
    return clock_ms() >= l->deadline_ms || sigismember(&pending, SIGTERM) ||
           sigismember(&pending, SIGINT) || sigismember(&pending, SIGHUP);
}

/* Of the names that have no address yet. A name server that does not answer takes seconds for each:
 * a try that is slow ends with the time, or with a signal. */
static uint32_t look_up(struct lead *l, struct buf *why)
{
    uint32_t unknown = 0;
    int64_t slow_ms = clock_ms() + PAUSE_MS;
    for (uint32_t i = 0; i < l->count; i++) {
        struct drarun_error err = {0};
        l->addresses[i] = l->numeric[i];
        if (l->numeric[i][0])
            continue;
        bool over = clock_ms() >= slow_ms && is_over(l);
        if (!over && remote_api()->resolve(peer(l, i), l->numeric[i], &err) == 0)
            continue;
        l->numeric[i][0] = '\0';
        if (unknown < UNKNOWN_SHOWN)
            buf_printf(why, "%sworker %u: %s", unknown ? "; " : "", i,
                       err.text[0] ? err.text : "its name was not looked up yet");
        unknown++;
    }
    if (unknown > UNKNOWN_SHOWN)
        buf_printf(why, "; and %u more", unknown - UNKNOWN_SHOWN);
    return unknown;
}

/* A signal that ends us, 0 when none came. */
static int rest(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    const sigset_t ends = end_signals();
    int signo = sigtimedwait(&ends, NULL, &pause);
    return signo > 0 ? signo : 0;
}

/* The engine may have reaped it. */
static bool agent_lives(const struct lead *l)
{
    return waitpid(l->in->agent, NULL, WNOHANG) == 0;
}

/* Pauses between two tries; *ret_status is set when a signal ends the waiting. */
static int pause_waiting(struct lead *l, const char *why, int *ret_status, struct drarun_error *err)
{
    if (!l->waiting_told)
        log_note("waits for the others: %s", why);
    l->waiting_told = true;
    int signo = rest();
    if (signo)
        *ret_status = 128 + signo;
    if (!agent_lives(l))
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, ECHILD,
                          "our own drarun-worker has ended");
    return 0;
}

/* Until every name has an address; those of an earlier round may be of pods that were replaced. */
static int gather_addresses(struct lead *l, int *ret_status, struct drarun_error *err)
{
    memset(l->numeric, 0, l->count * sizeof *l->numeric);
    for (;;) {
        CLEANUP(buf_done) struct buf why = BUF_INIT;
        if (look_up(l, &why) == 0)
            return 0;
        if (clock_ms() >= l->deadline_ms)
            return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, EHOSTUNREACH,
                              "not all peers have come within %" PRId64
                              " s (--start-timeout): %s: do their pods run, and is the headless "
                              "Service there?",
                              l->in->options->start_timeout_ms / 1000, why.data ? why.data : "");
        int rc = pause_waiting(l, why.data ? why.data : "", ret_status, err);
        if (rc < 0 || *ret_status >= 0)
            return rc;
    }
}

/* ---- the ranks ---- */

static int on_prepare(void *arg, struct job *job, struct drarun_error *err)
{
    struct lead *l = arg;
    for (uint32_t i = 0; i < l->count; i++)
        l->workers[i] = (struct plan_worker_input){.pod = peer(l, i)};
    const struct job_plan_input input = {.spec = &l->spec,
                                         .workers = l->workers,
                                         .slices_unknown = true,
                                         .warn = l->spec.roles[0].gpus.count > 0};
    return job_plan(job, &input, err);
}

static void on_started(void *arg)
{
    const struct lead *l = arg;
    log_note("%u ranks on %u workers run", l->spec.roles[0].ranks_per_worker * l->count, l->count);
}

/* One try of all agents. *ret_again: not all had come, and there is time. */
static int run_round(struct lead *l, bool *ret_again, int *ret_status, struct drarun_error *err)
{
    const struct entry_options *o = l->in->options;
    int64_t left = l->deadline_ms - clock_ms();
    int64_t limit = left < ROUND_MS ? left : ROUND_MS;
    size_t words = 0;
    while (o->argv[words])
        words++;
    struct request_program program = {
        .argv = o->argv,
        .argc = words,
        .ranks = l->spec.roles[0].ranks_per_worker * l->count,
    };
    const struct request_pods pods = {
        .base = l->base,
        .key = l->in->key,
        .uid = l->uid,
        .attempt = 1,
        .workers = l->count,
        .addresses = l->addresses,
        .look_for = &l->look_for,
        .scripts = &l->scripts,
        .open_nics = l->spec.fabric >= SPEC_FABRIC_OPEN,
        .on_host = has_own_ports(l->in->rendezvous),
        .pods = (const char *const *)l->in->rendezvous->addresses.items,
        .nodes = l->nodes,
        .grace_ms = GRACE_MS,
        .prepare = on_prepare,
        .started = on_started,
        .entry = true,
        .all_tries_ms = left <= ROUND_MS ? o->start_timeout_ms : 0,
        .arg = l,
    };
    const struct console_options console_options = {.label = o->label};
    CLEANUP(console_freep) struct console *console = console_new(&console_options);
    if (!console)
        return error_set(err, ENOMEM, "out of memory");
    const struct job_request request = {
        .programs = &program,
        .program_count = 1,
        .per_worker = o->per_worker,
        .slots = o->slots,
        .oversubscribe = o->oversubscribe,
        .on_rank_failure = o->on_rank_failure,
        .radix = RADIX,
        .bind = o->bind ? o->bind : "none",
        .report_bindings = o->report_bindings,
        .pods = &pods,
        .launch_env = l->spec.launch == SPEC_LAUNCH_ENV,
        .kill_after_ms = KILL_AFTER_MS,
        .start_timeout_ms = limit > 1000 ? limit : 1000,
    };
    struct job *job = job_new(&request, console, -1, NULL, err);
    if (!job)
        return -err->code;
    job_run(job);
    const struct cause *cause = job_cause(job);
    *ret_again = !job_gathered(job) && !job_is_hopeless(job) && pods.all_tries_ms == 0 &&
                 cause_kind(cause) == CAUSE_FAILURE;
    if (!*ret_again) {
        *ret_status = cause_status(cause);
        report_show(&request, job, err);
    } else if (!l->waiting_told) {
        CLEANUP(buf_done) struct buf why = BUF_INIT;
        cause_explain(cause, false, &why);
        log_note("waits for the others: %s", why.data ? why.data : "");
        l->waiting_told = true;
    }
    job_free(job);
    return 0;
}

static int run(struct lead *l, int *ret_status, struct drarun_error *err)
{
    bool again = true;
    int rc = 0;
    while (rc == 0 && again && *ret_status < 0) {
        rc = gather_addresses(l, ret_status, err);
        if (rc < 0 || *ret_status >= 0)
            break;
        hold_signals(SIG_UNBLOCK);
        rc = run_round(l, &again, ret_status, err);
        hold_signals(SIG_BLOCK);
        if (rc == 0 && again && *ret_status < 0)
            rc = pause_waiting(l, "", ret_status, err);
    }
    return rc;
}

int entry_lead(const struct entry_lead *lead, int *ret_status, struct drarun_error *err)
{
    struct lead l = {.in = lead,
                     .count = (uint32_t)lead->rendezvous->addresses.count,
                     .deadline_ms = clock_ms() + lead->options->start_timeout_ms};
    int status = -1;
    hold_signals(SIG_BLOCK);
    setenv("RES_OPTIONS", "timeout:1 attempts:1", 0); /* we try again ourselves */
    int rc = make(&l, err);
    if (rc == 0)
        rc = run(&l, &status, err);
    done(&l);
    if (rc == 0)
        *ret_status = status;
    return rc;
}
