/* SPDX-License-Identifier: Apache-2.0 */
/* The job engine: connects agents, gives them the job, carries output, input and signals, and
 * decides when and how the job ends. One at a time in a process. Loop thread only. */
#ifndef DRARUN_LAUNCHER_JOB_H
#define DRARUN_LAUNCHER_JOB_H

#include <stdint.h>
#include <jansson.h>
#include "drarun/error.h"
#include "jobs/outcome/cause.h"
#include "jobs/derive/plan.h"
#include "launcher/job/request.h"

struct fabric; /* jobs/preflight/fabric.h */
struct job;
struct launch_message;

/* What a report says beside the cause. */
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

/* Checks the request against itself and starts the agents; request and env (of "NAME=VALUE", what
 * the ranks inherit) are borrowed. */
struct job *job_new(const struct job_request *request, char *const env[], struct drarun_error *err);
/* Runs it to its end, whatever that is: see job_cause. */
void job_run(struct job *job);
/* Ends what still runs. */
void job_free(struct job *job);

/* From callbacks of the loop, while it runs: */
/* Ends it: why is the first cause, unless there is one already. */
void job_stop(struct job *job, const struct drarun_error *why);
/* As the signal that the user sends. */
void job_interrupt(struct job *job, int signo);
/* The pod of a worker has ended, as the cluster tells. Nothing for one that had ended in order. */
void job_pod_ended(struct job *job, const struct cause_pod *pod);
/* Its end is announced: every rank gets SIGTERM and request_pods.grace_ms. */
void job_pod_leaves(struct job *job, const struct cause_pod *pod);

/* For request_pods.prepare: what a worker says that it holds (docs/design/018-inspection.md;
 * borrowed), and the message that takes what is derived of it; NULL without memory. */
const json_t *job_inspection(const struct job *job, uint32_t worker);
/* For the same: what was derived goes to the ranks with the launch. The plans' workers are the
 * job's in order, one plan for each role. Nothing of them is kept. */
int job_use_plans(struct job *job, const struct plan *plans, size_t count,
                  struct drarun_error *err);
/* For the same, after job_use_plans: the NICs that carry data are to reach those of other workers
 * before anything starts, where there are any. spec is borrowed, plans, one for each role, are not
 * kept. */
int job_use_reach(struct job *job, const struct job_spec *spec, const struct plan *plans,
                  uint32_t count, struct drarun_error *err);
/* There is a file for the report, beside which others can be put. */
bool job_reports_to_file(const struct job *job);
/* For the same, after job_use_plan, with job_reports_to_file: what ranks leave in the folder that
 * the variable (static) names is kept beside the report. */
int job_use_files(struct job *job, const char *variable, struct drarun_error *err);
/* job_files_json of them; a new reference, or NULL. */
json_t *job_left_files(const struct job *job);
/* For the same: what the check of the NICs has noted; takes it. */
void job_use_fabric_take(struct job *job, struct fabric *fabric);
/* What came of both (jobs/preflight/fabric.h); a new reference, or NULL: the job moves no data by
 * RDMA, or its NICs were not checked. */
json_t *job_fabric(const struct job *job);
struct launch_message *job_launch(struct job *job, struct drarun_error *err);

/* Asks every agent what its worker does; answers come to request_pods.vitals. ranks: each rank's
 * state and place in the kernel, too. */
void job_ask_vitals(struct job *job, bool ranks);

/* Every agent has said hello, and what it holds. */
bool job_gathered(const struct job *job);
/* An agent was refused, or refused us, in a way that another try does not change. */
bool job_is_hopeless(const struct job *job);

/* Why it ended; borrowed. */
const struct cause *job_cause(const struct job *job);
void job_facts(const struct job *job, struct job_facts *ret_facts);

#endif
