/* SPDX-License-Identifier: Apache-2.0 */
/* `drarun bench fabric`: the check of a job's NICs without its ranks. */
#ifndef DRARUN_LAUNCHER_VERB_BENCH_FABRIC_H
#define DRARUN_LAUNCHER_VERB_BENCH_FABRIC_H

#include "launcher/cli/verb.h"

extern const struct verb verb_bench_fabric;

#endif
