/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that a rank asks for while the job runs (docs/design/037-spawn.md): its request goes to the
 * launcher, which decides where they run and tells all agents of the new group. Each checks its
 * share, and when all can start theirs, all do. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "worker/agent/private.h"

/* A request of a rank here that has no answer yet. */
struct agent_spawn {
    LIST_ENTRY(agent_spawn) entry;
    uint64_t id;
    uint32_t rank;
    void *token; /* of the PMIx server; NULL: PMI-1's */
};

/* ---- the rank that asks ---- */

static void answer(struct agent *agent, uint32_t rank, void *token, const struct rank_group *group,
                   bool no_slots)
{
    if (token)
        pmix_host_spawned(token, group, no_slots);
    else
        pmi1_host_spawned(agent_pmi1(agent, rank), rank, group != NULL);
}

static void answer_take(struct agent *agent, struct agent_spawn *spawn,
                        const struct rank_group *group, bool no_slots)
{
    LIST_REMOVE(spawn, entry);
    answer(agent, spawn->rank, spawn->token, group, no_slots);
    free(spawn);
}

static struct agent_spawn *find(const struct agent *agent, uint64_t id)
{
    struct agent_spawn *spawn;
    LIST_FOREACH (spawn, &agent->spawns.asked, entry)
        if (spawn->id == id)
            return spawn;
    return NULL;
}

static bool can_ask(const struct agent *agent)
{
    return agent->state == AGENT_RUNNING && agent_has_launcher(agent);
}

void agent_spawn_ask(struct agent *agent, const struct spawn_request *request, void *token)
{
    struct agent_spawn *spawn = NULL;
    Drarun__Wire__SpawnRequest *message = NULL;
    if (can_ask(agent))
        spawn = malloc(sizeof *spawn);
    if (spawn)
        message = spawn_message_new(request, agent->spawns.last_id + 1);
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(SPAWN_REQUEST, spawn_request, message);
    if (!message || channel_send(agent->control, &envelope) < 0) {
        free(spawn);
        answer(agent, request->rank, token, NULL, false);
    } else {
        *spawn = (struct agent_spawn){
            .id = ++agent->spawns.last_id, .rank = request->rank, .token = token};
        LIST_INSERT_HEAD(&agent->spawns.asked, spawn, entry);
    }
    spawn_message_free(message);
}

void agent_spawn_refused(struct agent *agent, const Drarun__Wire__SpawnRefused *refused)
{
    struct agent_spawn *spawn = find(agent, refused->id);
    if (spawn)
        answer_take(agent, spawn, NULL, refused->no_slots);
}

/* ---- names ---- */

struct agent_name {
    LIST_ENTRY(agent_name) entry;
    uint64_t id;
    uint32_t rank;
    void *token; /* of the PMIx server; NULL: the rank's, by PMI-1 */
};

/* reply: NULL: the launcher cannot be asked. */
static void answer_name(struct agent *agent, uint32_t rank, void *token,
                        const Drarun__Wire__NameReply *reply)
{
    if (token)
        pmix_host_named(token, reply);
    else
        pmi1_host_named(agent_pmi1(agent, rank), rank, reply && reply->good,
                        reply ? reply->port : "");
}

static void answer_name_take(struct agent *agent, struct agent_name *name,
                             const Drarun__Wire__NameReply *reply)
{
    LIST_REMOVE(name, entry);
    answer_name(agent, name->rank, name->token, reply);
    free(name);
}

void agent_name_send(struct agent *agent, Drarun__Wire__NameRequest *message, void *token)
{
    struct agent_name *name = can_ask(agent) ? malloc(sizeof *name) : NULL;
    message->id = agent->spawns.last_id + 1;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(NAME_REQUEST, name_request, message);
    if (!name || channel_send(agent->control, &envelope) < 0) {
        free(name);
        answer_name(agent, message->rank, token, NULL);
        return;
    }
    *name =
        (struct agent_name){.id = ++agent->spawns.last_id, .rank = message->rank, .token = token};
    LIST_INSERT_HEAD(&agent->spawns.names, name, entry);
}

void agent_name_ask(struct agent *agent, uint32_t rank, enum pmi1_name what, const char *service,
                    const char *port)
{
    Drarun__Wire__NameRequest message = DRARUN__WIRE__NAME_REQUEST__INIT;
    message.rank = rank;
    message.action = what == PMI1_PUBLISH  ? DRARUN__WIRE__NAME_ACTION__NAME_PUBLISH
                     : what == PMI1_LOOKUP ? DRARUN__WIRE__NAME_ACTION__NAME_LOOKUP
                                           : DRARUN__WIRE__NAME_ACTION__NAME_UNPUBLISH;
    message.service = (char *)service;
    message.port = (char *)port;
    agent_name_send(agent, &message, NULL);
}

void agent_name_answered(struct agent *agent, const Drarun__Wire__NameReply *reply)
{
    struct agent_name *name;
    LIST_FOREACH (name, &agent->spawns.names, entry)
        if (name->id == reply->id)
            break;
    if (name)
        answer_name_take(agent, name, reply);
}

