/* SPDX-License-Identifier: Apache-2.0 */
/* A CDI specification for the devices of one claim: what the container runtime adds to a container
 * that has them (Container Device Interface, SPEC.md 0.6). Building is pure. */
#ifndef DRARUN_PLUGIN_PREPARE_CDI_SPEC_H
#define DRARUN_PLUGIN_PREPARE_CDI_SPEC_H

#include <jansson.h>
#include <stddef.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"
#include "plugin/discover/node_device.h"

#define CDI_DIR "/var/run/cdi"
#define CDI_ID_MAX 256

/* A device's name in the specification of its claim, and its full id, "nic.drarun.dev/claim=UID-NAME"
 * which the kubelet gets. */
void cdi_id(const char *driver, const char *uid, const char *device, char *ret_id, size_t size);

/* No devices yet; NULL: out of memory. */
json_t *cdi_spec_new(const char *driver);

/* Adds a device with its nodes, and the hook that attaches it by the order at a path of the host;
 * order NULL: no hook. False: out of memory. */
bool cdi_spec_add(json_t *spec, const char *uid, const struct node_device *device, const char *hook,
                  const char *order);

/* Adds the device that brings a request's metadata file, at a path of the host, into a container. */
bool cdi_spec_add_metadata(json_t *spec, const char *uid, const char *request, const char *file,
                           const char *container);
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
