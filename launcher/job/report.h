/* SPDX-License-Identifier: Apache-2.0 */
/* What people and programs are told at the end of a job: the report as a value, and what the verbs
 * that start ranks print. */
#ifndef DRARUN_LAUNCHER_REPORT_H
#define DRARUN_LAUNCHER_REPORT_H

#include <jansson.h>
#include "drarun/error.h"
#include "jobs/outcome/cause.h"
#include "launcher/job/job.h"
#include "launcher/job/request.h"

/* A new reference; NULL without memory. The schema is in docs/design/006-ends.md. */
json_t *report_json(const struct job_request *request, const struct job *job);

/* On stderr: the sentences of cause_explain, or with --output json one line of JSON; to --report's
 * file the same JSON. */
int report_show(const struct job_request *request, const struct job *job, struct drarun_error *err);

#endif
