/* SPDX-License-Identifier: Apache-2.0 */
/* Two runs side by side: what each size takes longer or shorter, how sure that is, and what else
 * differs between them. Pure. */
#ifndef DRARUN_LIB_BENCH_COMPARE_H
#define DRARUN_LIB_BENCH_COMPARE_H

#include "lib/base/buf.h"
#include "lib/bench/runs.h"

struct compared {
    const struct result_row *row; /* of the first run */
    bool in_place;
    double first, second; /* seconds of one call: the median, where single calls are known */
    double change;        /* per cent: above 0, the second takes longer */
    bool has_interval;    /* single calls of both are known */
    double least, most;   /* of change, 95 %: bootstrap of the medians */
};

struct compare {
    struct compared *list;
    size_t count;
    size_t only_first, only_second; /* halves of rows that the other has not */
    struct strlist differences;     /* sentences (differences.h) */
    struct strlist failures; /* "second.txt: the run did not end, ...": the change is of a part */
};

/* -EINVAL when they have nothing to compare: other collectives, no size in common, data that was
 * wrong. A run that failed or did not end is compared as far as it came. Names are for messages. */
int compare_runs(const struct run *first, const char *first_name, const struct run *second,
                 const char *second_name, struct compare *ret, struct drarun_error *err);
void compare_done(struct compare *c);

/* Surely slower by more than `percent`: by the interval's better end, where there is one. */
bool compared_slower(const struct compared *c, double percent);

void compare_text(const struct compare *c, double percent, struct buf *out);
json_t *compare_json(const struct compare *c, double percent); /* NULL: out of memory */

#endif
