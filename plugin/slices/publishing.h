/* SPDX-License-Identifier: Apache-2.0 */
/* The slices of this node, of both drivers: asks which version of resource.k8s.io is served and for
 * the Node that will own the slices, until both are known, then keeps a publisher for each driver.
 * Everything on the loop's thread. */
#ifndef DRARUN_PLUGIN_SLICES_PUBLISHING_H
#define DRARUN_PLUGIN_SLICES_PUBLISHING_H

#include "plugin/slices/publisher.h"

#define PUBLISHING_DRIVERS_MAX 2u
#define PUBLISHING_VERSIONS "v1 v1beta2 v1beta1" /* of resource.k8s.io, best first */

struct publishing;

struct publishing_options { /* texts are borrowed as long as the object */
    struct event_base *base;
    struct kube_client *client;
    const char *node;
    const char *agent; /* as publisher_options'; "" or NULL: none */
    /* The names to publish under; NULL: that kind of device is not published. */
    const char *gpu_driver, *nic_driver;
    device_held_fn held; /* as publisher_options' */
    void *arg;
};

int publishing_new(const struct publishing_options *options, struct publishing **ret_publishing,
                   struct drarun_error *err);
void publishing_free(struct publishing *publishing); /* the slices stay; NULL is fine */

/* From now on these devices; copied. -ENOMEM. */
int publishing_want(struct publishing *publishing, const struct node_devices *devices,
                    struct drarun_error *err);
/* A claim has got or given back devices. */
void publishing_held_changed(struct publishing *publishing);
/* Of resource.k8s.io, "v1beta2": borrowed; "" until the API server has said what it serves. */
const char *publishing_version(const struct publishing *publishing);
/* The sum over both drivers. */
void publishing_count(const struct publishing *publishing, struct publisher_counts *ret_counts);

#endif
