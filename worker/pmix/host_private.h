/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of worker/pmix/ share: the host itself and one handler for each kind of upcall. */
#ifndef DRARUN_WORKER_PMIX_HOST_PRIVATE_H
#define DRARUN_WORKER_PMIX_HOST_PRIVATE_H

#include <hwloc.h>
#include "lib/base/buf.h"
#include "lib/wire/frame.h"
#include "worker/pmix/host.h"
#include "worker/pmix/upcall.h"

/* How often a collective with the same members and name has been entered, or missed (collective.c).
 */
struct sequence {
    struct sequence *next;
    uint64_t count;
    uint32_t last; /* of its members: once that one has ended, there is no next time */
    char key[];
};

/* A request that waits for another agent's reply. */
struct pending {
    struct pending *next;
    uint64_t id;
    struct upcall *upcall;
};

/* A collective that failed here, held back for a while (fence.c). */
struct failed_collective {
    struct failed_collective *next;
    struct pmix_host *host;
    struct upcall *upcall;
    struct event *timer;
};

/* A collective that this agent has entered (collective.c). */
struct entered {
    struct entered *next;
    struct pmix_host *host;
    struct upcall *upcall;
    char *key;
    coll_done_fn done;
    struct event *timer; /* NULL: it has none */
};

struct rank_cpus {
    uint32_t *ids;
    size_t count;
};

/* What one message between agents carries of a rank's data; more is refused, since the asker would
 * wait indefinitely. Fences have no such limit: their data travel in pieces. */
#define PMIX_ROUTED_MAX (FRAME_MAX - 64u * 1024)

struct data_store; /* data_store.c: published data, on worker 0 */

struct pmix_host {
    struct event_base *base;
    const struct agent_job *job;
    const struct tree *tree;
    struct coll *coll;
    struct pmix_host_owner owner;
    void (*routed)(struct pmix_host *host, const Drarun__Wire__Routed *message);
    char *session_dir;
    bool retired;                   /* no rank is here any more, nor the session directory */
    bool registered;                /* the library knows the groups */
    struct pmix_listener *listener; /* NULL: the library listens itself */
    uint16_t port;
    bool refusal_logged;
    struct upcall_queue *queue;
    bool started, announced;
    bool environment_set;
    struct rank_cpus *cpus; /* by local index */
    uint32_t cpus_count;
    struct topology *topology;
    struct sequence *sequences;
    struct pending *pending;
    struct failed_collective *failed;
    struct entered *entered;
    uint64_t next_id;
    struct data_store *store;
    struct process_table *tables;
    struct waiting *waiting;  /* debugger.c */
    uint32_t released;        /* groups, the first so many, that need not wait for a debugger */
    uint64_t tools;           /* that have connected so far */
    bool tools_refused;       /* and the next ones were */
    bool log_refused;         /* a rank was told that too much of what it logs waits */
    struct meeting *meetings; /* meet.c */
    struct far_group *far;    /* far.c */
};

/* register.c: tells the library about a group of ranks, and that there is none. */
int pmix_register_group(struct pmix_host *host, const struct rank_group *group,
                        struct drarun_error *err);
void pmix_deregister_group(const struct pmix_host *host, const struct rank_group *group);

/* The same about ranks of another job, of which none is here. hosts: by worker of the map. */
int pmix_register_far(const struct pmix_host *host, const char *nspace, const struct rankmap *map,
                      char *const *hosts, struct drarun_error *err);

/* rank_proc.c: the rank of the job that a process is, -1: none of this job's. */
int64_t pmix_rank_of(const struct pmix_host *host, const pmix_proc_t *proc);
/* And back; a rank that the job has. */
pmix_proc_t pmix_proc_of(const struct pmix_host *host, uint32_t rank);

/* fence.c */
void pmix_on_collective(struct pmix_host *host, struct upcall *upcall); /* (dis)connect, too */
void pmix_drop_failed(struct pmix_host *host); /* answers what is still held back */

/* collective.c */
pmix_status_t pmix_collective_status(int status);
/* When part of the members have died the library says so here, and the others must learn of it. */
int pmix_local_status(const struct upcall *upcall);
/* It cannot be entered; why: NULL for lack of memory, which ends the job. Takes the upcall. */
void pmix_collective_failed(struct pmix_host *host, struct upcall *upcall, const char *kind,
                            const struct drarun_error *why);
