/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin tells Prometheus: devices, claims, calls of the kubelet, writes of slices; served
 * at a port of the node. While another instance of the plugin has the port, as in an update, it is
 * tried again. Loop's thread. */
#ifndef DRARUN_PLUGIN_PLUGIN_METRICS_H
#define DRARUN_PLUGIN_PLUGIN_METRICS_H

#include <event2/event.h>
#include "lib/base/buf.h"
#include "plugin/discover/node_devices.h"
#include "plugin/prepare/preparer.h"
#include "plugin/slices/publisher.h"

#define METRICS_DRIVERS_MAX 2u

struct metrics_driver {
    const char *name;       /* "nic.drarun.dev" */
    const char *devices_of; /* node_device_driver of its devices */
    struct preparer_counts counts;
};

struct metrics_facts {
    const char *node;
    const struct node_devices *devices;
    struct metrics_driver drivers[METRICS_DRIVERS_MAX];
    size_t driver_count;
    struct publisher_counts slices;
};

/* Prometheus' text format 0.0.4. Pure. */
void plugin_metrics_text(const struct metrics_facts *facts, struct buf *out);

/* The facts now; texts are borrowed until the next turn of the loop. */
typedef void (*metrics_facts_fn)(void *arg, struct metrics_facts *ret_facts);

struct plugin_metrics;
int plugin_metrics_new(struct event_base *base, uint16_t port, metrics_facts_fn fn, void *arg,
                       struct plugin_metrics **ret_metrics, struct drarun_error *err);
void plugin_metrics_free(struct plugin_metrics *metrics);

#endif
