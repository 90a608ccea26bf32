/* SPDX-License-Identifier: Apache-2.0 */
/* A DRA driver as the kubelet sees it: its sockets, its registration, and the kubelet's calls, as
 * v1 and v1beta1, with the health stream as v1 and v1alpha1. What is done with a claim is the
 * handler's. A call that asks about several claims is answered when all have been; claims and
 * calls do not wait for each other here. Loop's thread.
 *
 * Protocol: k8s.io/kubelet/pkg/apis/{pluginregistration/v1,dra/v1,dra-health}; names of sockets as
 * k8s.io/dynamic-resource-allocation/kubeletplugin, so that two instances live side by side. */
#ifndef DRARUN_PLUGIN_KUBELET_DRA_DRIVER_H
#define DRARUN_PLUGIN_KUBELET_DRA_DRIVER_H

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include "drarun/error.h"
#include "lib/base/cleanup.h"

#define DRA_PLUGINS_DIR "/var/lib/kubelet/plugins"
#define DRA_REGISTRY_DIR "/var/lib/kubelet/plugins_registry"

struct dra_claim {
    const char *namespace_, *name, *uid;
};

/* A prepared device. The strings are borrowed for the call that takes them. */
struct dra_device {
    const char *const *requests; /* "gpu", "nic/fast"; the kubelet is told "nic" */
    size_t request_count;
    const char *pool, *name;
    const char *const *cdi_ids; /* "nic.drarun.dev/claim=UID-eth1" */
    size_t cdi_id_count;
};

/* What is owed for one claim: answered exactly once. */
struct dra_reply;
void dra_reply_prepared_take(struct dra_reply *reply, const struct dra_device *devices,
                             size_t count);
void dra_reply_unprepared_take(struct dra_reply *reply);
/* The kubelet shows the text in an event of the pod, and tries again. */
void dra_reply_failed_take(struct dra_reply *reply, const struct drarun_error *err);
/* Whether nobody waits for it any more: the kubelet has given the call up, or has ended. */
bool dra_reply_unwanted(const struct dra_reply *reply);

struct dra_health {
    const char *pool, *name;
    const char *why; /* NULL: healthy */
};
typedef void (*dra_health_fn)(const struct dra_health *health, void *arg);

struct dra_handler {
    /* the claim's strings are borrowed until they return */
    void (*prepare)(const struct dra_claim *claim, struct dra_reply *reply, void *arg);
    void (*unprepare)(const struct dra_claim *claim, struct dra_reply *reply, void *arg);
    void (*registered)(bool ok, const char *error, void *arg);
    /* calls put for each device of the driver */
    void (*health)(dra_health_fn put, void *put_arg, void *arg);
};

struct dra_driver_config {
    const char *name;         /* "nic.drarun.dev" */
    const char *plugins_dir;  /* DRA_PLUGINS_DIR */
    const char *registry_dir; /* DRA_REGISTRY_DIR */
    const char *instance; /* the plugin pod's UID, so that an old instance ends in peace; or NULL */
};

struct dra_driver;

/* Serves from now on; the kubelet finds the registration socket by itself. Sockets of other
 * instances that nobody listens on any more are removed. Handler and arg are borrowed for the
 * driver's life. */
int dra_driver_new(struct event_base *base, const struct dra_driver_config *config,
                   const struct dra_handler *handler, void *arg, struct dra_driver **ret_driver,
                   struct drarun_error *err);
/* The kubelet is told of all devices' health, now; it is told in any case every 10 s. */
void dra_driver_health_changed(struct dra_driver *driver);
/* Replies that are owed may be answered still, into nothing. Not from within a handler. */
void dra_driver_free(struct dra_driver *driver);
DEFINE_CLEANUP(struct dra_driver, dra_driver_free)

#endif