/* This agent's contribution to the collective, for which done gets the upcall; after PMIX_TIMEOUT
 * it is given up, on all agents. The library keeps that time only until all ranks here take part.
 * key: NULL: it cannot be entered, for lack of memory. Takes the upcall. */
void pmix_enter(struct pmix_host *host, struct upcall *upcall, const char *kind, const char *key,
                const struct coll_range *ranges, size_t count, int status, const void *data,
                size_t length, coll_done_fn done);
void pmix_drop_entered(struct pmix_host *host); /* answers those that wait */
/* The member ranks of procs in this job as ascending ranges without overlap, of one group or of
 * several; -EINVAL for members of another job or out of range, or for none. */
int pmix_members(const struct pmix_host *host, const pmix_proc_t *procs, size_t count,
                 struct coll_range **ret_ranges, size_t *ret_count);
/* A key for the next collective of this kind, name and members; malloc'ed. */
char *pmix_collective_key(struct pmix_host *host, const char *kind, const char *name,
                          const struct coll_range *ranges, size_t count);
/* Of coll: one was given up before the ranks here had entered it. */
void pmix_on_missed(void *arg, const char *key, const struct coll_range *ranges, size_t count);
/* The group's ranks have all ended. */
void pmix_forget_collectives(struct pmix_host *host, const struct rank_group *group);

/* meet.c: collectives with ranks of other jobs. */
/* Some members are of none of this job's groups. */
bool pmix_is_far(const struct pmix_host *host, const struct upcall *upcall);
void pmix_on_meet(struct pmix_host *host, struct upcall *upcall);
void pmix_on_member_modex(struct pmix_host *host, struct upcall *upcall);
void pmix_drop_meetings(struct pmix_host *host);

/* dmodex.c: asks the library for what a rank here has put: an upcall of this kind, with this id,
 * proc and status, has the answer. False: out of memory. */
bool pmix_ask_modex(struct pmix_host *host, uint32_t rank, enum upcall_kind kind, uint64_t id,
                    uint32_t source);

/* spawn.c, group.c, dmodex.c, event.c, query.c, control.c */
void pmix_on_spawn(struct pmix_host *host, struct upcall *upcall);
void pmix_on_group(struct pmix_host *host, struct upcall *upcall);
void pmix_on_dmodex(struct pmix_host *host, struct upcall *upcall);
void pmix_on_local_modex(struct pmix_host *host, struct upcall *upcall);
void pmix_dmodex_request(struct pmix_host *host, const Drarun__Wire__Routed *message);
void pmix_on_notify(struct pmix_host *host, struct upcall *upcall);
void pmix_notified(struct pmix_host *host, const Drarun__Wire__Routed *message);
void pmix_on_query(struct pmix_host *host, struct upcall *upcall);
void pmix_on_job_control(struct pmix_host *host, struct upcall *upcall);
void pmix_controlled(struct pmix_host *host, const Drarun__Wire__Routed *message);
void pmix_on_log(struct pmix_host *host, struct upcall *upcall);

/* data.c: publish, lookup, unpublish; asked of worker 0 */
void pmix_on_publish(struct pmix_host *host, struct upcall *upcall);
void pmix_on_lookup(struct pmix_host *host, struct upcall *upcall);
void pmix_on_unpublish(struct pmix_host *host, struct upcall *upcall);
void pmix_data_reply(struct pmix_host *host, const Drarun__Wire__Routed *message);
/* data_store.c: worker 0 */
void pmix_data_request(struct pmix_host *host, const Drarun__Wire__Routed *message);
void data_store_free(struct data_store *store);

/* data_shared.c: what worker 0 asks the launcher of names that other jobs of the user may know, in
 * a round of several questions. */
enum shared_answer {
    SHARED_UNKNOWN = 1, /* nobody could be asked */
    SHARED_NO,          /* publish: another job has it; look-up: no other job has it */
    SHARED_YES,
    SHARED_ALONE, /* publish: no other job has it, but the launcher cannot keep it for them */
    SHARED_NEVER, /* look-up that waits: the job that was to publish it has ended */
};
struct shared_name {
    struct shared_round *round;
    char *key;
    bool publish; /* the question is whether it can be published */
    enum shared_answer answer;
    bool answered;
    char *job;        /* of a look-up: which job has it, or ""; with SHARED_YES */
    struct buf value; /* of a look-up: a packed pmix_proc_t and pmix_info_t */
};
struct shared_round {
    struct pmix_host *host;
    size_t count, open;
    void (*done)(struct shared_round *round); /* NULL: the answers do not matter */
    void *arg;
    struct shared_name names[];
};
/* NULL without memory. At most `most` questions, then shared_round_end: when all are answered,
 * which may be before it returns, done is called and the round is freed. */
