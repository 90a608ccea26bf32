/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the launcher share: lead.c (a job from its begin to its end), lead_place.c (an
 * attempt until its workers are up), lead_ranks.c (its ranks), lead_plan.c (what
 * they get), lead_status.c (what is told). */
#ifndef DRARUN_LAUNCHER_CLUSTER_LEAD_PRIVATE_H
#define DRARUN_LAUNCHER_CLUSTER_LEAD_PRIVATE_H

#include "jobs/cause.h"
#include "jobs/gang.h"
#include "jobs/render.h"
#include "launcher/cluster/board.h"
#include "launcher/cluster/facts.h"
#include "launcher/cluster/lead.h"
#include "launcher/cluster/lease.h"
#include "launcher/cluster/status_writer.h"
#include "launcher/job.h"
#include "launcher/signals.h"
#include "launcher/status_line.h"

struct lead {
    struct cluster *cluster;
    const struct lead_options *options;
    const struct job_spec *spec;
    struct render_options render; /* of the present attempt */
    char *owner_uid;
    struct tls_key key;
    char key_text[2 * sizeof(struct tls_key) + 1];
    char secret[LEAD_SECRET_SIZE];
    struct board *board;
    struct lease *lease;
    struct status_writer *writer;
    struct facts *facts;     /* NULL: the job has no devices */
    struct signals *signals; /* while no job engine has its own */
    struct status_line *line;

    struct gang gang;
    struct gang_decision decision;
    uint32_t restarts;
    uint32_t ranks;
    int64_t created_ms;
    bool dirty;               /* something has changed since the last decision */
    bool created;             /* by us: what remains of an interrupted run is ours to take back */
    bool waiting_told;        /* the status says that it waits */
    int signo;                /* told to end, by this signal */
    bool cancelled;           /* by `drarun cancel` */
    struct drarun_error lost; /* code 0: no */

    struct job *job; /* while ranks run */
    json_t *report;  /* cause_json of the last attempt's ranks, or NULL */
    int status;      /* exit status; meaningful once it has ended */
};

/* ---- lead_place.c ---- */

/* Until every worker is up: 0. Else what ended it: -ECANCELED and lead->signo or lead->lost, or err
 * with its kind. */
int lead_place(struct lead *lead, struct drarun_error *err);
/* Asks for a decision, as often as something follows from one. */
int lead_decide(struct lead *lead, uint32_t inspected, struct drarun_error *err);
/* Takes claims and pods of all attempts away, and waits until they are gone. */
int lead_release(struct lead *lead, struct drarun_error *err);

/* ---- lead_ranks.c ---- */

/* Runs the ranks of workers that are up to their end: lead->report, lead->status. -errno: there was
 * no such run. */
int lead_run_ranks(struct lead *lead, struct drarun_error *err);
/* Something has changed while ranks run. */
void lead_look_at_ranks(struct lead *lead);

/* ---- lead_plan.c ---- */

/* Judges what all workers hold, and gives the job what follows from it. */
int lead_plan(struct lead *lead, struct job *job, struct drarun_error *err);

/* ---- lead_status.c ---- */

/* Writes the status document; result NULL while the job goes on. */
void lead_tell(struct lead *lead, const char *result);
/* The report of a job whose ranks never ran; NULL without memory. */
json_t *lead_failure_report(const struct lead *lead, const struct drarun_error *err);
/* The last line of a framed log. */
void lead_say_end(const struct lead *lead);
/* What is awaited, for the terminal's line. */
void lead_status_line(void *arg, struct buf *text);

#endif
