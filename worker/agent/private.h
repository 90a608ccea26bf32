/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the agent share. Each calls those below it alone: agent.c (life), door.c (who
 * may speak to it), control.c (what the launcher says), neighbours.c (the tree), group.c (ranks
 * that come later), launch.c (from a launch message to running ranks), binding.c (their CPUs),
 * shell.c (what it takes over from the launcher), servers.c (PMIx and PMI-1), spawn.c (what ranks
 * ask for), end.c (how ranks and agent end), and what report.c and its like tell the launcher. */
#ifndef DRARUN_WORKER_AGENT_PRIVATE_H
#define DRARUN_WORKER_AGENT_PRIVATE_H

#include <jansson.h>
#include <sys/queue.h>
#include "lib/inspect/verbs_open.h"
#include "lib/wire/channel.h"
#include "worker/agent/agent.h"
#include "worker/agent/late_aborts.h"
#include "worker/job/agent_job.h"
#include "worker/tree/coll.h"
#include "worker/tree/listen.h"
#include "worker/host/other_user.h"
#include "worker/tree/peers.h"
#include "worker/pmi1/host.h"
#include "worker/pmix/host.h"
#include "worker/ranks/ranks.h"
#include "worker/ranks/setting.h"
#include "worker/tree/tree.h"
#include "worker/host/vendor_env.h"

enum agent_state {
    AGENT_IDLE = 1,  /* no job yet */
    AGENT_PREPARING, /* the tree is being connected */
    AGENT_READY,     /* waits for the launcher's start */
    AGENT_RUNNING,
    AGENT_ENDING, /* ranks are being ended */
    AGENT_DONE,   /* every rank ended, everything removed; relays for others until told to go */
};

/* What is known of one rank. */
struct agent_rank {
    enum { RANK_API_NONE = 0, RANK_API_PMIX, RANK_API_PMI1 } api;
    bool finalized;
    char *refusal;  /* why its connection to PMIx was refused; NULL: it was not */
    int asked;      /* the last signal that a rank or a tool asked for; 0: none */
    uint32_t *cpus; /* that it is bound to; NULL: none */
    size_t cpu_count;
    bool cpus_shared; /* with other ranks, which are more than the CPUs are enough for */
};

/* The one launcher that the agent serves: the newest. door.c sets it with each that comes;
 * control.c notes that it is gone, and its last question. The channel of one that is gone stays
 * until another comes, and nothing is sent to it. */
struct agent_launcher {
    struct channel *channel; /* NULL: none has come yet */
    bool lost;               /* the channel is closed */
    uint64_t generation;     /* a newer one takes its place, an older one is refused */
    bool heir;               /* it found the job that another one had launched: it can but end it */
    bool other_release;      /* it is of one, with options.entry: it will refuse us */
    uint32_t asked;          /* its last question, which ranks_settle answers */
    struct event *await_clock;  /* until the first comes, with options.entry; else NULL */
    struct event *orphan_clock; /* end.c starts it where another is awaited; NULL: never yet */
};

/* The parent in the tree, from its dial or our assignment, whichever is first, until we have both
 * and prepare the job (agent_join). channel and launch are handed on then; the assignment, without
 * what the launch needs of it, stays. Worker 0 gets none, and uses nothing of this. */
struct agent_parent {
    struct channel *channel;              /* NULL: it has not dialled */
    uint32_t worker;                      /* which it is; with channel */
    Drarun__Wire__Launch *launch;         /* that it hands on; NULL: it has not yet */
    Drarun__Wire__Assignment *assignment; /* the launcher's word of our place; NULL: not yet */
    struct event *due;                    /* the deadline of the launch, from the assignment on */
};

/* Ranks that ranks ask for (spawn.c). */
struct agent_spawns {
    LIST_HEAD(, agent_spawn) asked; /* of ranks here, which wait for an answer */
    LIST_HEAD(, agent_name) names;  /* the same, for what they asked of names */
    uint64_t last_id;
    uint32_t prepared; /* the last group waits for its start or cancellation: its index; 0: none */
    bool opened;       /* it has its servers, and room among the ranks */
};

/* In a pod, whose NICs a driver may have moved here a moment before the agent began. A link of 400
 * Gb/s can take more than ten seconds; a launcher of `drarun join` gives its agents 20 s. */
