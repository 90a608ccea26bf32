/* SPDX-License-Identifier: Apache-2.0 */
/* One DraJob as the watches show it, what the controller remembers of it, and its status. Loop
 * thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_CONTROLLER_SIGHT_H
#define DRARUN_LAUNCHER_CLUSTER_CONTROLLER_SIGHT_H

#include "jobs/status/drajob.h"
#include "launcher/cluster/controller/private.h"

#define SIGHT_CONFLICT_MS 200 /* until the watch has brought what another one wrote */

/* One DraJob, and what there is of it. */
struct sight {
    struct controller *c;
    const char *namespace, *name;
    json_t *object;        /* what drajob_trim leaves; references of our own: the watch may drop
                            * them meanwhile */
    json_t *job;           /* the launcher's Job of that name, whatever its owner; or NULL */
    json_t *map;           /* metadata of NAME-status, whatever its owner; or NULL */
    bool own_job, own_map; /* they are this DraJob's */
};

/* As it is now. namespace and name are borrowed. */
void sight_see(struct controller *c, const char *namespace, const char *name, struct sight *s);
void sight_done(struct sight *s);

/* Looks at it again after this time at the latest. */
void sight_again(const struct sight *s, int64_t ms);
/* The pause before the next try, which doubles. */
int64_t sight_pause_ms(const struct sight *s);

/* What is remembered of it in one of the controller's books; NULL: nothing. Borrowed. */
const json_t *sight_noted(const struct sight *s, const json_t *book);
bool sight_is_noted(const struct sight *s, const json_t *book, const char *text);
void sight_note(const struct sight *s, json_t *book, json_t *value_take);
void sight_unnote(const struct sight *s, json_t *book);
/* In all books. */
void sight_forget(const struct sight *s);

/* Every call runs the loop, and in one of them the Lease may have been lost: what there is to do is
 * another's then, and what we know may be out of date. */
bool sight_is_leader(const struct sight *s);

/* Until the watch brings what was written, the object that it has is out of date. */
int sight_write_status(const struct sight *s, json_t *status_take, struct drarun_error *err);
/* The status that said leads to, and an Event of what has changed with it. 0: the status is as it
 * should be, or was written. What somebody else has changed meanwhile comes by the watch, and is
 * looked at then. */
int sight_tell(const struct sight *s, const struct drajob_input *said);
int sight_tell_stage(const struct sight *s, enum drajob_stage stage, const char *reason,
                     const char *text);

#endif
