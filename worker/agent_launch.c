/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/rankenv.h"
#include "lib/base/progress.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/shm_clean.h"
#include "lib/topo/cpus.h"
#include "worker/agent_private.h"
#include "worker/mpi_library.h"
#include "worker/rank_setting.h"
#include "worker/remote.h"
#include "worker/session.h"

extern char **environ;

/* When to look whether a rank that has connected to nothing has an MPI library loaded: late enough
 * for it to be mapped, early enough for short jobs. */
#define LOOK_AFTER_MS 150
/* Ranks that run so long after their start may well use MPI, and will ask for the topology. */
#define TOPOLOGY_AFTER_MS 3

/* ---- what the parts of an agent tell each other ---- */

static void send_collective(void *arg, uint32_t worker, const Drarun__Wire__Collective *message)
{
    struct agent *agent = arg;
    Drarun__Wire__Envelope envelope =
        WIRE_ENVELOPE(COLLECTIVE, collective, (Drarun__Wire__Collective *)message);
    peers_send(agent->peers, worker, &envelope);
}

static void pmix_connected(void *arg, uint32_t rank)
{
    agent_rank_connected(arg, rank, RANK_API_PMIX);
}

static void pmi1_connected(void *arg, uint32_t rank)
{
    agent_rank_connected(arg, rank, RANK_API_PMI1);
}

static void rank_finalized(void *arg, uint32_t rank)
{
    agent_rank_finalized(arg, rank);
}

static void rank_lost(void *arg, uint32_t rank)
{
    struct agent *agent = arg;
    if (agent->ranks)
        ranks_dying(agent->ranks, rank);
}

static void rank_abort(void *arg, uint32_t rank, int status, const char *text)
{
    agent_rank_abort(arg, rank, status, text);
}

static void pmix_send(void *arg, Drarun__Wire__Routed *message, bool broadcast)
{
    struct agent *agent = arg;
    if (broadcast)
        peers_broadcast(agent->peers, message);
    else
        peers_route(agent->peers, message);
}

static void pmix_signal(void *arg, uint32_t first, uint32_t count, int signo)
{
    struct agent *agent = arg;
    if (agent->ranks)
        ranks_signal_some(agent->ranks, first, count, signo);
}

static void pmix_log(void *arg, uint32_t rank, int stream, const char *text)
{
    struct agent *agent = arg;
    size_t length = strlen(text);
    agent_on_output(agent, rank, stream == 1 ? RANK_STDOUT : RANK_STDERR, text, length,
                    length > 0 && text[length - 1] != '\n');
}

static void pmix_failed(void *arg, const struct drarun_error *err)
{
    struct agent *agent = arg;
    agent_send_failure(agent, err, -1);
    agent_end_ranks(agent, true);
}

static int open_servers(struct agent *agent, struct drarun_error *err)
{
    struct pmix_host_owner pmix = {
        .connected = pmix_connected,
        .finalized = rank_finalized,
        .lost = rank_lost,
        .abort = rank_abort,
        .route = pmix_send,
        .signal = pmix_signal,
        .log = pmix_log,
        .failed = pmix_failed,
        .arg = agent,
    };
    struct pmi1_host_owner pmi1 = {.connected = pmi1_connected,
                                   .finalized = rank_finalized,
                                   .lost = rank_lost,
                                   .abort = rank_abort,
                                   .arg = agent};
    if (!agent->job.pmix)
        return 0;
    agent->topology = topology_new();
    agent->pmix = pmix_host_new(agent->base, &agent->job, &agent->tree, agent->coll,
                                agent->topology, agent->session_dir, &pmix, err);
    if (agent->pmix)
        agent->pmi1 = pmi1_host_new(agent->base, &agent->job, agent->coll, agent->topology,
                                    agent->session_dir, &pmi1, err);
    return agent->pmi1 ? 0 : -err->code;
}

/* ---- environment ---- */

static void base_environment(const struct agent *agent, uint32_t app, struct strlist *env)
{
    const Drarun__Wire__Launch *wire = agent->job.wire;
    strlist_add_all(env, agent->environment.items);
    for (size_t i = 0; i < wire->n_env; i++)
        strlist_add(env, wire->env[i]);
    rankenv_clean(env);
    rank_setting_base(wire, env);
    for (size_t i = 0; i < wire->apps[app]->n_env; i++) {
        char *entry = wire->apps[app]->env[i];
        char *equals = strchr(entry, '=');
        if (!equals)
            continue;
        *equals = '\0';
        env_set(env, entry, equals + 1);
        *equals = '=';
    }
}

