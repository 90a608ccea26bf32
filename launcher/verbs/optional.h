/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of the benchmark, a component that a build may lack (CONTRIBUTING.md). Without it they are
 * those of without_bench.c, which say so. */
#ifndef DRARUN_LAUNCHER_VERBS_OPTIONAL_H
#define DRARUN_LAUNCHER_VERBS_OPTIONAL_H

#include "launcher/cli/verb.h"

/* `drarun bench`: a collective measured by ranks of drarun-bench, and what becomes of results. Its
 * parts follow the word bench in place of a collective. */
extern const struct verb verb_bench;
/* `drarun accept`: which nodes of a cluster are bad. */
extern const struct verb verb_accept;

#endif
