/* SPDX-License-Identifier: Apache-2.0 */
/* What every API server refuses of a pod although each of its fields has a value of its kind, after
 * pkg/apis/core/validation of Kubernetes 1.34 to 1.37: names, references to nothing, and what does
 * not go together. What the server sets where the user does not (an emptyDir for a volume without a
 * source), what a namespace's LimitRange usually gives (limits of CPU and memory) and what a
 * feature gate decides are no findings. A cluster's own webhooks are not known here. Pure. */
#ifndef DRARUN_JOBS_POD_CHECK_H
#define DRARUN_JOBS_POD_CHECK_H

#include <jansson.h>
#include "jobs/spec/spec.h"

/* path: "spec.template.spec.containers["worker"].env["A"]", items of lists by their name, of mounts
 * by their path, of lists without names by their index. Both texts are the call's own. */
typedef void (*pod_check_fn)(void *arg, const char *path, const char *message);

/* pod: as the API server gets it, of values that pod_schema_check lets pass. */
void pod_check(const json_t *pod, pod_check_fn add, void *arg);
/* The same of what the user says of the launcher's pod. */
void pod_check_launcher(const struct spec_launcher *launcher, pod_check_fn add, void *arg);

#endif
