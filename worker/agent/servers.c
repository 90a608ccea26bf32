/* SPDX-License-Identifier: Apache-2.0 */
/* What serves the ranks here: PMIx, PMI-1 and the topology for both, and what these tell the agent.
 */
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "worker/agent/private.h"

/* ---- what they tell ---- */

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
    for (uint32_t i = 0; i < agent->job.local_count; i++)
        if (agent->job.local[i] - first < count)
            agent->rank[i].asked = signo;
    if (agent->ranks)
        ranks_signal_some(agent->ranks, first, count, signo);
}

static pid_t pid_of_rank(void *arg, uint32_t rank)
{
    const struct agent *agent = arg;
    return agent->ranks ? ranks_pid(agent->ranks, rank) : -1;
}

static bool is_rank(pid_t pid, void *arg)
{
    const struct agent *agent = arg;
    return agent->ranks && ranks_has_pid(agent->ranks, pid);
}

static void process_of_rank(void *arg, uint32_t rank, struct pmix_process *ret)
{
    const struct agent *agent = arg;
    struct rank_result result;
    bool runs = false;
    int64_t index = agent_job_local_index(&agent->job, rank);
    *ret = (struct pmix_process){0};
    if (!agent->ranks || index < 0 || !ranks_find(agent->ranks, rank, &result, &runs))
        return;
    ret->pid = result.pid;
    ret->ended = !runs;
    ret->connected = agent->rank[index].api != RANK_API_NONE;
    ret->code = result.signo > 0 ? 128 + result.signo : result.code;
}

/* Where a rank waits, in words. */
static const char *stop_place(const struct agent *agent, uint32_t rank)
{
    int64_t index = agent_job_local_index(&agent->job, rank);
    switch (agent_job_group_of(&agent->job, rank)->stop_at) {
    case DRARUN__WIRE__STOP_AT__STOP_AT_EXEC:
        return "before its first instruction";
    case DRARUN__WIRE__STOP_AT__STOP_AT_INIT:
        return agent->rank[index].api == RANK_API_PMI1 ? "in PMI_Init" : "in PMIx_Init";
    default:
        return "where its MPI library does";
    }
}

void agent_rank_waits(void *arg, uint32_t rank)
{
    struct agent *agent = arg;
    struct buf text = BUF_INIT;
    buf_printf(&text, "rank %u on %s: process %d waits for a debugger, %s", rank, agent->job.host,
               (int)ranks_pid(agent->ranks, rank), stop_place(agent, rank));
    if (text.data)
        agent_send_note(agent, text.data);
    buf_done(&text);
}

static void pmi1_waits(void *arg, uint32_t rank)
{
    struct agent *agent = arg;
    pmix_host_waits(agent->servers.pmix, rank);
}

static void group_released(void *arg, const struct rank_group *group)
{
    struct agent *agent = arg;
    if (agent->servers.pmi1[group->index])
        pmi1_host_release(agent->servers.pmi1[group->index]);
}

void agent_release_ranks(struct agent *agent)
{
    if (!agent->servers.pmix)
        return;
    for (uint32_t i = 0; i < agent->job.group_count; i++)
        group_released(agent, agent->job.groups[i]);
    pmix_host_release(agent->servers.pmix);
}

static int pmix_log(void *arg, uint32_t rank, int stream, const char *text, void *token)
{
    struct agent *agent = arg;
    return agent->ranks ? ranks_say(agent->ranks, rank, stream == 1 ? RANK_STDOUT : RANK_STDERR,
                                    text, strlen(text), token)
                        : -ESRCH;
}

static void pmix_refused(void *arg, uid_t uid)
{
    agent_user_refused(arg, uid);
}

static void pmix_failed(void *arg, const struct drarun_error *err)
{
    struct agent *agent = arg;
    agent_fail(agent, err);
}

static void pmix_spawn(void *arg, const struct spawn_request *request, void *token)
{
    agent_spawn_ask(arg, request, token);
}

static void pmi1_spawn(void *arg, const struct spawn_request *request)
{
    agent_spawn_ask(arg, request, NULL);
}

static void pmix_name(void *arg, Drarun__Wire__NameRequest *request, void *token)
{
    agent_name_send(arg, request, token);
}

static void pmix_forget_name(void *arg, void *token)
{
    agent_name_forget(arg, token);
}

static void pmix_meet(void *arg, Drarun__Wire__MeetRequest *request, void *token)
{
    agent_meet_send(arg, request, token);
}

static void pmi1_name(void *arg, uint32_t rank, enum pmi1_name what, const char *service,
                      const char *port)
{
    agent_name_ask(arg, rank, what, service, port);
}

/* ---- life ---- */

int agent_open_servers(struct agent *agent, struct drarun_error *err)
{
    struct pmix_host_owner pmix = {
        .connected = pmix_connected,
        .finalized = rank_finalized,
        .lost = rank_lost,
        .abort = rank_abort,
        .route = pmix_send,
        .signal = pmix_signal,
        .pid_of = pid_of_rank,
        .is_rank = is_rank,
        .process = process_of_rank,
        .waits = agent_rank_waits,
        .released = group_released,
        .log = pmix_log,
        .spawn = pmix_spawn,
        .name = pmix_name,
        .forget_name = pmix_forget_name,
        .meet = pmix_meet,
        .refused = pmix_refused,
        .failed = pmix_failed,
        .arg = agent,
    };
    struct agent_servers *servers = &agent->servers;
    if (!agent->job.pmix)
        return 0;
    servers->topology = topology_new();
    if (!servers->topology)
        return error_set(err, ENOMEM, "out of memory");
    servers->pmix = pmix_host_new(agent->base, &agent->job, &agent->tree, agent->coll,
                                  servers->topology, agent->session.dir, &pmix, err);
    int rc = servers->pmix ? 0 : -err->code;
    for (uint32_t i = 0; rc == 0 && i < agent->job.launched; i++)
        rc = agent_open_group(agent, agent->job.groups[i], err);
    return rc;
}

int agent_open_group(struct agent *agent, const struct rank_group *group, struct drarun_error *err)
{
    struct pmi1_host_owner owner = {.connected = pmi1_connected,
                                    .finalized = rank_finalized,
                                    .lost = rank_lost,
                                    .waits = pmi1_waits,
                                    .abort = rank_abort,
                                    .spawn = pmi1_spawn,
                                    .name = pmi1_name,
                                    .failed = pmix_failed,
                                    .arg = agent};
    if (!agent->servers.pmix)
        return 0;
    struct pmi1_host **pmi1 = &agent->servers.pmi1[group->index];
    *pmi1 = pmi1_host_new(agent->base, &agent->job, group, agent->coll, agent->servers.topology,
                          agent->session.dir, &owner, err);
    if (!*pmi1)
        return -err->code;
    int rc = group->spawned ? pmix_host_add_group(agent->servers.pmix, err) : 0;
    if (rc < 0)
        pmi1_host_free(TAKE_PTR(*pmi1));
    return rc;
}

void agent_close_group(struct agent *agent, const struct rank_group *group)
{
    if (!agent->servers.pmix)
        return;
    pmi1_host_free(TAKE_PTR(agent->servers.pmi1[group->index]));
    pmix_host_drop_group(agent->servers.pmix);
}
