/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the launcher share: lead.c (a job from its begin to its end), place.c (an
 * attempt until its workers are up), queue.c (while it is suspended), ranks.c (its ranks), keep.c
 * (or the workers of an allocation), plan.c (what they get), restart.c (the next attempt), resume.c
 * (what an earlier launcher has left), vitals.c (whether they hang), metrics.c (for Prometheus),
 * status.c and events.c (what is told), state.c (what all of these ask of the lead itself). */
#ifndef DRARUN_LAUNCHER_CLUSTER_LEAD_PRIVATE_H
#define DRARUN_LAUNCHER_CLUSTER_LEAD_PRIVATE_H

#include "jobs/outcome/failure_rule.h"
#include "jobs/gang/gang.h"
#include "jobs/manifests/render.h"
#include "jobs/gang/waiting.h"
#include "jobs/status/reason.h"
#include "launcher/cluster/client/board.h"
#include "launcher/cluster/client/facts.h"
#include "launcher/cluster/client/forecast.h"
#include "launcher/cluster/client/pod_group.h"
#include "launcher/cluster/lead/lead.h"
#include "launcher/cluster/submit/submit.h"
#include "launcher/cluster/client/lease.h"
#include "lib/metrics/metrics_server.h"
#include "launcher/cluster/lead/status_writer.h"
#include "launcher/streams/framed.h"
#include "launcher/job/job.h"
#include "launcher/programs/signals.h"
#include "launcher/streams/status_line.h"

/* ---- the parts of a lead's state ---- */

/* The ranks of the present attempt. ranks.c sets each member as it becomes known, and resume.c
 * what the status document says of them; whoever ends an attempt without ranks sets the report.
 * report and fabric are gone again before the next attempt begins; the rest stays until ranks.c
 * sets it again. */
struct lead_attempt {
    uint32_t ranks;
    json_t *roles; /* for the status document; NULL: the ranks are not numbered, or have no roles */
    json_t *fabric; /* jobs/preflight/fabric.h; NULL: not known */
    int64_t ran_ms; /* how long the ranks have run */
    json_t *report; /* how the attempt has ended (cause_json); NULL: it has not */
};

/* What the attempts that have ended lead to. restart.c alone changes it, but for the counts that
 * resume.c takes from the status document. avoid and silent only grow. */
struct lead_restarts {
    uint32_t count;                   /* attempts after ranks had run */
    uint32_t counted[FAILURE_COUNTS]; /* of them, by the number of the spec that they count to */
    struct failure_decision next;     /* what follows from the end of the last attempt */
    struct strlist avoid;             /* nodes that no attempt is to use again */
    struct strlist silent;            /* nodes that do not answer */
};

/* Claims and cliques beyond the workers' own. domain.c reads them again for each attempt once its
 * workers are up, and alone changes them. */
struct lead_domain {
    json_t *claims;       /* of the namespace; NULL: pods name none beside their own */
    json_t *object;       /* the ComputeDomain, where it is asked for cliques; or NULL */
    const char **cliques; /* of NVLink, by worker; NULL: no compute domain. Each is a string of
                             object or of lead.facts, or NULL: not known */
    uint32_t *rank_order; /* workers in the order of their ranks, by cliques; NULL: by number */
};

/* What an earlier launcher has left: at most one is true. lead_resume alone sets them; orphaned is
 * false again once its attempt has been ended. */
struct lead_inherited {
    bool orphaned;  /* the launcher has gone while its ranks ran */
    bool ended;     /* it had told the job's end */
    bool releasing; /* it was on its way to the next attempt */
};

/* The workers that drarun alloc keeps, and its shell. Once they are checked no attempt places
 * workers or runs ranks. keep.c alone changes the rest, which is what it has heard of the shell. */
struct lead_allocation {
    bool checked;       /* the workers are up and may be used */
    bool shell_ended;   /* in order */
    char heartbeat[24]; /* the shell's last word */
    int64_t heard_ms;   /* when that came, or nobody could be heard; 0: not looked yet */
};

/* The key with which the launcher and its agents prove themselves, and the Secret that holds it.
 * lead.c sets all of it before anything of the job is made, and wipes it at the end. */
struct lead_key {
    struct tls_key tls;
    char hex[2 * sizeof(struct tls_key) + 1];
    char secret[SUBMIT_SECRET_SIZE]; /* the Secret's name, unless lead_options.secret names it */
};

