/* SPDX-License-Identifier: Apache-2.0 */
/* A job handed to the cluster: its objects are made, the launcher Job first, and it is left to
 * that. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_SUBMIT_H
#define DRARUN_LAUNCHER_CLUSTER_SUBMIT_H

#include "jobs/spec/spec.h"
#include "launcher/cluster/client/cluster.h"

/* Room for the name of a job's Secret, which no other has. */
#define SUBMIT_SECRET_SIZE 80
#define SUBMIT_KEY_SIZE 65 /* 64 hexadecimal digits */

/* "NAME-key-1a2b3c4d". */
int submit_name_secret(const char *job, char name[SUBMIT_SECRET_SIZE], struct drarun_error *err);

struct submit_options { /* borrowed */
    const char *namespace;
    const char *image;   /* of agent and launcher; NULL: the default */
    const char *dra_job; /* uid of the job's DraJob, which the caller deletes when it expires */
    int64_t going_ms;    /* of create_job; 0: CREATE_GOING_MS */
    uint32_t keep_s;     /* see submit_kept; 0: the workers end with their ranks */
};

/* The objects of a job, and nothing else, beside other work of the loop. options->dra_job is set.
 */
struct submission;
/* Takes the spec, which it leaves empty. What fails afterwards is an error of submission_end. */
int submission_begin(struct cluster *cluster, struct job_spec *spec_take,
                     const struct submit_options *options, struct submission **ret_submission,
                     struct drarun_error *err);
/* The launcher Job's uid, once it is created, else NULL; borrowed until submission_end. */
const char *submission_launcher(const struct submission *submission);
/* For each turn of the loop: asks the cluster what has to be known before, then as create_go_on. */
bool submission_go_on(struct submission *submission, size_t most);
/* It asks the cluster no more. Of several that do one alone goes on: the answers are in the struct
 * cluster meanwhile, and what is read for them may be large. */
bool submission_has_answers(const struct submission *submission);
/* As create_leave, once there is a launcher Job, and create_cancel. */
void submission_leave(struct submission *submission);
void submission_cancel(struct submission *submission, const char *why);
/* As create_undo. */
bool submission_undo(struct submission *submission);
/* Runs the loop until all is created; *ret_uid is the launcher Job's. Errors as create_job's. */
int submission_end(struct submission *submission_take, char **ret_uid, struct drarun_error *err);

/* The objects as a user creates them: where DraJobs are served, and he may make them, with its
 * DraJob as the owner; and what killed launchers have left is taken away.
 *
 * image: of agent and launcher; NULL: the default. What a namespace needs once is made where it is
 * missing and we may. *ret_uid is the launcher Job's, which the caller frees. Errors as
 * create_job's. */
int submit_job(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
               const char *image, char **ret_uid, struct drarun_error *err);

/* The same for drarun alloc, without a DraJob: the workers are kept until nothing is heard of it
 * for keep_s seconds (heartbeat.h), and the key is the caller's too, who wipes it. */
int submit_kept(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
                const char *image, uint32_t keep_s, char ret_key[SUBMIT_KEY_SIZE], char **ret_uid,
                struct drarun_error *err);

#endif
