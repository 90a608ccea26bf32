/* SPDX-License-Identifier: Apache-2.0 */
/* A file for each rank and stream: DIR/rank.N.out and DIR/rank.N.err. */
#ifndef DRARUN_LAUNCHER_OUTPUT_FILES_H
#define DRARUN_LAUNCHER_OUTPUT_FILES_H

#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"

struct output_files;

/* Makes the directory if it is missing (not its parents) and creates every file, empty. */
struct output_files *output_files_new(const char *dir, uint32_t ranks, struct drarun_error *err);
/* Makes the files of the ranks that have come since. */
int output_files_grow(struct output_files *files, uint32_t ranks, struct drarun_error *err);
void output_files_free(struct output_files *files);

/* stream: 1 for .out, 2 for .err. The error names the file. */
int output_files_write(struct output_files *files, uint32_t rank, int stream, const void *data,
                       size_t length, struct drarun_error *err);

#endif
