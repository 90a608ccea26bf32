/* SPDX-License-Identifier: Apache-2.0 */
/* What has ended is noted here: agents, their processes and pods, and by them the job. course.c
 * decides what follows (job_look); the loop's callbacks call it when they have noted everything. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/job/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

/* ---- the job ---- */

void job_caused(struct job *job, bool first)
{
    job->caused |= first;
}

void job_fail(struct job *job, const struct drarun_error *err)
{
    bool first = cause_failure(job->cause, err);
    if (!first)
        log_verbose("%s", err->text);
    job_caused(job, first);
}

void job_fail_worker(struct agent *agent, const struct drarun_error *err)
{
    struct job *job = agent->job;
    const struct request_pods *pods = job->request->pods;
    const char *node = pods ? pods->nodes[agent->index] : agent->host;
    bool first = cause_worker_failure(job->cause, agent->index, node, err);
    if (!first)
        log_verbose("%s", err->text);
    job_caused(job, first);
}

/* ---- phases of an agent ---- */

static void count_phase(struct job *job, enum agent_phase phase)
{
    job->phases.greeted += phase == AGENT_GREETED;
    job->phases.prepared += phase == AGENT_PREPARED;
    job->phases.gone += phase == AGENT_DONE || phase == AGENT_LOST;
    job->phases.lost += phase == AGENT_LOST;
}

bool agent_advance(struct agent *agent, enum agent_event event)
{
    struct drarun_error err = {0};
    const struct agent_step *step = agent_step_find(agent->phase, event);
    if (!step) {
        error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, EPROTO, "its message \"%s\" came while %s",
                   agent_event_name(event), agent_phase_name(agent->phase));
        agent_lose(agent, &err);
        return false;
    }
    if (step->next == agent->phase)
        return true;
    const struct log_about about = agent_about(agent);
    log_about(&about, LOG_VERBOSE, "worker %u: %s -> %s", agent->index,
              agent_phase_name(agent->phase), agent_phase_name(step->next));
    agent->phase = step->next;
    count_phase(agent->job, agent->phase);
    return true;
}

/* how: what has become of it. */
static void drop(struct agent *agent, const char *how, const struct drarun_error *why)
{
    struct job *job = agent->job;
    char name[128];
    if (agent->linger)
        event_free(TAKE_PTR(agent->linger));
    if (job->remote)
        remote_api()->give_up(job->remote, agent->index);
    channel_free(TAKE_PTR(agent->channel));
    if (agent->pid && !agent->reaped)
        kill(agent->pid, SIGKILL);
    if (agent->phase >= AGENT_DONE)
        return;
    if (agent->launched)
        job->local.orphans |= agent->pid > 0;
    agent_name(agent, name, sizeof name);
    agent_advance(agent, AGENT_CLOSED);
    if (!why)
        return;
    agent->job->hopeless |= why->code == EPROTONOSUPPORT || why->code == EACCES;
    struct drarun_error err = *why;
    err.kind = err.kind ? err.kind : DRARUN_ERR_INFRASTRUCTURE;
    error_prefix(&err, "%s %s", name, how);
    job_fail_worker(agent, &err);
}

void agent_lose(struct agent *agent, const struct drarun_error *why)
{
    drop(agent, "was lost", why);
}

void agent_refused(struct agent *agent, const struct drarun_error *why)
{
    drop(agent, "refused this launcher", why);
}

bool job_gathered(const struct job *job)
{
    return job->phases.greeted == job->count;
}

/* ---- connections and pods ---- */

const char *agent_why(const struct agent *agent)
{
    return agent->why.code ? agent->why.text : "it closed the connection";
}

int64_t agent_pod_ms(const struct agent *agent)
{
    int code = agent->why.code; /* 0: closed between two messages */
    bool closed = code == 0 || code == ECONNRESET || code == EPIPE || code == EPROTO;
    return agent->linger && closed ? JOB_POD_ENDED_MS : JOB_POD_MS;
}

void agent_conclude(struct agent *agent)
{
    struct drarun_error err = {0};
    int code = agent->why.code;
    const char *why = agent_why(agent);
    char how[64];
    if (agent->phase >= AGENT_DONE)
        return;
    if (agent->reaped) {
        /* that its connection broke as well goes without saying */
        bool known = code == 0 || code == ECONNRESET || code == EPIPE;
        local_agent_describe(agent->wait_status, how, sizeof how);
        error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ECHILD, "its drarun-worker (pid %d) %s%s%s",
                   (int)agent->pid, how, known ? "" : ": ", known ? "" : why);
    } else {
        const struct job_request *request = agent->job->request;
        bool unheard = agent->phase == AGENT_GREETING;
        const char *ask = request->agents                         ? "--key-file"
                          : request->pods && request->pods->entry ? "DRARUN_KEY or --key-file"
                                                                  : NULL;
        error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, code == EACCES ? EACCES : ECONNRESET,
                   "%s%s%s%s", why, unheard && ask ? "; does it have the same " : "",
                   unheard && ask ? ask : "",
                   unheard && ask ? ", and is it free of another launcher?" : "");
    }
    agent_lose(agent, &err);
}