static void rank_environment(const struct agent *agent, uint32_t rank, bool torchrun,
                             struct strlist *env)
{
    const struct agent_job *job = &agent->job;
    const struct pod *pod = agent->options.pod;
    char path[sizeof agent->shm_dir + 32];
    struct rank_place place = rankmap_place(&job->map, rank);
    struct rankenv_job known = {
        .uid = job->wire->uid,
        .attempt = job->wire->attempt,
        .master_addr = job->wire->master_addr,
        .master_port = job->wire->master_port,
        .pmix = job->pmix,
        .torchrun = torchrun,
        .mpirun = job->mpirun,
        .oversubscribed = !job->mpirun && agent_job_oversubscribed(job),
        .host = job->host,
        .node = pod && pod->node[0] ? pod->node : NULL,
    };
    rankenv_add(env, &known, &job->map, &place);
    if (agent->pmix)
        pmix_host_rank_env(agent->pmix, rank, env);
    if (agent->pmix && agent->shm_dir[0]) { /* Open MPI 4 and 5 */
        env_default(env, "OMPI_MCA_btl_vader_backing_directory", agent->shm_dir);
        env_default(env, "OMPI_MCA_btl_sm_backing_directory", agent->shm_dir);
    }
    if (agent_progress_path(agent, rank, path, sizeof path))
        env_set(env, PROGRESS_VARIABLE, path);
    if (agent->remote)
        remote_environment(agent->remote, env);
    rank_setting_add(job->wire, place.local_rank, env);
}

/* ---- preparing ---- */

static int check_programs(struct agent *agent, struct drarun_error *err)
{
    for (uint32_t app = 0; app < agent->job.map.apps; app++) {
        bool here = false;
        for (size_t b = 0; b < agent->job.map.block_count && !here; b++)
            here = agent->job.map.blocks[b].app == app &&
                   agent->job.map.blocks[b].worker == agent->job.worker;
        if (!here || (agent->job.mpirun && agent->job.worker != 0))
            continue; /* nor what runs elsewhere */
        struct strlist env = STRLIST_INIT;
        base_environment(agent, app, &env);
        cleanup_free char **argv = agent_job_argv(&agent->job, app);
        int rc = argv && !env.failed
                     ? ranks_check_program(argv, env.items, agent->job.wire->apps[app]->wd, err)
                     : error_set(err, ENOMEM, "out of memory");
        strlist_done(&env);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int make_session(struct agent *agent, struct drarun_error *err)
{
    int rc = session_make(agent->job.wire->session_dir, &agent->session_dir, err);
    if (rc < 0)
        return rc;
    if (agent->options.session)
        agent->options.session(agent->session_dir, agent->options.session_arg);
    shm_clean_dir(agent->session_dir, agent->shm_dir, sizeof agent->shm_dir);
    if (mkdir(agent->shm_dir, 0700) < 0)
        agent->shm_dir[0] = '\0'; /* the libraries then use /dev/shm itself, or do without */
    return 0;
}

int agent_prepare_take(struct agent *agent, Drarun__Wire__Launch *launch, struct drarun_error *err)
{
    int rc = agent_job_init_take(&agent->job, launch, err);
    if (rc < 0)
        return rc;
    struct agent_job *job = &agent->job;
    if (job->wire->inherit_env)
        strlist_add_all(&agent->environment, environ);
    agent->tree = (struct tree){job->worker, job->map.workers, job->wire->radix};
    agent->rank = calloc(job->local_count + 1, sizeof *agent->rank);
    agent->app_connected = calloc(job->map.apps + 1, sizeof *agent->app_connected);
    agent->coll = coll_new(&agent->tree, &job->map, send_collective, agent);
    if (!agent->rank || !agent->app_connected || !agent->coll || agent->environment.failed)
        return error_set(err, ENOMEM, "out of memory");
    rc = check_programs(agent, err);
    if (rc == 0)
        rc = make_session(agent, err);
    if (rc == 0)
        rc = open_servers(agent, err);
    if (rc == 0)
        rc = agent_mpirun_open(agent, err);
    if (rc < 0)
        return rc;
    agent->shm = shm_clean_begin();
    if (job->local_count == 0) /* it only relays, and is done as soon as it is started */
        return 0;
    struct ranks_owner owner = {
        .output = agent_on_output,
        .ended = agent_on_ended,
        .reaped = agent_on_reaped,
        .all_ended = agent_on_all_ended,
        .input_done = agent_on_input_done,
        .arg = agent,
        .oom_score = agent->options.oom_score,
    };
    agent->ranks = ranks_new(agent->base, job->local_count, job->wire->kill_after_ms, &owner, err);
    return agent->ranks ? 0 : -err->code;
}

/* ---- starting ---- */

static void report_binding(struct agent *agent, uint32_t rank, const uint32_t *ids, size_t count,
                           bool shared)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, "rank %u on %s: ", rank, agent->job.host);
    if (count == 0)
        buf_add_str(&text, "not bound");
    else
        buf_add_str(&text, "CPUs ");
    cpulist_format(ids, count, &text);
    if (shared)
        buf_add_str(&text, " (shared with other ranks)");
    if (text.data)
        agent_send_note(agent, text.data);
    buf_done(&text);
}

