/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the job engine share. Each calls those below it alone: job.c (its life),
 * agents.c (their connections), signals.c, clocks.c and messages.c, which the loop calls and which
 * then have the course look (job_look), course.c (what has come about), actions.c (what the state
 * table asks for), the parts that these call, ends.c (what has ended) and agent.c (one agent). No
 * part calls the course: what ends the job is noted (job_caused, job_fail), and taken by the next
 * look. */
#ifndef DRARUN_LAUNCHER_JOB_PRIVATE_H
#define DRARUN_LAUNCHER_JOB_PRIVATE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <event2/event.h>
#include <jansson.h>
#include "jobs/outcome/cause.h"
#include "jobs/ranks/rankmap.h"
#include "launcher/job/identity.h"
#include "launcher/streams/input.h"
#include "launcher/job/job.h"
#include "launcher/job/files.h"
#include "launcher/job/names.h"
#include "launcher/job/notes.h"
#include "launcher/job/reach.h"
#include "launcher/job/spawn.h"
#include "launcher/job/state.h"
#include "launcher/job/watch.h"
#include "launcher/job/launch_message.h"
#include "launcher/job/local_agent.h"
#include "launcher/streams/console.h"
#include "launcher/streams/output.h"
#include "launcher/programs/remote.h"
#include "launcher/programs/signals.h"
#include "lib/base/clock.h"
#include "lib/base/shm_clean.h"
#include "lib/wire/channel.h"

/* An agent is told of written output in steps of this, a sixteenth of its window. */
#define JOB_ACK_BYTES (64u * 1024)
/* Output that one agent may have sent beyond what was given back: its window (worker/ranks/ranks.h)
 * and one message; more is a broken agent. */
#define JOB_HELD_MAX (5u * 1024 * 1024)

/* How long the launcher waits for the API to report how the pod of a lost worker ended. */
#define JOB_POD_MS 10000       /* its node may be lost too, and then nobody reports it */
#define JOB_POD_ENDED_MS 30000 /* its node is up: a busy kubelet is slow to update the status */

struct agent {
    struct job *job;
    uint32_t index;
    enum agent_phase phase;
    struct channel *channel;           /* NULL: not connected yet, or dropped */
    struct drarun_error why;           /* why the connection ended */
    char *host;                        /* from its hello; "" before */
    char pmix[32];                     /* the same: version of its libpmix */
    uint32_t cpus;                     /* the same: that it may use; 0: not known */
    char *cpu_list;                    /* the same, which they are; "": not known */
    char address[REMOTE_ADDRESS_SIZE]; /* where it is dialled; "" on a socketpair */
    char outer[REMOTE_ADDRESS_SIZE];   /* where other machines dial it; "": there, too */
    bool here;                         /* of those in --agents: it is on this machine */
    char session_dir[IDENTITY_PATH_SIZE];
    pid_t pid; /* of a process of ours; 0: none */
    bool reaped;
    int wait_status;
    /* its connection has ended; how its process or pod did is not known yet */
    struct event *linger;
    bool awaits_pod;    /* with linger: nobody was told yet what it waits for */
    bool reaches;       /* it knows how to let its NICs reach others */
    bool launched;      /* it was sent the job */
    bool leaves;        /* its pod was told to end */
    bool pod_told;      /* the cluster has said why */
    json_t *inspection; /* what it says that it holds; NULL: it has said nothing */
    int64_t heard_ms;
    uint64_t held;    /* bytes of its output here */
    uint64_t unsaid;  /* bytes written of which it has not been told */
    uint32_t settled; /* the last question of job.settling.asked that it has answered */
};

/* ---- the parts of a job's state ---- */

/* The name of the job, and where we run. job_new sets it before all else, and nothing changes it
 * afterwards. */
struct job_identity {
    char own_uid[IDENTITY_UID_SIZE]; /* "" with pods */
    const char *uid;                 /* own_uid, or request_pods.uid */
    uint32_t attempt;                /* of pods, else 0 */
    char hostname[256];
};

/* Agents that are processes of this machine. `orphans` never becomes false again: until the end of
 * the job, our children that are no agents are killed. */
