/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a collective benchmark, of ours or of anyone's nccl-tests: what was measured on what.
 * What is not known is empty, 0, or below 0 where that is said: nothing here is ever made up. Times
 * are seconds, bandwidths GB/s (10^9). Pure; one thread at a time. */
#ifndef DRARUN_LIB_BENCH_RESULT_H
#define DRARUN_LIB_BENCH_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"
#include "lib/bench/probed.h"
#include "lib/bench/spread.h"

#define RESULT_MANY ((uint64_t)1 << 50) /* what is counted further is no more than wrong */
/* A file's number above it was not measured; sums of those below stay numbers. */
#define RESULT_MOST 1e30
#define RESULT_NICS 512u /* bytes of the names of a rank's NICs: 64 such as mlx5_63 */

struct result_rank {
    unsigned rank, group;
    int pid;
    int device;       /* as its process counts them; below 0 */
    char host[128];   /* what the rank calls its machine: a pod's name in a pod */
    char node[128];   /* the Kubernetes node */
    char model[96];   /* "NVIDIA B200", "memory" */
    char address[24]; /* PCI, or what else stands in the table's brackets */
    /* "mlx5_0", several with commas */
    char nic[RESULT_NICS];
    char nearest[64]; /* which of them is its device's own; several with commas; "" */
    char path[8];     /* from its device to the nearest of them: "PIX" (lib/topo/pci.h) */
    int numa;         /* of its device; below 0 */
    char kernel[64], driver[32];
    double nic_gbit; /* all of them together; 0 */
    double copy_gbs; /* its own memory, while all ranks copied theirs; 0 */
    double wrong;    /* elements that it received wrong, of all rows; 0: none, or not known */
};

/* Out of place or in place. */
struct result_half {
    bool measured;  /* else nothing below it counts, but `wrong` */
    bool cpu_time;  /* -C 1: of the call alone */
    double seconds; /* of one call, below 0 */
    double algbw, busbw;
    double wrong;         /* elements over all ranks; below 0: not checked */
    bool has_spread;      /* single calls were timed */
    struct spread spread; /* of them */
    double *calls;        /* call_count seconds, the slowest rank of each; NULL */
    size_t call_count, skipped;
    double *ranks; /* rank_count seconds of one call as each rank saw it; NULL */
    size_t rank_count;
};

struct result_row {
    uint64_t bytes, count;
    char type[16];
    char op[16];    /* "none" */
    int root;       /* -1: none */
    double latency; /* of calls one by one (--latency), the median of the slowest rank's; below 0 */
    struct result_half out_of_place, in_place;
};

/* What the hosts' devices sent and received meanwhile, bytes of all hosts together, each moved byte
 * at both ends. A device that is shared counts everybody's. */
struct result_traffic {
    bool known;
    double rdma, net; /* by RDMA; by network interfaces */
};

#define RESULT_FAILURE 512u      /* bytes of a sentence on it */
#define RESULT_FAULT 256u        /* bytes of one */
#define RESULT_FAULTS_MAX 10000u /* of a text that somebody wrote */

/* What the hosts' devices counted as errors meanwhile. */
struct result_faults {
    bool known;
    char looked[128];     /* "RDMA ports: 2, interfaces: 4, GPUs: 8, NVLinks: 144" */
    char not_looked[200]; /* "GPUs: no NVML in the image"; "" */
    struct strlist rose;  /* "n1: mlx5_0 port 1 symbol_error +3" */
};

/* How the run ended, where it did not end well: a rank that hangs, crashes, is lost; an error that
 * the benchmark itself ended with. */
struct result_failure {
    /* Of the job's first cause (docs/design/006-ends.md), "launcher" from a launcher's words alone;
     * of the benchmark's own words "test-nccl", "test-cuda", "test-timeout", "test"; "": nothing is
     * known of one. */
    char kind[24];
    char text[RESULT_FAILURE];
    char host[128];             /* where; "" */
    char cause[RESULT_FAILURE]; /* NCCL's last warning before it, "HOST: TEXT"; "" */
    int status;                 /* 0: not known */
};

