/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/spawn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "jobs/ranks/spawn_place.h"
#include "launcher/job/private.h"
#include "lib/base/affinity.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"

/* Ranks that were started for an earlier request may be about to end: a request that finds no slot
 * waits for them so long. */
#define ROOM_MS 1000

struct ask {
    STAILQ_ENTRY(ask) link;
    uint32_t agent;
    Drarun__Wire__SpawnRequest *wire;
};

/* One that ranks have asked for. */
struct spawned {
    uint32_t group, first, count; /* its number, and its ranks in the job */
};

struct job_spawn {
    struct job *job;
    STAILQ_HEAD(, ask) asks; /* the first is worked on */
    uint32_t groups;         /* how many there are, with the first ranks */
    struct spawned *spawned; /* those that agents were not told the end of */
    size_t spawned_count;
    bool room_over; /* the first has waited long enough for slots */
    /* What agents were told of the first, until they all have answered. */
    struct rankmap map;
    uint8_t *awaited; /* by agent */
    uint32_t awaited_count;
    bool told; /* the above hold */
    struct drarun_error refusal;
};

/* ---- slots ---- */

static uint32_t count_cpus(const struct agent *agent)
{
    /* without: it is of this process and has not said hello yet */
    return agent->cpus > 0 ? agent->cpus : affinity_count();
}

/* The workers that share its machine. */
static uint32_t count_fellows(const struct job *job, const struct agent *agent)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < job->count; i++)
        count += strcmp(job->agents[i].host, agent->host) == 0;
    return count;
}

/* Ranks of a worker: there may be as many groups as ranks, and each request asks for all workers.
 */
struct tally {
    const struct job *job;
    uint32_t first, running;
};

static void tally_rank(uint32_t rank, void *arg)
{
    struct tally *tally = arg;
    tally->first += rank < tally->job->spawning.first_ranks;
    tally->running += !tally->job->rank_ended[rank];
}

static struct tally tally_worker(const struct job *job, uint32_t worker)
{
    struct tally tally = {.job = job};
    rankmap_each_local(&job->map, worker, tally_rank, &tally);
    return tally;
}

static uint32_t slots_of(const struct job *job, const struct agent *agent)
{
    const struct job_request *request = job->request;
    uint32_t said = request_slots(request, agent->index);
    if (said > 0)
        return said;
    if (request->programs[0].workers == 0 && request->per_worker > 0)
        return request->per_worker;
    return spawn_slots(tally_worker(job, agent->index).first,
                       count_cpus(agent) / count_fellows(job, agent));
}

uint32_t job_spawn_universe(const struct job *job)
{
    uint64_t slots = 0;
    for (uint32_t i = 0; i < job->count; i++)
        slots += slots_of(job, &job->agents[i]);
    return slots < RANKMAP_RANKS_MAX ? (uint32_t)slots : RANKMAP_RANKS_MAX;
}

static int place(const struct job *job, const Drarun__Wire__SpawnRequest *wire,
                 struct rankmap *ret_map, struct drarun_error *err)
{
    const struct request_pods *pods = job->request->pods;
    const char *cure = request_is_of_spec(job->request)
                           ? "spec.slots: N gives each worker N, spec.oversubscribe: true starts "
                             "them all the same"
                           : "--slots N gives each worker N, --oversubscribe starts them all the "
                             "same";
    cleanup_free struct place_worker *workers = calloc(job->count, sizeof *workers);
    cleanup_free struct place_program *programs = calloc(wire->n_apps + 1, sizeof *programs);
    if (!workers || !programs)
        return error_set(err, ENOMEM, "spawn: out of memory");
    for (uint32_t i = 0; i < job->count; i++) {
        const struct agent *agent = &job->agents[i];
        workers[i] = (struct place_worker){
            .host = agent->host,
            .node = request_is_here(job->request) ? "localhost"
                    : pods                        ? pods->nodes[i]
                                                  : NULL,
            .slots = slots_of(job, agent),
            .used = tally_worker(job, i).running,
            .gone = agent->phase != AGENT_PREPARED,
        };
    }
    for (size_t i = 0; i < wire->n_apps; i++)
        programs[i] = (struct place_program){wire->apps[i]->count, wire->apps[i]->hosts,
                                             wire->apps[i]->n_hosts};
    return spawn_place(workers, job->count, programs, wire->n_apps,
                       job->request->oversubscribe || wire->oversubscribe, cure, ret_map, err);
}

/* ---- one request ---- */