#define AGENT_LINKS_MS 15000

/* What we hold, while processes of ours open the NICs and run the vendor's script for it. */
struct agent_inspection {
    Drarun__Wire__Hello *hello; /* of the launcher that is told */
    struct event *links_clock;  /* looks again while a link may come up; NULL: never */
    int64_t links_end_ms;       /* until then, whatever launchers come */
    int64_t links_from_ms;      /* when this launcher's wait began; 0: it did not */
    bool links_told;            /* this launcher knows of it */
    json_t *document;
    struct verbs_open opening;
    struct vendor_env script;
};

/* The process that writes to other workers' NICs (reach.c), before the job is here. */
struct agent_reach {
    struct child *child; /* NULL: none runs */
    bool begun;          /* for this launcher */
};

/* What serves the ranks here. servers.c opens it before they start, and a later group's PMI-1
 * server before that group does; all else stays until the agent ends. Without pmix the next two are
 * not used. */
struct agent_servers {
    struct pmix_host *pmix;    /* NULL: the job has no PMIx */
    struct pmi1_host **pmi1;   /* by group; NULL: not served, or nobody of it is here */
    struct topology *topology; /* that both tell the ranks */
    struct remote *remote;     /* launch: mpirun */
};

/* Looks at the launch's ranks soon after their start, once each (launch.c). agent_clean stops the
 * clocks. */
struct agent_looks {
    struct event *running_clock; /* do they run for so long that they will ask for the topology? */
    struct event *library_clock; /* has one that connected to nothing an MPI library loaded? */
    bool mpi_library;            /* it has */
};

struct shm_clean;

/* What is made for the job outside this process. launch.c makes it, agent_clean removes it and
 * leaves the first three members empty. */
struct agent_session {
    char *dir;             /* NULL: not there */
    char shm_dir[128];     /* the same in /dev/shm; empty: none could be made, or not there */
    struct shm_clean *shm; /* the segments that ranks may leave beside it */
    int mark;              /* marks shm_dir as ours (session_mark), or -1 */
    bool out_of_order;     /* they may have left some; never false again */
};

struct agent_collect; /* collect.c */

struct agent {
    struct event_base *base;
    struct agent_options options;
    enum agent_state state;
    int status;
    struct agent_launcher launcher;
    struct event *sigterm;
    bool told_to_end; /* by SIGTERM: no use in waiting for another launcher */
    struct agent_inspection inspection;
    struct agent_reach reach;
    struct listen_door *door;
    struct tls_context *dial_tls;
    struct agent_parent parent;
    struct agent_job job;
    Drarun__Wire__WorkerSetting *setting; /* what was derived for this worker; NULL: nothing */
    struct strlist environment; /* our own, as it was before libpmix got its settings there */
    struct tree tree;
    struct coll *coll;
    struct peers *peers;
    struct agent_servers servers;
    struct ranks *ranks;
    struct agent_spawns spawns;
    struct agent_rank *rank; /* by local index */
    bool *app_connected;     /* by program: the launcher was told */
    struct late_aborts late_aborts;
    struct event *late_abort_clock; /* their latest moment; NULL: there were none */
    struct other_users other_users;
    uint64_t output_bytes; /* of all ranks */
    struct agent_looks looks;
    struct agent_session session;
    struct agent_collect *collect; /* NULL: no files are to be sent */
};

/* door.c */
int agent_open_connections(struct agent *agent, struct drarun_error *err);
/* For listen.h: a peer that has proved the key, and says what it is. */
void agent_guest_take(struct channel *channel, const Drarun__Wire__Hello *hello, void *arg);

/* control.c */
void agent_control_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg);
void agent_control_closed(struct channel *channel, const struct drarun_error *err, void *arg);

/* neighbours.c */
/* Tells a peer that has connected why it is not served. */
void agent_refuse_take(struct channel *channel, const char *why, int code);
void agent_parent_take(struct agent *agent, struct channel *channel,
                       const Drarun__Wire__Hello *hello);
