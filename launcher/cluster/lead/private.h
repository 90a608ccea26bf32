/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. lead.c runs a job from start to end, as course.c says.
 * place.c creates an attempt's workers and waits until they are up; queue.c waits while the job is
 * suspended; read.c reads what else the ranks need. ranks.c runs the ranks, or keep.c holds the
 * workers of an allocation; plan.c derives what ranks get, and vitals.c detects ranks that hang.
 * restart.c begins the next attempt, resume.c continues after an earlier launcher. status.c,
 * events.c and metrics.c report. state.c answers the questions that all of these ask. */
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
#include "launcher/cluster/submit/reap.h"
#include "launcher/cluster/submit/submit.h"
#include "launcher/cluster/client/lease.h"
#include "lib/metrics/metrics_server.h"
#include "launcher/cluster/lead/status_writer.h"
#include "launcher/streams/framed.h"
#include "launcher/job/job.h"
#include "launcher/programs/signals.h"
#include "launcher/streams/status_line.h"

/* ---- the parts of a lead's state ---- */

/* The ranks of the current attempt. ranks.c sets each member when it is known; resume.c sets those
 * that the status document has. A function that ends an attempt before its ranks ran sets report.
 * report and fabric are NULL when the next attempt begins; the others keep their values until
 * ranks.c sets them again. */
struct lead_attempt {
    uint32_t ranks;
    json_t *roles;  /* for the status document; NULL: ranks not numbered yet, or no roles */
    json_t *fabric; /* jobs/preflight/fabric.h; NULL: not known */
    int64_t ran_ms; /* how long the ranks ran */
    json_t *report; /* how the attempt ended (cause_json); NULL: it has not ended */
};

/* Results of the attempts that ended. Only restart.c changes it, except for the counts that
 * resume.c reads from the status document. silent only grows. */
struct lead_restarts {
    uint32_t count;                   /* attempts that followed one whose ranks ran */
    uint32_t counted[FAILURE_COUNTS]; /* of count, by the limit of the spec that they count for */
    struct failure_decision next;     /* decided from the end of the last attempt */
    struct strlist avoid;             /* nodes that later attempts must not use: the last
                                         AVOID_NODES_MAX that failed, the newest last */
    struct strlist silent;            /* nodes that do not answer */
};

/* Claims that the job did not create, and NVLink cliques. Only read.c and domain.c change them, for
 * each attempt when the workers are up. */
struct lead_domain {
    json_t *claims;       /* of the namespace; NULL: pods name no claims besides their own */
    json_t *object;       /* the ComputeDomain, if its status has the cliques; or NULL */
    const char **cliques; /* by worker; NULL: no compute domain. Each is a string of object or of
                             lead.facts, or NULL: not known */
    uint32_t *rank_order; /* workers in the order of their ranks, by cliques; NULL: by number */
};

/* What an earlier launcher left. At most one is true. Only lead_resume sets them; orphaned becomes
 * false when its attempt has been ended. */
struct lead_inherited {
    bool orphaned;  /* it was lost while its ranks ran */
    bool ended;     /* it had written the job's end to the status document */
    bool releasing; /* it had begun to release devices for the next attempt */
};

/* The workers that drarun alloc holds, and its shell. When checked is true, no attempt creates
 * workers or runs ranks any more. Only keep.c changes the other members, from the shell's
 * heartbeat. */
struct lead_allocation {
    bool checked;             /* the workers are up and may be used */
    bool shell_ended;         /* cleanly */
    char heartbeat[24];       /* the shell's last one, as the watch has brought it */
    char asked[24];           /* the same, as the API server answered when it was asked last */
    int64_t heard_ms;         /* when one came, or could not be read; 0: not read yet */
    unsigned silences;        /* how often it has answered since that none has come */
    struct kube_call *asking; /* NULL: it is not asked */
};

/* The key by which launcher and agents authenticate each other, and the Secret that holds it.
 * lead.c sets it before it creates any object of the job, and wipes it at the end. */