static void ask_free(struct ask *ask)
{
    drarun__wire__spawn_request__free_unpacked(ask->wire, NULL);
    free(ask);
}

static void finish(struct job_spawn *spawn)
{
    struct ask *ask = STAILQ_FIRST(&spawn->asks);
    STAILQ_REMOVE_HEAD(&spawn->asks, link);
    ask_free(ask);
    rankmap_done(&spawn->map);
    spawn->refusal = (struct drarun_error){0};
    spawn->told = spawn->room_over = false;
    event_del(spawn->job->spawning.room_clock);
}

static void refuse(struct job_spawn *spawn, const struct drarun_error *why)
{
    struct ask *ask = STAILQ_FIRST(&spawn->asks);
    struct agent *agent = &spawn->job->agents[ask->agent];
    Drarun__Wire__SpawnRefused refused = DRARUN__WIRE__SPAWN_REFUSED__INIT;
    const struct log_about about = {.of_rank = true, .rank = ask->wire->rank};
    refused.id = ask->wire->id;
    refused.text = unconst(why->text);
    refused.no_slots = why->code == ENOSPC;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(SPAWN_REFUSED, spawn_refused, &refused);
    if (spawn->job->state == JOB_RUNNING) {
        console_clear(spawn->job->console);
        log_about(&about, LOG_NORMAL, "rank %u: %s", ask->wire->rank, why->text);
    }
    agent_send(agent, &envelope);
    finish(spawn);
}

/* ---- groups that have ended ---- */

static bool has_ended(const struct job *job, const struct spawned *spawned)
{
    for (uint32_t i = 0; i < spawned->count; i++)
        if (!job->rank_ended[spawned->first + i])
            return false;
    return true;
}

/* Returns how many; room for all. */
static size_t list_ended(const struct job_spawn *spawn, uint32_t *ended)
{
    size_t count = 0;
    for (size_t i = 0; i < spawn->spawned_count; i++)
        if (has_ended(spawn->job, &spawn->spawned[i]))
            ended[count++] = spawn->spawned[i].group;
    return count;
}

/* Agents were told. */
static void forget_ended(struct job_spawn *spawn)
{
    size_t kept = 0;
    for (size_t i = 0; i < spawn->spawned_count; i++)
        if (!has_ended(spawn->job, &spawn->spawned[i]))
            spawn->spawned[kept++] = spawn->spawned[i];
    spawn->spawned_count = kept;
}

/* For one more. */
static int reserve_spawned(struct job_spawn *spawn)
{
    struct spawned *more = realloc(spawn->spawned, (spawn->spawned_count + 1) * sizeof *more);
    if (!more)
        return -ENOMEM;
    spawn->spawned = more;
    return 0;
}

/* ---- the group ---- */

struct group {
    Drarun__Wire__Group wire;
    Drarun__Wire__App **apps;
    Drarun__Wire__Block *blocks;
    Drarun__Wire__Block **pointers;
    uint32_t *ended;
    struct strlist preput;
};

static void group_done(struct group *group)
{
    free(group->apps);
    free(group->ended);
    free(group->blocks);
    free(group->pointers);
    strlist_done(&group->preput);
}

static int group_fill(struct group *group, const struct job_spawn *spawn,
                      const Drarun__Wire__SpawnRequest *wire)
{
    const struct rankmap *map = &spawn->map;
    group->apps = calloc(wire->n_apps + 1, sizeof *group->apps);
    group->blocks = calloc(map->block_count, sizeof *group->blocks);
    group->pointers = calloc(map->block_count, sizeof *group->pointers);
    group->ended = calloc(spawn->spawned_count + 1, sizeof *group->ended);
    if (!group->apps || !group->blocks || !group->pointers || !group->ended)
        return -ENOMEM;
    for (size_t i = 0; i < wire->n_apps; i++) {
        group->apps[i] = wire->apps[i]->app;
        for (size_t k = 0; k < wire->apps[i]->n_preput; k++)
            strlist_add(&group->preput, wire->apps[i]->preput[k]);
        if (wire->apps[i]->bind[0])
            group->wire.bind = wire->apps[i]->bind;
    }
    for (size_t b = 0; b < map->block_count; b++) {
        drarun__wire__block__init(&group->blocks[b]);
        group->blocks[b].first = map->blocks[b].first;
        group->blocks[b].count = map->blocks[b].count;
        group->blocks[b].worker = map->blocks[b].worker;
        group->blocks[b].app = map->blocks[b].app;
        group->pointers[b] = &group->blocks[b];
    }
    group->wire.index = spawn->groups;
    group->wire.first = spawn->job->map.ranks;
    group->wire.parent = wire->rank;
    group->wire.request = wire->id;
    group->wire.stop_at = wire->stop_at;
    group->wire.apps = group->apps;
    group->wire.n_apps = wire->n_apps;
    group->wire.blocks = group->pointers;
    group->wire.n_blocks = map->block_count;
    group->wire.preput = group->preput.items;
    group->wire.n_preput = group->preput.count;
    group->wire.ended = group->ended;
    group->wire.n_ended = list_ended(spawn, group->ended);
    return group->preput.failed ? -ENOMEM : 0;
}

