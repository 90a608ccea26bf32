/* SPDX-License-Identifier: Apache-2.0 */
/* Device metadata files (KEP-5304): what a driver tells a container of the devices of a claim. Each
 * file is a stream of JSON documents, the same object once per API version, newest first; the first
 * version that is known counts. Source: k8s.io/dynamic-resource-allocation v0.37.2, api/metadata
 * (doc.go: paths and format; v1beta1 and v1alpha1, which are alike) and devicemetadata. Pure. */
#ifndef DRARUN_JOBS_METADATA_H
#define DRARUN_JOBS_METADATA_H

#include <jansson.h>
#include <stddef.h>
#include "drarun/error.h"
#include "lib/dra/slices.h"
#include "lib/base/strlist.h"
#include "lib/inspect/device_metadata.h"

#define METADATA_DEVICES_MAX 4096u /* in all of them */

struct metadata_device {       /* borrowed from the documents */
    struct slice_device slice; /* as a slice would have it; bound to no node */
    const char *claim, *request;
    const char *pod_name; /* its interface in the pod; NULL */
    bool addressed;       /* that has an IP address */
};

struct metadata {
    struct metadata_device *list;
    size_t count;
};

/* The text of one file as the object that counts, the caller's. name stands in messages. -EINVAL
 * when it is empty or malformed, -EPROTONOSUPPORT when no version is known. */
int metadata_decode(const char *name, const char *text, size_t len, json_t **ret_document,
                    struct drarun_error *err);

/* Takes a probe's member "metadataFiles" (lib/inspect/device_metadata.h) away and decodes it: each
 * object that counts is one of the member "metadata", each error one of "metadataErrors". A probe
 * without the member stays as it is; what is no text is an error like another. -ENOMEM. */
int metadata_decode_files(json_t *probe, struct drarun_error *err);

/* documents: an array of such objects, or NULL. -EINVAL names the place of what is missing, -E2BIG:
 * more than METADATA_DEVICES_MAX. A device that comes again counts once. */
int metadata_read(const json_t *documents, struct metadata *ret_metadata, struct drarun_error *err);
void metadata_done(struct metadata *metadata);

/* NULL when there is none. */
const struct metadata_device *metadata_find(const struct metadata *metadata, const char *driver,
                                            const char *pool, const char *device);

/* The files, relative to METADATA_FOLDER, that the drivers of an allocated ResourceClaim may have
 * written: each once. Names that are no file names give none. */
void metadata_paths(const json_t *claim, struct strlist *ret_paths);

#endif
