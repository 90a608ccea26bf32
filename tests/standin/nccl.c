/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for NCCL: each pair of ranks has a mailbox in shared memory, through which all data
 * goes. It checks what NCCL would trust: that both sides of a transfer have one size. Compiled
 * with STANDIN_OLD it has the calls of 2.10 alone. $STANDIN_NCCL_VERSION: the version that it says.
 * $STANDIN_WRONG: the rank whose results get one wrong byte. */
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "benchmarks/bench/element.h"
#include "benchmarks/bench/nccl_api.h"
#include "lib/base/unconst.h"
#include "tests/standin/standin.h"

#define EXPORT __attribute__((visibility("default")))
#define BOX_BYTES (64u << 10)
#define RANKS_MOST 64u
#define GROUP_MOST 512u
#define WAIT_S 60
#define OPS_FIRST 5 /* behind NCCL's own operations */
#define OPS_MOST 16u

enum { SUCCESS, UNHANDLED_CUDA, SYSTEM, INTERNAL, INVALID_ARGUMENT, INVALID_USAGE };

struct box {                /* from one rank to another */
    _Atomic unsigned bytes; /* 0: free */
    size_t whole;           /* of the message that this is a piece of */
    char data[BOX_BYTES];
};

struct shared {
    _Atomic unsigned arrived;
    struct box boxes[];
};

struct ncclComm {
    struct shared *shared;
    size_t size;
    unsigned rank, ranks;
    _Atomic int error;
    double scalars[OPS_MOST];
    int wrong; /* this rank spoils what it gets */
};

struct message {
    char *memory;
    size_t bytes, done;
    unsigned peer;
    bool comes;
};