static int tell_agents(struct job_spawn *spawn, const Drarun__Wire__Envelope *envelope)
{
    struct job *job = spawn->job;
    int rc = 0;
    spawn->told = true;
    spawn->awaited_count = 0;
    for (uint32_t i = 0; rc == 0 && i < job->count; i++) {
        spawn->awaited[i] = job->agents[i].channel != NULL;
        if (!spawn->awaited[i])
            continue;
        rc = channel_send(job->agents[i].channel, envelope);
        spawn->awaited[i] = rc == 0;
        spawn->awaited_count += rc == 0;
    }
    return rc;
}

static void cancel(struct job_spawn *spawn)
{
    Drarun__Wire__GroupCancel message = DRARUN__WIRE__GROUP_CANCEL__INIT;
    message.index = spawn->groups;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(GROUP_CANCEL, group_cancel, &message);
    agents_send(spawn->job, &envelope);
    struct drarun_error why = spawn->refusal;
    refuse(spawn, &why);
}

/* The ranks count as the job's from now on. Where their parent waits in MPI_Comm_spawn until they
 * connect to the same PMI server, their programs are expected to. */
static int enter(struct job_spawn *spawn, struct drarun_error *err)
{
    struct job *job = spawn->job;
    uint32_t ranks = job->map.ranks + spawn->map.ranks, apps = job->map.apps + spawn->map.apps;
    uint32_t before = job->map.ranks;
    uint8_t *ended = realloc(job->rank_ended, ranks);
    if (!ended)
        return error_set(err, ENOMEM, "spawn: out of memory");
    job->rank_ended = ended;
    memset(ended + before, 0, ranks - before);
    if (cause_grow(job->cause, ranks, apps) < 0)
        return error_set(err, ENOMEM, "spawn: out of memory");
    int rc = output_grow(job->output, ranks, err);
    if (rc == 0 && reserve_spawned(spawn) < 0)
        rc = error_set(err, ENOMEM, "spawn: out of memory");
    if (rc == 0)
        rc = rankmap_append(&job->map, &spawn->map, err);
    if (rc < 0)
        return rc;
    spawn->spawned[spawn->spawned_count++] =
        (struct spawned){spawn->groups, before, spawn->map.ranks};
    const struct ask *ask = STAILQ_FIRST(&spawn->asks);
    enum cause_api api = cause_api_of(job->cause, ask->wire->rank);
    for (uint32_t a = apps - spawn->map.apps; a < apps && !ask->wire->unawaited; a++)
        cause_connected(job->cause, job->map.app_firsts[a], api);
    return 0;
}

static void start(struct job_spawn *spawn)
{
    struct drarun_error err = {0};
    Drarun__Wire__GroupStart message = DRARUN__WIRE__GROUP_START__INIT;
    if (enter(spawn, &err) < 0) {
        spawn->refusal = err;
        cancel(spawn);
        return;
    }
    message.index = spawn->groups++;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(GROUP_START, group_start, &message);
    agents_send(spawn->job, &envelope);
    finish(spawn);
}

/* ---- the queue ---- */

/* Ranks that were asked for run, and may be about to end. */
static bool room_may_come(const struct job *job)
{
    for (uint32_t r = job->spawning.first_ranks; r < job->map.ranks; r++)
        if (!job->rank_ended[r])
            return true;
    return false;
}