/* ids for one rank; the array is the caller's. */
static int choose_cpus(struct agent *agent, const struct cpus *cpus, uint32_t index,
                       uint32_t **ret_ids, size_t *ret_count, struct drarun_error *err)
{
    const struct agent_job *job = &agent->job;
    bool shared = false;
    uint32_t slot = job->wire->local_first_slot;
    uint32_t here = job->wire->same_host ? job->map.ranks : job->local_count;
    int rc =
        job->bind.kind == BIND_NONE
            ? rank_setting_cpus(job->wire, index, cpus, ret_ids, ret_count, err)
            : bind_cpus(&job->bind, cpus, slot + index, here, ret_ids, ret_count, &shared, err);
    if (rc < 0)
        return rc;
    if (agent->pmix && *ret_count > 0)
        rc = pmix_host_set_cpus(agent->pmix, job->local[index], *ret_ids, *ret_count);
    if (job->wire->report_bindings)
        report_binding(agent, job->local[index], *ret_ids, *ret_count, shared);
    return rc;
}

/* The environment of a program and the strings that are the same for all its ranks here. */
struct program {
    uint32_t app;
    char **argv;
    struct strlist env;
    bool torchrun;
};

static void program_done(struct program *program)
{
    free(program->argv);
    strlist_done(&program->env);
}

static int program_use(struct agent *agent, uint32_t app, struct program *program)
{
    if (program->argv && program->app == app)
        return 0;
    program_done(program);
    *program = (struct program){.app = app, .argv = agent_job_argv(&agent->job, app)};
    base_environment(agent, app, &program->env);
    if (!program->argv || program->env.failed)
        return -ENOMEM;
    program->torchrun = rankenv_is_torchrun(program->argv);
    return 0;
}

static int start_rank(struct agent *agent, uint32_t index, struct program *program,
                      const struct cpus *cpus, struct drarun_error *err)
{
    const struct agent_job *job = &agent->job;
    uint32_t rank = job->local[index];
    struct rank_place place = rankmap_place(&job->map, rank);
    cleanup_free uint32_t *ids = NULL;
    size_t id_count = 0;
    cleanup_close int pmi_fd = -1;
    cleanup_free char **server_argv = NULL;
    if (program_use(agent, place.app, program) < 0)
        return error_set(err, ENOMEM, "out of memory");
    struct strlist env = STRLIST_INIT;
    strlist_add_all(&env, program->env.items);
    rank_environment(agent, rank, program->torchrun, &env);
    int rc = choose_cpus(agent, cpus, index, &ids, &id_count, err);
    if (rc == 0 && agent->pmi1)
        rc = pmi1_host_open(agent->pmi1, rank, &env, &pmi_fd, err);
    if (rc == 0 && agent_mpirun_serves(agent))
        rc = remote_server(agent->remote, &server_argv, &pmi_fd, err);
    if (rc == 0 && env.failed)
        rc = error_set(err, ENOMEM, "out of memory");
    struct rank_request request = {
        .rank = rank,
        .argv = server_argv ? server_argv : program->argv,
        .env = env.items,
        .wd = job->wire->apps[place.app]->wd,
        .cpus = ids,
        .cpu_count = id_count,
        .stdin_open = job->wire->stdin_rank == -2 || job->wire->stdin_rank == (int64_t)rank,
        .pmi_fd = pmi_fd,
    };
    if (rc == 0)
        rc = ranks_start(agent->ranks, &request, err);
    strlist_done(&env);
    return rc;
}

