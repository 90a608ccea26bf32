/* SPDX-License-Identifier: Apache-2.0 */
/* Device metadata files (KEP-5304), by which drivers describe the devices of a claim to its
 * containers: their texts, for jobs/derive/inventory/metadata.h, which decodes them. */
#ifndef DRARUN_INSPECT_DEVICE_METADATA_H
#define DRARUN_INSPECT_DEVICE_METADATA_H

#include <jansson.h>
#include <stddef.h>
#include "lib/base/strlist.h"

/* In the container, relative to its root. */
#define METADATA_FOLDER "var/run/kubernetes.io/dra-device-attributes"
#define METADATA_SUFFIX "-metadata.json"
#define METADATA_SIZE_MAX ((size_t)1 << 20) /* of a file */

/* Reads below METADATA_FOLDER of the root, a directory, these files, each of which may be missing;
 * paths are relative to the folder. NULL: all files that are there, since a pod does not know the
 * names of its claims. The probe gets the members "metadataFiles" {path: text} and
 * "metadataErrors", a sentence for each file that cannot be read; without the folder it gets none.
 * Links lead out of neither the root nor the folder. -ENOMEM. */
int device_metadata_read(int root, const struct strlist *paths, json_t *probe);

#endif
