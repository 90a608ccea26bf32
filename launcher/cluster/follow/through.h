/* SPDX-License-Identifier: Apache-2.0 */
/* A job by its name, through all that may become of it: a DraJob of which nothing is made yet is
 * awaited, what is made of it is followed (follow.h), and where that goes since the job is
 * suspended, what is made of it next. Beside other work; loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FOLLOW_THROUGH_H
#define DRARUN_LAUNCHER_CLUSTER_FOLLOW_THROUGH_H

#include "launcher/cluster/follow/follow.h"

struct follow_through;

/* As follow_new, whose options have no `cancel` here. With a uid it is that launcher Job alone that
 * is followed. */
int follow_through_new(struct cluster *cluster, const struct follow_options *options,
                       follow_ended_fn ended, void *arg, struct follow_through **ret_through,
                       struct drarun_error *err);
/* No callback afterwards; may be called from one. NULL is fine. */
void follow_through_free(struct follow_through *through);
/* To be called when stop has been set. */
void follow_through_look(struct follow_through *through);
/* Once it is over; as follow_result. Besides kind DRARUN_ERR_SPEC: its spec was refused; -ENOENT,
 * kind DRARUN_ERR_USAGE: there is no such job, else: it was deleted; and what cannot be asked. */
int follow_through_result(const struct follow_through *through, int *ret_status,
                          struct drarun_error *err);

/* Both at once: runs the loop until it is over. */
int follow_through_until_end(struct cluster *cluster, const struct follow_options *options,
                             int *ret_status, struct drarun_error *err);

#endif
