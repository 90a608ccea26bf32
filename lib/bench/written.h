/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what was printed has come to the file. */
#ifndef DRARUN_LIB_BENCH_WRITTEN_H
#define DRARUN_LIB_BENCH_WRITTEN_H

#include <stdio.h>
#include "drarun/error.h"

/* Flushes; the error names the file. */
int written(FILE *out, const char *name, struct drarun_error *err);
/* The same, closes *out (NULL: nothing to do) and leaves NULL. */
int written_close(FILE **out, const char *name, struct drarun_error *err);

#endif
