/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun bench`: a collective measured by ranks of drarun-bench, and what becomes of results. */
#ifndef DRARUN_LAUNCHER_VERB_BENCH_H
#define DRARUN_LAUNCHER_VERB_BENCH_H

#include "launcher/cli/verb.h"

extern const struct verb verb_bench;

/* What follows the word bench in place of a collective: verbs called "bench judge" and so on, up to
 * NULL. */
extern const struct verb *const verb_bench_parts[];
/* The one called "bench NAME"; NULL: there is none. */
const struct verb *verb_bench_part(const char *name);

#endif