struct lead_key {
    struct tls_key tls;
    char hex[2 * sizeof(struct tls_key) + 1];
    char secret[SUBMIT_SECRET_SIZE]; /* the Secret's name, unless lead_options.secret names it */
};

/* The parts of the terminal that the job engine owns while it runs. line is NULL meanwhile, and so
 * are signals with run --here, whose report a signal may cut short; a pod's are paused. ranks.c
 * does that, and lead.c takes them back. */
struct lead_console {
    struct signals *signals;
    struct status_line *line; /* NULL also: --quiet, or a pod's log */
};

/* What was reported already, so that it is not reported twice. No decision depends on it. words is
 * NULL at the begin of each wait for the workers. */
struct lead_told {
    char *words;                 /* why the job waits, in the status document; NULL: nothing yet */
    int64_t words_ms;            /* when they were written there */
    bool undecided;              /* a decision may have changed them since they were compared */
    int64_t compared_ms;         /* when they were compared */
    int64_t said_ms;             /* when they were made for standard error */
    struct waiting_told waiting; /* the same, on standard error without a status line */
    bool unknown_slices;         /* that the slices cannot be read */
    bool end;                    /* the last line of the log */
    unsigned events;             /* number of Events written, which is part of their names */
};

/* Why the launcher must stop. When lead_is_stopped is true, every wait ends. A cancelled job also
 * has a signo. */
struct lead_stop {
    int signo;         /* the signal that it got, or one that stands for the reason; 0: none */
    int late;          /* SIGTERM to a pod that came when the attempt was ending anyway, which ends
                          as it would: becomes signo where the job goes on; 0: none */
    bool cancelled;    /* by `drarun cancel`, or since an allocation's shell is silent */
    int64_t signal_ms; /* when it got the first one, or the job ended after that; 0: none */
    struct drarun_error lost; /* why it lost its Lease; code 0: it holds the Lease */
};

struct lead {
    struct cluster *cluster;
    const struct lead_options *options;
    const struct job_spec *spec;
    struct render_options render; /* of the current attempt */
    char *owner_uid;
    struct lead_key key;
    struct board *board;
    struct lease *lease;
    struct status_writer *writer;
    struct metrics_server *metrics; /* NULL: metrics are not served */
    struct facts *facts;            /* NULL: the job has no devices */
    struct forecast *forecast;      /* NULL: the same */
    struct pod_group group;         /* why the scheduler does not place the gang */
    int64_t asked_ms;               /* since when forecast, group or both are being read */
    struct framed log;              /* of our pod */
    struct lead_console console;

    struct gang gang;
    struct gang_decision decision;
    struct lead_attempt attempt;
    struct lead_restarts restarts;
    struct lead_domain domain;
    int64_t created_ms;
    struct drarun_error refused; /* why the attempt's workers could not be created; code 0: they
                                    were. create.c alone changes it */
    bool unmade;  /* what the client should have made beside them may be missing, too */
    bool dirty;   /* something has changed since the last decision */
    bool created; /* this process created the job, and deletes it if it is interrupted */
    struct lead_told told;
    struct lead_stop stop;
    json_t *doc; /* the status document that was written last, or NULL */
    struct lead_inherited inherited;
    struct reap left; /* by killed launchers; with run --here */
    struct lead_allocation allocation;

    struct job *job;            /* while ranks run */
    struct lead_vitals *vitals; /* of these ranks; NULL: they are not watched */
    bool over;                  /* the job has ended here: no other launcher goes on with it */
    bool recorded;              /* and its document says so: nothing depends on the Lease */
    int64_t end_ms;             /* until when its end is to be written, by clock_ms */
    int status;                 /* exit status; valid when the job has ended */
};

/* The pause between two times at which the reasons of all workers are made to words, however often
 * one of them changes. */
#define LEAD_WORDS_MS 200

/* ---- state.c ---- */

