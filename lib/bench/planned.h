/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan knows of the ranks of a run that does not say it itself: nodes, GPUs and which NICs
 * are whose, from what `drarun plan -o json` made of a job and its slices. Pure. */
#ifndef DRARUN_LIB_BENCH_PLANNED_H
#define DRARUN_LIB_BENCH_PLANNED_H

#include "lib/bench/result.h"

/* Fills in what *r does not know; what was seen stays. -EINVAL, with `name` in its text: no plan,
 * or one of another number of ranks. */
int planned_take(const json_t *document, const char *name, struct result *r,
                 struct drarun_error *err);

#endif
