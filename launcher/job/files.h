/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the ranks have left and agents send at the end, beside the job's report:
 * REPORT.inspector/worker-N/NAME. What cannot be written is said once and left out: it is not worth
 * the job. Loop thread only. */
#ifndef DRARUN_LAUNCHER_JOB_FILES_H
#define DRARUN_LAUNCHER_JOB_FILES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/wire/wire.pb-c.h"

struct job_files;

/* report: the path of its file. The folder is made; what an earlier job left there stays. NULL: it
 * cannot be made. */
struct job_files *job_files_new(const char *report, uint32_t workers, struct drarun_error *err);
void job_files_free(struct job_files *files);

/* -EPROTO: nothing that an agent sends. */
int job_files_take(struct job_files *files, uint32_t worker, const Drarun__Wire__File *message,
                   struct drarun_error *err);
/* {"folder", "files", "bytes", "cut": [workers]}: a new reference, or NULL. */
json_t *job_files_json(const struct job_files *files);

#endif
