/* SPDX-License-Identifier: Apache-2.0 */
/* `launch: mpirun`: rank 0 is the user's mpirun, every other worker's rank is the server that
 * starts what it asks for (remote.h). */

#include "worker/agent/private.h"
#include "worker/mpirun/remote.h"

static void route(void *arg, Drarun__Wire__Routed *message)
{
    struct agent *agent = arg;
    if (message->destination >= agent->tree.size)
        return;
    if (message->destination != agent->tree.self) {
        peers_route(agent->peers, message);
        return;
    }
    message->source = agent->tree.self;
    remote_routed(agent->servers.remote, message);
}

int agent_mpirun_open(struct agent *agent, struct drarun_error *err)
{
    if (!agent->job.mpirun)
        return 0;
    agent->servers.remote =
        remote_new(agent->base, &agent->job, agent->session.dir, route, agent, err);
    return agent->servers.remote ? 0 : -err->code;
}

bool agent_mpirun_serves(const struct agent *agent)
{
    return agent->servers.remote && agent->job.worker != 0;
}

void agent_mpirun_ended(struct agent *agent)
{
    Drarun__Wire__RemoteEnd body = DRARUN__WIRE__REMOTE_END__INIT;
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    if (!agent->servers.remote || agent->job.worker != 0)
        return;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_REMOTE_END;
    message.remote_end = &body;
    peers_broadcast(agent->peers, &message);
}
