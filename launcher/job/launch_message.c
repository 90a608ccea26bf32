/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/launch_message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/job/identity.h"
#include "launcher/job/launch_plan.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/strlist.h"
#include "lib/base/unconst.h"
#include "lib/topo/cpus.h"
#include "lib/wire/channel.h"

struct app {
    Drarun__Wire__App wire;
    struct strlist env;
};

struct launch_message {
    Drarun__Wire__Launch wire;
    const struct rankmap *map;
    struct app *apps;
    Drarun__Wire__Block *blocks;
    Drarun__Wire__Worker *workers;
    Drarun__Wire__World *worlds; /* as many as apps, where they are theirs */
    Drarun__Wire__Assignment assignment;
    struct launch_plan *plan; /* NULL: nothing was derived */
    Drarun__Wire__Shell shell;
    uint64_t soft[RLIM_NLIMITS], hard[RLIM_NLIMITS];
    struct buf cpus;
    char secret[IDENTITY_UID_SIZE];
    void **pointers; /* what the wire's arrays of pointers point into */
};

static bool is_pattern(const char *text)
{
    size_t length = strlen(text);
    return length > 0 && text[length - 1] == '*';
}

/* PREFIX*, as Open MPI 5 has it: of ours, those whose names begin so. False: none does. */
static bool add_matches(struct strlist *env, const char *pattern)
{
    size_t length = strlen(pattern), before = env->count;
    if (!is_pattern(pattern))
        return false;
    for (size_t i = 0; environ[i]; i++)
        if (strncmp(environ[i], pattern, length - 1) == 0)
            strlist_add(env, environ[i]);
    return env->count > before;
}

/* NAME=VALUE as it is; NAME with the value that we have. told: names that have none, which another
 * program may have asked for, too. */
static void add_env(struct strlist *env, const char *text, struct strlist *told)
{
    if (strchr(text, '=')) {
        strlist_add(env, text);
        return;
    }
    const char *value = getenv(text);
    if (value) {
        strlist_addf(env, "%s=%s", text, value);
    } else if (!add_matches(env, text) && !strlist_has(told, text)) {
        log_note(is_pattern(text)
                     ? "-x %s: no variable here has such a name, so the ranks get none"
                     : "-x %s: the variable is not set here, so the ranks do not get it",
                 text);
        strlist_add(told, text);
    }
}

static int fill_apps(struct launch_message *m, const struct job_request *request, void **pointers)
{
    CLEANUP(strlist_done) struct strlist told = STRLIST_INIT;
    for (size_t i = 0; i < request->program_count; i++) {
        const struct request_program *program = &request->programs[i];
        struct app *app = &m->apps[i];
        drarun__wire__app__init(&app->wire);
        for (size_t k = 0; k < program->env.count; k++)
            add_env(&app->env, program->env.items[k], &told);
        app->wire.argv = unconst(program->argv);
        app->wire.n_argv = program->argc;
        app->wire.expand =
            (uint32_t)(program->expand < program->argc ? program->expand : program->argc);
        app->wire.env = app->env.items;
        app->wire.n_env = app->env.count;
        if (program->wd)
            app->wire.wd = unconst(program->wd);
        pointers[i] = &app->wire;
        if (app->env.failed)
            return -ENOMEM;
    }
    m->wire.apps = (Drarun__Wire__App **)pointers;
    m->wire.n_apps = request->program_count;
    return 0;
}

static void fill_blocks(struct launch_message *m, void **pointers)
{
    for (size_t i = 0; i < m->map->block_count; i++) {
        const struct rank_block *from = &m->map->blocks[i];
        drarun__wire__block__init(&m->blocks[i]);
        m->blocks[i].first = from->first;
        m->blocks[i].count = from->count;
        m->blocks[i].worker = from->worker;
        m->blocks[i].app = from->app;
        pointers[i] = &m->blocks[i];
    }
    m->wire.blocks = (Drarun__Wire__Block **)pointers;
    m->wire.n_blocks = m->map->block_count;
}

