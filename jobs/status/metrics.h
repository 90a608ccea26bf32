/* SPDX-License-Identifier: Apache-2.0 */
/* A job's status as Prometheus metrics (text format 0.0.4), from its status document: served by the
 * launcher, or made from the ConfigMap by a scraper. Pure. docs/design/016-waiting.md lists
 * them. */
#ifndef DRARUN_JOBS_METRICS_H
#define DRARUN_JOBS_METRICS_H

#include <jansson.h>
#include <stdint.h>
#include "lib/base/buf.h"

/* Appends every metric that the document has a value for. Labels are the job's name and namespace,
 * and one more where a metric has several values. */
void metrics_text(const json_t *doc, int64_t now_ms, struct buf *out);

#endif
