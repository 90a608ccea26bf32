/* SPDX-License-Identifier: Apache-2.0 */
/* A host as the ResourceSlices of a node describe it: addresses, roots, NUMA nodes and names, but
 * neither switches nor rates, CPUs or limits. */
#ifndef DRARUN_LAUNCHER_TOPO_SLICES_H
#define DRARUN_LAUNCHER_TOPO_SLICES_H

#include <jansson.h>
#include "lib/dra/slices.h"
#include "lib/base/strlist.h"
#include "lib/topo/host.h"

/* files: what `kubectl get resourceslices -o json|yaml` printed. claims: files of `kubectl get
 * resourceclaims`; with one or more, what they were given is usable and all else is not. node: NULL
 * when the slices are of one node. Errors have kind DRARUN_ERR_SPEC and name the file, or kind
 * DRARUN_ERR_USAGE with the nodes to choose from. */
int topo_slices_read(const struct strlist *files, const struct strlist *claims, const char *node,
                     struct topo_host *ret_host, struct drarun_error *err);

/* The same of slices that were read. claims: an array of ResourceClaims, NULL: no mark is made.
 * Pure. */
int topo_slices_host(const struct slices *slices, const json_t *claims, const char *node,
                     struct topo_host *ret_host, struct drarun_error *err);

#endif
