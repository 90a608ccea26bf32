/* SPDX-License-Identifier: Apache-2.0 */
/* A run's answers in a file of JSON lines, one as soon as it is there: a run that ended in the
 * middle goes on from them. What earlier runs said of a node stays beside it. One thread. */
#ifndef DRARUN_LAUNCHER_ACCEPT_RECORD_H
#define DRARUN_LAUNCHER_ACCEPT_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include "lib/accept/accept.h"

struct record;

/* $XDG_STATE_HOME/drarun/accept, else below $HOME. */
int record_default_dir(char *path, size_t size, struct drarun_error *err);

/* Opens the newest unfinished run in the directory that has the same nodes and the same order (any
 * JSON), or begins a new one; always a new one with `again`. nodes: {name: uid}, since another
 * cluster, or a node that was replaced, may have the same name. -EBUSY: another process writes that
 * run. */
int record_open(const char *dir, const json_t *nodes, const json_t *order, bool again,
                struct record **ret, struct drarun_error *err);
void record_free(struct record *record);
static inline void record_freep(struct record **record)
{
    record_free(*record);
}

const char *record_path(const struct record *record);
const char *record_run(const struct record *record); /* eight hex digits */
size_t record_known(const struct record *record);    /* answers that were there at the opening */

/* False: there is none. names: of the test's nodes, the second NULL for a node alone. */
bool record_find(const struct record *record, unsigned wave, const char *const names[2],
                 struct accept_answer *ret_answer);
int record_add(struct record *record, unsigned wave, const char *const names[2],
               const struct accept_answer *answer, struct drarun_error *err);
/* verdict: what the run said, with {"nodes": [{"name", "state"}]}; no more can be added. */
int record_end(struct record *record, const json_t *verdict, struct drarun_error *err);

/* Of this run's nodes in the other runs in the directory that have ended: {name: {"runs": n, "bad":
 * n}}. As at the opening, a node with another uid is another one. */
json_t *record_history(const struct record *record);

#endif
