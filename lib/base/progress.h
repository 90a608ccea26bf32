/* SPDX-License-Identifier: Apache-2.0 */
/* How far a rank is, in a page of memory that its agent reads: told without a message, and read
 * also while the rank is stopped or waits for others. One writer, one thread; readers are of the
 * same machine. Steps are those that every rank of the job takes, in the same order. */
#ifndef DRARUN_BASE_PROGRESS_H
#define DRARUN_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"

#define PROGRESS_VARIABLE "DRARUN_PROGRESS" /* the file's path, of the rank's environment */

struct progress_page {
    uint64_t step;  /* from 1; 0: none was told */
    uint32_t alone; /* not 0: it works by itself and waits for nobody */
    char what[116]; /* of a step, for people: "all_reduce of 1024 bytes" */
};

/* The writer's page, mapped until the process ends; it is a private one when path is NULL or cannot
 * be had, so that steps cost the same. NULL without memory. */
struct progress_page *progress_open(const char *path);
/* what: NULL, as before. */
void progress_step(struct progress_page *page, bool alone, const char *what);

/* What a rank has told: false when there is no page yet. */
bool progress_read(const char *path, struct progress_page *ret_page);

#endif
