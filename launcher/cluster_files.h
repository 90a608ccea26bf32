/* SPDX-License-Identifier: Apache-2.0 */
/* Files as kubectl get prints them: objects of a cluster, for verbs that work without one. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FILES_H
#define DRARUN_LAUNCHER_CLUSTER_FILES_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"

/* Adds the objects of this kind that the files hold, alone, in Lists or one document after another,
 * YAML or JSON, to the array objects. required: a file without any is an error that says what it
 * holds. */
int cluster_files_read(const struct strlist *files, const char *kind, bool required,
                       json_t *objects, struct drarun_error *err);

/* Node objects as name -> labels; the caller's. NULL without memory. */
json_t *cluster_node_labels(const json_t *nodes);

#endif