/* What of the terminal the job engine has to itself while it runs: both are NULL meanwhile. ranks.c
 * gives them up, and lead.c takes them back. */
struct lead_console {
    struct signals *signals;
    struct status_line *line; /* NULL also: --quiet, or a pod's log */
};

/* What has been told, so that it is not told again; no decision depends on it. Each wait for
 * the workers begins without words. */
struct lead_told {
    char *words;                 /* why the job waits, as the status says; NULL: nothing yet */
    int64_t words_ms;            /* when the status was given them */
    struct waiting_told waiting; /* the same, to who waits here without a status line */
    bool unknown_slices;         /* that the slices may not be read */
    bool end;                    /* the last line of the log is written */
    unsigned events;             /* written so far: part of their names */
};

/* Why the launcher is to stop. Once lead_is_stopped no wait of it goes on. A job that is cancelled
 * has a signo, too. */
struct lead_stop {
    int signo;                /* the signal that told it to end, or stands for it; 0: none */
    bool cancelled;           /* by `drarun cancel`, or by an allocation's shell that is silent */
    struct drarun_error lost; /* why it is the launcher no longer; code 0: it is */
};

struct lead {
    struct cluster *cluster;
    const struct lead_options *options;
    const struct job_spec *spec;
    struct render_options render; /* of the present attempt */
    char *owner_uid;
    struct lead_key key;
    struct board *board;
    struct lease *lease;
    struct status_writer *writer;
    struct metrics_server *metrics; /* NULL: they are not served */
    struct facts *facts;            /* NULL: the job has no devices */
    struct forecast *forecast;      /* NULL likewise */
    struct pod_group group;         /* why the scheduler does not place the gang */
    struct framed log;              /* the pod's */
    struct lead_console console;

    struct gang gang;
    struct gang_decision decision;
    struct lead_attempt attempt;
    struct lead_restarts restarts;
    struct lead_domain domain;
    int64_t created_ms;
    bool dirty;   /* something has changed since the last decision */
    bool created; /* by us: what remains of an interrupted run is ours to take back */
    struct lead_told told;
    struct lead_stop stop;
    json_t *doc; /* the status document as it was written last, or NULL */
    struct lead_inherited inherited;
    struct lead_allocation allocation;

    struct job *job;            /* while ranks run */
    struct lead_vitals *vitals; /* of theirs; NULL: they are not watched */
    int status;                 /* exit status; meaningful once it has ended */
};

/* ---- state.c ---- */

/* It was told to end, or is the launcher no longer. */
bool lead_is_stopped(const struct lead *lead);
/* What the slices have for the present claims; NULL: not known. */
const struct prediction *lead_prediction(const struct lead *lead);

/* ---- place.c ---- */

/* Until every worker is up: 0. Else what ended it: -EINTR where lead_is_stopped, or err with its
 * kind. */
int lead_place(struct lead *lead, struct drarun_error *err);
/* Asks for a decision, as often as something follows from one. */
int lead_decide(struct lead *lead, uint32_t inspected, struct drarun_error *err);

/* ---- queue.c ---- */

/* The worker Job is suspended, by a queue or by somebody. */
bool lead_is_suspended(const struct lead *lead);
/* Who keeps it from starting: a queue, and why if it said so; nothing: the spec. */
void lead_name_suspender(const struct lead *lead, struct buf *out);
/* Opens the gates of a job that is no longer suspended. */
int lead_let_go_on(struct lead *lead, struct drarun_error *err);
/* A queue has taken the workers back. rc: of the attempt, which err explains. */
bool lead_is_taken_back(const struct lead *lead, int rc, const struct drarun_error *err);
/* They come again when it admits them. */
int lead_queue_again(struct lead *lead, struct drarun_error *err);
/* The launcher's own Job is suspended: the next launcher makes the workers again. */
void lead_give_back_suspended(struct lead *lead);

/* ---- ranks.c ---- */

/* Runs the ranks of workers that are up to their end: lead->attempt.report, lead->status. -errno:
 * there was no such run. */
int lead_run_ranks(struct lead *lead, struct drarun_error *err);
/* Something has changed while ranks run. */
void lead_look_at_ranks(struct lead *lead);

/* ---- keep.c ---- */

