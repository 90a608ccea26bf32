/* SPDX-License-Identifier: Apache-2.0 */
/* What is awaited of a job that is followed, in words. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FOLLOW_AWAITED_H
#define DRARUN_LAUNCHER_CLUSTER_FOLLOW_AWAITED_H

#include "jobs/gang/waiting.h"
#include "launcher/cluster/follow/launcher.h"
#include "launcher/cluster/follow/state.h"

struct follow_awaited {
    const struct follow_state *state; /* borrowed, as is launcher */
    const struct follow_launcher *launcher;
    const int64_t *running_ms; /* borrowed: since when its messages alone are awaited; 0: more is */
    /* by follow_awaited_say: */
    struct waiting_told told;
    bool told_reading, told_unreported;
    int64_t unreported_ms; /* since when a launcher runs that has reported nothing; 0: none does */
};

void follow_awaited_done(struct follow_awaited *awaited);

/* Nothing while the ranks run, unless the launcher's messages until then are long in coming. */
void follow_awaited_words(const struct follow_awaited *awaited, struct buf *text);
/* Logs what is awaited since since_ms, once for each cause: for where no status line shows it. Why
 * the launcher has not started yet is said elsewhere (launcher.h). Returns when to say it again; 0:
 * when something has changed. */
int64_t follow_awaited_say(struct follow_awaited *awaited, int64_t since_ms, int64_t now);

#endif
