/* SPDX-License-Identifier: Apache-2.0 */
/* How ranks find each other without MPI: through the PMI server of their launcher.
 * rendezvous_pmix.c asks libpmix; rendezvous_pmi1.c speaks PMI-1 itself, for images that have no
 * libpmix. A module is linked with one of them. One thread; every call but rendezvous_open is
 * collective over all ranks. */
#ifndef DRARUN_BENCH_RENDEZVOUS_H
#define DRARUN_BENCH_RENDEZVOUS_H

#include <stddef.h>

#include "drarun/error.h"

struct rendezvous {
    unsigned rank, ranks;
    unsigned local_rank; /* on its node */
};

/* A program that nobody started is one rank of its own. */
int rendezvous_open(struct rendezvous *ret, struct drarun_error *err);
/* `bytes` of each rank, to all: all has ranks times that. */
int rendezvous_share(const void *mine, void *all, size_t bytes, struct drarun_error *err);
int rendezvous_wait(struct drarun_error *err);
/* After all ranks have come here. */
void rendezvous_close(void);

#endif
