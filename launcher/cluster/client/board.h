/* SPDX-License-Identifier: Apache-2.0 */
/* A cache of one job's objects: its pods, claims and Jobs and the Events about them, kept up to
 * date by watches and sorted by worker. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_BOARD_H
#define DRARUN_LAUNCHER_CLUSTER_BOARD_H

#include "jobs/gang/gang_sums.h"
#include "jobs/gang/news.h"
#include "jobs/gang/pod_state.h"
#include "jobs/spec/spec.h"
#include "launcher/cluster/client/cluster.h"

struct board;

struct board_owner {
    /* Called from the loop after a change; changes that arrive together are one call. */
    void (*changed)(void *arg);
    void *arg;
};

/* Starts the watches. spec and cluster are borrowed. events: watch the namespace's Events too. */
int board_new(struct cluster *cluster, const struct job_spec *spec, const char *namespace,
              bool events, const struct board_owner *owner, struct board **ret_board,
              struct drarun_error *err);
void board_free(struct board *board);
/* The worker that an object of a job belongs to, by its labels; -1: none. */
int64_t board_worker_label(const json_t *object);
DEFINE_CLEANUP(struct board, board_free)

/* Sets the uid of the job's owner, which is borrowed. From now on, objects with another owner are
 * ignored, such as terminating pods of an earlier job with that name. */
void board_own(struct board *board, const char *owner_uid);

/* Runs the loop until all watches but that of Events have their first list. -ETIMEDOUT after ms, or
 * the error of a watch. */
int board_sync(struct board *board, int64_t ms, struct drarun_error *err);
/* The same for Events, of which there may be many. Without the right to read them, fewer reasons
 * are known. */
void board_sync_events(struct board *board, int64_t ms);
/* -EACCES if the job needs an object that this account may not watch; waiting does not help.
 * -ENOMEM: not all objects could be kept. */
int board_check(const struct board *board, struct drarun_error *err);
/* Why the cluster cannot be watched now; NULL: it can. Events do not count, since only texts depend
 * on them. Borrowed until the loop runs again. */
const char *board_trouble(const struct board *board);

/* The workers of an attempt, spec->workers of them; borrowed until the loop runs again. Pods of
 * other attempts do not count; claims may be kept from one to the next. */
const struct pod_state *board_workers(struct board *board, uint32_t attempt);
/* Of the workers that were borrowed last; borrowed likewise. */
const struct gang_sums *board_sums(const struct board *board);
/* An array with an array of claims for each worker (a new reference); NULL without memory. */
json_t *board_claims(struct board *board, uint32_t attempt);
/* Calls fn with each worker that has changed since the last call. If fn returns false, the next
 * call calls it for that worker again. fn must not run the loop. */
void board_each_changed(struct board *board, uint32_t attempt,
                        bool (*fn)(uint32_t worker, const struct pod_state *state, void *arg),
                        void *arg);
/* The number of pods, with claims also of claims, of all attempts. */
size_t board_remains(const struct board *board, bool claims);

/* Also watches ConfigMap NAME-status, the owner of a job that has no launcher Job. */
int board_watch_map(struct board *board, struct drarun_error *err);
/* The job's owner: Job NAME, or that ConfigMap; NULL if there is none. */
const json_t *board_owner(const struct board *board);

/* Job NAME, and Job NAME-w of template mode; NULL if there is none. */
const json_t *board_launcher_job(const struct board *board);
const json_t *board_worker_job(const struct board *board);
/* Why the launcher Job's pod does not start (waiting_of_launcher), if something fails; NULL: it has
 * started, or there is no such Job. The caller frees it. */
char *board_launcher_waits(const struct board *board);
/* Events about Job NAME-w; never NULL. */
const struct news *board_job_news(const struct board *board);

#endif