struct call {
    struct ncclComm *comm;
    int (*run)(struct call *c);
    const char *send;
    char *recv;
    size_t count;
    enum element type;
    int op;
    unsigned root;
    struct message messages[]; /* of a group: `count` of them */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- mailboxes ---- */

static struct box *box(struct ncclComm *c, unsigned from, unsigned to)
{
    return &c->shared->boxes[from * c->ranks + to];
}

static int step(struct ncclComm *c, struct message *m)
{
    struct box *b = m->comes ? box(c, m->peer, c->rank) : box(c, c->rank, m->peer);
    unsigned there = atomic_load_explicit(&b->bytes, memory_order_acquire);
    if (m->comes ? there == 0 : there != 0)
        return 0;
    if (m->comes) {
        if (b->whole != m->bytes)
            return -INVALID_USAGE;
        memcpy(m->memory + m->done, b->data, there);
        atomic_store_explicit(&b->bytes, 0, memory_order_release);
    } else {
        there = m->bytes - m->done < BOX_BYTES ? (unsigned)(m->bytes - m->done) : BOX_BYTES;
        b->whole = m->bytes;
        memcpy(b->data, m->memory + m->done, there);
        atomic_store_explicit(&b->bytes, there, memory_order_release);
    }
    m->done += there;
    return 1;
}

/* Messages of a pair keep their order: an earlier one of the same way that is not done holds them.
 */
static bool is_held(const struct message *m, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (m[j].peer == m[i].peer && m[j].comes == m[i].comes && m[j].done < m[j].bytes)
            return true;
    return false;
}

static int exchange(struct ncclComm *c, struct message *m, size_t count)
{
    double until = now() + WAIT_S;
    for (;;) {
        bool moved = false, waits = false;
        for (size_t i = 0; i < count; i++) {
            if (m[i].done == m[i].bytes || is_held(m, i))
                continue;
            int code = step(c, &m[i]);
            if (code < 0)
                return -code;
            moved |= code > 0;
            waits |= m[i].done < m[i].bytes;
        }
        if (!waits && !moved)
            return SUCCESS;
        if (!moved)
            sched_yield();
        if (!moved && now() > until)
            return SYSTEM;
    }
}

/* To all ranks from parts of `send` that lie `apart`, and from all into parts of `recv`. */
static int with_all(struct call *c, const char *send, size_t send_apart, char *recv,
                    size_t recv_apart, size_t bytes, unsigned only_to, unsigned only_from)
{
    struct message m[2 * RANKS_MOST];
    size_t count = 0;
    for (unsigned peer = 0; peer < c->comm->ranks; peer++) {
        if (send && (only_to == RANKS_MOST || only_to == peer))
            m[count++] =
                (struct message){(char *)unconst(send) + peer * send_apart, bytes, 0, peer, false};
        if (recv && (only_from == RANKS_MOST || only_from == peer))
            m[count++] = (struct message){recv + peer * recv_apart, bytes, 0, peer, true};
    }
    return exchange(c->comm, m, count);
}

#define ALL RANKS_MOST

/* ---- reductions ---- */

static void finish_average(struct call *c, char *at, size_t count)
{
    size_t size = element_size(c->type);
    for (size_t i = 0; c->op == REDUCE_AVG && i < count; i++)
        element_store(c->type, at + i * size,
                      element_load(c->type, at + i * size) / c->comm->ranks);
}

static void scale(struct call *c, char *at, size_t count)
{
    size_t size = element_size(c->type);
    for (size_t i = 0; c->op >= OPS_FIRST && i < count; i++)
        element_store(c->type, at + i * size,
                      element_load(c->type, at + i * size) * c->comm->scalars[c->op - OPS_FIRST]);
}

/* `n` elements at send[peer * apart + offset] of every rank, reduced where `to` says. */
static int reduce_piece(struct call *c, size_t offset, size_t n, size_t apart, unsigned to)
{
    size_t size = element_size(c->type), bytes = n * size, ranks = c->comm->ranks;
    char *out = malloc(bytes * ranks), *in = malloc(bytes * ranks);
    bool gets = to == ALL || to == c->comm->rank;
    for (unsigned peer = 0; peer < ranks; peer++) {
        memcpy(out + peer * bytes, c->send + (peer * apart + offset) * size, bytes);
        scale(c, out + peer * bytes, n);
    }
    int code = with_all(c, out, bytes, gets ? in : NULL, bytes, bytes, to, ALL);
    if (code == SUCCESS && gets) {
        enum reduction op = c->op >= REDUCE_AVG ? REDUCE_SUM : (enum reduction)c->op;
        for (unsigned peer = 1; peer < ranks; peer++)
            element_reduce(c->type, op, in, in + peer * bytes, n);
        finish_average(c, in, n);
        memcpy(c->recv + offset * size, in, bytes);
    }
    free(out);
    free(in);
    return code;
}

static int reduce_pieces(struct call *c, size_t apart, unsigned to)
{
    size_t most = BOX_BYTES / element_size(c->type);
    int code = SUCCESS;
    for (size_t at = 0; code == SUCCESS && at < c->count; at += most)
        code = reduce_piece(c, at, c->count - at < most ? c->count - at : most, apart, to);
    return code;
}

static int run_all_reduce(struct call *c)
{
    return reduce_pieces(c, 0, ALL);
}

static int run_reduce(struct call *c)
{
    return reduce_pieces(c, 0, c->root);
}

static int run_reduce_scatter(struct call *c)
{
    return reduce_pieces(c, c->count, ALL);
}

/* ---- data that is moved ---- */

static int run_all_gather(struct call *c)
{
    size_t bytes = c->count * element_size(c->type);
    return with_all(c, c->send, 0, c->recv, bytes, bytes, ALL, ALL);
}

static int run_broadcast(struct call *c)
{
    bool root = c->comm->rank == c->root;
    return with_all(c, root ? c->send : NULL, 0, c->recv, 0, c->count * element_size(c->type), ALL,
                    c->root);
}

static int run_group(struct call *c)
{
    return exchange(c->comm, c->messages, c->count);
}

/* ---- calls ---- */

static int enter(void *context)
{
    struct call *c = context;
    int code = c->run(c);
    if (code != SUCCESS)
        atomic_store(&c->comm->error, code);
    else if (c->comm->wrong && c->recv && c->count)
        c->recv[0] ^= 1;
    free(c);
    return SUCCESS; /* NCCL's own errors are asked for with ncclCommGetAsyncError */
}

static int enqueue(struct call *c, void *stream)
{
    static standin_enqueue_fn into;
    if (!into) {
        void *cuda = dlopen("libcudart.so.12", RTLD_NOW | RTLD_NOLOAD);
        *(void **)&into = cuda ? dlsym(cuda, STANDIN_ENQUEUE) : NULL;
    }
    if (!into)
        return UNHANDLED_CUDA;
    into(stream, enter, c);
    return SUCCESS;
}

static int start(struct ncclComm *comm, int (*run)(struct call *), const void *send, void *recv,
                 size_t count, int type, int op, int root, cudaStream_t stream)
{
    struct call *c = calloc(1, sizeof *c);
    if ((type == ELEMENT_F8E4M3 || type == ELEMENT_F8E5M2) &&
        op >= REDUCE_AVG) { /* as NVIDIA's builds */
        free(c);
        return INVALID_ARGUMENT;
    }
    if (!c || type < 0 || type >= (int)ELEMENTS || root < 0 || (unsigned)root >= comm->ranks) {
        free(c);
        return INVALID_ARGUMENT;
    }
    *c = (struct call){comm, run, send, recv, count, (enum element)type, op, (unsigned)root};
    return enqueue(c, stream);
}

EXPORT int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op,
                         ncclComm_t comm, cudaStream_t stream)
{
    return start(comm, run_all_reduce, send, recv, count, type, op, 0, stream);
}

