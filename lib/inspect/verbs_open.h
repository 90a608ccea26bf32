/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA devices opened by the agent's program, a process of its own (docs/design/038-open-nics.md):
 * a driver's call may never return, a provider may crash, and 64 MiB are locked meanwhile. */
#ifndef DRARUN_INSPECT_VERBS_OPEN_H
#define DRARUN_INSPECT_VERBS_OPEN_H

#include <event2/event.h>
#include <jansson.h>
#include "drarun/error.h"
#include "lib/child/child.h"

#define VERBS_OPEN_MS 30000 /* eight NICs take a tenth of a second */

struct verbs_open {
    json_t *verbs;         /* of the document: entries are replaced by what the program tells */
    struct child *child;   /* NULL: it is over; child_free before ends it */
    void (*fn)(void *arg); /* when it is over */
    void *arg;
};

/* program: drarun-worker. Everything in `open` is the caller's, and stays where it is until fn is
 * called from the loop; fn may free it. An entry of which nothing was told keeps sysfs' facts and
 * says why. Where the program cannot be started fn is not called, all entries say why, and the
 * error of the spawn is returned. */
int verbs_open_start(struct event_base *base, const char *program, struct verbs_open *open);

#endif
