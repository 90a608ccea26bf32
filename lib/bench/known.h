/* SPDX-License-Identifier: Apache-2.0 */
/* Machines that are known by their GPUs, and what others measured on them: known_machines.yaml,
 * which is built in, and a site's own file before it. Pure. */
#ifndef DRARUN_LIB_BENCH_KNOWN_H
#define DRARUN_LIB_BENCH_KNOWN_H

#include "lib/bench/result.h"
#include "lib/doc/doc.h"

/* Around a single figure: what nccl-tests allows below its NCCL_TESTS_MIN_BW. */
#define KNOWN_TOLERANCE 0.1

struct known_seen {
    char collective[32];
    uint32_t nodes, gpus; /* of each node */
    uint64_t bytes;
    double busbw;     /* GB/s; 0: the source gives a range */
    double low, high; /* what is expected: the source's range, or KNOWN_TOLERANCE around busbw */
    bool misaligned;  /* of GPUs and NICs that share no PCIe switch: a hint, and no expectation */
    char source[128];
};

struct known_machine {
    char name[64], title[128], gpu[64]; /* gpu: its name, whatever the case */
    uint32_t gpus, nics;                /* of a node */
    double nic_gbit, nvlink_gbs;        /* of one, each direction; 0: none */
    struct known_seen *seen;
    size_t seen_count;
};

struct known {
    struct known_machine *list;
    size_t count;
};

void known_done(struct known *known);
/* Adds the machines of a document behind those that are there; strict. */
int known_read(struct known *known, const struct doc *doc, struct drarun_error *err);
int known_builtin(struct known *known, struct drarun_error *err);

/* The first whose name this is, or all of whose ranks have its GPU and no more of them on a host
 * than it has; NULL. name: NULL to go by GPUs. */
const struct known_machine *known_find(const struct known *known, const char *name,
                                       const struct result *r);

/* By the GPUs of one host alone; NULL. known may be NULL. */
const struct known_machine *known_find_gpu(const struct known *known, const char *model,
                                           size_t ranks);

/* What others saw with as many nodes and GPUs, at the largest size that was measured here too, else
 * at any; NULL. */
const struct known_seen *known_seen_find(const struct known_machine *machine,
                                         const struct result *r);

/* The same of GPUs and NICs that share no PCIe switch, where this run is in that range; NULL. */
const struct known_seen *known_misaligned_find(const struct known_machine *machine,
                                               const struct result *r);

/* Most ranks on one host; 0: no rank is known. */
size_t known_ranks_of_host(const struct result *r);

#endif
