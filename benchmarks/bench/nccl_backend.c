/* SPDX-License-Identifier: Apache-2.0 */
/* The backend of NCCL: one device and one stream a rank. Values that ranks agree on travel over
 * PMIx and not over what is being measured. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/bench/backend.h"
#include "benchmarks/bench/cuda_api.h"
#include "benchmarks/bench/cuda_compare.h"
#include "benchmarks/bench/nccl_hello.h"
#include "benchmarks/bench/pattern.h"
#include "benchmarks/bench/rendezvous.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define SINCE_MULSUM 21100
#define SINCE_FLOAT8 22400

static struct nccl_api nccl;
static struct cuda_api cuda;
static struct rendezvous meet;
static ncclComm_t comm;
static cudaStream_t stream;
static void *beat;    /* one element, which barriers reduce */
static int copy_code; /* of the first copy that failed */
static struct cuda_compare compare;
static struct backend_options asked;
static cudaEvent_t *events; /* of marks */
static size_t event_count;

/* Of a buffer that is registered: a handle, or a window. */
static struct registered {
    void *memory, *handle;
    ncclWindow_t window;
} registered[4];

static int nccl_failed(int code, const char *what, struct drarun_error *err)
{
    const char *last = comm && nccl.ncclGetLastError ? nccl.ncclGetLastError(comm) : "";
    return error_set(err, EIO, "rank %u: %s: %s%s%s", meet.rank, what,
                     nccl.ncclGetErrorString(code), last && *last ? ": " : "", last ?: "");
}

static int cuda_failed(int code, const char *what, struct drarun_error *err)
{
    return error_set(err, EIO, "rank %u: %s: %s", meet.rank, what, cuda.cudaGetErrorString(code));
}

/* ---- life ---- */

static int find_own(struct nccl_hello *hello, struct drarun_error *err)
{
    int rc = nccl_api_open(&nccl, err);
    rc = rc < 0 ? rc : cuda_api_open(&cuda, err);
    rc = rc < 0 ? rc
                : nccl_hello_device(meet.local_rank, cuda.devices, getenv("NCCL_TESTS_DEVICE"),
                                    &hello->device, err);
    if (rc < 0)
        return rc;
    int code = cuda.cudaSetDevice(hello->device);
    if (code != CUDA_SUCCESS)
        return cuda_failed(code, "cudaSetDevice", err);
    cuda.cudaDeviceGetPCIBusId(hello->address, sizeof hello->address, hello->device);
    hello->nccl = nccl.version;
    if (meet.rank == 0 && (code = nccl.ncclGetUniqueId(&hello->id)) != NCCL_SUCCESS)
        return nccl_failed(code, "ncclGetUniqueId", err);
    return 0;
}

/* Every rank comes here, with or without what it needs, and all leave with the same answer. */
static int say_hello(struct nccl_hello *mine, ncclUniqueId *ret_id, struct drarun_error *err)
{
    struct drarun_error problem = {0};
    cleanup_free struct nccl_hello *all = calloc(meet.ranks, sizeof *all);
    if (!all)
        return error_set(err, ENOMEM, "out of memory");
    gethostname(mine->host, sizeof mine->host - 1);
    mine->code = -find_own(mine, &problem);
    snprintf(mine->problem, sizeof mine->problem, "%s", problem.text);
    int rc = rendezvous_share(mine, all, sizeof *mine, err);
    rc = rc < 0 ? rc : nccl_hello_check(all, meet.ranks, err);
    if (rc == 0)
        *ret_id = all[0].id;
    return rc;
}

static int start(const ncclUniqueId *id, struct drarun_error *err)
{
    int code = asked.null_stream
                   ? CUDA_SUCCESS
                   : cuda.cudaStreamCreateWithFlags(&stream, CUDA_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS)
        return cuda_failed(code, "cudaStreamCreateWithFlags", err);
    code = cuda.cudaMalloc(&beat, sizeof(double));
    if (code != CUDA_SUCCESS)
        return cuda_failed(code, "cudaMalloc", err);
    cuda_compare_open(&cuda, &compare);
    code = nccl.ncclCommInitRank(&comm, (int)meet.ranks, *id, (int)meet.rank);
    return code == NCCL_SUCCESS ? 0 : nccl_failed(code, "ncclCommInitRank", err);
}

