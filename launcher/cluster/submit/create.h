/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of a job: made, and made away with. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_CREATE_H
#define DRARUN_LAUNCHER_CLUSTER_CREATE_H

#include "jobs/manifests/render.h"
#include "launcher/cluster/client/cluster.h"

#define CREATE_GOING_MS 60000 /* for an earlier job's pod with a long grace period */

/* Creates all of them, the owner first, the others at once. options->owner_uid is not set; *ret_uid
 * is the owner's, which the caller frees. When one cannot be made, the owner is deleted again, and
 * with it the others. going_ms: how long to wait for objects of an earlier job of that name that
 * are being deleted. Once an object of the workers is found that another process created for this
 * owner, the rest is left to that: its launcher has taken the job over.
 *
 * -EEXIST, kind DRARUN_ERR_CLUSTER: there is a job of that name.
 * -ECANCELED: cluster->may_create has said no, or create_cancel was called; what was made stays. */
int create_job(struct cluster *cluster, const struct job_spec *spec,
               const struct render_options *options, int64_t going_ms, char **ret_uid,
               struct drarun_error *err);

/* The same beside other work of the loop: what fails after create_begin is an error of create_end.
 * spec and options are borrowed until that. */
struct creation;
int create_begin(struct cluster *cluster, const struct job_spec *spec,
                 const struct render_options *options, int64_t going_ms,
                 struct creation **ret_creation, struct drarun_error *err);
/* The uid of its owner, once that is created, else NULL; borrowed until create_end. */
const char *create_owner_uid(const struct creation *creation);
/* For each turn of the loop: creates more, with at most so many calls under way. True: all is
 * created, or will not be. */
bool create_go_on(struct creation *creation, size_t most);
/* Creates no more, and gives up the calls under way: the job is over, or whole for another reason.
 * create_end returns 0, even if one failed before. */
void create_leave(struct creation *creation);
/* Likewise; create_end returns -ECANCELED. why: "its DraJob was deleted". */
void create_cancel(struct creation *creation, const char *why);
/* After create_go_on has returned true: if an object could not be created, deletes what was. True:
 * that goes on, until create_go_on returns true again. */
bool create_undo(struct creation *creation);
/* Creates what is left, or deletes what was created, running the loop. As create_job. */
int create_end(struct creation *creation_take, char **ret_uid, struct drarun_error *err);
/* How many objects a job has for its workers, each created by itself. Pure. */
size_t create_count_of_workers(const struct job_spec *spec);

/* The claims and pods of an attempt alone, for a job that exists; options->owner_uid is set. Pods
 * of earlier attempts that are in their way are deleted, as are their Job, their template of claims
 * and claims of another step of the ladder; other claims stay. */
int create_workers(struct cluster *cluster, const struct job_spec *spec,
                   const struct render_options *options, struct drarun_error *err);

/* What a job needs that exists, with Secret and document, and whose client may have died on the
 * way; options->owner_uid is set. What is there and belongs to that owner stays as it is, but for
 * what create_workers deletes. */
int create_missing(struct cluster *cluster, const struct job_spec *spec,
                   const struct render_options *options, struct drarun_error *err);

/* Whether the same objects may be created later, as they are: a quota that others use up, or whose
 * count is behind a deletion; an API server that is away or overloaded. Pure. */
bool create_may_pass(const struct drarun_error *err);
/* Whether only another spec helps: it was rejected here, or the API server's validation has
 * rejected an object (400, 422). What a policy or a webhook of the cluster refuses, with the same
 * codes, may be admitted later. Pure. */
bool create_is_invalid(const struct drarun_error *err);
/* Whether a quota, a policy or a webhook has refused the object, and no Role did: the site does not
 * want it of any account. Pure. */
bool create_is_denied(const struct drarun_error *err);

/* Takes what uses devices away, of all attempts; returns when the API server has been told. The
 * template of claims goes with the owner: */
int delete_pods_and_claims(struct cluster *cluster, const struct job_spec *spec,
                           const char *namespace, struct drarun_error *err);
/* that too, for a next attempt, or where no owner goes. */
int delete_workers(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
                   struct drarun_error *err);
/* The pods alone. node: those of that node, which does not answer, so that nobody waits for it;
 * NULL: all of them. */
int delete_pods(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
                const char *node, bool now, struct drarun_error *err);
/* Takes the owner away, and with it everything. */
int delete_job(struct cluster *cluster, const char *name, const char *namespace, bool here,
               const char *uid, struct drarun_error *err);

#endif