struct job_local {
    struct local_agents agents; /* borrows program */
    char program[PATH_MAX];     /* drarun-worker; "": all agents are elsewhere */
    bool orphans;               /* an agent died out of order: its descendants have come to us */
    struct shm_clean *shm;      /* NULL: all agents are elsewhere */
};

/* The message that gives agents the job. launch.c makes both members, once all is known that goes
 * into it, and nothing replaces them afterwards. */
struct job_launch {
    struct launch_message *message; /* NULL: not made yet; borrows masters */
    struct launch_master *masters;  /* by world */
};

/* The standard input that ranks get. job_new sets it; afterwards only `left` changes. It falls with
 * each of its ranks that ends, and at 0 nothing is read any more. */
struct job_input {
    struct input *source; /* NULL: there is none, and rank is REQUEST_STDIN_NONE */
    int32_t rank;         /* or REQUEST_STDIN_ALL */
    uint32_t left;        /* ranks that want it and have not ended */
};

/* Ranks that ranks ask for (docs/design/037-spawn.md). job_new sets the first three members;
 * course.c sets `released`, once, when all ranks have ended. */
struct job_spawning {
    struct job_spawn *requests;
    uint32_t first_ranks; /* that the job starts with: those from this number on are spawned */
    bool hold;            /* agents stay for spawned ranks, until they are released */
    bool released;
    struct event *room_clock; /* of requests: until one that finds no slot is refused */
};

/* What is checked while the job is in JOB_CHECKING. reach and fabric are set when the agents'
 * devices are judged; `checked` is true from then until the course has taken it, once. */
struct job_preflight {
    bool checked;              /* what the agents hold is good, as far as they have told it */
    struct job_reach *reach;   /* NULL: no NICs are to reach each other */
    struct event *reach_clock; /* the deadline of reach */
    struct fabric *fabric;     /* NULL: no NICs were checked */
};

/* How agents and ranks are noticed that say nothing. Both clocks tick by job_tick, which keeps the
 * time in which we were late from counting as silence. */
struct job_liveness {
    struct event *ping_clock;  /* runs unless the agent is on a socketpair */
    struct job_watch *watch;   /* NULL: without --hang-after, or before the ranks run */
    struct event *watch_clock; /* the looks of watch */
    int64_t ticked_ms; /* the last tick of either clock; set by job_tick, and as it starts */
};

/* How many of the agents have ever come to a phase. agent_advance (ends.c) alone counts, and no
 * count falls. */
struct job_phases {
    uint32_t greeted;
    uint32_t prepared;
    uint32_t gone; /* done or lost */
    uint32_t lost;
};

/* Notes of agents that are not printed yet, since others may say the same: until the ranks start or
 * NOTES_HELD_MS after the first. The clock runs while any are held. */
struct job_notes {
    struct notes held;
    struct event *clock;
};

/* The clocks of the job as a whole. job_make_clocks makes them and those of the other parts at
 * once, after the agents were started; until then all are NULL. */
struct job_clocks {
    struct event *start;  /* the deadline of connecting, and then of preparing */
    struct event *notice; /* then people hear what is awaited */
    struct event *limit;  /* --timeout */
    struct event *warn;   /* --signal */
    struct event *look;   /* at once: something ends the job that no callback looks for */
};

/* The user's ^Z: the agents are to hear of it before we stop ourselves. signals.c alone changes it.
 * The clock counts only while undrained is not 0. */
struct job_pause {
    uint32_t undrained;  /* agents that have not heard of it yet; 0: we are not about to stop */
    struct event *clock; /* the longest wait for them */
};

/* The first of what agents say of others: it fails the job when the clock has run out, unless what
 * really happened ends the job before. course.c alone changes it, and takes no second one
 * meanwhile. */
struct job_hearsay {
    struct drarun_error error; /* code 0: none */
    struct event *clock;       /* runs while there is one */
};

/* What is awaited before a first cause counts that another may take the place of. */
enum settling_stage {
    SETTLE_NOTHING = 0,
    SETTLE_MOMENT,  /* what servers and shells have yet to notice */
    SETTLE_ANSWERS, /* each agent tells what ended before it was asked */
    SETTLE_POD,     /* the cluster says how a worker's pod ended */
};

/* The wait before a first cause that may be an echo counts. course.c alone changes it. The stages
 * follow in their order; one that has nothing to wait for is left out. Another first cause begins
 * with SETTLE_MOMENT again. */
