/* SPDX-License-Identifier: Apache-2.0 */
/* Files as kubectl get prints them: objects of a cluster, for verbs that work without one. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FILES_H
#define DRARUN_LAUNCHER_CLUSTER_FILES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "drarun/error.h"

struct cluster_kind {
    const char *kind; /* "ResourceSlice" */
    json_t *objects;  /* array to which they are added */
    bool *known;      /* set where a cluster was asked for all of them; NULL */
};

/* Adds the objects of these kinds that the files hold, alone, in Lists or one document after
 * another, YAML or JSON. A file without any of the first kind is an error that says what it holds.
 * Each file is read once. The list ends with NULL; NULL: none. */
int cluster_files_read(const char *const *files, const struct cluster_kind *kinds, size_t count,
                       struct drarun_error *err);

/* The same, where an object of any of the kinds will do. */
int cluster_files_read_any(const char *const *files, const struct cluster_kind *kinds, size_t count,
                           struct drarun_error *err);

/* As cluster_files_read from a text; file: its name in messages. */
int cluster_objects_parse(const char *file, const char *text, size_t length,
                          const struct cluster_kind *kinds, size_t count, struct drarun_error *err);

/* Node objects as name -> labels, empty ones too; the caller's. NULL without memory. */
json_t *cluster_node_labels(const json_t *nodes);

#endif
