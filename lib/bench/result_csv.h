/* SPDX-License-Identifier: Apache-2.0 */
/* A result as comma-separated values: a line for each half that was measured, its cells empty where
 * nothing is known. Written to `out` and flushed; errors name `name`. */
#ifndef DRARUN_LIB_BENCH_RESULT_CSV_H
#define DRARUN_LIB_BENCH_RESULT_CSV_H

#include <stdio.h>
#include "lib/base/buf.h"
#include "lib/bench/result.h"

int result_csv_begin(FILE *out, const char *name, struct drarun_error *err);
int result_csv_row(FILE *out, const char *name, const struct result_row *row,
                   struct drarun_error *err);
/* Appends the whole table. Sets out->failed when memory runs out. */
void result_csv_text(const struct result *r, struct buf *out);

#endif