void agent_names_drop(struct agent *agent)
{
    while (!LIST_EMPTY(&agent->spawns.names))
        answer_name_take(agent, LIST_FIRST(&agent->spawns.names), NULL);
}

void agent_spawn_drop(struct agent *agent)
{
    agent_names_drop(agent);
    while (!LIST_EMPTY(&agent->spawns.asked))
        answer_take(agent, LIST_FIRST(&agent->spawns.asked), NULL, false);
}

/* ---- the new group ---- */

static struct rank_group *last_group(const struct agent *agent)
{
    return agent->job.groups[agent->job.group_count - 1];
}

static void forget_cpus(struct agent *agent, const struct rank_group *group)
{
    for (uint32_t i = 0; i < group->local_count; i++)
        free(TAKE_PTR(agent->rank[group->local_first + i].cpus));
}

/* Everything but the job's own list of groups. */
static int prepare(struct agent *agent, const struct rank_group *group, struct drarun_error *err)
{
    struct agent_job *job = &agent->job;
    if (agent_reserve_ranks(agent, group->index) < 0)
        return error_set(err, ENOMEM, "out of memory");
    if (group->local_count == 0 && agent->state != AGENT_RUNNING)
        return 0; /* it only passes on what others say */
    if (agent->state != AGENT_RUNNING || !agent->ranks)
        return error_kind(err, DRARUN_ERR_INTERRUPTED, ESHUTDOWN,
                          "worker %u takes no more ranks: those that it had have ended",
                          job->worker);
    uint32_t here = (uint32_t)ranks_running(agent->ranks) + group->local_count;
    int rc = agent_check_programs(agent, group, err);
    if (rc == 0)
        rc = agent_check_room(agent, group->local_count, err);
    if (rc == 0 && group->local_count > 0 && agent_is_oversubscribed(job, here))
        job->oversubscribed = true;
    if (rc == 0)
        rc = agent_bind_group(agent, group, err);
    if (rc == 0)
        rc = agent_open_group(agent, group, err);
    if (rc == 0 && ranks_add(agent->ranks, group->local_count) < 0) {
        agent_close_group(agent, group);
        rc = error_set(err, ENOMEM, "out of memory");
    }
    if (rc < 0)
        forget_cpus(agent, group);
    agent->spawns.opened = rc == 0;
    return rc;
}

static void send_ready(struct agent *agent, uint32_t index, const struct drarun_error *refusal)
{
    Drarun__Wire__GroupReady ready = DRARUN__WIRE__GROUP_READY__INIT;
    Drarun__Wire__Failure failure = DRARUN__WIRE__FAILURE__INIT;
    ready.index = index;
    if (refusal) {
        failure.kind = refusal->kind;
        failure.code = refusal->code;
        failure.text = (char *)refusal->text;
        failure.rank = -1;
        ready.refusal = &failure;
    }
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(GROUP_READY, group_ready, &ready);
    agent_send(agent, &envelope);
}

void agent_group_come(struct agent *agent, Drarun__Wire__Envelope *message)
{
    struct drarun_error err = {0};
    uint32_t index = message->group->index;
    message->body_case = DRARUN__WIRE__ENVELOPE__BODY__NOT_SET; /* ours now */
    agent->spawns.opened = false;
    int rc = agent_job_add_group_take(&agent->job, TAKE_PTR(message->group), &err);
    if (rc == 0) {
        rc = prepare(agent, last_group(agent), &err);
        if (rc < 0)
            agent_job_drop_group(&agent->job);
        else
            agent->spawns.prepared = index;
    }
    send_ready(agent, index, rc < 0 ? &err : NULL);
}

/* The rank that asked is told at once: whoever it calls next waits for its new fellows. */
static void answer_parent(struct agent *agent, const struct rank_group *group)
{
    struct agent_spawn *spawn = NULL;
    if (agent_job_local_index(&agent->job, group->parent) >= 0)
        spawn = find(agent, group->wire->request);
    if (spawn)
        answer_take(agent, spawn, group, false);
}

/* The ranks of the launch, whose first group is 0, are never asked for. */
static bool is_prepared(const struct agent *agent, uint32_t index)
{
    return index > 0 && agent->spawns.prepared == index;
}

void agent_group_start(struct agent *agent, uint32_t index)
{
    struct drarun_error err = {0};
    if (!is_prepared(agent, index))
        return;
    agent->spawns.prepared = 0;
    struct rank_group *group = last_group(agent);
    int rc = agent->state == AGENT_RUNNING ? agent_start_group(agent, group, &err) : 0;
    if (rc == 0) {
        answer_parent(agent, group);
        return;
    }
    agent_send_failure(agent, &err, -1);
    agent_end_ranks(agent, true);
}

void agent_group_cancel(struct agent *agent, uint32_t index)
{
    if (!is_prepared(agent, index))
        return;
    agent->spawns.prepared = 0;
    struct rank_group *group = last_group(agent);
    if (agent->spawns.opened) {
        ranks_drop(agent->ranks, group->local_count);
        agent_close_group(agent, group);
        forget_cpus(agent, group);
    }
    agent_job_drop_group(&agent->job);
}
