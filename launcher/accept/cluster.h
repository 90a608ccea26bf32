/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of the cluster itself. Runs the loop. */
#ifndef DRARUN_LAUNCHER_ACCEPT_CLUSTER_H
#define DRARUN_LAUNCHER_ACCEPT_CLUSTER_H

#include "launcher/accept/job.h"
#include "launcher/accept/trial.h"
#include "launcher/cluster/client/cluster.h"
#include "lib/accept/accept.h"
#include "lib/base/strlist.h"

#define ACCEPT_PRIORITY_CLASS "drarun-accept"

/* Why the node cannot be tested now (cordoned, not ready, of the control plane); a new string;
 * NULL: it can. pod: the spec of the job's pods, as the user gives it; NULL: also nodes of the
 * control plane are tested, since the user has named them. Pure. */
json_t *accept_why_not(const json_t *node, const json_t *pod);

/* Nodes of this label selector (NULL: all but those of the control plane that the pod does not
 * tolerate) by name, and which objects they are as JSON {name: uid}; the reason of each that cannot
 * be tested now as JSON {name: text}. */
int accept_list_nodes(struct cluster *cluster, const char *selector, const json_t *pod,
                      struct strlist *ret_names, json_t *ret_uids, json_t *ret_left_out,
                      struct drarun_error *err);

/* Makes the class where it is missing: below all others, preempting nobody. */
int accept_ensure_priority(struct cluster *cluster, struct drarun_error *err);

/* Puts the taint ACCEPT_TAINT:NoSchedule on a node, or takes it off. 1: something changed. */
int accept_taint(struct cluster *cluster, const char *name, bool unfit, struct drarun_error *err);

/* How long the job of a test has waited: asked beside other calls, at an address that stays. It is
 * answered when read->call is NULL, and accept_take_wait gives it, once. */
void accept_ask_wait(struct cluster *cluster, const char *job, const char *namespace,
                     struct cluster_read *read);
void accept_take_wait(struct cluster *cluster, struct cluster_read *read,
                      struct trial_wait *ret_wait);

#endif
