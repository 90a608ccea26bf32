/* SPDX-License-Identifier: Apache-2.0 */
/* What carries the data: MPI, NCCL. A backend is a shared module that is opened at run time, so
 * that one program starts on machines with and without each. All calls come from one thread. */
#ifndef DRARUN_BENCH_BACKEND_H
#define DRARUN_BENCH_BACKEND_H

#include "benchmarks/bench/element.h"
#include "drarun/error.h"

#define BACKEND_VERSION 6u
#define BACKEND_SYMBOL "bench_backend"

enum backend_agree { AGREE_SUM, AGREE_MIN, AGREE_MAX };

/* A transfer of `count` elements; per rank where it is gathered or scattered. Addresses are of the
 * backend's own memory. */
struct transfer {
    const void *send;
    void *recv;
    size_t count;
    enum element type;
    enum reduction op;
    unsigned root;
};

/* Of an uneven exchange with one rank: elements, and where they begin. */
struct transfer_part {
    size_t send, send_at, recv, recv_at;
};

typedef double backend_clock(void); /* seconds since some moment */

struct backend_world {
    unsigned rank, ranks;
    char library[96];     /* name and version, as the table says them */
    char device[96];      /* "memory", "NVIDIA H100" */
    int index;            /* of the device among those that this rank sees */
    char address[16];     /* on PCI, "0000:3b:00.0"; "" for memory */
    backend_clock *clock; /* by which it is usually measured; NULL: CLOCK_MONOTONIC_RAW */
    bool stand_in;        /* of a test: it measures nothing */
    bool met; /* after a failed open: all ranks have the same, so that one speaks for all */
};

/* What is asked of NCCL and CUDA alone, as nccl-tests' options of these letters. */
struct backend_options {
    bool null_stream;   /* -y */
    unsigned registers; /* -R: buffers are registered with the communicator, 2: symmetrically */
};

/* Calls return 0 or -errno with err filled. Transfers may return before they are done: `finish`
 * waits for all that were started, and reports copies that failed. A NULL call is one that the
 * backend has not; `lacks` says why in words. After a failed open only with world.met may be
 * closed, which all ranks then do. */
struct backend {
    unsigned version; /* BACKEND_VERSION */
    const char *name;
    int (*open)(const struct backend_options *options, struct backend_world *ret_world,
                struct drarun_error *err);
    void (*close)(void);

    size_t (*room)(void);         /* bytes that alloc has; NULL: it takes the machine's memory */
    void *(*alloc)(size_t bytes); /* NULL: there is no room */
    void (*release)(void *memory);
    void (*put)(void *to, const void *from, size_t bytes);  /* from the program's memory */
    void (*get)(void *to, const void *from, size_t bytes);  /* to it */
    void (*copy)(void *to, const void *from, size_t bytes); /* in the order of the transfers */
    /* Whether two pieces of its memory are equal; false also where it can't tell. NULL: it never
     * can. */
    bool (*same)(const void *a, const void *b, size_t bytes);

    int (*all_reduce)(const struct transfer *t, struct drarun_error *err);
    int (*all_gather)(const struct transfer *t, struct drarun_error *err);
    int (*reduce_scatter)(const struct transfer *t, struct drarun_error *err);
    int (*broadcast)(const struct transfer *t, struct drarun_error *err);
    int (*reduce)(const struct transfer *t, struct drarun_error *err);
    int (*alltoall)(const struct transfer *t, struct drarun_error *err);
    int (*alltoallv)(const struct transfer *t, const struct transfer_part *with,
                     struct drarun_error *err); /* one part for each rank */
    int (*gather)(const struct transfer *t, struct drarun_error *err);
    int (*scatter)(const struct transfer *t, struct drarun_error *err);
    /* Both at once, with these partners; t->count elements each way. */
    int (*sendrecv)(const struct transfer *t, unsigned to, unsigned from, struct drarun_error *err);
    /* Transfers between begin and end start together; NULL: there is nothing to gain. */
    int (*group)(bool begins, struct drarun_error *err);
    int (*finish)(struct drarun_error *err); /* NULL: a call that returned is done */
    /* Marks among the transfers, and the time from mark i to i + 1 once both are passed, so that
     * single calls are timed without waiting for each. NULL: a call that returned is done. */
    int (*mark)(size_t i, struct drarun_error *err);
    int (*between)(size_t i, double *ret_seconds, struct drarun_error *err);
    int (*barrier)(struct drarun_error *err);

    /* Of the program itself, through any channel: in place, the same on all ranks afterwards. */
    int (*agree)(double *values, size_t count, enum backend_agree how, struct drarun_error *err);
    /* `bytes` of each rank, to all ranks: all has ranks times that. */
    int (*share)(const void *mine, void *all, size_t bytes, struct drarun_error *err);
    /* Why a type or operation cannot be had, or NULL. */
    const char *(*lacks)(enum element type, enum reduction op);
};

static inline int backend_finish(const struct backend *backend, struct drarun_error *err)
{
    return backend->finish ? backend->finish(err) : 0;
}

#endif
