/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks ask the launcher for while the job runs (docs/design/037-spawn.md): more ranks, for
 * which it decides where they run (group.c), and names of ports. */
#include <errno.h>
#include <stdlib.h>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "worker/agent/private.h"

/* A request of a rank here that has no answer yet. */
struct agent_spawn {
    LIST_ENTRY(agent_spawn) entry;
    uint64_t id;
    uint32_t rank;
    void *token; /* of the PMIx server; NULL: PMI-1's */
};

/* ---- the rank that asks ---- */

/* group NULL: it cannot be; why NULL: the job ends. */
static void answer(struct agent *agent, uint32_t rank, void *token, const struct rank_group *group,
                   const char *why, bool no_slots)
{
    if (token)
        pmix_host_spawned(agent->servers.pmix, token, group, why, no_slots);
    else if (agent_pmi1(agent, rank)) /* else it has ended meanwhile */
        pmi1_host_spawned(agent_pmi1(agent, rank), rank, group != NULL);
}

static void answer_take(struct agent *agent, struct agent_spawn *spawn,
                        const struct rank_group *group, const char *why, bool no_slots)
{
    LIST_REMOVE(spawn, entry);
    answer(agent, spawn->rank, spawn->token, group, why, no_slots);
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
    if (!message || channel_send(agent->launcher.channel, &envelope) < 0) {
        if (can_ask(agent) && !message)
            log_error("rank %u: spawn: out of memory", request->rank);
        free(spawn);
        answer(agent, request->rank, token, NULL,
               can_ask(agent) ? "spawn: the launcher cannot be asked" : NULL, false);
    } else {
        *spawn = (struct agent_spawn){
            .id = ++agent->spawns.last_id, .rank = request->rank, .token = token};
        LIST_INSERT_HEAD(&agent->spawns.asked, spawn, entry);
    }
    spawn_message_free(message);
}

void agent_spawn_started(struct agent *agent, const struct rank_group *group)
{
    struct agent_spawn *spawn = NULL;
    if (agent_job_local_index(&agent->job, group->parent) >= 0)
        spawn = find(agent, group->wire->request);
    if (spawn)
        answer_take(agent, spawn, group, NULL, false);
}

void agent_spawn_refused(struct agent *agent, const Drarun__Wire__SpawnRefused *refused)
{
    struct agent_spawn *spawn = find(agent, refused->id);
    if (spawn)
        answer_take(agent, spawn, NULL, refused->text, refused->no_slots);
}

/* ---- names ---- */

struct agent_name {
    LIST_ENTRY(agent_name) entry;
    uint64_t id;
    uint32_t rank;
    void *token; /* of the PMIx server; NULL: the rank's, by PMI-1 */
    bool meet;   /* a collective with ranks of other jobs, not a name */
};

/* reply: NULL: the launcher cannot be asked. */
static void answer_name(struct agent *agent, uint32_t rank, void *token,
                        const Drarun__Wire__NameReply *reply)
{
    if (token)
        pmix_host_named(token, reply);
    else if (agent_pmi1(agent, rank))
        pmi1_host_named(agent_pmi1(agent, rank), rank, reply && reply->good,
                        reply ? reply->port : "");
}

static struct agent_name *find_name(const struct agent *agent, uint64_t id)
{
    struct agent_name *name;
    LIST_FOREACH (name, &agent->spawns.names, entry)
        if (name->id == id)
            return name;
    return NULL;
}

static void answer_name_take(struct agent *agent, struct agent_name *name,
                             const Drarun__Wire__NameReply *reply)
{
    LIST_REMOVE(name, entry);
    if (name->meet)
        pmix_host_met(agent->servers.pmix, name->token, NULL);
    else
        answer_name(agent, name->rank, name->token, reply);
    free(name);
}

void agent_name_send(struct agent *agent, Drarun__Wire__NameRequest *message, void *token)
{
    struct agent_name *name = can_ask(agent) ? malloc(sizeof *name) : NULL;
    message->id = agent->spawns.last_id + 1;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(NAME_REQUEST, name_request, message);
    if (!name || channel_send(agent->launcher.channel, &envelope) < 0) {
        struct drarun_error err = {0};
        if (can_ask(agent) && !name) { /* the launcher would keep a name that is withdrawn */
            error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ENOMEM, "out of memory for the name %s",
                       message->service);
            agent_fail(agent, &err);
        }
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
    message.service = unconst(service);
    message.port = unconst(port);
    agent_name_send(agent, &message, NULL);
}

void agent_name_answered(struct agent *agent, const Drarun__Wire__NameReply *reply)
{
    struct agent_name *name = find_name(agent, reply->id);
    if (name && !name->meet)
        answer_name_take(agent, name, reply);
}

void agent_name_forget(struct agent *agent, void *token)
{
    Drarun__Wire__NameRequest message = DRARUN__WIRE__NAME_REQUEST__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(NAME_REQUEST, name_request, &message);
    struct agent_name *name;
    LIST_FOREACH (name, &agent->spawns.names, entry)
        if (name->token == token)
            break;
    if (!name)
        return;
    message.id = name->id;
    message.action = DRARUN__WIRE__NAME_ACTION__NAME_FORGET;
    message.pmix = true;
    if (can_ask(agent)) /* if not, its answer finds nobody */
        channel_send(agent->launcher.channel, &envelope);
    LIST_REMOVE(name, entry);
    free(name);
}

void agent_meet_send(struct agent *agent, Drarun__Wire__MeetRequest *message, void *token)
{
    struct agent_name *meet =
        can_ask(agent) && agent->job.wire->meets ? malloc(sizeof *meet) : NULL;
    message->id = agent->spawns.last_id + 1;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(MEET_REQUEST, meet_request, message);
    if (!meet || channel_send(agent->launcher.channel, &envelope) < 0) {
        free(meet);
        pmix_host_met(agent->servers.pmix, token, NULL);
        return;
    }
    *meet = (struct agent_name){.id = ++agent->spawns.last_id, .token = token, .meet = true};
    LIST_INSERT_HEAD(&agent->spawns.names, meet, entry);
}

void agent_met(struct agent *agent, const Drarun__Wire__MeetReply *reply)
{
    struct agent_name *meet = find_name(agent, reply->id);
    if (!meet || !meet->meet)
        return;
    LIST_REMOVE(meet, entry);
    pmix_host_met(agent->servers.pmix, meet->token, reply);
    free(meet);
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
        answer_take(agent, LIST_FIRST(&agent->spawns.asked), NULL, NULL, false);
}