static void on_still_running(evutil_socket_t fd, short what, void *arg)
{
    struct agent *agent = arg;
    (void)fd, (void)what;
    if (ranks_running(agent->ranks) > 0)
        topology_start(agent->topology);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
    struct agent *agent = arg;
    (void)fd, (void)what;
    for (uint32_t i = 0; i < agent->job.local_count && !agent->mpi_library; i++) {
        pid_t pid = ranks_pid(agent->ranks, agent->job.local[i]);
        if (agent->rank[i].api != RANK_API_NONE)
            return;
        agent->mpi_library = pid > 0 && mpi_library_mapped(pid);
        if (pid > 0)
            return; /* one is as good as all, and reading maps costs */
    }
}

static void plan_looks(struct agent *agent)
{
    struct timeval soon = timeval_from_ms(TOPOLOGY_AFTER_MS);
    agent->still_running = evtimer_new(agent->base, on_still_running, agent);
    if (agent->still_running && agent->topology)
        evtimer_add(agent->still_running, &soon);
    struct timeval after = timeval_from_ms(LOOK_AFTER_MS);
    agent->look = evtimer_new(agent->base, on_look, agent);
    if (agent->look)
        evtimer_add(agent->look, &after);
}

/* Those that this process may use, which a cpuset of the container may limit. */
static int read_own_cpus(struct cpus *cpus, struct drarun_error *err)
{
    cpu_set_t own[CPUS_MAX / CPU_SETSIZE];
    if (sched_getaffinity(0, sizeof own, own) < 0)
        return error_set(err, errno, "sched_getaffinity: %s", strerror(errno));
    return cpus_read(-1, own, sizeof own, cpus, err);
}

void agent_start(struct agent *agent)
{
    struct drarun_error err = {0};
    struct cpus cpus = {0};
    struct program program = {0};
    int rc = 0;
    if (agent->job.bind.kind != BIND_NONE || rank_setting_binds(agent->job.wire))
        rc = read_own_cpus(&cpus, &err);
    uint32_t i = 0;
    for (; rc == 0 && i < agent->job.local_count; i++)
        rc = start_rank(agent, i, &program, &cpus, &err);
    program_done(&program);
    cpus_done(&cpus);
    if (rc < 0) {
        agent_send_failure(agent, &err, i > 0 ? (int64_t)agent->job.local[i - 1] : -1);
        agent_end_ranks(agent, true);
    } else if (agent->job.local_count > 0) {
        if (agent->pmix)
            pmix_host_set_environment(agent->pmix);
        plan_looks(agent);
    }
    if (agent->job.local_count == 0) /* more workers than ranks */
        agent_on_all_ended(agent);
}

/* ---- leaving nothing behind ---- */

void agent_clean(struct agent *agent)
{
    if (agent->look)
        event_del(agent->look);
    if (agent->still_running)
        event_del(agent->still_running);
    if (agent->shm && agent->out_of_order) {
        int removed = shm_clean_run(agent->shm);
        if (removed > 0)
            log_verbose("removed %d shared-memory segments that killed ranks had left", removed);
    }
    shm_clean_free(TAKE_PTR(agent->shm));
    int shm_rc = agent->shm_dir[0] ? tree_remove(AT_FDCWD, agent->shm_dir) : 0;
    if (shm_rc < 0)
        log_error("cannot remove %s: %s", agent->shm_dir, strerror(-shm_rc));
    agent->shm_dir[0] = '\0';
    if (!agent->session_dir)
        return;
    int rc = session_remove(agent->session_dir);
    if (rc < 0)
        log_error("cannot remove %s: %s", agent->session_dir, strerror(-rc));
    free(TAKE_PTR(agent->session_dir));
    if (agent->options.session)
        agent->options.session(NULL, agent->options.session_arg);
}
