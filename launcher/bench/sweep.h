/* SPDX-License-Identifier: Apache-2.0 */
/* The same measurement over several claims: --sweep align=required,none --sweep nics=1,2 is four
 * jobs, one after the other, and one table of what they reached. */
#ifndef DRARUN_LAUNCHER_BENCH_SWEEP_H
#define DRARUN_LAUNCHER_BENCH_SWEEP_H

#include "launcher/bench/choice.h"

#define SWEEP_OVER_MAX 4u /* options */
#define SWEEP_VALUES_MAX 16u
#define SWEEP_CASES_MAX 64u

struct sweep_over {
    const char *name; /* "align", "gpus", "nics", "workers", "ranks-per-worker"; static */
    char *text;       /* the values, cut in place; owned */
    const char *values[SWEEP_VALUES_MAX];
    size_t count;
};

struct sweep {
    struct sweep_over over[SWEEP_OVER_MAX];
    size_t count, cases;
};

/* items: "NAME=VALUE,VALUE". Errors have kind DRARUN_ERR_USAGE and name the item. */
int sweep_read(const struct strlist *items, struct sweep *ret_sweep, struct drarun_error *err);
void sweep_done(struct sweep *sweep);

/* Changes *choice to that case, the last option fastest. Borrows from sweep. Pure. */
void sweep_choose(const struct sweep *sweep, size_t index, struct bench_choice *choice);
/* "align=none nics=2" */
void sweep_label(const struct sweep *sweep, size_t index, struct buf *out);

/* In drarun-cluster: all of them. Returns the first exit status that is not 0; one that was
 * interrupted, or whose words are wrong, ends it. */
int sweep_run(const struct bench_choice *choice);

#endif
