/* SPDX-License-Identifier: Apache-2.0 */
/* What people and programs are told at the end of a job. */
#ifndef DRARUN_LAUNCHER_REPORT_H
#define DRARUN_LAUNCHER_REPORT_H

#include "drarun/error.h"
#include "jobs/outcome/cause.h"
#include "launcher/job/job.h"
#include "launcher/job/request.h"

/* On stderr: the sentences of cause_explain, or with --output json one line of JSON; to --report's
 * file the same JSON. The schema is in docs/design/006-ends.md. */
int report_show(const struct job_request *request, const struct job *job, struct drarun_error *err);

#endif
