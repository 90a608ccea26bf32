/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of workers or ranks for people: "0-3,7". Pure. */
#ifndef DRARUN_JOBS_WORKER_RANGES_H
#define DRARUN_JOBS_WORKER_RANGES_H

#include <stdint.h>

#include "lib/base/buf.h"

/* Adds ascending numbers as ranges; at most max ranges, then ",...". */
void worker_ranges(const uint32_t *workers, uint32_t count, uint32_t max, struct buf *out);

#endif