static int check_asked(struct drarun_error *err)
{
    if (asked.registers >= 1 && (!nccl.ncclCommRegister || !nccl.ncclMemAlloc))
        return error_kind(err, DRARUN_ERR_USAGE, ENOTSUP,
                          "--local_register %u: NCCL has it since 2.19", asked.registers);
    if (asked.registers == 2 && !nccl.ncclCommWindowRegister)
        return error_kind(err, DRARUN_ERR_USAGE, ENOTSUP,
                          "--local_register 2: NCCL has it since 2.27");
    return 0;
}

static int open_world(const struct backend_options *options, struct backend_world *ret_world,
                      struct drarun_error *err)
{
    struct nccl_hello mine = {0};
    struct backend_world world = {0};
    ncclUniqueId id;
    char version[24];
    int rc = rendezvous_open(&meet, err);
    if (rc < 0)
        return rc;
    ret_world->rank = meet.rank;
    ret_world->ranks = meet.ranks;
    ret_world->met = true;
    asked = *options;
    rc = say_hello(&mine, &id, err);
    rc = rc < 0 ? rc : check_asked(err);
    if (rc < 0)
        return rc;
    ret_world->met = false; /* from here on each rank has its own failure */
    rc = start(&id, err);
    if (rc < 0)
        return rc;
    nccl_version_text(nccl.version, version, sizeof version);
    world = (struct backend_world){meet.rank, meet.ranks, .index = mine.device,
                                   .stand_in = nccl.stand_in};
    snprintf(world.library, sizeof world.library, "%sNCCL %s CUDA %d.%d",
             nccl.stand_in ? "stand-in for " : "", version, cuda.version / 1000,
             cuda.version % 1000 / 10);
    snprintf(world.address, sizeof world.address, "%s", mine.address);
    cuda_device_name(&cuda, mine.device, world.device, sizeof world.device);
    *ret_world = world;
    return 0;
}

static void close_world(void)
{
    for (size_t i = 0; i < event_count; i++)
        cuda.cudaEventDestroy(events[i]);
    free(TAKE_PTR(events));
    event_count = 0;
    if (comm)
        nccl.ncclCommDestroy(comm);
    cuda_compare_close(&compare);
    if (beat)
        cuda.cudaFree(beat);
    if (stream)
        cuda.cudaStreamDestroy(stream);
    rendezvous_close();
}

/* ---- memory ---- */

static size_t room(void)
{
    size_t unused = 0, total = 0;
    return cuda.cudaMemGetInfo(&unused, &total) == CUDA_SUCCESS ? unused : 0;
}

/* Windows are registered by all ranks together, which come here for the same buffers. */
static bool register_it(struct registered *r, size_t bytes)
{
    return (asked.registers == 2
                ? nccl.ncclCommWindowRegister(comm, r->memory, bytes, &r->window, NCCL_SYMMETRIC)
                : nccl.ncclCommRegister(comm, r->memory, bytes, &r->handle)) == NCCL_SUCCESS;
}

static void *alloc_registered(size_t bytes)
{
    for (size_t i = 0; i < ARRAY_LEN(registered); i++) {
        struct registered *r = &registered[i];
        if (r->memory)
            continue;
        if (nccl.ncclMemAlloc(&r->memory, bytes) != NCCL_SUCCESS)
            return r->memory = NULL;
        if (register_it(r, bytes))
            return r->memory;
        nccl.ncclMemFree(TAKE_PTR(r->memory));
        return NULL;
    }
    return NULL;
}

static void *alloc(size_t bytes)
{
    void *memory = NULL;
    bytes = bytes ? bytes : 1;
    if (asked.registers)
        return alloc_registered(bytes);
    return cuda.cudaMalloc(&memory, bytes) == CUDA_SUCCESS ? memory : NULL;
}

static void release(void *memory)
{
    for (size_t i = 0; i < ARRAY_LEN(registered); i++) {
        struct registered *r = &registered[i];
        if (r->memory != memory)
            continue;
        if (r->window)
            nccl.ncclCommWindowDeregister(comm, r->window);
        if (r->handle)
            nccl.ncclCommDeregister(comm, r->handle);
        nccl.ncclMemFree(memory);
        *r = (struct registered){0};
        return;
    }
    cuda.cudaFree(memory);
}

