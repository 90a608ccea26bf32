/* SPDX-License-Identifier: Apache-2.0 */
/* What Pod Security admission says against a pod, in words that tell what mends it: it judges pods
 * by the labels pod-security.kubernetes.io of their namespace, or by the cluster's default. Pure.
 * Messages: k8s.io/pod-security-admission of Kubernetes 1.36. */
#ifndef DRARUN_JOBS_POD_SECURITY_H
#define DRARUN_JOBS_POD_SECURITY_H

#include <jansson.h>
#include <stdbool.h>
#include "drarun/error.h"
#include "lib/base/buf.h"

/* message: of a 403, or of the Event of a Job whose pod got one: `pods "job-w-0" is forbidden:
 * violates PodSecurity "baseline:latest": ...`. Appends one sentence, which fits into the text of
 * an error: pod, namespace, level, what is forbidden, and the line that mends it. False, and out is
 * as it was: it is another refusal, or none. */
bool pod_security_words(const char *message, const char *namespace, struct buf *out);
/* The same in the text of an error. status: of the server's answer, a Status object; NULL: none. */
bool pod_security_explain(const json_t *status, const char *namespace, struct drarun_error *err);

#endif