/* The workers of an allocation, which are up and checked, until it ends: 0 when its shell has. */
int lead_keep(struct lead *lead, struct drarun_error *err);
/* An allocation's shell that has ended, or is silent for too long, stops the launcher. */
void lead_look_for_shell(struct lead *lead);

/* ---- restart.c ---- */

/* Is another attempt of use, and allowed? rc: of this one, which err explains; where no ranks
 * have run, lead->restarts.next is decided here. */
bool lead_may_restart(struct lead *lead, int rc, const struct drarun_error *err);
/* Ends the attempt, whose ranks have run, and makes the next one. */
int lead_restart(struct lead *lead, struct drarun_error *err);
/* The second half of it, which an earlier launcher may not have come to. */
int lead_next_attempt(struct lead *lead, struct drarun_error *err);
/* What follows from the end of an attempt: lead->restarts.next, and which nodes later ones are to
 * avoid. end as for failure_decide; table: what the built-in table says of it. */
void lead_note_end(struct lead *lead, const json_t *end, struct cause_restart table);
/* Pods that are made from now on do. */
void lead_avoid_nodes(struct lead *lead);
/* Takes pods off the API of which no node would ever say that they are gone. */
int lead_delete_silent(struct lead *lead, struct drarun_error *err);

/* ---- resume.c ---- */

/* Goes on from what the last launcher has told: lead->gang, the attempt's number, restarts and
 * inherited. */
int lead_resume(struct lead *lead, struct drarun_error *err);
/* The ranks that run without a launcher: an attempt that is over. */
int lead_take_orphans(struct lead *lead, struct drarun_error *err);

/* ---- events.c ---- */

/* An Event on the job's owner, best effort: nothing waits for it, and a refusal is no error. */
void lead_event(struct lead *lead, enum reason reason, const char *message);
/* Of a job that has ended. */
void lead_event_end(struct lead *lead, const char *result);

/* ---- vitals.c ---- */

/* From now on it is said when the running ranks hang, and when TCP carries what RDMA should. */
void lead_watch_vitals(struct lead *lead);
void lead_leave_vitals(struct lead *lead);
/* request_pods.vitals; arg is the lead. */
void lead_take_vitals(void *arg, uint32_t worker, const struct Drarun__Wire__Vitals *vitals);

/* ---- plan.c ---- */

/* Judges what all workers hold, and gives the job what follows from it. */
int lead_plan(struct lead *lead, struct job *job, struct drarun_error *err);

/* ---- domain.c ---- */

/* Once the workers are up: reads the claims that their pods name beside their own, which have no
 * label of ours: channels in a compute domain, which NVIDIA's controller makes, and the user's.
 * Runs the loop. */
int lead_read_named_claims(struct lead *lead, struct drarun_error *err);
/* Which ranks go to whom, by the nodes of this attempt: cliques and rank_order of lead->domain.
 * What cannot be read leaves the ranks by number. Runs the loop. */
int lead_order_ranks(struct lead *lead, struct drarun_error *err);
/* claims: by worker an array of its claims, to which those that its pod names are added. */
int lead_add_named_claims(struct lead *lead, json_t *claims, struct drarun_error *err);

/* ---- metrics.c ---- */

/* From now on they are served, if they are to be. A port that cannot be had is said, and no error.
 */
void lead_serve_metrics(struct lead *lead);

/* ---- status.c ---- */

/* The status document of this moment; NULL, having said why not. */
json_t *lead_document(struct lead *lead, const char *result);

/* Writes the status document; result NULL while the job goes on. */
void lead_tell(struct lead *lead, const char *result);
/* Why it waits, in words that change only with the reason; malloc'ed, NULL without memory. */
char *lead_waiting_words(struct lead *lead);
/* Says it where there is no status line, once for each reason. Returns when to ask again. */
int64_t lead_say_waiting(struct lead *lead);
/* The report of a job whose ranks never ran; NULL without memory. */
json_t *lead_failure_report(const struct lead *lead, const struct drarun_error *err);
/* To a framed log: how many lines it has, where it is time for that; lines; the last line. */
void lead_mark_log(struct lead *lead);
void lead_write_log(struct lead *lead, const struct buf *lines);
void lead_say_end(struct lead *lead);
/* What is awaited, for the terminal's line. */
void lead_status_line(void *arg, struct buf *text);

#endif