struct shared_round *shared_round_new(struct pmix_host *host, size_t most,
                                      void (*done)(struct shared_round *round), void *arg);
/* Each is a question. False: out of memory, and nobody is asked. once: the first look-up removes
 * it. wait: the answer comes when it is there, or when the job, if that is not "", has ended. */
bool shared_round_publish(struct shared_round *round, const char *key, const struct buf *value,
                          bool once);
/* For one look-up: the answer comes when no other value of this key is there. */
bool shared_round_queue(struct shared_round *round, const char *key, const struct buf *value);
bool shared_round_unpublish(struct shared_round *round, const char *key);
bool shared_round_lookup(struct shared_round *round, const char *key, bool wait, const char *job);
void shared_round_end(struct shared_round *round);
/* After its end: the answers are not wanted any more, and done is not called. */
void shared_round_drop(struct shared_round *round);

/* tool.c: connections of tools. */
/* One more may be served; false: no, and the user was told once. */
bool pmix_has_room_for_tool(struct pmix_host *host);
void pmix_on_tool(struct pmix_host *host, struct upcall *upcall);
/* A name that only jobs and their servers have. */
bool pmix_is_reserved(const char *nspace);

/* debugger.c: ranks that wait for a debugger. */
/* PMIX_DEBUGGER_RELEASE has come, from here or from another agent. */
void pmix_released(struct pmix_host *host, const pmix_info_t *info, size_t count);
/* A message of another agent that says so. */
bool pmix_is_waiting(const Drarun__Wire__Routed *message);
void pmix_others_wait(struct pmix_host *host, const Drarun__Wire__Routed *message);
/* The library is there now: what tools could not be told before. */
void pmix_tell_waiting(struct pmix_host *host);
void pmix_drop_waiting(struct pmix_host *host);
/* The group's ranks have all ended. */
void pmix_forget_waiting(struct pmix_host *host, const struct rank_group *group);

/* processes.c: what all ranks are as processes, which their agents know. */
struct process_table;
/* Takes the upcall. */
typedef void (*process_table_fn)(struct pmix_host *host, struct upcall *upcall,
                                 const struct process_table *table);
struct process_table {
    struct process_table *next;
    process_table_fn done;
    uint64_t id;
    struct pmix_host *host;
    struct event *timer;
    bool *asked;      /* by worker: it has not answered */
    uint32_t awaited; /* how many have not */
    struct upcall *upcall;
    Drarun__Wire__Processes **answers;
    size_t answer_count;
};
/* Takes the upcall, and gives it with the table to `done` once all agents have answered. One that
 * is silent for 10 s, stopped or of a release that does not know the question, ends the wait:
 * PMIX_ERR_TIMEOUT, and a line that names it. libpmix hands no data to who gets another status. */
void pmix_collect_processes(struct pmix_host *host, struct upcall *upcall, process_table_fn done);
void pmix_processes_request(struct pmix_host *host, const Drarun__Wire__Routed *message);
void pmix_processes(struct pmix_host *host, const Drarun__Wire__Routed *message);
/* NULL: nobody has told of it. Borrowed from the table. */
const Drarun__Wire__Process *pmix_process_of(const struct process_table *table, uint32_t rank);
void pmix_drop_tables(struct pmix_host *host);

/* route.c: remembers the upcall until a reply with this id comes; 0 without memory. */
uint64_t pmix_pend(struct pmix_host *host, struct upcall *upcall);
struct upcall *pmix_unpend(struct pmix_host *host, uint64_t id);
/* To any agent, this one included, whose host->routed gets it at once. */
void pmix_route(struct pmix_host *host, Drarun__Wire__Routed *message);

/* status.c: PMIx codes as errors. */
int pmix_error(struct drarun_error *err, pmix_status_t status, const char *what);

#endif
