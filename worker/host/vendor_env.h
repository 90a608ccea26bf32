/* SPDX-License-Identifier: Apache-2.0 */
/* What a vendor's script in the image sets (lib/inspect/vendor_script.h), for the inspection: asked
 * by a process of this program, since the script may take its time and the loop has none. */
#ifndef DRARUN_WORKER_VENDOR_ENV_H
#define DRARUN_WORKER_VENDOR_ENV_H

#include <event2/event.h>
#include <jansson.h>
#include <stddef.h>
#include "lib/child/child.h"

struct vendor_env {
    json_t *probe;         /* of a plan: gets the member script, {path, env} or {path, reason} */
    struct child *child;   /* NULL: it is over; vendor_env_drop before ends it */
    char *path;            /* of the script; ours */
    void (*fn)(void *arg); /* when it is over */
    void *arg;
};

/* Runs the first of the scripts that is a file here. probe, fn and arg are the caller's, and stay
 * where they are until fn is called from the loop; fn may drop it. Where none is here, or it cannot
 * be run, nothing is to be waited for and fn is not called. */
void vendor_env_start(struct event_base *base, const char *program, char *const *scripts,
                      size_t count, struct vendor_env *env);
void vendor_env_drop(struct vendor_env *env);

/* The process: of drarun-worker --vendor-script PATH. Returns its exit status. */
int vendor_env_serve(const char *path);

#endif
