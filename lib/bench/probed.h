/* SPDX-License-Identifier: Apache-2.0 */
/* What exchanges of pairs of ranks showed: which rank, NIC, host or path is slow, for people and
 * for programs (docs/design/028-missing-and-slow.md). Pure. */
#ifndef DRARUN_LIB_BENCH_PROBED_H
#define DRARUN_LIB_BENCH_PROBED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "lib/base/buf.h"

enum probed_kind { PROBED_UNKNOWN, PROBED_RANK, PROBED_PAIR, PROBED_HOST, PROBED_NIC, PROBED_PATH };

struct probed_end {
    int rank, rail;   /* -1: of no single one */
    char host[128];   /* as its rank calls it */
    char node[128];   /* the Kubernetes node; "" */
    char device[128]; /* "NVIDIA B200 0000:3b:00.0"; "" */
    char nic[64];     /* "": not known which */
};

struct probed_slow {
    enum probed_kind kind;
    struct probed_end at, other; /* other: of a pair or path */
    double seconds, usual;       /* of its exchanges and of the others' */
};

struct probed {
    bool known;
    char why_not[96];                /* nothing was measured; "" */
    size_t pairs;                    /* of ranks that were measured */
    size_t hosts, rails, rail_pairs; /* rails: of each host; 0: they were not measured */
    struct probed_slow *slow;        /* of each kind the slowest first */
    size_t slow_count, slow_cap;
};

void probed_done(struct probed *p);
/* Zeroed, with no rank and no rail; valid until the next. NULL without memory. */
struct probed_slow *probed_add(struct probed *p);

const char *probed_kind_name(enum probed_kind kind);   /* "nic" */
enum probed_kind probed_kind_find(const char *name);   /* PROBED_UNKNOWN */
double probed_percent(const struct probed_slow *slow); /* above the others */
bool probed_is_slow(const struct probed *p, int rank); /* itself, its NIC */
bool probed_host_is_slow(const struct probed *p, const char *host);

/* "rail 2 of n1 (mlx5_2, rank 6)" */
void probed_where(const struct probed_slow *slow, struct buf *out);
/* Lines for the end of a table, with "# ". */
void probed_text(const struct probed *p, struct buf *out);
/* {"measured", "why_not", "rails": {"each", "hosts", "measured"}, "slow": [{"what", "rank", "rail",
 * "host", "node", "device", "nic", "other": {...}, "time", "usual", "percent"}]}, times in us; a
 * new reference, NULL without memory. */
json_t *probed_json(const struct probed *p);

#endif
