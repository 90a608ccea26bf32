/* SPDX-License-Identifier: Apache-2.0 */
/* A job of the cluster as somebody outside sees it: the launcher's log as it is written, what is
 * awaited, and the end, from the API alone. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FOLLOW_H
#define DRARUN_LAUNCHER_CLUSTER_FOLLOW_H

#include "launcher/cluster/client/cluster.h"
#include "launcher/cluster/follow/options.h"

struct follow;
/* It is over: follow_result tells how. Called once, from the loop; may free it. */
typedef void (*follow_ended_fn)(void *arg);

/* Begins to follow; all of its callbacks come from the loop. Options are copied with their texts,
 * but for stop. */
int follow_new(struct cluster *cluster, const struct follow_options *options, follow_ended_fn ended,
               void *arg, struct follow **ret_follow, struct drarun_error *err);
/* No callback afterwards; may be called from one. NULL is fine. */
void follow_free(struct follow *follow);
/* To be called when stop has been set. */
void follow_look(struct follow *follow);
/* Once it is over. 0 and the job's exit status, with the words of its cause logged (0 too where it
 * runs, and `running` says so). Else -errno: kind DRARUN_ERR_TIMEOUT (its time is over, or the log
 * as it is was read: no error with `once`), DRARUN_ERR_INTERRUPTED (-ECANCELED; *ret_status is that
 * of a signal), or what cannot be had. */
int follow_result(const struct follow *follow, int *ret_status, struct drarun_error *err);

typedef int (*follow_until_fn)(struct cluster *cluster, const struct follow_options *options,
                               int *ret_status, struct drarun_error *err);
/* In the foreground (options->streams are made) until the job ends, with what cannot be had said;
 * returns the exit status when all is written. until_end runs the loop until it is over. */
int follow_in_foreground(struct cluster *cluster, const struct follow_options *options,
                         follow_until_fn until_end);
int follow_job(struct cluster *cluster, const struct follow_options *options);

#endif