void agent_drop_parent(struct agent *agent, const char *why);
/* Puts together what the parent handed on and what the launcher assigned, once both are there. */
void agent_join(struct agent *agent);
/* Prepares the job, and connects its tree; the ranks may start when that stands. */
void agent_connect_take(struct agent *agent, Drarun__Wire__Launch *launch);

/* end.c */
static inline bool agent_is_kept(const struct agent *agent)
{
    return agent->options.pod && agent->options.pod->kept;
}
void agent_enter(struct agent *agent, enum agent_state state);
/* Peers that connect from now on wait for the next job's agent: the guard's socket still listens.
 */
void agent_close_door(struct agent *agent);
/* Ends agent_run. */
void agent_leave(struct agent *agent, int status);
/* Leaves nothing behind of what was made for the job. */
void agent_clean(struct agent *agent);
void agent_end_ranks(struct agent *agent, bool at_once);
/* Ours has failed in a way that is no rank's doing. */
void agent_fail(struct agent *agent, const struct drarun_error *err);
/* Nothing of the job is awaited here any more. */
void agent_finish(struct agent *agent);
void agent_on_all_ended(void *arg); /* for struct ranks_owner */
/* Starts the clock; false when no other launcher is to be waited for. */
bool agent_wait_for_heir(struct agent *agent);
bool agent_is_orphan(const struct agent *agent);

/* What the plan derived for the ranks here. */
static inline struct rank_settings agent_settings(const struct agent *agent)
{
    return (struct rank_settings){agent->job.wire->derived, agent->setting};
}

/* launch.c */
int agent_prepare_take(struct agent *agent, Drarun__Wire__Launch *launch, struct drarun_error *err);
void agent_start(struct agent *agent);

int agent_check_programs(const struct agent *agent, const struct rank_group *group,
                         struct drarun_error *err);
/* That so many more ranks, which are known already, can be started here: of all that are started on
 * all workers, which share the limits of one machine. */
int agent_check_room(const struct agent *agent, uint32_t ranks, uint32_t all,
                     struct drarun_error *err);
/* What is kept of ranks and programs, for the groups from this one on. */
int agent_reserve_ranks(struct agent *agent, uint32_t first);
int agent_start_group(struct agent *agent, const struct rank_group *group,
                      struct drarun_error *err);

/* binding.c */
/* Decides its ranks' CPUs, which the PMIx server is to know before its group is added. */
int agent_bind_group(struct agent *agent, const struct rank_group *group, struct drarun_error *err);
/* Fewer CPUs than live ranks, `own` here and those of other workers: on this machine, among those
 * that the workers share, in our cgroup's quota, or among those that the ranks are bound to. */
bool agent_is_oversubscribed(const struct agent *agent, uint32_t own);
/* Tells people the CPUs of a local rank that has just been started. */
void agent_report_binding(struct agent *agent, uint32_t index);

/* shell.c */
/* Makes this process, which serves one job, as the launcher is; ranks inherit it. */
int agent_take_shell(const Drarun__Wire__Shell *shell, struct drarun_error *err);

/* servers.c */
/* Those of the launch's groups. */
int agent_open_servers(struct agent *agent, struct drarun_error *err);
/* A group's servers: one of the launch's, before the servers start, or the last. */
int agent_open_group(struct agent *agent, const struct rank_group *group, struct drarun_error *err);
void agent_close_group(struct agent *agent, const struct rank_group *group);
/* The server of the rank's group; NULL: none. */
static inline struct pmi1_host *agent_pmi1(const struct agent *agent, uint32_t rank)
{
    return agent->servers.pmi1[agent_job_group_of(&agent->job, rank)->index];
}
/* The user lets ranks go on that wait for a debugger, and those that would. */
void agent_release_ranks(struct agent *agent);
/* Tells people: a rank waits for a debugger. Also for the servers' owners. */
void agent_rank_waits(void *arg, uint32_t rank);

/* spawn.c */
/* For the servers' owners. request is borrowed; token is the PMIx server's, NULL for PMI-1. */
void agent_spawn_ask(struct agent *agent, const struct spawn_request *request, void *token);
/* For the PMI-1 servers' owner: names of ports. */
void agent_name_ask(struct agent *agent, uint32_t rank, enum pmi1_name what, const char *service,
                    const char *port);
