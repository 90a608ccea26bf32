/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the ResourceSlices of one driver on one node as they are wanted: watches them, writes when
 * something differs, and writes nothing while nothing does. What somebody deletes or changes is
 * restored, at once the first times and then with pauses up to a minute, so that two who disagree
 * do not wear out the API server. Once a slice was deleted, the Node is read before the next write:
 * its owner may be another one by now. One write at a time; a failed one is tried again with
 * pauses, as is one that the server has refused three times in a row because of what others wrote.
 * A server that drops taints gets no tainted device but those that a claim holds: the scheduler
 * would give the others to pods. Everything on the loop's thread. */
#ifndef DRARUN_PLUGIN_SLICES_PUBLISHER_H
#define DRARUN_PLUGIN_SLICES_PUBLISHER_H

#include "lib/kube/client.h"
#include "plugin/discover/remember.h"
#include "plugin/slices/node_slices.h"

struct publisher;

struct publisher_options { /* texts are borrowed as long as the publisher */
    struct event_base *base;
    struct kube_client *client;
    const char *version;       /* of resource.k8s.io, "v1" */
    struct slices_owner owner; /* whose driver is the name to publish under; node_uid: at first */
    const char *agent;         /* that this node brings into containers (agent_offer.h); or NULL */
    const char *devices_of;    /* node_device_driver of what is published; NULL: owner.driver */
    device_held_fn held;       /* by its devices_of; NULL: no claim holds anything */
    void *arg;
};

struct publisher_counts {
    uint64_t writes, failures, restored; /* restored: slices that somebody had changed or deleted */
};

int publisher_new(const struct publisher_options *options, struct publisher **ret_publisher,
                  struct drarun_error *err);
/* The slices stay. NULL is fine. */
void publisher_free(struct publisher *publisher);

/* From now on the driver's devices of this list, which is read during the call. -ENOMEM. */
int publisher_want(struct publisher *publisher, const struct node_devices *devices,
                   struct drarun_error *err);
/* A claim has got or given back devices: what is wanted may depend on that. */
void publisher_held_changed(struct publisher *publisher);
void publisher_count(const struct publisher *publisher, struct publisher_counts *ret_counts);

#endif
