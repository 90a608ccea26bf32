/* SPDX-License-Identifier: Apache-2.0 */
/* What a ResourceClaim gives to one driver on this node, and which pod holds it. Read from the
 * API's object, the same in v1, v1beta2 and v1beta1. Pure. */
#ifndef DRARUN_PLUGIN_PREPARE_CLAIMED_H
#define DRARUN_PLUGIN_PREPARE_CLAIMED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "drarun/error.h"

struct claimed_device {
    const char *request; /* "nic", or "nic/fast" where a firstAvailable chose */
    const char *pool, *device;
    /* opaque parameters for the driver: of the DeviceClass, which is the administrator's, and of
     * the claim; NULL: none. See claimed_read */
    const json_t *of_class, *config;
    bool admin; /* access for monitoring: it gives no device of its own */
};

struct claimed { /* strings and configurations are borrowed from the claim */
    const char *namespace_, *name, *uid;
    const char *pod, *pod_uid; /* one of those that it is reserved for (claimed_take_pod) */
    char entry[256];     /* the pod's own name for the claim (claimed_check_pod); "": it has none */
    bool host_network;   /* the pod has no network of its own */
    bool user_namespace; /* the pod has one of its own (hostUsers: false) */
    bool from_template;  /* the claim was made for the pod, from a template */
    struct claimed_device *devices;
    size_t count;
    const json_t *agent; /* the claim's own parameters that ask for it (agent_config.h); or NULL */
};

/* What is asked for: the claim of this uid, and of its results those of the driver, which must be
 * of this pool (a pool is a node). Of several configurations of one source for a request the last
 * counts; what does not say that it is from the class is taken as the claim's. What asks for the
 * agent is none of them, and a class cannot ask for it. Errors name the claim: -ESTALE it is
 * another one now, -EAGAIN it is not allocated, or reserved for nobody, -EINVAL it is no claim, or
 * gives nothing here. */
int claimed_read(const json_t *claim, const char *uid, const char *driver, const char *pool,
                 struct claimed *ret_claimed, struct drarun_error *err);
void claimed_done(struct claimed *claimed);
/* Takes another of the pods that the claim is reserved for, from 0 on; claimed_read has taken the
 * first. False: there are not so many. */
bool claimed_take_pod(struct claimed *claimed, const json_t *claim, size_t index);

/* Each request of the claim with a device of ours must be listed by a container of the pod, or the
 * kubelet hands the devices' edits to none, and the container starts without its device
 * (reference: kubelet, "CDI devices of a container's claims"). The pod must be the one that holds
 * the claim, on this node. The error's text says which line to add: -EINVAL; -ESTALE another pod.
 */
int claimed_check_pod(struct claimed *claimed, const json_t *pod, const char *node,
                      struct drarun_error *err);

#endif
