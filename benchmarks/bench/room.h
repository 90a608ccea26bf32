/* SPDX-License-Identifier: Apache-2.0 */
/* Whether all ranks have room for their buffers. They find out together: a rank that gave up alone
 * would let the others wait for it. */
#ifndef DRARUN_BENCH_ROOM_H
#define DRARUN_BENCH_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include "drarun/error.h"

struct room { /* as every rank tells it */
    char host[64];
    double bytes; /* that are free: of its device, or of its machine */
};

struct room_need {
    double bytes;     /* of a rank */
    size_t max_bytes; /* -e, which asks for them */
    bool device;      /* each rank has its own; else those of a host share its memory */
    bool check;       /* a third of it is for what is compared */
};

/* What /proc/meminfo has as available, which includes the page cache, or what is left of the
 * control group where that is less; infinity: not known. meminfo: that file. */
double room_of_machine(const char *meminfo);

/* -ENOMEM: the first rank that has too little, in words; the same on all ranks. Pure. */
int room_check(const struct room *all, unsigned ranks, const struct room_need *need,
               struct drarun_error *err);

#endif
