/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the status document to ConfigMap NAME-status: one write at a time, the latest document
 * wins. While the API server is away it is written again and again: a later change, after which it
 * would be written anyway, may be days away. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_STATUS_WRITER_H
#define DRARUN_LAUNCHER_CLUSTER_STATUS_WRITER_H

#include <jansson.h>
#include "launcher/cluster/client/cluster.h"

struct status_writer;

int status_writer_new(struct cluster *cluster, const char *job, const char *namespace,
                      struct status_writer **ret_writer, struct drarun_error *err);
/* Drops what is not written. */
void status_writer_free(struct status_writer *writer);
DEFINE_CLEANUP(struct status_writer, status_writer_free)

/* The document, which it holds until it is written or a later one is there. */
void status_writer_put(struct status_writer *writer, json_t *doc_take);
/* The document is another launcher's: what is not written is dropped, as is what is put later. */
void status_writer_leave(struct status_writer *writer);
/* Not all is written, and what is not will be tried again. */
bool status_writer_is_behind(const struct status_writer *writer);
/* Runs the loop until all is written, at most for ms: why the last write failed, or -ETIMEDOUT. */
int status_writer_flush(struct status_writer *writer, int64_t ms, struct drarun_error *err);
/* The same for as long as left says, milliseconds from now, asked whenever something has happened:
 * not positive ends it. */
typedef int64_t (*status_writer_left_fn)(void *arg);
int status_writer_flush_for(struct status_writer *writer, status_writer_left_fn left, void *arg,
                            struct drarun_error *err);

#endif
