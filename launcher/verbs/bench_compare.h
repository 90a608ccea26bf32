/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun bench compare A B`: what is slower in a later run. */
#ifndef DRARUN_LAUNCHER_VERB_BENCH_COMPARE_H
#define DRARUN_LAUNCHER_VERB_BENCH_COMPARE_H

#include "launcher/cli/verb.h"

extern const struct verb verb_bench_compare;

#endif
