/* SPDX-License-Identifier: Apache-2.0 */
/* How a job ended that measured, for who reads its results: a rank that hangs or crashes says
 * nothing in them itself. */
#ifndef DRARUN_LAUNCHER_BENCH_FAILURE_H
#define DRARUN_LAUNCHER_BENCH_FAILURE_H

#include <jansson.h>
#include "drarun/error.h"
#include "lib/bench/result.h"

/* From a report (docs/design/006-ends.md), also NULL; a job that ended well leaves *to as it is. A
 * status of 1 without a cause of its own is drarun-bench's verdict, and no failure. */
void failure_take(const json_t *report, struct result_failure *to);

/* Appends a line to the results that rank 0 wrote to `file`, where the report has a cause. */
int failure_append(const json_t *report, const char *file, struct drarun_error *err);

#endif
