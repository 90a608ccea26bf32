/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun bench judge FILE`: what the output of a benchmark is worth. */
#ifndef DRARUN_LAUNCHER_VERB_BENCH_JUDGE_H
#define DRARUN_LAUNCHER_VERB_BENCH_JUDGE_H

#include "launcher/cli/verb.h"

extern const struct verb verb_bench_judge;

#endif
