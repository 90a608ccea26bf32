/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out the waves of lib/accept, several tests at a time, and keeps every answer. Loop thread
 * only; runs the loop. */
#ifndef DRARUN_LAUNCHER_ACCEPT_DRIVE_H
#define DRARUN_LAUNCHER_ACCEPT_DRIVE_H

#include "launcher/programs/accept_order.h"
#include "launcher/accept/record.h"
#include "launcher/cluster/client/cluster.h"

/* names: of the plan's nodes. base: of job.h. -ECANCELED after a signal, when what ran was ended:
 * what was answered is kept. */
int drive(struct cluster *cluster, const struct accept_order *order, const json_t *job,
          const char *priority_class, const struct strlist *names, struct accept *plan,
          struct record *record, struct drarun_error *err);

#endif