EXPORT int ncclReduceScatter(const void *send, void *recv, size_t count, int type, int op,
                             ncclComm_t comm, cudaStream_t stream)
{
    return start(comm, run_reduce_scatter, send, recv, count, type, op, 0, stream);
}

EXPORT int ncclReduce(const void *send, void *recv, size_t count, int type, int op, int root,
                      ncclComm_t comm, cudaStream_t stream)
{
    return start(comm, run_reduce, send, recv, count, type, op, root, stream);
}

EXPORT int ncclAllGather(const void *send, void *recv, size_t count, int type, ncclComm_t comm,
                         cudaStream_t stream)
{
    return start(comm, run_all_gather, send, recv, count, type, 0, 0, stream);
}

EXPORT int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root,
                         ncclComm_t comm, cudaStream_t stream)
{
    return start(comm, run_broadcast, send, recv, count, type, 0, root, stream);
}

/* ---- groups ---- */

static struct message group[GROUP_MOST];
static size_t grouped;
static int depth;
static struct ncclComm *group_comm;
static cudaStream_t group_stream;

EXPORT int ncclGroupStart(void)
{
    depth++;
    return SUCCESS;
}

EXPORT int ncclGroupEnd(void)
{
    if (--depth > 0 || grouped == 0)
        return depth < 0 ? INVALID_USAGE : SUCCESS;
    struct call *c = calloc(1, sizeof *c + grouped * sizeof *group);
    if (!c)
        return SYSTEM;
    *c = (struct call){.comm = group_comm, .run = run_group, .count = grouped};
    memcpy(c->messages, group, grouped * sizeof *group);
    grouped = 0;
    return enqueue(c, group_stream);
}

static int add(struct message m, ncclComm_t comm, cudaStream_t stream)
{
    if (m.peer >= comm->ranks || grouped == GROUP_MOST)
        return INVALID_ARGUMENT;
    group_comm = comm;
    group_stream = stream;
    ncclGroupStart();
    group[grouped++] = m;
    return ncclGroupEnd();
}

EXPORT int ncclSend(const void *send, size_t count, int type, int peer, ncclComm_t comm,
                    cudaStream_t stream)
{
    return add((struct message){unconst(send), count * element_size((enum element)type), 0,
                                (unsigned)peer, false},
               comm, stream);
}

EXPORT int ncclRecv(void *recv, size_t count, int type, int peer, ncclComm_t comm,
                    cudaStream_t stream)
{
    return add(
        (struct message){recv, count * element_size((enum element)type), 0, (unsigned)peer, true},
        comm, stream);
}

#ifndef STANDIN_OLD
static int run_alltoall(struct call *c)
{
    size_t bytes = c->count * element_size(c->type);
    return with_all(c, c->send, bytes, c->recv, bytes, bytes, ALL, ALL);
}

static int run_gather(struct call *c)
{
    size_t bytes = c->count * element_size(c->type);
    return with_all(c, c->send, 0, c->comm->rank == c->root ? c->recv : NULL, bytes, bytes, c->root,
                    ALL);
}

static int run_scatter(struct call *c)
{
    size_t bytes = c->count * element_size(c->type);
    return with_all(c, c->comm->rank == c->root ? c->send : NULL, bytes, c->recv, 0, bytes, ALL,
                    c->root);
}

EXPORT int ncclAlltoAll(const void *send, void *recv, size_t count, int type, ncclComm_t comm,
                        cudaStream_t stream)
{
    return start(comm, run_alltoall, send, recv, count, type, 0, 0, stream);
}

EXPORT int ncclGather(const void *send, void *recv, size_t count, int type, int root,
                      ncclComm_t comm, cudaStream_t stream)
{
    return start(comm, run_gather, send, recv, count, type, 0, root, stream);
}

EXPORT int ncclScatter(const void *send, void *recv, size_t count, int type, int root,
                       ncclComm_t comm, cudaStream_t stream)
{
    return start(comm, run_scatter, send, recv, count, type, 0, root, stream);
}

