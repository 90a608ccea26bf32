/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests of other launchers as a DraJob: MPIJob (kubeflow.org/v2beta1), PyTorchJob, JobSet,
 * LeaderWorkerSet, StatefulSet with its Service, batch Job, Pods; with ResourceClaims and
 * ResourceClaimTemplates of resource.k8s.io v1, v1beta2 and v1beta1. What cannot be carried over is
 * said with place and reason; shapes and traps are those of published recipes
 * (docs/design/009-job-spec.md, "Import"). Pure. */
#ifndef DRARUN_JOBS_IMPORT_IMPORT_H
#define DRARUN_JOBS_IMPORT_IMPORT_H

#include <jansson.h>
#include "drarun/error.h"
#include "lib/doc/reader.h"

struct import_options {
    char *const *program; /* of the ranks, in place of the manifest's; NULL-terminated, or NULL */
    const char *only;     /* the ReplicatedJob of a JobSet; NULL: the JobSet */
};

/* files: tolerant readers of the manifests, at least one; what one file names may stand in another.
 * They get a finding for everything that was left out or changed. ret_job: a DraJob document, the
 * caller's, with SPEC_PLACEHOLDER as its command where nothing names the program. ret_classes: an
 * array of the DeviceClasses among the manifests, the caller's. -EINVAL with kind DRARUN_ERR_SPEC
 * when there is no workload to import, or more than one. */
int import_job(struct reader *files, size_t count, const struct import_options *options,
               json_t **ret_job, json_t **ret_classes, struct drarun_error *err);

#endif
