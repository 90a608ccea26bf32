/* SPDX-License-Identifier: Apache-2.0 */
/* The PMIx server of an agent. The agent listens and accepts itself, and the library starts when
 * the first rank connects: a job that uses no PMIx does not pay for it
 * (docs/design/007-pmix-server.md). Loop thread only. */
#ifndef DRARUN_WORKER_PMIX_HOST_H
#define DRARUN_WORKER_PMIX_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <event2/event.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"
#include "lib/wire/wire.pb-c.h"
#include "worker/job/agent_job.h"
#include "worker/tree/coll.h"
#include "worker/job/spawn_request.h"
#include "worker/host/topology.h"
#include "worker/tree/tree.h"

/* What a rank of this agent is as a process. */
struct pmix_process {
    pid_t pid; /* 0: it was not started */
    bool ended, connected;
    int code; /* of one that has ended: its status, or 128 + the signal */
};

struct pmix_host_owner {
    void (*connected)(void *arg, uint32_t rank);
    void (*finalized)(void *arg, uint32_t rank);
    /* Its connection broke before it finalized: it is most likely dying. */
    void (*lost)(void *arg, uint32_t rank);
    void (*abort)(void *arg, uint32_t rank, int status, const char *text);
    /* To one agent, or with broadcast to all others; source is filled by the owner. */
    void (*route)(void *arg, Drarun__Wire__Routed *message, bool broadcast);
    /* Signals ranks of this agent. */
    void (*signal)(void *arg, uint32_t first, uint32_t count, int signo);
    /* The process of a rank of this agent, -1 when there is none; and whether one is a rank's. */
    pid_t (*pid_of)(void *arg, uint32_t rank);
    bool (*is_rank)(pid_t pid, void *arg);
    void (*process)(void *arg, uint32_t rank, struct pmix_process *ret);
    /* A rank of this agent waits for a debugger. */
    void (*waits)(void *arg, uint32_t rank);
    /* A debugger lets the ranks of this group go on; the library tells those that use PMIx. */
    void (*released)(void *arg, const struct rank_group *group);
    /* Text that a rank asked to log, as if it had written it to that stream (1 or 2). Borrowed
     * until pmix_host_logged, which may come within the call. -EDQUOT: too much of the rank waits
     * already; -errno. */
    int (*log)(void *arg, uint32_t rank, int stream, const char *text, void *token);
    /* A rank of this agent asks for more ranks; pmix_host_spawned answers. request is borrowed. */
    void (*spawn)(void *arg, const struct spawn_request *request, void *token);
    /* Worker 0 asks the launcher about a name that other jobs may know: action, service and value
     * of the request are set, and borrowed. pmix_host_named answers, perhaps within the call. */
    void (*name)(void *arg, Drarun__Wire__NameRequest *request, void *token);
    /* A request that waits: its answer is not wanted any more, and pmix_host_named not called. */
    void (*forget_name)(void *arg, void *token);
    /* A collective of ranks of this and other jobs: all but the id is set, and borrowed.
     * pmix_host_met answers, perhaps within the call. */
    void (*meet)(void *arg, Drarun__Wire__MeetRequest *request, void *token);
    /* A process of another user, perhaps a rank's, wanted to connect; it still waits. */
    void (*refused)(void *arg, uid_t uid);
    /* The library failed: the job cannot go on. */
    void (*failed)(void *arg, const struct drarun_error *err);
    void *arg;
};

struct pmix_host;

/* job, tree, coll and topology are borrowed. session_dir exists until pmix_host_retire. uid and
 * gid: those the ranks run with. */
struct pmix_host *pmix_host_new(struct event_base *base, const struct agent_job *job,
                                const struct tree *tree, struct coll *coll,
                                struct topology *topology, const char *session_dir,
                                const struct pmix_host_owner *owner, struct drarun_error *err);
/* Stops answering; the library is not finalized, since that can hang (reference: section 4 item 3)
 * and the process ends anyway. */
void pmix_host_free(struct pmix_host *host);

/* What a rank needs in its environment to find the server. */
void pmix_host_rank_env(const struct pmix_host *host, uint32_t rank, struct strlist *env);
/* The last group of the job is new, or is about to be dropped. */
int pmix_host_add_group(struct pmix_host *host, struct drarun_error *err);
void pmix_host_drop_group(struct pmix_host *host);
/* The ranks of this group have all ended, everywhere: nobody asks for it any more. */
void pmix_host_release_group(struct pmix_host *host, const struct rank_group *group);
/* The ranks of this group here were started and stopped, for a debugger. */
void pmix_host_stopped(struct pmix_host *host, const struct rank_group *group);
/* A rank of this agent waits, as another server has found. */
void pmix_host_waits(struct pmix_host *host, uint32_t rank);
/* The user lets all ranks go on that wait for a debugger. */
void pmix_host_release(struct pmix_host *host);
/* What pmix_host_owner.spawn asked for: its group, NULL when it cannot be, and why; why NULL: the
 * job ends. */
void pmix_host_spawned(struct pmix_host *host, void *token, const struct rank_group *group,
                       const char *why, bool no_slots);
/* A text of pmix_host_owner.log was passed on, or nobody wants it. */
void pmix_host_logged(void *token);
/* What pmix_host_owner.name asked for; reply: borrowed, NULL when the launcher cannot be asked. */
void pmix_host_named(void *token, const Drarun__Wire__NameReply *reply);
/* What pmix_host_owner.meet asked for; reply: the same. */
void pmix_host_met(struct pmix_host *host, void *token, const Drarun__Wire__MeetReply *reply);
/* CPUs that a rank is bound to, before its group is added (the first one: before any rank
 * connects); copied. */
int pmix_host_set_cpus(struct pmix_host *host, uint32_t rank, const uint32_t *ids, size_t count);

/* Requests that the library has handed over so far are handled now. */
void pmix_host_drain(struct pmix_host *host);
/* A message from another agent's server. */
void pmix_host_routed(struct pmix_host *host, const Drarun__Wire__Routed *message);
/* Sets in this process' environment what the library reads there. After the ranks have theirs, and
 * before a thread exists that may read it; pmix_host_start does it when nobody has. */
int pmix_host_set_environment(struct pmix_host *host, struct drarun_error *err);
/* Before the first rank starts: an unpatched library must listen by then. */
int pmix_host_prepare(struct pmix_host *host, struct drarun_error *err);
/* Starts the library before a rank asks, as when all ranks are known to use it. */
int pmix_host_start(struct pmix_host *host, struct drarun_error *err);
bool pmix_host_started(const struct pmix_host *host);
/* All ranks here have ended, and session_dir is removed. Ranks of other agents are still served:
 * worker 0 has what they publish. */
void pmix_host_retire(struct pmix_host *host);
/* Tools find the server from now on, by files below session_dir, which a short job had better not
 * make: a disk takes half a millisecond for them. Failures are logged. Done by pmix_host_start and
 * pmix_host_stopped, too. */
void pmix_host_announce(struct pmix_host *host);

#endif