static void note_copy(int code)
{
    copy_code = copy_code ? copy_code : code;
}

static void copy(void *to, const void *from, size_t bytes)
{
    note_copy(cuda.cudaMemcpyAsync(to, from, bytes, CUDA_COPY_ANY, stream));
}

static void move(void *to, const void *from, size_t bytes)
{
    copy(to, from, bytes);
    note_copy(cuda.cudaStreamSynchronize(stream));
}

static bool same(const void *a, const void *b, size_t bytes)
{
    return cuda_compare_same(&compare, a, b, bytes, stream);
}

/* ---- transfers: the numbers of types and operations are those of NCCL ---- */

_Static_assert(ELEMENT_F8E5M2 == 11 && ELEMENT_HALF == 6 && REDUCE_AVG == 4, "as in nccl.h");

static int done(int code, const char *what, struct drarun_error *err)
{
    return code == NCCL_SUCCESS || code == NCCL_IN_PROGRESS ? 0 : nccl_failed(code, what, err);
}

/* MULSUM is an operation that is made for each call, as nccl-tests does. */
static int begin_op(const struct transfer *t, int *ret_op, struct drarun_error *err)
{
    char scalar[8] = {0};
    if (t->op != REDUCE_MULSUM) {
        *ret_op = (int)t->op;
        return 0;
    }
    element_store(t->type, scalar, pattern_scalar(meet.rank));
    return done(
        nccl.ncclRedOpCreatePreMulSum(ret_op, scalar, (int)t->type, NCCL_HOST_IMMEDIATE, comm),
        "ncclRedOpCreatePreMulSum", err);
}

static void end_op(const struct transfer *t, int op)
{
    if (t->op == REDUCE_MULSUM)
        nccl.ncclRedOpDestroy(op, comm);
}

static int all_reduce(const struct transfer *t, struct drarun_error *err)
{
    int op, rc = begin_op(t, &op, err);
    if (rc < 0)
        return rc;
    rc = done(nccl.ncclAllReduce(t->send, t->recv, t->count, (int)t->type, op, comm, stream),
              "ncclAllReduce", err);
    end_op(t, op);
    return rc;
}

static int reduce_scatter(const struct transfer *t, struct drarun_error *err)
{
    int op, rc = begin_op(t, &op, err);
    if (rc < 0)
        return rc;
    rc = done(nccl.ncclReduceScatter(t->send, t->recv, t->count, (int)t->type, op, comm, stream),
              "ncclReduceScatter", err);
    end_op(t, op);
    return rc;
}

static int reduce(const struct transfer *t, struct drarun_error *err)
{
    int op, rc = begin_op(t, &op, err);
    if (rc < 0)
        return rc;
    rc = done(
        nccl.ncclReduce(t->send, t->recv, t->count, (int)t->type, op, (int)t->root, comm, stream),
        "ncclReduce", err);
    end_op(t, op);
    return rc;
}

static int all_gather(const struct transfer *t, struct drarun_error *err)
{
    return done(nccl.ncclAllGather(t->send, t->recv, t->count, (int)t->type, comm, stream),
                "ncclAllGather", err);
}

static int broadcast(const struct transfer *t, struct drarun_error *err)
{
    return done(
        nccl.ncclBroadcast(t->send, t->recv, t->count, (int)t->type, (int)t->root, comm, stream),
        "ncclBroadcast", err);
}

static int send_to(const struct transfer *t, const void *what, int to, struct drarun_error *err)
{
    return done(nccl.ncclSend(what, t->count, (int)t->type, to, comm, stream), "ncclSend", err);
}

static int recv_from(const struct transfer *t, void *what, int from, struct drarun_error *err)
{
    return done(nccl.ncclRecv(what, t->count, (int)t->type, from, comm, stream), "ncclRecv", err);
}