struct job_settling {
    enum settling_stage stage;
    uint32_t asked;      /* the number of the last question whether agents have more to tell */
    struct event *clock; /* the latest end of the stage; runs unless that is SETTLE_NOTHING */
};

/* The end by a signal. signo and leaving are set once, on the way to JOB_ENDING; a second signal of
 * others is final and changes nothing here but got. Where leaving is true, signo is SIGTERM. */
struct job_interrupt {
    int signo;                 /* that is passed on to the ranks; 0: none */
    int got;                   /* the last one of this process that asks for the end; 0: none */
    int64_t asked_ms;          /* when the first signal of others came; 0: none has */
    bool leaving;              /* the cluster takes a worker away, and the ranks get its time */
    bool unread;               /* nobody reads our frames any more: SIGTERM is ours */
    bool leave_told;           /* which worker it takes was said */
    struct event *grace_clock; /* until the ranks must have ended */
};

/* An end that takes too long. actions.c restarts it with each order to end or to drain; clocks.c
 * counts in stage how often the clock was due since. */
struct job_overdue {
    uint32_t stage;
    uint64_t written; /* output_written, when the clock was last started or due */
    struct event *clock;
};

struct job {
    const struct job_request *request;
    char *const *env;
    struct job_identity identity;
    int64_t started_us;
    struct event_base *base;
    struct rankmap map;  /* with what ranks have spawned */
    uint32_t worlds;     /* as which they start: all programs, or each */
    uint8_t *rank_ended; /* by rank of map */
    struct job_spawning spawning;
    struct job_names *names;
    enum job_state state;
    int64_t state_since_ms;
    struct cause *cause;
    bool caused; /* the next look takes it */

    struct agent *agents;
    uint32_t count; /* of agents */
    struct job_phases phases;
    bool early; /* one agent on a socketpair: it starts without a round of messages */
    struct job_local local;
    struct remote *remote;
    struct job_launch launch;

    struct console *console; /* borrowed */
    struct output *output;   /* of it; NULL: it is not open yet */
    struct job_input input;
    struct signals *signals;
    struct job_notes notes;
    struct job_files *files; /* NULL: what ranks leave is not kept */

    struct job_clocks clocks;
    struct job_preflight preflight;
    struct job_liveness liveness;
    struct job_pause pause;
    struct job_hearsay hearsay;
    struct job_settling settling;
    struct job_interrupt interrupt;
    struct job_overdue overdue;

    uint32_t dismissed; /* agents that were told the job's end, and still listen */
    bool hopeless;      /* job_is_hopeless */

    uint32_t mpi_library_ranks;
    struct job_facts facts;
};

static inline int job_start_clock(struct event *clock, int64_t ms)
{
    struct timeval after = timeval_from_ms(ms);
    return event_add(clock, &after);
}

/* ---- agents.c ---- */
int agents_new(struct job *job, struct drarun_error *err);
int agents_start(struct job *job, struct drarun_error *err);
void agents_free(struct job *job);

/* ---- messages.c ---- */
void agent_on_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg);
/* For struct console_owner and struct input_owner. */
void job_on_credit(void *arg, uint32_t index, size_t bytes);
void job_on_output_closed(void *arg, enum output_stream stream);
void job_on_output_failed(void *arg, const struct drarun_error *err);
void job_on_input(void *arg, const void *data, size_t length);
/* For struct job_names_owner and struct meet_owner. */
void job_on_found(void *arg, uint32_t worker, const Drarun__Wire__NameReply *reply);
void job_on_met(void *arg, uint32_t worker, const Drarun__Wire__MeetReply *reply);

/* ---- signals.c ---- */
void job_on_signal(void *arg, int signo);
/* The same when the job has ended: it is remembered alone. */
void job_on_late_signal(void *arg, int signo);
/* For struct console_owner. */
void job_on_reader_gone(void *arg);
void job_on_stop(evutil_socket_t fd, short what, void *arg); /* of job.pause.clock */

/* ---- clocks.c ---- */
int job_make_clocks(struct job *job, struct drarun_error *err);
void job_free_clocks(struct job *job);
/* Says in text which agent is awaited, for what, and why it is not there; returns how many are.
 * after: how long it was awaited, put before the reason; "": not said. */
