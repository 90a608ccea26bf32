/* SPDX-License-Identifier: Apache-2.0 */
/* How the agent ends: its ranks, what it has made, and itself. The files that start ranks or
 * lose the launcher call this one, and it calls none of them. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/shm_clean.h"
#include "worker/agent/private.h"
#include "worker/host/session.h"

/* An agent in a pod that has had a launcher and waits for another before it was given a job. */
#define IDLE_WAIT_MS 60000

static const char *const state_names[] = {
    [AGENT_IDLE] = "idle",       [AGENT_PREPARING] = "preparing", [AGENT_READY] = "ready",
    [AGENT_RUNNING] = "running", [AGENT_ENDING] = "ending",       [AGENT_DONE] = "done",
};

void agent_close_door(struct agent *agent)
{
    listen_close(TAKE_PTR(agent->door));
}

void agent_enter(struct agent *agent, enum agent_state state)
{
    log_debug("agent %u: %s -> %s", agent->tree.self, state_names[agent->state],
              state_names[state]);
    agent->state = state;
    if (state == AGENT_DONE && agent_is_kept(agent))
        agent_close_door(agent);
}

void agent_leave(struct agent *agent, int status)
{
    agent->status = status;
    event_base_loopbreak(agent->base);
}

/* ---- leaving nothing behind ---- */

void agent_clean(struct agent *agent)
{
    if (agent->looks.library_clock)
        event_del(agent->looks.library_clock);
    if (agent->looks.running_clock)
        event_del(agent->looks.running_clock);
    struct agent_session *session = &agent->session;
    if (session->shm && session->out_of_order) {
        int removed = shm_clean_run(session->shm);
        if (removed > 0)
            log_verbose("removed %d shared-memory segments that killed ranks had left", removed);
    }
    shm_clean_free(TAKE_PTR(session->shm));
    int shm_rc = session->shm_dir[0] ? session_remove(session->shm_dir) : 0;
    if (shm_rc < 0)
        log_error("cannot remove %s: %s", session->shm_dir, strerror(-shm_rc));
    session->shm_dir[0] = '\0';
    close_fd(&session->mark);
    if (!session->dir)
        return;
    if (agent->servers.pmix)
        pmix_host_retire(agent->servers.pmix);
    int rc = session_remove(session->dir);
    if (rc < 0)
        log_error("cannot remove %s: %s", session->dir, strerror(-rc));
    free(TAKE_PTR(session->dir));
    if (agent->options.session)
        agent->options.session(NULL, agent->options.session_arg);
}

/* ---- the ranks ---- */

void agent_end_ranks(struct agent *agent, bool at_once)
{
    agent->session.out_of_order = true;
    if (agent->state == AGENT_DONE)
        return;
    if (agent->state == AGENT_RUNNING)
        agent_enter(agent, AGENT_ENDING);
    if (agent->ranks && agent->state == AGENT_ENDING)
        ranks_end(agent->ranks, at_once);
    else if (agent->state != AGENT_ENDING) {
        /* no rank has started: done at once */
        agent_clean(agent);
        agent_enter(agent, AGENT_DONE);
        agent_send_done(agent);
    }
}

void agent_fail(struct agent *agent, const struct drarun_error *err)
{
    agent_send_failure(agent, err);
    agent_end_ranks(agent, true);
}

void agent_finish(struct agent *agent)
{
    agent_clean(agent);
    agent_enter(agent, AGENT_DONE);
    agent_send_done(agent);
    if (agent->launcher.lost && !agent_is_orphan(agent))
        agent_leave(agent, 70);
}

void agent_on_all_ended(void *arg)
{
    if (!agent_collect_begin(arg))
        agent_finish(arg);
}

/* ---- without a launcher ---- */

static void on_orphaned(evutil_socket_t fd, short what, void *arg)
{
    struct agent *agent = arg;
    (void)fd, (void)what;
    if (agent->state == AGENT_IDLE || agent->state == AGENT_DONE) {
        if (agent->options.entry)
            log_error("worker 0 (%s) closed its connection and did not connect again",
                      agent->options.entry);
        agent_leave(agent, 70);
        return;
    }
    log_error("no other launcher connected in time: ending the ranks");
    agent_end_ranks(agent, false);
    if (agent->state == AGENT_DONE)
        agent_leave(agent, 70);
}

bool agent_is_orphan(const struct agent *agent)
{
    return agent->launcher.orphan_clock && !agent->told_to_end &&
           event_pending(agent->launcher.orphan_clock, EV_TIMEOUT, NULL);
}

/* How long to wait for another launcher; 0: not at all. */
static uint32_t orphan_wait_ms(const struct agent *agent)
{
    if (agent->state == AGENT_IDLE || agent->state == AGENT_DONE)
        return agent->options.pod && agent->state == AGENT_IDLE ? IDLE_WAIT_MS : 0;
    if (agent->job.wire)
        return agent->job.wire->orphan_wait_ms;
    /* assigned, and the parent has not called */
    return agent->options.pod && !agent->options.pod->kept ? IDLE_WAIT_MS : 0;
}

bool agent_wait_for_heir(struct agent *agent)
{
    struct agent_launcher *launcher = &agent->launcher;
    struct timeval limit = timeval_from_ms(orphan_wait_ms(agent));
    if (orphan_wait_ms(agent) == 0 || !agent->door || agent->told_to_end || launcher->other_release)
        return false;
    if (!launcher->orphan_clock)
        launcher->orphan_clock = evtimer_new(agent->base, on_orphaned, agent);
    return launcher->orphan_clock && evtimer_add(launcher->orphan_clock, &limit) == 0;
}
