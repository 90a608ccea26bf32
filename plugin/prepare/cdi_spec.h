/* SPDX-License-Identifier: Apache-2.0 */
/* A CDI specification for the devices of one claim: what the container runtime adds to a container
 * that has them (Container Device Interface, SPEC.md 0.6). Building is pure. */
#ifndef DRARUN_PLUGIN_PREPARE_CDI_SPEC_H
#define DRARUN_PLUGIN_PREPARE_CDI_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"
#include "plugin/discover/node_device.h"

#define CDI_DIR "/var/run/cdi"
#define CDI_ID_MAX 256

/* A device's name in the specification of its claim, and its full id,
 * "nic.drarun.dev/claim=UID-NAME" which the kubelet gets. */
void cdi_id(const char *driver, const char *uid, const char *device, char *ret_id, size_t size);

/* No devices yet; NULL: out of memory. */
json_t *cdi_spec_new(const char *driver);

/* Adds a NIC with its nodes, its mark (plugin/attach/order.h), and what the configuration adds
 * (plugin/discover/config_edits.h; NULL: nothing). False: out of memory. */
bool cdi_spec_add(json_t *spec, const char *uid, const struct node_device *device,
                  const json_t *edits);

/* Adds the order at a path of the host to the hook of the specification, which runs once for a
 * container whichever of its devices this has. False: out of memory. */
bool cdi_spec_add_order(json_t *spec, const char *hook, const char *order);

/* Adds the spare verbs nodes from which that hook takes what a move makes of an RDMA device's
 * number (plugin/attach/verbs_nodes.h). Once. False: out of memory. */
bool cdi_spec_add_spares(json_t *spec, const char *uid);

/* Adds a device with these edits, which are taken; without any it gets some that mean nothing,
 * since empty ones are not valid. */
bool cdi_spec_add_take(json_t *spec, const char *uid, const char *device, json_t *edits);

/* Adds the device that brings a request's metadata file, at a path of the host, into a container.
 */
bool cdi_spec_add_metadata(json_t *spec, const char *uid, const char *request, const char *file,
                           const char *container);
/* Adds the device that brings the agent at a path of the host into a container, and with shm a
 * tmpfs at /dev/shm, of so many bytes; 0: of all memory, as the container's limit bounds it. */
bool cdi_spec_add_agent(json_t *spec, const char *uid, const char *file, bool shm,
                        int64_t shm_bytes);
/* Its full id; false: the specification has none. */
bool cdi_agent_id(const json_t *spec, const char *driver, const char *uid, char *ret_id,
                  size_t size);
/* The agent's path on the host; NULL: it has none. Borrowed. */
const char *cdi_agent_file(const json_t *spec, const char *uid);
/* Its full id. */
void cdi_metadata_id(const char *driver, const char *uid, const char *request, char *ret_id,
                     size_t size);

/* Writes it to dir, atomically; nothing when the file holds it already. */
int cdi_spec_write(const json_t *spec, const char *dir, const char *driver, const char *uid,
                   struct drarun_error *err);
/* Adds the names of the devices that the file gives to the claim; none without a file. -EUCLEAN: it
 * is there and is no specification. */
int cdi_spec_devices(const char *dir, const char *driver, const char *uid, struct strlist *names,
                     struct drarun_error *err);
/* What is not there is removed. */
int cdi_spec_remove(const char *dir, const char *driver, const char *uid, struct drarun_error *err);

#endif