/* False: it waits for slots. */
static bool try_first(struct job_spawn *spawn)
{
    struct job *job = spawn->job;
    const struct ask *ask = STAILQ_FIRST(&spawn->asks);
    struct drarun_error err = {0};
    struct group group = {.wire = DRARUN__WIRE__GROUP__INIT};
    int rc = job->state == JOB_RUNNING ? place(job, ask->wire, &spawn->map, &err)
                                       : error_set(&err, ECANCELED, "spawn: the job is ending");
    if (rc == -ENOSPC && !spawn->room_over && room_may_come(job)) {
        if (!event_pending(job->spawning.room_clock, EV_TIMEOUT, NULL))
            job_start_clock(job->spawning.room_clock, ROOM_MS);
        return false;
    }
    if (rc == 0 && group_fill(&group, spawn, ask->wire) < 0)
        rc = error_set(&err, ENOMEM, "spawn: out of memory");
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(GROUP, group, &group.wire);
    if (rc == 0)
        rc = tell_agents(spawn, &envelope);
    if (spawn->told)
        forget_ended(spawn);
    group_done(&group);
    if (rc < 0 && err.code == 0)
        error_set(&err, -rc, "spawn: cannot send the request to the agents: %s", strerror(-rc));
    if (rc < 0 && spawn->told) { /* those that were told answer first */
        spawn->refusal = err;
        return true;
    }
    if (rc < 0)
        refuse(spawn, &err);
    return true;
}

/* Lost agents do not answer. */
static void count_awaited(struct job_spawn *spawn)
{
    for (uint32_t i = 0; i < spawn->job->count; i++)
        if (spawn->awaited[i] && !spawn->job->agents[i].channel) {
            spawn->awaited[i] = 0;
            spawn->awaited_count--;
            error_set(&spawn->refusal, ESHUTDOWN, "spawn: worker %u was lost", i);
        }
}

void job_spawn_look(struct job_spawn *spawn)
{
    while (!STAILQ_EMPTY(&spawn->asks)) {
        if (!spawn->told && !try_first(spawn))
            return;
        if (!spawn->told)
            continue;
        count_awaited(spawn);
        if (spawn->awaited_count > 0)
            return;
        if (spawn->job->state != JOB_RUNNING && spawn->refusal.code == 0)
            error_set(&spawn->refusal, ECANCELED, "spawn: the job is ending");
        if (spawn->refusal.code != 0)
            cancel(spawn);
        else
            start(spawn);
    }
}

void job_spawn_ready(struct job_spawn *spawn, struct agent *agent,
                     const Drarun__Wire__GroupReady *ready)
{
    if (!spawn->told || !spawn->awaited[agent->index] || ready->index != spawn->groups)
        return;
    spawn->awaited[agent->index] = 0;
    spawn->awaited_count--;
    const Drarun__Wire__Failure *refusal = ready->refusal;
    if (refusal && spawn->refusal.code == 0)
        error_set(&spawn->refusal, refusal->code ? refusal->code : EPROTO, "spawn: %s",
                  refusal->text);
}

void job_spawn_asked(struct job_spawn *spawn, struct agent *agent, Drarun__Wire__Envelope *message)
{
    struct ask *ask = calloc(1, sizeof *ask);
    struct drarun_error err = {0};
    if (!ask) { /* no answer can be sent, and the rank has no deadline of its own */
        error_set(&err, ENOMEM, "spawn: out of memory");
        job_fail(spawn->job, &err);
        return;
    }
    message->body_case = DRARUN__WIRE__ENVELOPE__BODY__NOT_SET; /* ours now */
    *ask = (struct ask){.agent = agent->index, .wire = TAKE_PTR(message->spawn_request)};
    STAILQ_INSERT_TAIL(&spawn->asks, ask, link);
}

void job_spawn_room_over(struct job_spawn *spawn)
{
    spawn->room_over = true;
}

/* ---- life ---- */

struct job_spawn *job_spawn_new(struct job *job)
{
    struct job_spawn *spawn = calloc(1, sizeof *spawn);
    if (!spawn)
        return NULL;
    spawn->job = job;
    spawn->groups = job->worlds;
    STAILQ_INIT(&spawn->asks);
    spawn->awaited = calloc(job->count, sizeof *spawn->awaited);
    if (!spawn->awaited) {
        job_spawn_free(spawn);
        return NULL;
    }
    return spawn;
}

void job_spawn_free(struct job_spawn *spawn)
{
    if (!spawn)
        return;
    while (!STAILQ_EMPTY(&spawn->asks)) {
        struct ask *ask = STAILQ_FIRST(&spawn->asks);
        STAILQ_REMOVE_HEAD(&spawn->asks, link);
        ask_free(ask);
    }
    rankmap_done(&spawn->map);
    free(spawn->spawned);
    free(spawn->awaited);
    free(spawn);
}
