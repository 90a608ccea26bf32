/* SPDX-License-Identifier: Apache-2.0 */
/* Device metadata files (jobs/metadata.h) of a machine's or a captured tree, into its probe. */
#ifndef DRARUN_LAUNCHER_DEVICE_METADATA_H
#define DRARUN_LAUNCHER_DEVICE_METADATA_H

#include <jansson.h>
#include "drarun/error.h"

/* Reads, below METADATA_FOLDER of the root (NULL: "/"), the files of these claims by their exact
 * paths, or where claims is NULL all that are there: a pod does not know its claims' names by
 * itself. What is read becomes the probe's "metadata", what cannot be its "metadataErrors"; no
 * folder is no error. Links do not lead out of the root, and below the folder not out of it. */
int device_metadata_probe(const char *root, const json_t *claims, json_t *probe,
                          struct drarun_error *err);

#endif