/* With every rank: send to each of them, receive from each of them, or both. */
static int with_all(const struct transfer *t, bool sends, bool receives, struct drarun_error *err)
{
    size_t part = t->count * element_size(t->type);
    int rc = 0;
    for (unsigned peer = 0; rc == 0 && peer < meet.ranks; peer++) {
        if (sends)
            rc = send_to(t, (const char *)t->send + peer * part, (int)peer, err);
        if (rc == 0 && receives)
            rc = recv_from(t, (char *)t->recv + peer * part, (int)peer, err);
    }
    return rc;
}

static int alltoall_by_sends(const struct transfer *t, struct drarun_error *err)
{
    nccl.ncclGroupStart();
    int rc = with_all(t, true, true, err), code = nccl.ncclGroupEnd();
    return rc < 0 ? rc : done(code, "ncclGroupEnd", err);
}

static int alltoallv(const struct transfer *t, const struct transfer_part *with,
                     struct drarun_error *err)
{
    size_t size = element_size(t->type);
    int rc = 0;
    nccl.ncclGroupStart();
    for (unsigned peer = 0; rc == 0 && peer < meet.ranks; peer++) {
        struct transfer part = *t;
        part.count = with[peer].send;
        if (part.count)
            rc = send_to(&part, (const char *)t->send + with[peer].send_at * size, (int)peer, err);
        part.count = with[peer].recv;
        if (rc == 0 && part.count)
            rc = recv_from(&part, (char *)t->recv + with[peer].recv_at * size, (int)peer, err);
    }
    int code = nccl.ncclGroupEnd();
    return rc < 0 ? rc : done(code, "ncclGroupEnd", err);
}

static int gather_by_sends(const struct transfer *t, struct drarun_error *err)
{
    nccl.ncclGroupStart();
    int rc = send_to(t, t->send, (int)t->root, err);
    if (rc == 0 && meet.rank == t->root)
        rc = with_all(t, false, true, err);
    int code = nccl.ncclGroupEnd();
    return rc < 0 ? rc : done(code, "ncclGroupEnd", err);
}

static int scatter_by_sends(const struct transfer *t, struct drarun_error *err)
{
    nccl.ncclGroupStart();
    int rc = meet.rank == t->root ? with_all(t, true, false, err) : 0;
    rc = rc < 0 ? rc : recv_from(t, t->recv, (int)t->root, err);
    int code = nccl.ncclGroupEnd();
    return rc < 0 ? rc : done(code, "ncclGroupEnd", err);
}

static int alltoall(const struct transfer *t, struct drarun_error *err)
{
    if (!nccl.ncclAlltoAll)
        return alltoall_by_sends(t, err);
    return done(nccl.ncclAlltoAll(t->send, t->recv, t->count, (int)t->type, comm, stream),
                "ncclAlltoAll", err);
}

static int gather(const struct transfer *t, struct drarun_error *err)
{
    if (!nccl.ncclGather)
        return gather_by_sends(t, err);
    return done(
        nccl.ncclGather(t->send, t->recv, t->count, (int)t->type, (int)t->root, comm, stream),
        "ncclGather", err);
}

static int scatter(const struct transfer *t, struct drarun_error *err)
{
    if (!nccl.ncclScatter)
        return scatter_by_sends(t, err);
    return done(
        nccl.ncclScatter(t->send, t->recv, t->count, (int)t->type, (int)t->root, comm, stream),
        "ncclScatter", err);
}

static int sendrecv(const struct transfer *t, unsigned to, unsigned from, struct drarun_error *err)
{
    nccl.ncclGroupStart();
    int rc = send_to(t, t->send, (int)to, err);
    rc = rc < 0 ? rc : recv_from(t, t->recv, (int)from, err);
    int code = nccl.ncclGroupEnd();
    return rc < 0 ? rc : done(code, "ncclGroupEnd", err);
}

static int group(bool begins, struct drarun_error *err)
{
    return begins ? done(nccl.ncclGroupStart(), "ncclGroupStart", err)
                  : done(nccl.ncclGroupEnd(), "ncclGroupEnd", err);
}

/* ---- waiting and time ---- */

static int mark(size_t i, struct drarun_error *err)
{
    if (i >= event_count) {
        cudaEvent_t *more = reallocarray(events, i + 1, sizeof *more);
        if (!more)
            return error_set(err, ENOMEM, "out of memory");
        events = more;
        for (; event_count <= i; event_count++) {
            int code = cuda.cudaEventCreate(&events[event_count]);
            if (code != CUDA_SUCCESS)
                return cuda_failed(code, "cudaEventCreate", err);
        }
    }
    int code = cuda.cudaEventRecord(events[i], stream);
    return code == CUDA_SUCCESS ? 0 : cuda_failed(code, "cudaEventRecord", err);
}