static void fill_workers(struct launch_message *m, void **pointers)
{
    for (uint32_t i = 0; i < m->map->workers; i++) {
        drarun__wire__worker__init(&m->workers[i]);
        pointers[i] = &m->workers[i];
    }
    m->wire.workers = (Drarun__Wire__Worker **)pointers;
    m->wire.n_workers = m->map->workers;
}

static void fill_worlds(struct launch_message *m, const struct launch_master *masters,
                        void **pointers)
{
    for (size_t i = 0; i < m->wire.n_apps; i++) {
        drarun__wire__world__init(&m->worlds[i]);
        m->worlds[i].master_addr = unconst(masters[i].address);
        m->worlds[i].master_port = masters[i].port;
        pointers[i] = &m->worlds[i];
    }
    m->wire.worlds = (Drarun__Wire__World **)pointers;
    m->wire.n_worlds = m->wire.n_apps;
}

/* The agents of an allocation on this machine began with what its shell had then. */
static int fill_shell(struct launch_message *m, const struct launch_facts *facts)
{
    drarun__wire__shell__init(&m->shell);
    m->shell.umask = umask(0);
    umask((mode_t)m->shell.umask);
    for (unsigned int i = 0; i < RLIM_NLIMITS; i++) {
        struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
        if (i == RLIMIT_NOFILE)
            limit = *facts->files;
        else
            getrlimit((__rlimit_resource_t)i, &limit);
        m->soft[i] = limit.rlim_cur;
        m->hard[i] = limit.rlim_max;
    }
    m->shell.soft = m->soft;
    m->shell.hard = m->hard;
    m->shell.n_soft = m->shell.n_hard = RLIM_NLIMITS;
    if (cpulist_of_process(0, &m->cpus) < 0)
        return -ENOMEM;
    if (m->cpus.data)
        m->shell.cpus = m->cpus.data;
    m->wire.shell = &m->shell;
    return 0;
}

static void fill_job(struct launch_message *m, const struct launch_facts *facts)
{
    const struct job_request *request = facts->request;
    Drarun__Wire__Launch *wire = &m->wire;
    wire->uid = unconst(facts->uid);
    wire->attempt = facts->attempt;
    wire->radix = request->radix;
    wire->inherit_env = facts->env == NULL;
    wire->env = unconst(facts->env);
    for (wire->n_env = 0; facts->env && facts->env[wire->n_env];)
        wire->n_env++;
    wire->mode = request->launch_env      ? DRARUN__WIRE__LAUNCH_MODE__LAUNCH_ENV
                 : request->launch_mpirun ? DRARUN__WIRE__LAUNCH_MODE__LAUNCH_MPIRUN
                                          : DRARUN__WIRE__LAUNCH_MODE__LAUNCH_PMIX;
    uint32_t slots = request_slots(request, 0);
    if (!slots)
        slots = request->per_worker;
    if (!slots && facts->map->workers == 1)
        slots = facts->universe;
    wire->slots = slots; /* one program, where it is looked at */
    wire->bind = unconst(request->bind ? request->bind : "none");
    wire->stop_at = request->stop_at;
    wire->report_bindings = request->report_bindings;
    wire->stdin_rank = facts->stdin_rank;
    wire->kill_after_ms =
        request->kill_after_ms < UINT32_MAX ? (uint32_t)request->kill_after_ms : UINT32_MAX;
    wire->orphan_wait_ms =
        request->orphan_wait_ms < UINT32_MAX ? (uint32_t)request->orphan_wait_ms : UINT32_MAX;
    wire->agent_timeout_ms = (uint32_t)request->agent_timeout_ms;
    wire->universe = facts->universe;
    wire->hold = facts->hold;
    wire->meets = true;
    wire->start = facts->start;
    wire->master_addr = unconst(facts->masters[0].address);
    wire->master_port = facts->masters[0].port;
    wire->same_host = facts->here;
}

