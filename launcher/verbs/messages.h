/* SPDX-License-Identifier: Apache-2.0 */
/* The messages that have a code, collected from the tables beside the code that says them:
 * docs/messages.md and `drarun help CODE` are made of them. Pure. */
#ifndef DRARUN_LAUNCHER_MESSAGES_H
#define DRARUN_LAUNCHER_MESSAGES_H

#include <stdbool.h>
#include "lib/base/buf.h"

/* A reference page in Markdown. */
void messages_page(struct buf *out);

/* What is known of a code, as "NO_RDMA_NIC", "TcpFallback", "no-finalize" or "76", in any case of
 * letters: a paragraph for each table that has it. false: none has, and out is as it was. */
bool messages_help(const char *code, struct buf *out);

#endif
