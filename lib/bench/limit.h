/* SPDX-License-Identifier: Apache-2.0 */
/* The bus bandwidth that links allow: of a run between hosts what their NICs carry, of one host
 * what connects its GPUs. From what was said of the machine, from what the run knows of its claims,
 * or from a machine that is known by its GPUs; when none of them says it, there is no limit, and
 * the reason. Sources: nccl-tests' doc/PERFORMANCE.md for what bus bandwidth means. Pure. */
#ifndef DRARUN_LIB_BENCH_LIMIT_H
#define DRARUN_LIB_BENCH_LIMIT_H

#include "lib/bench/known.h"
#include "lib/bench/runs.h"

struct limit_given {
    uint32_t nics;             /* of each host; 0: not said, as all here */
    uint32_t claimed_nics;     /* the same, behind what the run itself knows of their speed */
    const char *claimed_role;  /* which claims fewer than others; NULL: all hosts claim as many */
    const struct known *known; /* for hosts whose GPUs are not those of others; NULL: none */
    double nic_gbit;           /* of one */
    double link_gbs;           /* between GPUs of a host, each direction */
};

struct limit {
    double gbs;    /* 0: not known */
    bool unused;   /* of the link between GPUs, which NCCL's log says none of them uses */
    bool assumed;  /* from a machine that looks the same: the run says nothing of its NICs */
    char why[256]; /* "8 NICs of 400 Gb/s a host (--nics, --nic-gbit)"; or why it is not known */
};

/* machine: NULL when it is not known. */
void limit_of(const struct run *run, const struct known_machine *machine,
              const struct limit_given *given, struct limit *ret_limit);

#endif