struct launch_message *launch_message_new(const struct launch_facts *facts,
                                          struct drarun_error *err)
{
    const struct rankmap *map = facts->map;
    size_t apps = facts->request->program_count;
    struct launch_message *m = calloc(1, sizeof *m);
    if (!m) {
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    drarun__wire__launch__init(&m->wire);
    if (identity_make(m->secret, err) < 0) {
        free(m);
        return NULL;
    }
    m->wire.secret = m->secret;
    m->map = map;
    m->apps = calloc(apps, sizeof *m->apps);
    m->blocks = calloc(map->block_count, sizeof *m->blocks);
    m->workers = calloc(map->workers, sizeof *m->workers);
    m->worlds = calloc(apps, sizeof *m->worlds);
    m->pointers = calloc(2 * apps + map->block_count + map->workers, sizeof *m->pointers);
    int rc = m->apps && m->blocks && m->workers && m->worlds && m->pointers ? 0 : -ENOMEM;
    if (rc == 0)
        rc = fill_apps(m, facts->request, m->pointers);
    if (rc == 0 && facts->request->alloc_agents)
        rc = fill_shell(m, facts);
    if (rc < 0) {
        launch_message_free(m);
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    fill_blocks(m, m->pointers + apps);
    fill_workers(m, m->pointers + apps + map->block_count);
    if (facts->request->own_worlds)
        fill_worlds(m, facts->masters, m->pointers + apps + map->block_count + map->workers);
    fill_job(m, facts);
    return m;
}

void launch_message_free(struct launch_message *m)
{
    if (!m)
        return;
    for (size_t i = 0; m->apps && i < m->wire.n_apps; i++)
        strlist_done(&m->apps[i].env);
    free(m->apps);
    free(m->blocks);
    free(m->workers);
    free(m->worlds);
    free(m->pointers);
    buf_done(&m->cpus);
    launch_plan_free(m->plan);
    free(m);
}

int launch_message_plan(struct launch_message *m, const struct plan *plans, size_t count)
{
    struct launch_plan *made = launch_plan_new(plans, count, m->map);
    if (!made)
        return -ENOMEM;
    launch_plan_free(m->plan);
    m->plan = made;
    m->wire.derived = launch_plan_all(made);
    return 0;
}

void launch_message_collect(struct launch_message *m, const char *variable)
{
    m->wire.collect_env = unconst(variable);
}

void launch_message_worker(struct launch_message *m, uint32_t worker, const char *host,
                           const char *address, uint32_t cpus)
{
    m->workers[worker].host = unconst(host);
    m->workers[worker].address = unconst(address);
    m->workers[worker].cpus = cpus;
}

/* Ranks of earlier workers on the same CPUs: bindings continue after theirs. */
static uint32_t first_slot(const struct launch_message *m, uint32_t worker)
{
    uint32_t slot = 0;
    for (uint32_t i = 0; i < worker; i++)
        if (m->workers[i].cpus == m->workers[worker].cpus)
            slot += m->map->local_sizes[i];
    return slot;
}

void launch_message_for(struct launch_message *m, uint32_t worker, const char *session_dir,
                        int64_t prepare_ms, Drarun__Wire__Envelope *ret_envelope)
{
    Drarun__Wire__WorkerSetting *own = m->plan ? launch_plan_worker(m->plan, worker) : NULL;
    if (worker == 0) {
        m->wire.own = own;
        m->wire.session_dir = unconst(session_dir);
        *ret_envelope = (Drarun__Wire__Envelope)WIRE_ENVELOPE(LAUNCH, launch, &m->wire);
        return;
    }
    drarun__wire__assignment__init(&m->assignment);
    m->assignment.uid = m->wire.uid;
    m->assignment.attempt = m->wire.attempt;
    m->assignment.worker = worker;
    m->assignment.own = own;
    m->assignment.session_dir = unconst(session_dir);
    m->assignment.local_first_slot = first_slot(m, worker);
    m->assignment.prepare_ms = prepare_ms < UINT32_MAX ? (uint32_t)prepare_ms : UINT32_MAX;
    *ret_envelope = (Drarun__Wire__Envelope)WIRE_ENVELOPE(ASSIGNMENT, assignment, &m->assignment);
}
