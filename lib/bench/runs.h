/* SPDX-License-Identifier: Apache-2.0 */
/* The runs that one file holds, in its order. */
#ifndef DRARUN_LIB_BENCH_RUNS_H
#define DRARUN_LIB_BENCH_RUNS_H

#include "lib/bench/nccl_log.h"
#include "lib/bench/result.h"

struct run {
    struct result result;
    struct nccl_log log;               /* what NCCL said of its connections */
    struct strlist notes;              /* what is odd about its text, for people */
    char missing[RESULT_FAILURE + 64]; /* of a run that did not end: "its end_time is missing" */
};

struct runs {
    struct run **list; /* stay where they are */
    size_t count, cap;
};

void runs_done(struct runs *runs);
struct run *runs_add(struct runs *runs); /* NULL: out of memory */

/* Adds to *why what makes it less than a complete measurement: it failed, or its end is missing.
 * False: nothing does. */
bool run_is_incomplete(const struct run *run, struct strlist *why);

/* Of nccl-tests' text or JSON, or of drarun-bench's lines, also those among other output
 * (marked.h): what it is, is seen from its content. *runs must be empty.
 * Lines that end in the middle (the program was killed) count up to there. -EINVAL, with what was
 * found and what was expected, for anything else. */
int runs_read(const char *text, size_t length, const char *name, struct runs *runs,
              struct drarun_error *err);

/* Lines of NCCL_DEBUG_FILE, added to the run's log. */
int runs_read_log(const char *text, size_t length, const char *name, struct run *run,
                  struct drarun_error *err);

#endif
