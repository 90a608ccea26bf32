/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/preflight/fabric.h"
#include "launcher/job/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/proctree.h"

#define STATUS_AFTER_MS 2000
#define FILES_MIN 24

static void on_awaited(void *arg, struct buf *text)
{
    const struct job *job = arg;
    int64_t waited = clock_ms() - job->state_since_ms;
    struct buf what = BUF_INIT;
    if (waited < STATUS_AFTER_MS)
        return;
    if (job->state == JOB_CHECKING && job->preflight.reach) {
        buf_printf(text,
                   "drarun: waiting %" PRId64
                   " s: the NICs of neighbouring workers write to each other",
                   waited / 1000);
    } else if (job->state <= JOB_PREPARING) {
        job_describe_awaited(job, "", &what);
        buf_printf(text, "drarun: waiting %" PRId64 " s: %s", waited / 1000,
                   what.data ? what.data : "");
    } else if (job->state == JOB_ENDING) {
        buf_printf(text, "drarun: ending the ranks for %" PRId64 " s: %u of %u workers are done",
                   waited / 1000, job->phases.gone, job->count);
    } else if (job->state == JOB_DRAINING && !output_idle(job->output)) {
        buf_printf(text, "drarun: waiting %" PRId64 " s for someone to read our output",
                   waited / 1000);
    }
    buf_done(&what);
}

static void on_output_idle(void *arg)
{
    job_look(arg);
}

/* ---- making ---- */

/* Its mpirun, and one rank on each other worker that starts what it asks for. */
static int map_mpirun(struct job *job, struct drarun_error *err)
{
    const struct job_request *request = job->request;
    if (request->program_count > 1 || request->programs[0].ranks > 1)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--launch mpirun takes one program, which runs once: give the number of "
                          "processes to your mpirun (-n)");
    if (request_continues(request))
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "%s: your mpirun starts the ranks: use its own option for this",
                          request_continues(request));
    return rankmap_build(&job->count, 1, job->count, 1, &job->map, err);
}

/* Programs with workers of their own. */
static int map_parts(struct job *job, struct drarun_error *err)
{
    const struct job_request *request = job->request;
    cleanup_free struct rank_part *parts = calloc(request->program_count, sizeof *parts);
    if (!parts)
        return error_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < request->program_count; i++)
        parts[i] = (struct rank_part){request->programs[i].ranks, request->programs[i].workers};
    return rankmap_build_parts(parts, request->program_count,
                               request->pods ? request->pods->rank_order : NULL, &job->map, err);
}

static int map_programs(struct job *job, struct drarun_error *err)
{
    const struct job_request *request = job->request;
    if (request->programs[0].workers > 0)
        return map_parts(job, err);
    cleanup_free uint32_t *counts = calloc(request->program_count, sizeof *counts);
    if (!counts)
        return error_set(err, ENOMEM, "out of memory");
    uint32_t each = request->per_worker > 0 ? request->per_worker : 1;
    for (size_t i = 0; i < request->program_count; i++)
        counts[i] = request->programs[i].ranks ? request->programs[i].ranks : job->count * each;
    return rankmap_build_ordered(counts, request->program_count, job->count, request->per_worker,
                                 request->pods ? request->pods->rank_order : NULL, &job->map, err);
}

static int check_stop(const struct job_request *request, struct drarun_error *err)
{
    if (request->launch_mpirun)
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            "--stop-at: your mpirun starts the ranks: use its own options to stop them");
    if (request->launch_env && request->stop_at != DRARUN__WIRE__STOP_AT__STOP_AT_EXEC)
        return error_kind(
            err, DRARUN_ERR_USAGE, EINVAL,
            "--stop-at: launch mode env has no PMIx in which ranks could wait: use --stop-at exec");
    log_note("ranks will wait for a debugger: kill -CONT %d lets them go on", (int)getpid());
    return 0;
}

static void on_peer_failed(void *arg, const struct drarun_error *err)
{
    struct job *job = arg;
    uint32_t rank = 0;
    while (rank < job->map.ranks && job->rank_ended[rank])
        rank++;
    if (rank == job->map.ranks) /* none of them needs it any more */
        return;
    job_fail(job, err);
    if (job->clocks.look)
        job_start_clock(job->clocks.look, 0);
}

