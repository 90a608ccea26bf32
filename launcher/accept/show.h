/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts of a run. Pure. */
#ifndef DRARUN_LAUNCHER_ACCEPT_SHOW_H
#define DRARUN_LAUNCHER_ACCEPT_SHOW_H

#include <jansson.h>
#include "lib/accept/accept.h"
#include "lib/base/buf.h"
#include "lib/base/strlist.h"

/* {"nodes": [{"name", "state", "reason", "alone", "worstPair", "pairs", "earlier": {"runs",
 * "bad"}}], "paths": [{"nodes": [a, b], "reason"}], "notCompared": [sentence], "passed", "bad",
 * "suspect", "unknown"}, bandwidths GB/s. left_out: {name: reason}; history: as record_history. A
 * new reference; NULL without memory. */
json_t *accept_verdict(const struct accept *plan, const struct strlist *names,
                       const json_t *left_out, const json_t *history);

/* Its nodes, the bad ones first. A new reference; NULL without memory. */
json_t *accept_verdict_nodes(const json_t *verdict);

/* 0: all have passed; else 1. */
int accept_verdict_status(const json_t *verdict);

/* A table, the bad ones first, and a last line that counts. */
void accept_verdict_text(const json_t *verdict, struct buf *out);
/* A line for each speed that could not be compared, and for each thing that could not be looked at,
 * and on how many nodes. */
void accept_verdict_not_looked(const json_t *verdict, struct buf *out);
/* A test suite in JUnit's XML, with a case for each node and each path. Unknown nodes are skipped.
 */
void accept_verdict_junit(const json_t *verdict, struct buf *out);
/* The table as a page that loads nothing else, for light and dark. */
void accept_verdict_html(const json_t *verdict, struct buf *out);

#endif
