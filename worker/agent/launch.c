/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs/ranks/rankenv.h"
#include "lib/base/progress.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/expand.h"
#include "lib/base/shm_clean.h"
#include "lib/base/unconst.h"
#include "worker/agent/private.h"
#include "worker/host/conf_files.h"
#include "worker/host/mpi_library.h"
#include "worker/mpirun/remote.h"
#include "worker/host/room.h"
#include "worker/host/session.h"

/* When to look whether a rank that has connected to nothing has an MPI library loaded: late enough
 * for it to be mapped, early enough for short jobs. */
#define LOOK_AFTER_MS 150
/* Ranks that run so long after their start may well use MPI, and will ask for the topology. */
#define TOPOLOGY_AFTER_MS 3

/* ---- environment ---- */

static const struct rank_group *group_of_app(const struct agent_job *job, uint32_t app)
{
    uint32_t low = 0, high = job->group_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (job->groups[middle]->first_app <= app)
            low = middle;
        else
            high = middle;
    }
    return job->groups[low];
}

/* The program of the launch whose rank, or the rank that it started, and so on, asked for this one.
 */
static uint32_t root_program(const struct agent_job *job, uint32_t app)
{
    for (const struct rank_group *group = group_of_app(job, app); group->spawned;
         group = group_of_app(job, app))
        app = rankmap_place(&job->map, group->parent).app;
    return app;
}

static void add_app_environment(const Drarun__Wire__App *app, struct strlist *env)
{
    for (size_t i = 0; i < app->n_env; i++) {
        char *entry = app->env[i];
        char *equals = strchr(entry, '=');
        if (!equals)
            continue;
        *equals = '\0';
        env_set(env, entry, equals + 1);
        *equals = '=';
    }
}

/* app: of the job. What a rank starts gets what the user gave the rank's own program, too. */
static void base_environment(const struct agent *agent, uint32_t app, struct strlist *env)
{
    const struct agent_job *job = &agent->job;
    const Drarun__Wire__Launch *wire = job->wire;
    const struct rank_settings settings = agent_settings(agent);
    uint32_t root = root_program(job, app);
    strlist_add_all(env, agent->environment.items);
    for (size_t i = 0; i < wire->n_env; i++)
        strlist_add(env, wire->env[i]);
    rankenv_clean(env);
    rank_setting_base(&settings, env);
    add_app_environment(job->apps[root], env);
    if (root != app)
        add_app_environment(job->apps[app], env);
    if (getenv("HOME")) /* the agent's program sets it where it is not */
        rankenv_default(env, "HOME", "%s", getenv("HOME"));
}

/* Of a plan; other jobs have no such defaults. */
static void add_setting(const struct agent *agent, uint32_t local_rank, struct strlist *env)
{
    const struct rank_settings settings = agent_settings(agent);
    struct strlist files = STRLIST_INIT;
    if (settings.job)
        conf_files_read(env, &files);
    rank_setting_add(&settings, local_rank, &files, env);
    env->failed |= files.failed;
    strlist_done(&files);
}

static void rank_environment(const struct agent *agent, uint32_t rank, char *const argv[],
                             struct strlist *env)
{
    const struct agent_job *job = &agent->job;
    const struct pod *pod = agent->options.pod;
    char path[sizeof agent->session.shm_dir + 32];
    const struct rank_group *group = agent_job_group_of(job, rank);
    struct rank_place place = rankmap_place(&group->map, rank - group->first);
    const Drarun__Wire__World *world =
        job->wire->n_worlds > 0
            ? job->wire->worlds[root_program(job, rankmap_place(&job->map, rank).app)]
            : NULL;
    struct rankenv_job known = {
        .uid = job->wire->uid,
        .attempt = job->wire->attempt,
        .master_addr = world ? world->master_addr : job->wire->master_addr,
        .master_port = world ? world->master_port : job->wire->master_port,
        .pmix = job->pmix,
        .torchrun = rankenv_is_torchrun(argv),
        .starts_torchrun = rankenv_names_torchrun(argv),
        .mpirun = job->mpirun,
        .oversubscribed = group->oversubscribed,
        .host = job->host,
        .node = pod && pod->node[0] ? pod->node : NULL,
    };
    rankenv_add(env, &known, &group->map, &place);
    if (agent->servers.pmix)
        pmix_host_rank_env(agent->servers.pmix, rank, env);
    const char *shm_dir = agent->session.shm_dir;
    /* Open MPI 4 and 5 name a segment by host and local rank: workers of one host need directories
     * of their own. Not for the user's mpirun, which would hand it to the ranks of all workers. */
    if ((agent->servers.pmix || agent_mpirun_serves(agent)) && shm_dir[0]) {
        rankenv_default(env, "OMPI_MCA_btl_vader_backing_directory", "%s", shm_dir);
        rankenv_default(env, "OMPI_MCA_btl_sm_backing_directory", "%s", shm_dir);
    }
    if (agent_progress_path(agent, rank, path, sizeof path))
        env_set(env, PROGRESS_VARIABLE, path);
    if (agent->servers.remote)
        remote_environment(agent->servers.remote, env);
    add_setting(agent, (uint32_t)agent_job_local_index(job, rank), env);
    agent_collect_env(agent, env);
}

