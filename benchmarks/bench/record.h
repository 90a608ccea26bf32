/* SPDX-License-Identifier: Apache-2.0 */
/* What is measured as a result (lib/bench), and where it is written to: -J, --json-lines, --csv,
 * and standard output for who started a job of it (lib/bench/marked.h). Only rank 0 keeps one. */
#ifndef DRARUN_BENCH_RECORD_H
#define DRARUN_BENCH_RECORD_H

#include "benchmarks/bench/table.h"
#include "lib/bench/result_json.h"
#include "lib/bench/written.h"

struct record {
    struct result result;
    FILE *json, *csv; /* NULL: not asked for */
    char json_name[WRITTEN_NAME];
    const char *csv_name;
    struct result_lines lines, marked;
};

/* Opens the files, so that those that cannot be had are known before anything is measured. argv and
 * environment: for the result; of the latter only what is no secret. */
int record_begin(struct record *r, const struct bench_options *o, const struct backend_world *world,
                 const struct table_rank *ranks, char *const argv[], char *const environment[],
                 struct drarun_error *err);
/* Both halves of a size; in_place as in table_row. Errors: a file is full. */
int record_row(struct record *r, const struct bench_options *o, const struct measure_case *m,
               const struct measured *out_of_place, const struct measured *in_place,
               struct drarun_error *err);
/* Writes what stands at the end, and closes the files. */
int record_end(struct record *r, double wrong, double busbw, struct drarun_error *err);
/* Without an end: what --json-lines has stays. */
void record_done(struct record *r);

#endif