static struct job_names *make_names(struct job *job)
{
    const struct job_names_owner owner = {.found = job_on_found, .arg = job};
    const struct meet_owner meet = {.met = job_on_met, .failed = on_peer_failed, .arg = job};
    char self[IDENTITY_PATH_SIZE];
    snprintf(self, sizeof self, "drarun.%s.%u", job->identity.uid, job->identity.attempt);
    return job_names_new(job->base, self, &owner, &meet);
}

static int map_ranks(struct job *job, struct drarun_error *err)
{
    const struct job_request *request = job->request;
    int rc = request->launch_mpirun ? map_mpirun(job, err) : map_programs(job, err);
    if (rc < 0)
        return rc;
    if (request->stdin_rank >= 0 && (uint32_t)request->stdin_rank >= job->map.ranks)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--stdin %d: the job has ranks 0 to %u",
                          request->stdin_rank, job->map.ranks - 1);
    if (request->stop_at != DRARUN__WIRE__STOP_AT__STOP_AT_NOTHING && check_stop(request, err) < 0)
        return -err->code;
    job->spawning.first_ranks = job->map.ranks;
    job->worlds = request->own_worlds ? job->map.apps : 1;
    job->spawning.hold = job->count > 1 && !request->launch_env && !request->launch_mpirun &&
                         request_may_spawn(request);
    job->spawning.requests = job_spawn_new(job);
    job->names = make_names(job);
    job->rank_ended = calloc(job->map.ranks, 1);
    job->cause = cause_new(&job->map);
    if (!job->rank_ended || !job->cause || !job->spawning.requests || !job->names)
        return error_set(err, ENOMEM, "out of memory");
    if (job_expects_words(job))
        cause_expect_pods(job->cause);
    cause_continue(job->cause, request_continues(request));
    if (request->success_count > 0)
        cause_decide_by(job->cause, request->success_first, request->success_count);
    return 0;
}

static int make_streams(struct job *job, int input, struct drarun_error *err)
{
    const struct console_owner out = {
        .credit = job_on_credit,
        .closed = job_on_output_closed,
        .failed = job_on_output_failed,
        .idle = on_output_idle,
        .reader_gone = job_on_reader_gone,
        .awaited = on_awaited,
        .arg = job,
    };
    struct input_owner in = {.data = job_on_input, .arg = job};
    int rc = console_open(job->console, job->base, job->map.ranks, &out, err);
    if (rc < 0)
        return rc;
    job->output = console_output(job->console);
    job->input.rank = input >= 0 ? job->request->stdin_rank : REQUEST_STDIN_NONE;
    if (job->input.rank == REQUEST_STDIN_NONE)
        return 0;
    bool all = job->input.rank == REQUEST_STDIN_ALL;
    job->input.left = all ? job->map.ranks : 1;
    job->input.source = input_new(job->base, input, all ? job->count : 1, &in);
    return job->input.source ? 0 : error_set(err, ENOMEM, "out of memory");
}

static int make_base(struct job *job, struct drarun_error *err)
{
    local_agent_raise_limit(&job->local.agents);
    if (job->local.agents.files.rlim_max < FILES_MIN) /* libevent would end the process */
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, EMFILE,
                          "the limit of open files (ulimit -n) is %ju; raise it to %d at least",
                          (uintmax_t)job->local.agents.files.rlim_max, FILES_MIN);
    struct event_config *config = event_config_new();
    if (config) {
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_NO_CACHE_TIME |
                                          EVENT_BASE_FLAG_IGNORE_ENV);
        job->base = event_base_new_with_config(config);
        event_config_free(config);
    }
    return job->base ? 0 : error_set(err, ENOMEM, "cannot make an event loop: out of memory");
}

/* Name and loop: our own, or the cluster's. */
static int make_identity(struct job *job, struct drarun_error *err)
{
    const struct request_pods *pods = job->request->pods;
    gethostname(job->identity.hostname, sizeof job->identity.hostname - 1);
    if (pods) {
        job->identity.uid = pods->uid;
        job->identity.attempt = pods->attempt;
        job->base = pods->base;
        return 0;
    }
    job->identity.uid = job->identity.own_uid;
    int rc = identity_make(job->identity.own_uid, err);
    return rc < 0 ? rc : make_base(job, err);
}

