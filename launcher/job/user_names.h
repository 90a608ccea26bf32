/* SPDX-License-Identifier: Apache-2.0 */
/* Names that the jobs of one user on one machine share (docs/design/037-spawn.md). Each name is a
 * file in a directory that only this user can enter; there is no server. Each job locks a file of
 * its own while it lives. A name whose job holds no lock is stale: lookups ignore it, and the next
 * job that finds it removes it. Nothing here waits for another process. Loop thread only. */
#ifndef DRARUN_LAUNCHER_USER_NAMES_H
#define DRARUN_LAUNCHER_USER_NAMES_H

#include <stddef.h>
#include "drarun/error.h"
#include "lib/base/buf.h"

/* What a job may have published there at a time, and the bytes of a name's value. */
#define USER_NAMES_MAX 16384u
#define USER_NAMES_VALUE_MAX (64u * 1024)

struct user_names;

/* Touches nothing. NULL without memory. */
struct user_names *user_names_new(void);
/* Takes back what is published. */
void user_names_free(struct user_names *names);

/* service: any text. -EEXIST: this or another job has it. -EDQUOT: too many names. -EMSGSIZE: too
 * many bytes. Otherwise the reason why the directory, $XDG_RUNTIME_DIR/drarun or drarun-UID in
 * $TMPDIR, is of no use; -EPERM: it is not this user's alone. */
int user_names_publish(struct user_names *names, const char *service, const void *value,
                       size_t length, struct drarun_error *err);
/* Appends the value to out. -ENOENT: no living job has it, or there is no such directory;
 * otherwise as above. */
int user_names_lookup(const char *service, struct buf *out, struct drarun_error *err);
/* Nothing when this job has not published it. */
void user_names_unpublish(struct user_names *names, const char *service);

#endif