static int between(size_t i, double *ret_seconds, struct drarun_error *err)
{
    float milliseconds = 0;
    int code = cuda.cudaEventElapsedTime(&milliseconds, events[i], events[i + 1]);
    if (code != CUDA_SUCCESS)
        return cuda_failed(code, "cudaEventElapsedTime", err);
    *ret_seconds = milliseconds / 1e3;
    return 0;
}

/* Polls, so that what NCCL finds out meanwhile (a rank that is gone) ends the wait. */
static int finish(struct drarun_error *err)
{
    int code, result = NCCL_SUCCESS;
    while ((code = cuda.cudaStreamQuery(stream)) == CUDA_NOT_READY) {
        int asked = nccl.ncclCommGetAsyncError(comm, &result);
        if (asked != NCCL_SUCCESS || (result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS))
            return nccl_failed(asked != NCCL_SUCCESS ? asked : result, "while waiting", err);
        sched_yield();
    }
    if (copy_code)
        return cuda_failed(copy_code, "cudaMemcpyAsync", err);
    return code == CUDA_SUCCESS ? 0 : cuda_failed(code, "cudaStreamQuery", err);
}

static int barrier(struct drarun_error *err)
{
    int rc = done(nccl.ncclAllReduce(beat, beat, 1, ELEMENT_INT32, REDUCE_SUM, comm, stream),
                  "ncclAllReduce", err);
    return rc < 0 ? rc : finish(err);
}

/* ---- what the program says to itself ---- */

static double both(double a, double b, enum backend_agree how)
{
    if (how == AGREE_SUM)
        return a + b;
    return (how == AGREE_MIN) == (a < b) ? a : b;
}

static int agree(double *values, size_t count, enum backend_agree how, struct drarun_error *err)
{
    cleanup_free double *all = calloc(meet.ranks * count + 1, sizeof *all);
    if (!all)
        return error_set(err, ENOMEM, "out of memory");
    int rc = rendezvous_share(values, all, count * sizeof *values, err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        values[i] = all[i];
        for (unsigned rank = 1; rank < meet.ranks; rank++)
            values[i] = both(values[i], all[rank * count + i], how);
    }
    return rc;
}

static const char *lacks(enum element type, enum reduction op)
{
    if (op == REDUCE_MULSUM &&
        (nccl.version < SINCE_MULSUM || !nccl.ncclRedOpCreatePreMulSum || !nccl.ncclRedOpDestroy))
        return "NCCL has a sum of products with a factor since 2.11";
    bool float8 = type == ELEMENT_F8E4M3 || type == ELEMENT_F8E5M2;
    if (float8 && nccl.version < SINCE_FLOAT8)
        return "NCCL has floats of 8 bits since 2.24";
    /* enqueue.cc (hostToDevRedOp) has them where its compiler knows the type: NVIDIA's builds
     * answer "invalid argument" (2.28.9) */
    if (float8 && (op == REDUCE_AVG || op == REDUCE_MULSUM))
        return "NCCL refuses avg and mulsum of floats of 8 bits";
    return NULL;
}

__attribute__((visibility("default"))) const struct backend bench_backend = {
    .version = BACKEND_VERSION,
    .name = "nccl",
    .open = open_world,
    .close = close_world,
    .room = room,
    .alloc = alloc,
    .release = release,
    .put = move,
    .get = move,
    .copy = copy,
    .same = same,
    .all_reduce = all_reduce,
    .all_gather = all_gather,
    .reduce_scatter = reduce_scatter,
    .broadcast = broadcast,
    .reduce = reduce,
    .alltoall = alltoall,
    .alltoallv = alltoallv,
    .gather = gather,
    .scatter = scatter,
    .sendrecv = sendrecv,
    .group = group,
    .finish = finish,
    .mark = mark,
    .between = between,
    .barrier = barrier,
    .agree = agree,
    .share = rendezvous_share,
    .lacks = lacks,
};
