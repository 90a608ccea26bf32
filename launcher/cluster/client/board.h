/* SPDX-License-Identifier: Apache-2.0 */
/* What the cluster shows of one job: its pods, claims, Jobs and the Events about them, watched and
 * sorted by worker. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_BOARD_H
#define DRARUN_LAUNCHER_CLUSTER_BOARD_H

#include "jobs/gang/news.h"
#include "jobs/gang/pod_state.h"
#include "jobs/spec/spec.h"
#include "launcher/cluster/client/cluster.h"

struct board;

struct board_owner {
    /* Something has changed; several changes at once are one call. From the loop. */
    void (*changed)(void *arg);
    void *arg;
};

/* Begins to watch. spec and cluster are borrowed. events: also the namespace's Events. */
int board_new(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
              bool events, const struct board_owner *owner, struct board **ret_board,
              struct drarun_error *err);
void board_free(struct board *board);
/* The worker that an object of a job belongs to, by its labels; -1: none. */
int64_t board_worker_label(const json_t *object);
DEFINE_CLEANUP(struct board, board_free)

/* The uid of the job's owner, which is borrowed: from now on what is not of this job counts no
 * more, as the pods of an earlier one of that name, which go. */
void board_own(struct board *board, const char *owner_uid);

/* Runs the loop until all that was there is known; -ETIMEDOUT after ms, or why it cannot be. */
int board_sync(struct board *board, int64_t ms, struct drarun_error *err);
/* The same of the Events, which may be many, and which not everybody may read: less is known then.
 */
void board_sync_events(struct board *board, int64_t ms);
/* -EACCES when something that the job needs may not be watched, which does not pass by itself. */
int board_check(const struct board *board, struct drarun_error *err);
/* Of everything but Events, whose absence is a lack of words alone. Why the cluster cannot be
 * watched now: NULL when it can; borrowed until the loop runs again. */
const char *board_trouble(const struct board *board);

/* The workers of an attempt, spec->workers of them; borrowed until the loop runs again. Pods of
 * other attempts do not count; claims may be kept from one to the next. */
const struct pod_state *board_workers(struct board *board, uint32_t attempt);
/* By worker an array of its claims (a new reference); NULL without memory. */
json_t *board_claims(struct board *board, uint32_t attempt);
/* How many pods, and claims, of any attempt there are. */
size_t board_remains(const struct board *board, bool claims);

/* Watches ConfigMap NAME-status too, the owner of a job that has no launcher Job. */
int board_watch_map(struct board *board, struct drarun_error *err);
/* The job's owner as it is now: Job NAME, or that ConfigMap; NULL when there is none. */
const json_t *board_owner(const struct board *board);

/* The Job NAME, and NAME-w of template mode; NULL when there is none. */
const json_t *board_launcher_job(const struct board *board);
const json_t *board_worker_job(const struct board *board);
/* Why the launcher Job's pod does not start (waiting_of_launcher), where something fails; NULL: it
 * has started, or there is no such Job. The caller frees it. */
char *board_launcher_waits(const struct board *board);
/* Of NAME-w; never NULL. */
const struct news *board_job_news(const struct board *board);

#endif