/* A pod that is gone when one looks has no name and no node any more; it had. */
static struct cause_pod with_names(const struct job *job, const struct cause_pod *pod)
{
    const struct request_pods *known = job->request->pods;
    struct cause_pod named = *pod;
    if (!named.pod && known->pods)
        named.pod = known->pods[pod->worker];
    if (!named.node && known->nodes)
        named.node = known->nodes[pod->worker];
    return named;
}

bool agent_pod_ended(struct agent *agent, const struct cause_pod *pod)
{
    struct job *job = agent->job;
    struct cause_pod named = with_names(job, pod);
    bool own = pod->end == POD_END_EXIT || pod->end == POD_END_UNKNOWN;
    agent->pod_told = true;
    if (own && pod->deleting && agent->leaves) {
        /* an agent that leaves as it was told to exits like one whose job is over */
        named.end = POD_END_DELETED;
        cause_pod(job->cause, &named);
    }
    if (agent->phase == AGENT_DONE && !agent->leaves)
        return true; /* in order */
    if (own && agent->channel)
        return false; /* what it said last is unread */
    bool first = cause_pod(job->cause, &named);
    agent_lose(agent, NULL);
    job_caused(job, first);
    return true;
}

/* The cluster takes most of a minute to say that a node does not answer. */
void agent_lose_silent(struct agent *agent, const struct drarun_error *why)
{
    const struct request_pods *pods = agent->job->request->pods;
    if (!pods || pods->entry) {
        agent_lose(agent, why);
        return;
    }
    const struct cause_pod pod = {
        .worker = agent->index,
        .pod = pods->pods[agent->index],
        .node = pods->nodes[agent->index],
        .end = POD_END_NODE_LOST,
        .message = why->text,
        .exit_code = -1,
    };
    agent_pod_ended(agent, &pod);
}

int64_t job_tick(struct job *job, int64_t now_ms, int64_t every_ms)
{
    int64_t late = now_ms - job->liveness.ticked_ms - every_ms;
    job->liveness.ticked_ms = now_ms;
    if (late <= 0)
        return 0;
    for (uint32_t i = 0; i < job->count; i++) {
        struct agent *agent = &job->agents[i];
        agent->heard_ms = now_ms - agent->heard_ms < late ? now_ms : agent->heard_ms + late;
    }
    return late;
}

/* ---- processes ---- */

static bool is_agent(pid_t pid, void *arg)
{
    const struct job *job = arg;
    for (uint32_t i = 0; i < job->count; i++)
        if (job->agents[i].pid == pid && !job->agents[i].reaped)
            return true;
    return false;
}

bool agents_sweep(struct job *job)
{
    if (!job->local.orphans)
        return false;
    size_t found = local_agent_sweep(is_agent, job);
    if (found > 0)
        log_verbose("killed %zu processes that a dead agent had left", found);
    /* those killed may have had children that came to us since */
    return found > 0;
}

bool agents_reaped(const struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++)
        if (job->agents[i].pid && !job->agents[i].reaped)
            return false;
    return true;
}

static void reaped(struct agent *agent, int wait_status)
{
    struct job *job = agent->job;
    agent->reaped = true;
    agent->wait_status = wait_status;
    if (!WIFEXITED(wait_status) || WEXITSTATUS(wait_status) != 0)
        job->local.orphans = true;
    /* what it said last may still be unread in its connection, which then ends too */
    if (!agent->channel)
        agent_conclude(agent);
}

void agents_reap(struct job *job)
{
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (uint32_t i = 0; i < job->count; i++)
            if (job->agents[i].pid == pid)
                reaped(&job->agents[i], status);
    agents_sweep(job);
}

/* What a killed agent could not remove itself. */
void agents_remove_remains(struct job *job)
{
    bool killed = false;
    for (uint32_t i = 0; i < job->count; i++) {
        struct agent *agent = &job->agents[i];
        if (!agent->pid || agent->phase == AGENT_DONE)
            continue;
        killed |= agent->launched;
        char shm_dir[128];
        shm_clean_dir(agent->session_dir, shm_dir, sizeof shm_dir);
        if (agent->launched)
            tree_remove(AT_FDCWD, shm_dir);
        if (agent->launched && tree_remove(AT_FDCWD, agent->session_dir) < 0)
            log_error("cannot remove %s: %s", agent->session_dir, strerror(errno));
    }
    if (killed && job->local.shm)
        shm_clean_run(job->local.shm);
}