uint32_t job_describe_awaited(const struct job *job, const char *after, struct buf *text);

/* ---- course.c ---- */
void job_event(struct job *job, enum job_event event);
/* Level-triggered: finds out from the state of agents and output what has come about. Called at the
 * end of every callback, by the files above alone. */
void job_look(struct job *job);
/* The cluster takes a worker away: the others are of no use, but may save what they have. */
void job_leave(struct job *job);
/* Logs once which worker the cluster takes away, whichever of its agent and its pod reports it
 * first. */
void job_tell_leave(const struct agent *agent);
/* What an agent says of another: counts only when that one does not show within a moment what
 * really happened to it. */
void job_hear(struct job *job, const struct drarun_error *err);
/* The cluster will say how a pod has ended. */
bool job_expects_words(const struct job *job);
void job_on_settle(evutil_socket_t fd, short what, void *arg);  /* of job.settling.clock */
void job_on_hearsay(evutil_socket_t fd, short what, void *arg); /* of job.hearsay.clock */

/* ---- actions.c ---- */
void job_act(struct job *job, enum job_action action);

/* ---- launch.c ---- */
/* The deadline for the present state. */
int64_t job_start_limit_ms(const struct job *job);
int agent_send_launch(struct agent *agent, struct drarun_error *err);

/* ---- dismiss.c ---- */
/* Lets an agent go: with request_pods.entry it is told how the job has ended. */
void agent_dismiss(struct agent *agent);
/* Waits until those that were told have gone, or for a moment. */
void job_await_dismissed(struct job *job);

/* ---- ends.c ---- */
/* Takes what a function of cause.h returned. */
void job_caused(struct job *job, bool first);
void job_fail(struct job *job, const struct drarun_error *err);
/* The same, of one worker. */
void job_fail_worker(struct agent *agent, const struct drarun_error *err);
/* False, having failed the job, when that event cannot come in the agent's phase. */
bool agent_advance(struct agent *agent, enum agent_event event);
/* The agent is of no use any more, for the reason given (NULL: it was dropped on purpose). */
void agent_lose(struct agent *agent, const struct drarun_error *why);
/* The agent does not serve us, for the reason given. */
void agent_refused(struct agent *agent, const struct drarun_error *why);
/* The agent says nothing any more, for the reason given. */
void agent_lose_silent(struct agent *agent, const struct drarun_error *why);
/* Why its connection ended; borrowed. */
const char *agent_why(const struct agent *agent);
/* How long to wait for the end of a lost agent's pod: JOB_POD_ENDED_MS if the node's kernel closed
 * the connection, which shows that the node is up, else JOB_POD_MS. */
int64_t agent_pod_ms(const struct agent *agent);
/* Its connection and its process have both ended, or one of them and time enough has passed. */
void agent_conclude(struct agent *agent);
/* job_pod_ended without the look. */
bool agent_pod_ended(struct agent *agent, const struct cause_pod *pod);
/* By each clock that looks for silence, with its period: where it is late (we were stopped,
 * suspended or starved), what agents said meanwhile is unread, and that time is no silence of
 * theirs. Only that time is taken off, so that an agent which is gone is lost however late all
 * clocks are. Returns how late it is. */
int64_t job_tick(struct job *job, int64_t now_ms, int64_t every_ms);
void agents_reap(struct job *job);
/* The children that are no agents of ours are killed; true when there were any. */
bool agents_sweep(struct job *job);
bool agents_reaped(const struct job *job);
void agents_remove_remains(struct job *job);

/* ---- agent.c ---- */
/* "worker 2 (node-7)", or "the agent" where there is but one. */
void agent_name(const struct agent *agent, char *text, size_t size);
/* The same for the fields of a log's line. */
struct log_about agent_about(const struct agent *agent);
/* Where other machines than this one reach it. */
const char *agent_outer_address(const struct agent *agent);
void agents_send(struct job *job, const Drarun__Wire__Envelope *message);
void agent_send(struct agent *agent, const Drarun__Wire__Envelope *message);
void job_send_signal(struct job *job, int signo);
/* Prints what agents have noted: once for all workers that say the same. */
void job_say_notes(struct job *job);
void job_say_note(const uint32_t *workers, uint32_t count, const char *text, void *arg);

#endif
