/* SPDX-License-Identifier: Apache-2.0 */
/* Taints that keep a cluster's special nodes for the pods that use what they have. A worker's pod
 * gets the tolerations of what its job asks for, and no others. Pure. */
#ifndef DRARUN_JOBS_TOLERATIONS_H
#define DRARUN_JOBS_TOLERATIONS_H

#include <jansson.h>
#include <stddef.h>

#include "jobs/spec/spec.h"

struct toleration {
    const char *key;   /* of a taint with the effect NoSchedule; borrowed from the spec */
    const char *value; /* NULL: whatever the taint's is */
    const char *nodes; /* the nodes that have it, for people: "nodes with GPUs" */
};

#define TOLERATIONS_MAX 4u

/* What a worker's pod of this role is given, where its template does not tolerate it already. The
 * key of a taint is that of the extended resource which its nodes offer, as the API server's
 * admission plugin ExtendedResourceToleration has it, and for GPUs by claim that of their vendor's
 * device plugin; others come with the machine (docs/design/010-claims.md). */
size_t tolerations_of(const struct job_spec *spec, const struct spec_role *role,
                      struct toleration ret_list[TOLERATIONS_MAX]);

/* The pod's list of tolerations with these; a new reference, NULL without memory. */
json_t *tolerations_merge(const json_t *list, const struct toleration *more, size_t count);

/* The tolerations of the launcher's pod (spec.launcher.tolerations, or NULL) with those of a node
 * that does not answer, for LAUNCHER_TOLERATES_S, where the list says nothing of that: the API
 * server would add them for 300 s, in which nobody leads the job. A new reference, NULL without
 * memory. */
#define LAUNCHER_TOLERATES_S 20
json_t *tolerations_of_launcher(const json_t *list);

#endif
