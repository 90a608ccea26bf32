/* SPDX-License-Identifier: Apache-2.0 */
/* Files of results: opened before anything is measured, and whether all has come to them. */
#ifndef DRARUN_LIB_BENCH_WRITTEN_H
#define DRARUN_LIB_BENCH_WRITTEN_H

#include <stdio.h>
#include "drarun/error.h"

#define WRITTEN_NAME 512

/* option: for messages. mode: as fopen's. */
int written_open(const char *option, const char *name, const char *mode, FILE **ret,
                 struct drarun_error *err);
/* As nccl-tests, NAME.0, NAME.1, ... where NAME is there: no file is lost. */
int written_open_new(const char *option, const char *name, char ret_name[WRITTEN_NAME], FILE **ret,
                     struct drarun_error *err);
/* Flushes; the error names the file. */
int written(FILE *out, const char *name, struct drarun_error *err);
/* The same, closes *out (NULL: nothing to do) and leaves NULL. */
int written_close(FILE **out, const char *name, struct drarun_error *err);

#endif
