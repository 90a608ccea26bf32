/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes that exchange values: each publishes one for a single look-up
 * (PMIX_PERSIST_FIRST_READ), and waits for the other's. So Open MPI's processes meet at a port
 * (docs/design/037-spawn.md), with keys that differ in one of their fields: "PORT:connect" and
 * "PORT:accept". Which of the two calls and which answers follows from the keys: many processes may
 * call the same one at the same time, and its answer is for the one that it has read. Pure. */
#ifndef DRARUN_WORKER_PMIX_EXCHANGE_H
#define DRARUN_WORKER_PMIX_EXCHANGE_H

#include <stdbool.h>
#include <pmix_common.h>
#include "lib/base/buf.h"

/* own: what a process has published; other: what it awaits, or has read. */
bool exchange_is_pair(const char *own, const char *other);
/* A pair, and the process is the one that calls: its key is the greater one. */
bool exchange_calls(const char *own, const char *other);
/* A pair, and the process answers. */
bool exchange_answers(const char *own, const char *other);

/* Appends the name of an answer that is for this process alone. */
void exchange_name_answer(struct buf *out, const char *key, const pmix_proc_t *caller);

#endif
