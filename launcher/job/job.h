/* SPDX-License-Identifier: Apache-2.0 */
/* The job engine: connects to agents, sends them the job, forwards output, input and signals, and
 * decides when and how the job ends. A process has at most one. Loop thread only. */
#ifndef DRARUN_LAUNCHER_JOB_H
#define DRARUN_LAUNCHER_JOB_H

#include <stdint.h>
#include <jansson.h>
#include "drarun/error.h"
#include "jobs/outcome/cause.h"
#include "jobs/derive/plan.h"
#include "launcher/job/request.h"

struct console;
struct fabric; /* jobs/preflight/fabric.h */
struct job;
struct launch_message;

/* What a report contains besides the cause. */
struct job_facts {
    const char *uid;
    uint32_t ranks;
    uint32_t workers;
    int64_t ran_us;   /* from job_new to the end */
    uint64_t user_us; /* of all ranks */
    uint64_t system_us;
    uint64_t max_rss_kib; /* of the largest rank */
    uint64_t wire_bytes;  /* between us and the agents */
};

/* Checks the request for contradictions and starts the agents. request, console, input and env are
 * borrowed. console: where the job is shown, which it opens, and closes at its end
 * (launcher/streams/console.h). input: a descriptor, from which the ranks of request.stdin_rank get
 * their standard input; -1: none. env has what the ranks inherit, as "NAME=VALUE". */
struct job *job_new(const struct job_request *request, struct console *console, int input,
                    char *const env[], struct drarun_error *err);
/* Runs the job to its end; job_cause says how it ended. */
void job_run(struct job *job);
/* Ends agents that still run. */
void job_free(struct job *job);

/* From callbacks of the loop, while the job runs: */
/* Ends the job. why becomes the first cause, unless there is one already. */
void job_stop(struct job *job, const struct drarun_error *why);
/* Has the effect of that signal from the user. */
void job_interrupt(struct job *job, int signo);
/* A worker's pod has ended, according to the cluster. No effect if its agent had ended cleanly.
 * False: no effect yet, since what the agent said last is unread; the caller reports it again. */
bool job_pod_ended(struct job *job, const struct cause_pod *pod);
/* A worker's pod will end soon: every rank gets SIGTERM and then request_pods.grace_ms. */
void job_pod_leaves(struct job *job, const struct cause_pod *pod);

/* The next functions are for request_pods.prepare. */
/* A worker's inspection (docs/design/018-inspection.md), borrowed; NULL: it has sent none. */
const json_t *job_inspection(const struct job *job, uint32_t worker);
/* The program of that role, borrowed; NULL: the job's programs are not so many roles. An
 * allocation starts others than its spec names. */
char *const *job_argv_of_role(const struct job *job, uint32_t role, uint32_t role_count);
/* Puts derived variables and CPUs into the launch message. There is one plan for each role; their
 * workers are the job's, in order. The plans are copied. */
int job_use_plans(struct job *job, const struct plan *plans, size_t count,
                  struct drarun_error *err);
/* After job_use_plans: before ranks start, tests whether the NICs that carry data reach those of
 * other workers. spec is borrowed; plans, one for each role, are copied. */
int job_use_reach(struct job *job, const struct job_spec *spec, const struct plan *plans,
                  uint32_t count, struct drarun_error *err);
/* The report goes to a file, so that other files can be put beside it. */
bool job_reports_to_file(const struct job *job);
/* After job_use_plans, with job_reports_to_file: copies the files that ranks leave in the folder
 * that the variable (static) names, to beside the report. */
int job_use_files(struct job *job, const char *variable, struct drarun_error *err);
/* job_files_json of these files; a new reference, or NULL. */
json_t *job_left_files(const struct job *job);
/* Sets the results of the NIC check; takes ownership. */
void job_use_fabric_take(struct job *job, struct fabric *fabric);
/* The results of both checks of NICs (jobs/preflight/fabric.h); a new reference, or NULL: the job
 * uses no RDMA, or its NICs were not checked. */
json_t *job_fabric(const struct job *job);
/* The launch message, created at the first call; borrowed, NULL without memory. */
struct launch_message *job_launch(struct job *job, struct drarun_error *err);

/* Asks every agent for its worker's vitals; answers go to request_pods.vitals. ranks: also each
 * rank's state and where it waits in the kernel. */
void job_ask_vitals(struct job *job, bool ranks);

/* Every agent has sent hello and its inspection. */
bool job_gathered(const struct job *job);
/* An agent refused us, or we refused it, for a reason that another attempt does not change. */
bool job_is_hopeless(const struct job *job);

/* After job_run: the last signal to this process that asks for the end, also where it came too late
 * to be the cause; 0: none has come. */
int job_end_signal(const struct job *job);

/* Why the job ended; borrowed. */
const struct cause *job_cause(const struct job *job);
void job_facts(const struct job *job, struct job_facts *ret_facts);

#endif
