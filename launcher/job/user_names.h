/* SPDX-License-Identifier: Apache-2.0 */
/* Names that the jobs of one user on one machine share (docs/design/037-spawn.md). Each name is a
 * file in a directory that only this user can enter; there is no server. Each job locks a file of
 * its own while it lives. A name whose job holds no lock is stale: lookups ignore it, and the next
 * job that finds it removes it. Nothing here waits for another process: who awaits a name watches
 * the directory. Loop thread only. */
#ifndef DRARUN_LAUNCHER_USER_NAMES_H
#define DRARUN_LAUNCHER_USER_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <event2/event.h>
#include "drarun/error.h"
#include "lib/base/buf.h"

/* What a job may have published there at a time, and the bytes of a name and of its value. */
#define USER_NAMES_MAX 16384u
#define USER_NAMES_SERVICE_MAX (32u * 1024)
#define USER_NAMES_VALUE_MAX (16u * 1024 * 1024)
/* A job's own name there, with the end of the string. */
#define USER_NAMES_JOB_SIZE 17

struct user_names;

/* Touches nothing. NULL without memory. */
struct user_names *user_names_new(void);
/* Takes back what is published. */
void user_names_free(struct user_names *names);

/* service: any text. once: the first lookup removes it. reader: the same, it is for the lookup of
 * that job, and outlives this one; NULL: for all. -EEXIST: this or another job has it.
 * -EDQUOT: too many names. -EMSGSIZE: too many bytes. Otherwise the reason why the directory,
 * $XDG_RUNTIME_DIR/drarun or drarun-UID in $TMPDIR, is of no use; -EPERM: it is not this user's
 * alone. */
int user_names_publish(struct user_names *names, const char *service, const void *value,
                       size_t length, bool once, const char *reader, struct drarun_error *err);
/* Appends the value to out, and says which job has published it. -ENOENT: no living job has it, or
 * there is no such directory. -EAGAIN: another process has locked what is for one lookup: it takes
 * it, or has failed to, so that another try later finds nothing or the name. Otherwise as above. */
int user_names_lookup(const char *service, struct buf *out, char ret_job[USER_NAMES_JOB_SIZE],
                      struct drarun_error *err);
/* A living job has it, this one included. Only once the directory is in use. */
bool user_names_is_taken(const struct user_names *names, const char *service);
/* Nothing when this job has not published it, or when another one is about to take it. */
void user_names_unpublish(struct user_names *names, const char *service);

/* This job's name in the directory, where it is from now on; NULL: that is of no use. Borrowed. */
const char *user_names_job(struct user_names *names, struct drarun_error *err);

/* What is known of another job. */
enum user_names_state {
    USER_NAMES_LIVES = 1,
    USER_NAMES_LEFT, /* it has ended with status 0 */
    USER_NAMES_DIED, /* in another way */
};
/* A descriptor of the job that says so for as long as it is open; -ENOENT: it has ended; -errno.
 * Only once the directory is in use (user_names_job). */
int user_names_open_job(const struct user_names *names, const char *job);
enum user_names_state user_names_state(int job);
/* Whether the job lives, or cannot be asked at this moment; needs no descriptor meanwhile. The
 * same. */
bool user_names_is_alive(const struct user_names *names, const char *job);
/* What others will hear of this one when it ends, which is USER_NAMES_DIED otherwise. */
void user_names_leave(struct user_names *names);

/* Calls changed from the loop, perhaps without need, after other jobs have published, read or
 * ended, until user_names_unwatch. Only once the directory is in use. */
int user_names_watch(struct user_names *names, struct event_base *base, void (*changed)(void *arg),
                     void *arg, struct drarun_error *err);
void user_names_unwatch(struct user_names *names);

#endif
