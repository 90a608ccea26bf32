/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares and unprepares claims for one driver: what a container needs to get their devices is
 * written down (order, CDI specification, checkpoint), and taken back. The device itself is moved
 * by the container runtime's hook, `drarun-attach`, which needs these files alone.
 *
 * Calls for one claim run one after the other, those for different claims beside each other. Each
 * may be repeated, also after a kill at any line: it ends in the same state. Loop's thread; it
 * blocks for no more than a few fsyncs and questions to the kernel. */
#ifndef DRARUN_PLUGIN_PREPARE_PREPARER_H
#define DRARUN_PLUGIN_PREPARE_PREPARER_H

#include <event2/event.h>
#include <jansson.h>
#include "lib/kube/client.h"
#include "plugin/discover/claim_limits.h"
#include "plugin/discover/node_devices.h"
#include "plugin/kubelet/dra_driver.h"
#include "plugin/prepare/node_pods.h"
#include "plugin/prepare/read_claim.h"

#define PREPARE_STATE_DIR "/var/lib/drarun" /* checkpoints: DRIVER/UID.json */
#define PREPARE_ORDERS_DIR                                                                         \
    "/run/drarun/orders" /* UID.DEVICE.json: gone with a reboot, and written again */
#define PREPARE_AGENT_DIR "/var/lib/drarun/agent"
#define PREPARE_HOOK "/var/lib/drarun/bin/drarun-attach"

struct preparer_config { /* borrowed for the preparer's life */
    const char *driver;
    const char *devices_of; /* node_device_driver of what it serves; NULL: driver */
    const char *node;       /* its name, and its pool's */
    const char *state_dir, *orders_dir, *cdi_dir;
    int host_root;           /* the host's "/": where GPUs' files are looked for */
    const char *driver_root; /* of NVIDIA's driver below it; NULL: looked for */
    const char *agent_dir;   /* on the host: OFFER/drarun-worker (lib/base/agent_offer.h) */
    const char *hook; /* the hook on the host; this plugin runs it too, to take devices back */
    const struct node_pods *pods;      /* NULL: each is asked for */
    struct read_claim *read;           /* of all drivers; NULL: none is handed on */
    const struct claim_limits *claims; /* what claims may set on NICs */
    const json_t *edits; /* for each of its devices (plugin/discover/config_edits.h); NULL: none */
    /* the node's devices now; borrowed until the loop's next turn */
    const struct node_devices *(*devices)(void *arg);
    /* of resource.k8s.io, "v1": asked each time that a claim is read */
    const char *(*claims_version)(void *arg);
    void (*held_changed)(void *arg); /* a claim has got or given back devices; NULL: nobody asks */
    void *arg;                       /* of all three */
};

struct preparer;

/* Reads what is prepared from the checkpoints. A damaged one is named in the log, its devices
 * (salvage.h) are given to nobody until the kubelet asks to take it back, which is done as far as
 * its orders say. Errors: the directories cannot be made or read. */
int preparer_new(struct event_base *base, struct kube_client *client,
                 const struct preparer_config *config, struct preparer **ret_preparer,
                 struct drarun_error *err);
/* Whether calls are under way, or the status of a claim is still to be written. */
bool preparer_is_busy(const struct preparer *preparer);
/* Calls under way are answered with an error. */
void preparer_free(struct preparer *preparer);
DEFINE_CLEANUP(struct preparer, preparer_free)

/* Looks what checkpoints there are by now, another instance's too. */
void preparer_refresh(struct preparer *preparer);
/* Whether a claim has the device of this name, as of the last look. */
bool preparer_holds(const struct preparer *preparer, const char *device);

/* Whether a claim that has ended has the device still, since it could not be taken back. */
bool preparer_is_stuck(const struct preparer *preparer, const char *device);

/* Calls fn with each device that a claim has, as device_record.h has it. */
void preparer_each(const struct preparer *preparer,
                   void (*fn)(const struct node_device *device, void *arg), void *arg);

struct preparer_counts { /* of the kubelet's calls for a claim since the start */
    uint64_t prepared, not_prepared, unprepared, not_unprepared;
    int64_t prepare_ms, unprepare_ms; /* how long those took together */
    size_t claims;                    /* that are prepared now */
};
void preparer_count(const struct preparer *preparer, struct preparer_counts *ret_counts);

/* As struct dra_handler has them. */
void preparer_prepare(struct preparer *preparer, const struct dra_claim *claim,
                      struct dra_reply *reply);
void preparer_unprepare(struct preparer *preparer, const struct dra_claim *claim,
                        struct dra_reply *reply);

#endif
