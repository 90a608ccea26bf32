/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun bench`: a collective measured by ranks of drarun-bench, and what becomes of results. */
#ifndef DRARUN_LAUNCHER_VERB_BENCH_H
#define DRARUN_LAUNCHER_VERB_BENCH_H

#include "launcher/verb.h"

extern const struct verb verb_bench;

/* Its part of that name: compare, judge, report. NULL: there is none. */
const struct verb *verb_bench_part(const char *name);

#endif
