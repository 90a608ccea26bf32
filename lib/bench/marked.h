/* SPDX-License-Identifier: Apache-2.0 */
/* A result's JSON lines among other output: of a job, whose ranks' standard output is all that
 * comes back. Each stands behind a mark that makes a comment of it for readers of nccl-tests'
 * table, in pieces that launchers and logs keep whole, since other ranks write there too:
 *
 *   #drarun-bench 0+{"kind": "begin", ...    from its byte 0, and goes on in the next one
 *   #drarun-bench 16384.... }                from there to its end
 *
 * Pure but for `out`. */
#ifndef DRARUN_LIB_BENCH_MARKED_H
#define DRARUN_LIB_BENCH_MARKED_H

#include <stdio.h>
#include "drarun/error.h"
#include "lib/base/buf.h"

#define MARKED "#drarun-bench "
#define MARKED_PIECE ((size_t)16 << 10) /* bytes of a line that stand behind one mark, at most */
#define MARKED_VARIABLE "DRARUN_BENCH_MARKED" /* of drarun-bench: 1 writes them */

/* A line without its newline; each piece is written at once and flushed; `name` as in written.h. */
int marked_write(FILE *out, const char *name, const char *line, struct drarun_error *err);

/* Takes them out: lines that are whole to *lines, everything without a mark to *rest (both are
 * appended to). False: there is none. */
bool marked_split(const char *text, size_t length, struct buf *lines, struct buf *rest);

#endif
