/* SPDX-License-Identifier: Apache-2.0 */
/* Writes status.devices of claims when their pods have most likely started: the API server's work
 * for it would be in their way, and in that of the claim's other driver. A claim that has been
 * taken back meanwhile has nothing to say. What goes wrong is logged. Loop's thread. */
#ifndef DRARUN_PLUGIN_PREPARE_STATUS_LATER_H
#define DRARUN_PLUGIN_PREPARE_STATUS_LATER_H

#include <event2/event.h>
#include "drarun/error.h"
#include "lib/kube/client.h"
#include "lib/kube/resource.h"

struct status_later;

struct status_later_place {
    struct event_base *base;
    struct kube_client *client;
    const struct kube_resource *claims; /* in the version of the moment; borrowed, as dir */
    const char *dir;                    /* of the checkpoints, which say what is written */
};

int status_later_new(const struct status_later_place *place, struct status_later **ret_later,
                     struct drarun_error *err);
/* What is not written yet will not be. NULL is fine. */
void status_later_free(struct status_later *later);

/* Of the claim of this UID, a quarter of a second from now. */
void status_later_put(struct status_later *s, const char *uid);
/* Whether something is still to be written, or being written. */
bool status_later_is_busy(const struct status_later *later);

#endif
