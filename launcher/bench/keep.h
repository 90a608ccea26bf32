/* SPDX-License-Identifier: Apache-2.0 */
/* -J, --json-lines and --csv of a measurement on a cluster: its ranks' files would go with their
 * pods, so that they are written here, of what came back of it. */
#ifndef DRARUN_LAUNCHER_BENCH_KEEP_H
#define DRARUN_LAUNCHER_BENCH_KEEP_H

#include <jansson.h>
#include "lib/base/buf.h"
#include "lib/base/strlist.h"
#include "lib/bench/result_json.h"
#include "lib/bench/written.h"

struct keep_files {
    const char *json, *lines, *csv; /* NULL: not wanted */
};

struct keep {
    FILE *json, *csv;
    char json_name[WRITTEN_NAME];
    const char *csv_name;
    bool more; /* the CSV file has its heading */
    struct result_lines lines;
};

/* Adds the words of drarun-bench that remain without these options. */
int keep_pick(const struct strlist *words, struct strlist *remain, struct drarun_error *err);

/* Opens the files, so that those that cannot be had are known before a job is made. more: what
 * earlier jobs of this command wrote stays; -J takes a new name for each. */
int keep_begin(const struct keep_files *files, bool more, struct keep *ret_keep,
               struct drarun_error *err);
/* Of the runs in the job's output: all that is known of them, and `kept` (cluster_api.h; NULL) but
 * for what its environment may have of secrets. Closes the files. */
int keep_end(struct keep *keep, const struct buf *output, json_t *kept, struct drarun_error *err);
void keep_done(struct keep *keep);

#endif