/* For the PMIx server's: as pmix_host_owner.name. */
void agent_name_send(struct agent *agent, Drarun__Wire__NameRequest *message, void *token);
void agent_name_answered(struct agent *agent, const Drarun__Wire__NameReply *reply);
/* The PMIx server does not want the answer to that lookup any more. */
void agent_name_forget(struct agent *agent, void *token);
/* The same for a collective with ranks of other jobs. */
void agent_meet_send(struct agent *agent, Drarun__Wire__MeetRequest *message, void *token);
void agent_met(struct agent *agent, const Drarun__Wire__MeetReply *reply);
void agent_spawn_refused(struct agent *agent, const Drarun__Wire__SpawnRefused *refused);
/* The rank that asked is told at once: the peers that it calls next wait for its new fellows. */
void agent_spawn_started(struct agent *agent, const struct rank_group *group);
/* Answers the questions about names that the launcher has not: nobody will. */
void agent_names_drop(struct agent *agent);
/* Answers all that wait with an error: nothing can be started any more. */
void agent_spawn_drop(struct agent *agent);

/* group.c */
void agent_group_come(struct agent *agent, Drarun__Wire__Envelope *message);
void agent_group_start(struct agent *agent, uint32_t index);
void agent_group_cancel(struct agent *agent, uint32_t index);

/* reach.c */
void agent_reach_take(struct agent *agent, const Drarun__Wire__Reach *message);
void agent_reach_drop(struct agent *agent);

/* collect.c */
/* In the session's folder, where the launch asks for it. */
int agent_collect_open(struct agent *agent, struct drarun_error *err);
void agent_collect_env(const struct agent *agent, struct strlist *env);
/* No rank runs any more. True: files are on their way; agent_collect_taken or _drop ends it. */
bool agent_collect_begin(struct agent *agent);
/* The launcher has the last piece. True: that was all. */
bool agent_collect_taken(struct agent *agent);
/* The launcher is gone. True: files were on their way. */
bool agent_collect_drop(struct agent *agent);
void agent_collect_free(struct agent *agent);

/* mpirun.c */
int agent_mpirun_open(struct agent *agent, struct drarun_error *err);
bool agent_mpirun_serves(const struct agent *agent); /* its rank is the server */
void agent_mpirun_ended(struct agent *agent);        /* rank 0 has */

/* vitals.c */
/* Where a rank tells how far it is; false: nowhere. */
bool agent_progress_path(const struct agent *agent, uint32_t rank, char *path, size_t size);
void agent_send_vitals(struct agent *agent, bool ranks);

/* report.c */
/* There is one who can answer, and no other is about to take his place. */
bool agent_has_launcher(const struct agent *agent);
void agent_send(struct agent *agent, const Drarun__Wire__Envelope *message);
void agent_send_failure(struct agent *agent, const struct drarun_error *failure);
void agent_send_note(struct agent *agent, const char *text);
void agent_send_hello(struct agent *agent);
/* At once, or when the NICs have been opened. */
void agent_send_inspection(struct agent *agent, const Drarun__Wire__Hello *hello);
void agent_drop_inspection(struct agent *agent);
void agent_send_ready(struct agent *agent);
void agent_send_done(struct agent *agent);
void agent_send_pong(struct agent *agent, uint32_t ask);
void agent_rank_connected(struct agent *agent, uint32_t rank, int api);
void agent_rank_finalized(struct agent *agent, uint32_t rank);
void agent_user_refused(struct agent *agent, uid_t uid);
void agent_rank_abort(struct agent *agent, uint32_t rank, int status, const char *text);
/* For struct ranks_owner. */
void agent_on_output(void *arg, uint32_t rank, enum rank_stream stream, const void *data,
                     size_t length, bool partial);
/* What is underway to a launcher that was lost or replaced, which never gives it back: else ranks
 * would wait in write, and their pipes would not be read to the end. */
void agent_forgive_output(struct agent *agent);
bool agent_on_reaped(void *arg, const struct rank_result *result);
void agent_on_ended(void *arg, const struct rank_result *result);
void agent_on_stuck(void *arg, uint32_t rank, pid_t pid, size_t more);
void agent_on_settled(void *arg);
void agent_on_input_done(void *arg, size_t bytes);

#endif