/* References to the environment's variables in the words of a job's spec are replaced; other words
 * are added as they are. */
static void add_words(const Drarun__Wire__App *app, const struct strlist *env, struct strlist *argv)
{
    for (size_t i = 0; i < app->n_argv; i++) {
        CLEANUP(buf_done) struct buf word = BUF_INIT;
        if (i < app->expand) {
            expand_text_env(app->argv[i], env, &word);
            argv->failed |= word.failed;
        }
        strlist_add(argv, word.data ? word.data : app->argv[i]);
    }
}

/* ---- preparing ---- */

int agent_check_programs(const struct agent *agent, const struct rank_group *group,
                         struct drarun_error *err)
{
    for (uint32_t i = 0; i < group->map.apps; i++) {
        uint32_t app = group->first_app + i;
        bool here = false;
        for (size_t b = 0; b < group->map.block_count && !here; b++)
            here =
                group->map.blocks[b].app == i && group->map.blocks[b].worker == agent->job.worker;
        if (!here || (agent->job.mpirun && agent->job.worker != 0))
            continue; /* nor what runs elsewhere */
        CLEANUP(strlist_done) struct strlist argv = STRLIST_INIT, env = STRLIST_INIT;
        base_environment(agent, app, &env);
        add_words(agent->job.apps[app], &env, &argv);
        if (argv.failed || env.failed || !argv.items)
            return error_set(err, ENOMEM, "out of memory");
        if (agent->job.apps[app]->expand > 0 && strstr(argv.items[0], "$("))
            continue; /* a variable of the rank's own, which the start replaces */
        const struct rank_request request = {.argv = argv.items,
                                             .env = env.items,
                                             .wd = agent->job.apps[app]->wd,
                                             .here = group->spawned};
        int rc = ranks_check_program(&request, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static struct room_files count_files(const struct agent_job *job)
{
    uint32_t neighbours = job->map.workers > 1 ? job->wire->radix + 1 : 0;
    if (neighbours > job->map.workers)
        neighbours = job->map.workers;
    struct room_files files = room_files(job->pmix, job->wire->stdin_rank == -2, neighbours);
    if (job->mpirun && job->worker == 0)
        files.beside += job->map.workers; /* mpirun's connections to them, all at once */
    return files;
}

int agent_check_room(const struct agent *agent, uint32_t ranks, uint32_t all,
                     struct drarun_error *err)
{
    const struct agent_job *job = &agent->job;
    const struct room_need need = {
        .ranks = ranks,
        .running = agent->ranks ? ranks_running(agent->ranks) : 0,
        .fellows = job->wire->same_host ? all - ranks : 0,
        .files = count_files(job),
    };
    struct room room;
    if (need.ranks == 0)
        return 0;
    room_look(&need, &room);
    return room_check(&room, &need, err);
}

static int make_session(struct agent *agent, struct drarun_error *err)
{
    struct agent_session *session = &agent->session;
    int rc = session_make(agent->job.wire->session_dir, &session->dir, err);
    if (rc < 0)
        return rc;
    if (agent->options.session)
        agent->options.session(session->dir, agent->options.session_arg);
    if (agent->job.worker == 0)
        session_sweep("/dev/shm");
    shm_clean_dir(session->dir, session->shm_dir, sizeof session->shm_dir);
    if (mkdir(session->shm_dir, 0700) < 0)
        session->shm_dir[0] = '\0'; /* the libraries then use /dev/shm itself, or do without */
    else
        session->mark = session_mark(session->shm_dir, session->dir);
    return 0;
}

int agent_reserve_ranks(struct agent *agent, uint32_t first)
{
    const struct agent_job *job = &agent->job;
    struct agent_rank *rank = realloc(agent->rank, (job->local_count + 1u) * sizeof *rank);
    if (!rank)
        return -ENOMEM;
    agent->rank = rank;
    bool *connected = realloc(agent->app_connected, (job->map.apps + 1u) * sizeof *connected);
    if (!connected)
        return -ENOMEM;
    agent->app_connected = connected;
    struct pmi1_host **pmi1 = realloc(agent->servers.pmi1, job->group_count * sizeof *pmi1);
    if (!pmi1)
        return -ENOMEM;
    agent->servers.pmi1 = pmi1;
    for (uint32_t i = first; i < job->group_count; i++) {
        const struct rank_group *group = job->groups[i];
        pmi1[i] = NULL;
        memset(rank + group->local_first, 0, group->local_count * sizeof *rank);
        memset(connected + group->first_app, 0, group->map.apps * sizeof *connected);
    }
    return 0;
}

static void send_collective(void *arg, uint32_t worker, const Drarun__Wire__Collective *message)
{
    struct agent *agent = arg;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(COLLECTIVE, collective, unconst(message));
    peers_send(agent->peers, worker, &envelope);
}

static void on_said(void *arg, void *token)
{
    (void)arg;
    pmix_host_logged(token);
}

int agent_prepare_take(struct agent *agent, Drarun__Wire__Launch *launch, struct drarun_error *err)
{
    int rc = agent_job_init_take(&agent->job, launch, err);
    if (rc < 0)
        return rc;
    struct agent_job *job = &agent->job;
    if (agent->options.as_launcher && job->wire->shell)
        rc = agent_take_shell(job->wire->shell, err);
    if (rc < 0)
        return rc;
    if (agent_reserve_ranks(agent, 0) < 0)
        return error_set(err, ENOMEM, "out of memory");
    bool oversubscribed = !job->mpirun && agent_is_oversubscribed(agent, job->local_count);
    for (uint32_t i = 0; i < job->launched; i++)
        job->groups[i]->oversubscribed = oversubscribed;
    if (job->wire->inherit_env)
        strlist_add_all(&agent->environment, environ);
    agent->tree = (struct tree){job->worker, job->map.workers, job->wire->radix};
    agent->coll = coll_new(&agent->tree, &job->map, send_collective, agent);
    if (!agent->coll || agent->environment.failed)
        return error_set(err, ENOMEM, "out of memory");
    for (uint32_t i = 0; rc == 0 && i < job->launched; i++)
        rc = agent_check_programs(agent, job->groups[i], err);
    if (rc == 0)
        rc = agent_check_room(agent, job->local_count, job->map.ranks, err);
    if (rc == 0)
        rc = make_session(agent, err);
    if (rc == 0)
        rc = agent_collect_open(agent, err);
    if (rc == 0)
        rc = agent_open_servers(agent, err);
    if (rc == 0)
        rc = agent_mpirun_open(agent, err);
    if (rc < 0)
        return rc;
    agent->session.shm = shm_clean_begin();
    if (!agent->session.shm && errno == ENOMEM)
        return error_set(err, ENOMEM, "out of memory for the list of /dev/shm");
    if (job->local_count == 0 && !job->wire->hold)
        return 0; /* it only relays, and is done as soon as it is started */
    struct ranks_owner owner = {
        .output = agent_on_output,
        .said = on_said,
        .ended = agent_on_ended,
        .reaped = agent_on_reaped,
        .all_ended = agent_on_all_ended,
        .stuck = agent_on_stuck,
        .settled = agent_on_settled,
        .input_done = agent_on_input_done,
        .arg = agent,
        .files = count_files(job),
        .hold = job->wire->hold,
        .oom_score = agent->options.oom_score,
    };
    agent->ranks = ranks_new(agent->base, job->local_count, job->wire->kill_after_ms, &owner, err);
    return agent->ranks ? 0 : -err->code;
}

/* ---- starting ---- */

/* The environment of a program and the strings that are the same for all its ranks here. */
struct program {
    uint32_t app;
    char **argv;
    struct strlist env;
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
    return 0;
}

static int start_rank(struct agent *agent, uint32_t index, struct program *program,
                      struct drarun_error *err)
{
    const struct agent_job *job = &agent->job;
    uint32_t rank = job->local[index];
    struct rank_place place = rankmap_place(&job->map, rank);
    const struct agent_rank *known = &agent->rank[index];
    cleanup_close int pmi_fd = -1;
    cleanup_free char **server_argv = NULL;
    CLEANUP(strlist_done) struct strlist argv = STRLIST_INIT, env = STRLIST_INIT;
    if (program_use(agent, place.app, program) < 0)
        return error_set(err, ENOMEM, "out of memory");
    strlist_add_all(&env, program->env.items);
    rank_environment(agent, rank, program->argv, &env);
    int rc = 0;
    if (agent_pmi1(agent, rank))
        rc = pmi1_host_open(agent_pmi1(agent, rank), rank, &env, &pmi_fd, err);
    if (rc == 0 && agent_mpirun_serves(agent))
        rc = remote_server(agent->servers.remote, &server_argv, &pmi_fd, err);
    if (rc == 0 && job->apps[place.app]->expand > 0)
        add_words(job->apps[place.app], &env, &argv);
    if (rc == 0 && (env.failed || argv.failed))
        rc = error_set(err, ENOMEM, "out of memory");
    struct rank_request request = {
        .rank = rank,
        .argv = server_argv  ? server_argv
                : argv.items ? argv.items
                             : program->argv,
        .env = env.items,
        .wd = job->apps[place.app]->wd,
        .here = agent_job_group_of(job, rank)->spawned,
        .cpus = known->cpus,
        .cpu_count = known->cpu_count,
        .stdin_open = (job->wire->stdin_rank == -2 && rank < agent_job_launched_ranks(job)) ||
                      job->wire->stdin_rank == (int64_t)rank,
        .pmi_fd = pmi_fd,
        .stop = agent_job_group_of(job, rank)->stop_at == DRARUN__WIRE__STOP_AT__STOP_AT_EXEC,
    };
    if (rc == 0)
        rc = ranks_start(agent->ranks, &request, err);
    return rc;
}

static void on_still_running(evutil_socket_t fd, short what, void *arg)
{
    struct agent *agent = arg;
    (void)fd, (void)what;
    if (ranks_running(agent->ranks) == 0)
        return;
    topology_start(agent->servers.topology);
    if (agent->servers.pmix)
        pmix_host_announce(agent->servers.pmix);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
    struct agent *agent = arg;
    (void)fd, (void)what;
    for (uint32_t i = 0; i < agent->job.local_count && !agent->looks.mpi_library; i++) {
        pid_t pid = ranks_pid(agent->ranks, agent->job.local[i]);
        if (agent->rank[i].api != RANK_API_NONE)
            return;
        agent->looks.mpi_library = pid > 0 && mpi_library_mapped(pid);
        if (pid > 0)
            return; /* one is as good as all, and reading maps costs */
    }
}

static void plan_looks(struct agent *agent)
{
    struct timeval soon = timeval_from_ms(TOPOLOGY_AFTER_MS);
    agent->looks.running_clock = evtimer_new(agent->base, on_still_running, agent);
    if (agent->looks.running_clock && agent->servers.topology)
        evtimer_add(agent->looks.running_clock, &soon);
    struct timeval after = timeval_from_ms(LOOK_AFTER_MS);
    agent->looks.library_clock = evtimer_new(agent->base, on_look, agent);
    if (agent->looks.library_clock)
        evtimer_add(agent->looks.library_clock, &after);
}

static void tell_stopped(struct agent *agent, const struct rank_group *group)
{
    if (agent->servers.pmix)
        pmix_host_stopped(agent->servers.pmix, group);
    for (uint32_t i = 0; !agent->servers.pmix && i < group->local_count; i++)
        agent_rank_waits(agent, agent->job.local[group->local_first + i]);
}

int agent_start_group(struct agent *agent, const struct rank_group *group, struct drarun_error *err)
{
    struct program program = {0};
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < group->local_count; i++) {
        rc = start_rank(agent, group->local_first + i, &program, err);
        if (rc == 0 && agent->job.wire->report_bindings)
            agent_report_binding(agent, group->local_first + i);
    }
    program_done(&program);
    if (rc == 0 && group->stop_at == DRARUN__WIRE__STOP_AT__STOP_AT_EXEC)
        tell_stopped(agent, group);
    return rc;
}

void agent_start(struct agent *agent)
{
    const struct agent_job *job = &agent->job;
    struct drarun_error err = {0};
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < job->launched; i++)
        rc = agent_bind_group(agent, job->groups[i], &err);
    if (rc == 0 && agent->servers.pmix)
        rc = pmix_host_prepare(agent->servers.pmix, &err);
    for (uint32_t i = 0; rc == 0 && i < job->launched; i++)
        rc = agent_start_group(agent, job->groups[i], &err);
    if (rc == 0 && job->local_count > 0 && agent->servers.pmix)
        rc = pmix_host_set_environment(agent->servers.pmix, &err);
    if (rc < 0)
        agent_fail(agent, &err);
    else if (job->local_count > 0)
        plan_looks(agent);
    if (!agent->ranks) /* more workers than ranks */
        agent_on_all_ended(agent);
}
