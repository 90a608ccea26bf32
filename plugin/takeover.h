/* SPDX-License-Identifier: Apache-2.0 */
/* Whether another driver has a name on this node, which must be known before this plugin serves and
 * publishes under it: two drivers of one name would delete each other's slices, and the kubelet
 * would ask either. Another driver shows in a registration socket that somebody else listens on,
 * and in slices of this node that this plugin has not made. */
#ifndef DRARUN_PLUGIN_TAKEOVER_H
#define DRARUN_PLUGIN_TAKEOVER_H

#include <stdbool.h>
#include <event2/event.h>
#include "lib/kube/client.h"

struct takeover {             /* borrowed */
    const char *driver;       /* the name to be taken */
    const char *node;         /* this node's */
    const char *registry_dir; /* the kubelet's */
};

/* A driver's name: a lower-case DNS subdomain of at most 63 characters. */
bool takeover_name_valid(const char *name);

/* Runs the loop until the API server has answered, which is asked again while it fails. 0: the name
 * is free, or this plugin's own. -EBUSY: another driver has it, of kind USAGE; -EINTR: somebody
 * ended the loop. */
int takeover_check(struct event_base *base, struct kube_client *client,
                   const struct takeover *takeover, struct drarun_error *err);

#endif
