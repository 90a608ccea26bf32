/* SPDX-License-Identifier: Apache-2.0 */
/* Words of Prometheus' text format 0.0.4. Pure. */
#ifndef DRARUN_METRICS_METRICS_TEXT_H
#define DRARUN_METRICS_METRICS_TEXT_H

#include "lib/base/buf.h"

/* The two lines above the values of a metric. type: "gauge", "counter". help: one line. */
void metrics_add_head(struct buf *out, const char *name, const char *type, const char *help);

/* The value of a label, escaped, without its quotes. */
void metrics_add_escaped(struct buf *out, const char *value);

#endif