/* Before any agent starts: where it cannot be made, nothing has run yet. */
static int make_files(struct job *job, struct drarun_error *err)
{
    if (job->request->collect_env)
        job->files = job_files_new(job->request->report_path, job->count, err);
    if (job->request->collect_env && !job->files)
        return -err->code;
    return request_check_report(job->request, err);
}

static int make(struct job *job, int input, struct drarun_error *err)
{
    int rc = make_identity(job, err);
    if (rc == 0)
        rc = agents_new(job, err);
    if (rc == 0)
        rc = map_ranks(job, err);
    if (rc == 0)
        rc = make_streams(job, input, err);
    if (rc == 0)
        rc = make_files(job, err);
    if (rc < 0)
        return rc;
    job->signals = signals_new(job->base, job_on_signal, job, err);
    if (!job->signals)
        return -err->code;
    proctree_adopt_orphans();
    if (!request_is_elsewhere(job->request))
        job->local.shm = shm_clean_begin();
    rc = agents_start(job, err);
    return rc == 0 ? job_make_clocks(job, err) : rc;
}

struct job *job_new(const struct job_request *request, struct console *console, int input,
                    char *const env[], struct drarun_error *err)
{
    struct job *job = calloc(1, sizeof *job);
    if (!job) {
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    job->request = request;
    job->console = console;
    job->env = env;
    job->started_us = clock_us();
    job->state = JOB_CONNECTING;
    job->state_since_ms = clock_ms();
    if (make(job, input, err) < 0) {
        job_free(job);
        return NULL;
    }
    return job;
}

void job_run(struct job *job)
{
    struct drarun_error err = {0};
    job_look(job);
    event_base_dispatch(job->base);
    if (job->state != JOB_ENDED) {
        error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, EINVAL,
                   "internal error: the loop ended while %s", job_state_name(job->state));
        cause_failure(job->cause, &err);
    }
    job_await_dismissed(job);
    agents_remove_remains(job);
    console_release_log(job->console);
    signals_redirect(job->signals, job_on_late_signal, job);
    signals_take(job->signals);
    /* from here on a signal may end us: the report is written however slow its reader */
    signals_free(TAKE_PTR(job->signals));
    if (job->mpi_library_ranks > 0)
        cause_singletons(job->cause, job->mpi_library_ranks);
    job->facts.ran_us = clock_us() - job->started_us;
}

void job_free(struct job *job)
{
    if (!job)
        return;
    console_release_log(job->console);
    job_watch_free(job->liveness.watch);
    job_reach_free(job->preflight.reach);
    fabric_free(job->preflight.fabric);
    job_files_free(job->files);
    agents_free(job);
    job_spawn_free(job->spawning.requests);
    if (job->names && job->state == JOB_ENDED && cause_status(job->cause) == 0)
        job_names_leave(job->names);
    job_names_free(job->names);
    input_free(job->input.source);
    console_close(job->console);
    signals_free(job->signals);
    launch_message_free(job->launch.message);
    free(job->launch.masters);
    shm_clean_free(job->local.shm);
    job_free_clocks(job);
    notes_done(&job->notes.held);
    cause_free(job->cause);
    free(job->rank_ended);
    rankmap_done(&job->map);
    if (job->base) {
        /* freed connections with a callback under way hold on to themselves until the loop's turn
         */
        event_base_loop(job->base, EVLOOP_NONBLOCK);
        if (!job->request->pods)
            event_base_free(job->base);
    }
    free(job);
}

bool job_is_hopeless(const struct job *job)
{
    return job->hopeless;
}

int job_end_signal(const struct job *job)
{
    return job->interrupt.got;
}

const struct cause *job_cause(const struct job *job)
{
    return job->cause;
}

void job_facts(const struct job *job, struct job_facts *ret_facts)
{
    *ret_facts = job->facts;
    ret_facts->uid = job->identity.uid;
    ret_facts->ranks = job->map.ranks;
    ret_facts->workers = job->count;
}