EXPORT int ncclRedOpCreatePreMulSum(int *op, void *scalar, int type, int residence, ncclComm_t comm)
{
    static unsigned next;
    unsigned mine = next++ % OPS_MOST;
    if (residence != NCCL_HOST_IMMEDIATE)
        return INVALID_ARGUMENT;
    comm->scalars[mine] = element_load((enum element)type, scalar);
    *op = (int)(OPS_FIRST + mine);
    return SUCCESS;
}

/* The scalar stays for calls that are still in the stream; OPS_MOST later ones may take its place.
 */
EXPORT int ncclRedOpDestroy(int op, ncclComm_t comm)
{
    (void)comm;
    return op >= OPS_FIRST ? SUCCESS : INVALID_ARGUMENT;
}

/* ---- memory: what is registered is counted, and must be given back ---- */

static int registrations;

EXPORT int ncclMemAlloc(void **memory, size_t bytes)
{
    *memory = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
    return *memory ? SUCCESS : SYSTEM;
}

EXPORT int ncclMemFree(void *memory)
{
    free(memory);
    return SUCCESS;
}

EXPORT int ncclCommRegister(const ncclComm_t comm, void *memory, size_t bytes, void **handle)
{
    (void)comm;
    *handle = memory;
    registrations++;
    return memory && bytes ? SUCCESS : INVALID_ARGUMENT;
}

EXPORT int ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    (void)comm;
    registrations--;
    return handle ? SUCCESS : INVALID_ARGUMENT;
}

EXPORT int ncclCommWindowRegister(ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *window,
                                  int flags)
{
    return flags == NCCL_SYMMETRIC ? ncclCommRegister(comm, memory, bytes, (void **)window)
                                   : INVALID_ARGUMENT;
}

EXPORT int ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
    return ncclCommDeregister(comm, window);
}

EXPORT const char *ncclGetLastError(ncclComm_t comm)
{
    return comm && atomic_load(&comm->error) == INVALID_USAGE ? "the two sides of a transfer differ"
                                                              : "";
}
#endif

/* ---- life ---- */

EXPORT const int drarun_stand_in = 1;

EXPORT int ncclGetVersion(int *version)
{
    const char *named = getenv("STANDIN_NCCL_VERSION");
#ifdef STANDIN_OLD
    *version = 21003;
#else
    *version = 23203;
#endif
    *version = named ? atoi(named) : *version;
    return SUCCESS;
}

EXPORT const char *ncclGetErrorString(int result)
{
    static const char *const words[] = {
        "no error",       "unhandled cuda error", "unhandled system error",
        "internal error", "invalid argument",     "invalid usage"};
    return result >= 0 && (size_t)result < sizeof words / sizeof *words ? words[result] : "unknown";
}

EXPORT int ncclGetUniqueId(ncclUniqueId *id)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "/drarun-standin-%d-%lld%09ld", getpid(),
             (long long)t.tv_sec, t.tv_nsec);
    return SUCCESS;
}

static int wait_for_all(struct ncclComm *c)
{
    double until = now() + WAIT_S;
    atomic_fetch_add(&c->shared->arrived, 1);
    while (atomic_load(&c->shared->arrived) < c->ranks) {
        if (now() > until)
            return SYSTEM;
        sched_yield();
    }
    return SUCCESS;
}

EXPORT int ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
    struct ncclComm *c = calloc(1, sizeof *c);
    if (!c || ranks < 1 || (unsigned)ranks > RANKS_MOST || rank < 0 || rank >= ranks) {
        free(c);
        return INVALID_ARGUMENT;
    }
    const char *wrong = getenv("STANDIN_WRONG");
    *c = (struct ncclComm){.rank = (unsigned)rank,
                           .ranks = (unsigned)ranks,
                           .wrong = wrong && atoi(wrong) == rank,
                           .size = sizeof *c->shared +
                                   (size_t)ranks * (size_t)ranks * sizeof *c->shared->boxes};
    int fd = shm_open(id.internal, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)c->size) < 0)
        return SYSTEM;
    c->shared = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (c->shared == MAP_FAILED)
        return SYSTEM;
    int code = wait_for_all(c);
    if (rank == 0)
        shm_unlink(id.internal);
    *comm = c;
    return code;
}

EXPORT int ncclCommGetAsyncError(ncclComm_t comm, int *result)
{
    *result = atomic_load(&comm->error);
    return SUCCESS;
}

EXPORT int ncclCommDestroy(ncclComm_t comm)
{
#ifndef STANDIN_OLD
    if (registrations)
        fprintf(stderr, "stand-in: %d buffers are still registered\n", registrations);
#endif
    munmap(comm->shared, comm->size);
    free(comm);
    return SUCCESS;
}