/* It got a signal, was cancelled, or lost its Lease. */
bool lead_is_stopped(const struct lead *lead);
/* Before forecast or group is read. A read that begins while the other one goes on does not hold
 * the words back for longer. */
void lead_begin_read(struct lead *lead);
/* Until when the words for why the job waits are held back, since what is being read of forecast
 * and group may change them; 0: they are not. */
int64_t lead_answer_ms(const struct lead *lead);
/* What the slices have for the claims of this attempt; NULL: not known. */
const struct prediction *lead_prediction(const struct lead *lead);

/* ---- create.c ---- */

/* Creates the workers of the present attempt; -EINTR if lead_is_stopped meanwhile. What may pass
 * (create_may_pass) is no error: then lead->refused says why not, and lead_place releases what
 * there is of them and tries again, until timeouts.allocation. */
int lead_create(struct lead *lead, struct drarun_error *err);

/* ---- place.c ---- */

/* Waits until every worker is up: 0. Else -EINTR if lead_is_stopped, or err with its kind. */
int lead_place(struct lead *lead, struct drarun_error *err);
/* Sets lead->decision: the gang's next action, or GANG_WAIT when no phase follows any more. */
int lead_decide(struct lead *lead, uint32_t inspected, struct drarun_error *err);

/* ---- read.c ---- */

/* When the workers are up: reads what their ranks get besides the job's own objects, lead->domain
 * and lead->facts. -EINTR if lead_is_stopped before all of it has come. */
int lead_read(struct lead *lead, struct drarun_error *err);

/* ---- queue.c ---- */

/* The worker Job is suspended, by a queue or by a user. */
bool lead_is_suspended(const struct lead *lead);
/* What suspends the job: a queue, with its reason if it gives one; empty: the spec. */
void lead_name_suspender(const struct lead *lead, struct buf *out);
/* Removes the scheduling gates of a job that is no longer suspended. */
int lead_let_go_on(struct lead *lead, struct drarun_error *err);
/* A queue has evicted the workers. rc: result of the attempt, which err explains. */
bool lead_is_taken_back(const struct lead *lead, int rc, const struct drarun_error *err);
/* Begins the next attempt, whose workers wait until the queue admits them. */
int lead_queue_again(struct lead *lead, struct drarun_error *err);
/* The launcher's own Job is suspended: deletes the workers, which the next launcher creates. */
void lead_give_back_suspended(struct lead *lead);

/* ---- ranks.c ---- */

/* Runs the ranks to their end, on workers that are up. Sets lead->attempt.report and lead->status.
 * -errno: the ranks did not run. */
int lead_run_ranks(struct lead *lead, struct drarun_error *err);
/* Passes changes of the workers' pods to the job engine while ranks run. */
void lead_look_at_ranks(struct lead *lead);

/* ---- keep.c ---- */

/* Holds the workers of an allocation, which are up and checked: 0 when its shell has ended. */
int lead_keep(struct lead *lead, struct drarun_error *err);
/* Stops the launcher if the allocation's shell has ended, or sends no heartbeat for too long. */
void lead_look_for_shell(struct lead *lead);

/* ---- restart.c ---- */

/* Whether another attempt makes sense and is allowed. rc: result of this attempt, which err
 * explains. If no ranks ran, this function decides lead->restarts.next. */
bool lead_may_restart(struct lead *lead, int rc, const struct drarun_error *err);
/* Before lead_restart, of an attempt whose ranks did not run, as err explains: sets
 * lead->attempt.report and lead->status. */
void lead_end_unrun(struct lead *lead, const struct drarun_error *err);
/* Ends an attempt that has a report, and begins the next one. */
int lead_restart(struct lead *lead, struct drarun_error *err);
/* Deletes the attempt's workers and creates those of the next attempt: the second half of
 * lead_restart, also after an earlier launcher that did not come to it. */