struct result_config {
    uint64_t threads, gpus; /* of a process */
    uint64_t min_bytes, max_bytes, step_bytes, step_factor, unaligned;
    uint64_t warmup, iterations, aggregated, validation, graph, blocking, skip;
    bool known, per_iteration, parallel_init;
};

struct result {
    char program[96];         /* "nccl-tests 2.19.6", "drarun-bench 0.1.0" */
    char library[96];         /* "NCCL 2.27.3", "Open MPI 4.1.4" */
    char collective[32];      /* "all_reduce" */
    char start[32], end[32];  /* local time, "2026-11-22 07:10:00" */
    struct strlist args, env; /* env: only names that say nothing secret (result_env_allowed) */
    struct result_config config;
    struct result_rank *ranks;
    size_t rank_count, rank_cap;
    struct result_row *rows;
    size_t row_count, row_cap;
    double wrong_rows; /* as its end says, rows (or elements) out of bounds; below 0 */
    double average;    /* as its end says; below 0 */
    bool ended;        /* its end was seen: else it was cut off */
    bool below_least;  /* by its own check of the average (NCCL_TESTS_MIN_BW, --min-busbw) */
    struct result_traffic traffic;
    struct result_faults faults;
    struct probed probed;
    struct result_failure failure;
    bool stand_in; /* of a library that moves no data over real links: never judged */
    json_t *about; /* of ours: plan, versions, topology; NULL */
};

void result_init(struct result *r);
void result_done(struct result *r);
/* Zeroed and, for what says so, unknown; valid until the next of its kind; NULL without memory. */
struct result_rank *result_add_rank(struct result *r);
struct result_row *result_add_row(struct result *r);

/* From "build/all_reduce_perf" or "all_reduce"; another word changes nothing. */
void result_name_collective(struct result *r, const char *word);
/* The library from NCCL's version code: 22703 is 2.27.3, 2804 is 2.8.4 (nccl.h). */
void result_name_nccl(struct result *r, unsigned code);

/* Leaves nothing but printable ASCII. */
void result_clean_text(char *text);
/* What came from somebody's text has no bytes but printable ASCII afterwards. args, env and about
 * stay: they are for JSON, and escaped or cleaned wherever people see them. */
void result_clean(struct result *r);

/* Over all measured halves, as nccl-tests averages them; below 0: nothing was measured. */
double result_average(const struct result *r);
/* The first row of a run of calls one by one, whose bandwidths say little; NULL: it is none. */
const struct result_row *result_latency(const struct result *r);
/* Rows of which a half was measured. */
size_t result_measured(const struct result *r);
/* Elements that were wrong; below 0: nothing was checked. */
double result_wrong(const struct result *r);
#define RESULT_WRONG_SHOWN 8u /* ranks that a reason or a verdict names */

/* "rank 0 on n1 (NVIDIA B200 0000:8f:00.0): 12 elements" of ranks that received wrong data, into
 * the list; of more than `most` with a word on the others. */
void result_wrong_ranks(const struct result *r, size_t most, struct strlist *ret_ranks);
/* The half with the highest bus bandwidth, and its row; NULL. */
const struct result_half *result_peak(const struct result *r, const struct result_row **ret_row);
/* The better half's at that size; below 0: it was not measured. */
double result_busbw_at(const struct result *r, uint64_t bytes);
/* Different hosts among the ranks; 0: no rank is known. */
size_t result_hosts(const struct result *r);
/* How many ranks are called 0: several where each process of nccl-tests measured alone, since it
 * was built without MPI, or its MPI found no other process. */
size_t result_rank_zeros(const struct result *r);
/* Groups that ran side by side, each a collective of its own (NCCL_TESTS_SPLIT); 0: no rank is
 * known. */
size_t result_groups(const struct result *r);

/* "8 GiB", "1.5 KiB", "100 B" */
void result_size_text(uint64_t bytes, char *text, size_t size);

/* May this variable stand in a file that people pass around? An allow-list of names. */
bool result_env_allowed(const char *assignment);
/* Those of the environment that are. */
void result_env_take(struct result *r, char *const environment[]);

/* "mlx5_0": the one that is nearest, several with commas, or the only one; "". */
const char *result_own_nics(const struct result_rank *rank);

#endif
