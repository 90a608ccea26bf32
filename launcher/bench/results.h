/* SPDX-License-Identifier: Apache-2.0 */
/* Files with results of benchmarks, and with machines that are known. */
#ifndef DRARUN_LAUNCHER_BENCH_RESULTS_H
#define DRARUN_LAUNCHER_BENCH_RESULTS_H

#include "lib/base/buf.h"
#include "lib/bench/known.h"
#include "lib/bench/nccl_report.h"
#include "lib/bench/runs.h"

#define RESULTS_TEXT_MAX ((size_t)256 << 20)  /* NCCL's logs are long */
#define RESULTS_JOB_OUTPUT "the job's output" /* what messages call it */

/* path "-": standard input. */
int results_read(const char *path, struct runs *runs, struct drarun_error *err);
/* The same of a text, which messages call `name`. */
int results_read_text(const struct buf *text, const char *name, struct runs *runs,
                      struct drarun_error *err);

/* The same; where the text has no run but lines of NCCL's, these are in the report, which else has
 * none. *report is done with nccl_report_done also on failure. */
int results_read_or_log(const char *path, struct runs *runs, struct nccl_report *report,
                        struct drarun_error *err);

/* Lines of NCCL_DEBUG_FILE, added to the run's log. */
int results_read_log(const char *path, struct run *run, struct drarun_error *err);

/* The file's machines (NULL: none) before those that are built in. */
int results_known(const char *path, struct known *known, struct drarun_error *err);

#endif