int lead_next_attempt(struct lead *lead, struct drarun_error *err);
/* Decides from the end of an attempt: sets lead->restarts.next, and adds nodes to avoid. end: as
 * for failure_decide; table: what the built-in table says about this end. */
void lead_note_end(struct lead *lead, const json_t *end, struct cause_restart table);
/* Makes pods that are created from now on avoid lead->restarts.avoid. */
void lead_avoid_nodes(struct lead *lead);
/* Deletes the pods of silent nodes from the API, since no kubelet will confirm their end. */
int lead_delete_silent(struct lead *lead, struct drarun_error *err);

/* ---- resume.c ---- */

/* Continues from the last launcher's status document: sets lead->gang, the attempt's number,
 * restarts and inherited. */
int lead_resume(struct lead *lead, struct drarun_error *err);
/* An attempt whose ranks run without a launcher has failed: sets lead->attempt.report and
 * lead->status. */
int lead_take_orphans(struct lead *lead, struct drarun_error *err);

/* ---- events.c ---- */

/* Writes an Event about the job's owner. Best effort: nothing waits for it, and a rejection is not
 * an error. */
void lead_event(struct lead *lead, enum reason reason, const char *message);
/* Writes the Event of a job that has ended. */
void lead_event_end(struct lead *lead, const char *result);

/* ---- vitals.c ---- */

/* From now on, reports ranks that hang, and TCP traffic that RDMA should carry. */
void lead_watch_vitals(struct lead *lead);
void lead_leave_vitals(struct lead *lead);
/* Is request_pods.vitals; arg is the lead. */
void lead_take_vitals(void *arg, uint32_t worker, const struct Drarun__Wire__Vitals *vitals);

/* ---- plan.c ---- */

/* Derives the plan from the workers' claims and inspections, and gives it to the job. */
int lead_plan(struct lead *lead, struct job *job, struct drarun_error *err);

/* ---- domain.c ---- */

/* Sets cliques and rank_order of lead->domain from the nodes of this attempt, as lead_read has
 * found them. If a clique is not known, ranks follow the workers' numbers. */
int lead_order_ranks(struct lead *lead, struct drarun_error *err);
/* Before it is read again: that of the attempt before. */
void lead_forget_order(struct lead *lead);
/* claims: an array of claims for each worker. Adds the claims that the worker's pod names. */
int lead_add_named_claims(struct lead *lead, json_t *claims, struct drarun_error *err);

/* ---- metrics.c ---- */

/* Serves metrics from now on, if the options say so. A port that is taken is logged and is not an
 * error. */
void lead_serve_metrics(struct lead *lead);

/* ---- status.c ---- */

/* The current status document; NULL, having logged why. */
json_t *lead_document(struct lead *lead, const char *result);

/* Writes the status document. result: NULL while the job runs. */
void lead_tell(struct lead *lead, const char *result);
/* Why the job waits, as a text that changes only with the reason; malloc'ed, NULL without memory.
 */
char *lead_waiting_words(struct lead *lead);
/* Logs that text once for each reason, if there is no status line. Returns when to call it again,
 * after what has changed until then. */
int64_t lead_say_waiting(struct lead *lead);
/* The report of a job whose ranks never ran; NULL without memory. */
json_t *lead_failure_report(const struct lead *lead, const struct drarun_error *err);
/* The report of a job that was stopped while no ranks ran; NULL without memory. */
json_t *lead_interruption_report(const struct lead *lead);
/* For the end of an attempt that no job engine has the ranks of: both are the caller's to free.
 * NULL: err says why, and map holds nothing. */
struct cause *lead_cause_new(const struct lead *lead, struct rankmap *map,
                             struct drarun_error *err);
/* Writes to a framed log: the number of its lines, if that is due; lines; the last line. */
void lead_mark_log(struct lead *lead);
void lead_write_log(struct lead *lead, const struct buf *lines);
void lead_say_end(struct lead *lead);
/* Appends what the job waits for, for the terminal's status line. */
void lead_status_line(void *arg, struct buf *text);

#endif
