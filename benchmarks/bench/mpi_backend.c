/* SPDX-License-Identifier: Apache-2.0 */
/* The backend of whatever MPI this file is compiled with. The caller's addresses may overlap as
 * NCCL has it for transfers in place; MPI forbids that, and has MPI_IN_PLACE. */
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/bench/backend.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"

/* All ranks; inside of another program (same_process.c) those that it measures with. */
#ifdef BENCH_WORLD
extern MPI_Comm BENCH_WORLD;
#define WORLD BENCH_WORLD
#else
#define WORLD MPI_COMM_WORLD
#endif

#define OPS 4u /* that MPI has: sum, prod, max, min */

static int rank, ranks;
/* Looked up in each timed call. Those that MPI has not are made (of bytes) when they are used
 * first, and null until then. */
static MPI_Datatype types[ELEMENTS];
static MPI_Op ops[ELEMENTS][OPS];

static int failed(int code, const char *what, struct drarun_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return error_set(err, EIO, "%s: %s", what, text);
}

/* ---- types and operations ---- */

static MPI_Datatype own_type(enum element type)
{
    switch (type) {
    case ELEMENT_INT8:
        return MPI_INT8_T;
    case ELEMENT_UINT8:
        return MPI_UINT8_T;
    case ELEMENT_INT32:
        return MPI_INT32_T;
    case ELEMENT_UINT32:
        return MPI_UINT32_T;
    case ELEMENT_INT64:
        return MPI_INT64_T;
    case ELEMENT_UINT64:
        return MPI_UINT64_T;
    case ELEMENT_FLOAT:
        return MPI_FLOAT;
    case ELEMENT_DOUBLE:
        return MPI_DOUBLE;
    default:
        return MPI_DATATYPE_NULL;
    }
}

static MPI_Datatype make_type(enum element type)
{
    MPI_Type_contiguous((int)element_size(type), MPI_BYTE, &types[type]);
    MPI_Type_commit(&types[type]);
    return types[type];
}

static inline MPI_Datatype type_of(enum element type)
{
    return types[type] != MPI_DATATYPE_NULL ? types[type] : make_type(type);
}

static void reduce_made(void *from, void *into, int count, MPI_Datatype of, enum reduction op)
{
    for (unsigned type = 0; type < ELEMENTS; type++)
        if (types[type] != MPI_DATATYPE_NULL && types[type] == of)
            element_reduce((enum element)type, op, into, from, (size_t)count);
}

#define MADE(name, op)                                                                             \
    static void name(void *from, void *into, int *count, MPI_Datatype *of)                         \
    {                                                                                              \
        reduce_made(from, into, *count, *of, op);                                                  \
    }

MADE(made_sum, REDUCE_SUM)
MADE(made_prod, REDUCE_PROD)
MADE(made_max, REDUCE_MAX)
MADE(made_min, REDUCE_MIN)

static MPI_Op make_op(enum element type, enum reduction op)
{
    static MPI_User_function *const functions[OPS] = {made_sum, made_prod, made_max, made_min};
    MPI_Op_create(functions[op], 1, &ops[type][op]);
    return ops[type][op];
}

static inline MPI_Op op_of(enum element type, enum reduction op)
{
    return ops[type][op] != MPI_OP_NULL ? ops[type][op] : make_op(type, op);
}

static void know_types_and_ops(void)
{
    const MPI_Op own[OPS] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN};
    for (unsigned type = 0; type < ELEMENTS; type++) {
        types[type] = own_type((enum element)type);
        for (unsigned op = 0; op < OPS; op++)
            ops[type][op] = types[type] != MPI_DATATYPE_NULL ? own[op] : MPI_OP_NULL;
    }
}

static const char *lacks(enum element type, enum reduction op)
{
    (void)type;
    if (op == REDUCE_AVG)
        return "MPI has no average";
    return op == REDUCE_MULSUM ? "MPI has no sum of products with a factor" : NULL;
}

/* ---- life ---- */

/* A double holds nanoseconds of seconds since a start, and no longer of those since 1970. */
static bool has_nanoseconds(void)
{
    return MPI_Wtick() <= 1e-8 && MPI_Wtime() < 1e7;
}

static int open_world(const struct backend_options *options, struct backend_world *ret_world,
                      struct drarun_error *err)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    if (options->null_stream || options->registers)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          options->null_stream
                              ? "--stream_null 1: MPI has no CUDA stream"
                              : "--local_register: MPI has nothing to be registered");
    int length = 0, code = MPI_Init(NULL, NULL);
    if (code != MPI_SUCCESS)
        return error_set(err, EIO, "MPI_Init failed with %d", code);
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &ranks);
    know_types_and_ops();
    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = '\0';
    for (char *c = text; *c; c++) /* MPICH has a tab there */
        *c = *c == '\t' ? ' ' : *c;
    *ret_world = (struct backend_world){
        .rank = (unsigned)rank,
        .ranks = (unsigned)ranks,
        .device = "memory",
        .clock = has_nanoseconds() ? MPI_Wtime : NULL,
    };
    snprintf(ret_world->library, sizeof ret_world->library, "%.95s", text);
    return 0;
}

static void close_world(void)
{
    MPI_Finalize();
}

/* MPI's own memory, as other benchmarks of MPI have it: some libraries copy once from it and twice
 * from any other. */
static void *alloc(size_t bytes)
{
    void *memory = NULL;
    int code = MPI_Alloc_mem((MPI_Aint)(bytes ? bytes : 1), MPI_INFO_NULL, &memory);
    return code == MPI_SUCCESS ? memory : NULL;
}

static void release(void *memory)
{
    MPI_Free_mem(memory);
}

static void copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static bool same(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

/* ---- transfers ---- */

static bool is_at(const void *a, const void *b, size_t count, enum element type)
{
    return (const char *)a == (const char *)b + (size_t)rank * count * element_size(type);
}

static int check_count(const struct transfer *t, struct drarun_error *err)
{
    if (t->count <= INT_MAX)
        return 0;
    return error_set(err, EOVERFLOW, "%zu elements are more than a count of MPI 3 holds (%d)",
                     t->count, INT_MAX);
}

static int all_reduce(const struct transfer *t, struct drarun_error *err)
{
    int rc = check_count(t, err);
    if (rc < 0)
        return rc;
    int code = MPI_Allreduce(t->send == t->recv ? MPI_IN_PLACE : t->send, t->recv, (int)t->count,
                             type_of(t->type), op_of(t->type, t->op), WORLD);
    return code == MPI_SUCCESS ? 0 : failed(code, "MPI_Allreduce", err);
}

static int all_gather(const struct transfer *t, struct drarun_error *err)
{
    int rc = check_count(t, err);
    if (rc < 0)
        return rc;
    MPI_Datatype type = type_of(t->type);
    int code =
        is_at(t->send, t->recv, t->count, t->type)
            ? MPI_Allgather(MPI_IN_PLACE, 0, type, t->recv, (int)t->count, type, WORLD)
            : MPI_Allgather(t->send, (int)t->count, type, t->recv, (int)t->count, type, WORLD);
    return code == MPI_SUCCESS ? 0 : failed(code, "MPI_Allgather", err);
}

/* MPI's result in place is at the buffer's begin, NCCL's at the rank's part: it is copied there. */
static int reduce_scatter(const struct transfer *t, struct drarun_error *err)
{
    int rc = check_count(t, err);
    if (rc < 0)
        return rc;
    bool in_place = is_at(t->recv, t->send, t->count, t->type);
    int code = MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : t->send,
                                        in_place ? unconst(t->send) : t->recv, (int)t->count,
                                        type_of(t->type), op_of(t->type, t->op), WORLD);
    if (in_place && t->recv != t->send)
        memcpy(t->recv, t->send, t->count * element_size(t->type));
    return code == MPI_SUCCESS ? 0 : failed(code, "MPI_Reduce_scatter_block", err);
}

static int broadcast(const struct transfer *t, struct drarun_error *err)
{
    int rc = check_count(t, err);
    if (rc < 0)
        return rc;
    if ((unsigned)rank == t->root && t->send != t->recv)
        memcpy(t->recv, t->send, t->count * element_size(t->type));
    int code = MPI_Bcast(t->recv, (int)t->count, type_of(t->type), (int)t->root, WORLD);
    return code == MPI_SUCCESS ? 0 : failed(code, "MPI_Bcast", err);
}

static int reduce(const struct transfer *t, struct drarun_error *err)
{
    int rc = check_count(t, err);
    if (rc < 0)
        return rc;
    bool root = (unsigned)rank == t->root;
    int code =
        MPI_Reduce(root && t->send == t->recv ? MPI_IN_PLACE : t->send, root ? t->recv : NULL,
                   (int)t->count, type_of(t->type), op_of(t->type, t->op), (int)t->root, WORLD);
    return code == MPI_SUCCESS ? 0 : failed(code, "MPI_Reduce", err);
}

static int alltoall(const struct transfer *t, struct drarun_error *err)
{
    int rc = check_count(t, err);
    if (rc < 0)
        return rc;
    MPI_Datatype type = type_of(t->type);
    int code = MPI_Alltoall(t->send == t->recv ? MPI_IN_PLACE : t->send, (int)t->count, type,
                            t->recv, (int)t->count, type, WORLD);
    return code == MPI_SUCCESS ? 0 : failed(code, "MPI_Alltoall", err);
}

/* MPI's own form of the parts, of which there are `ranks`; kept, for calls come often. */
static int numbers_of(const struct transfer_part *with, const int **ret, struct drarun_error *err)
{
    static int *numbers;
    size_t n = (size_t)ranks;
    if (!numbers && !(numbers = calloc(4 * n, sizeof *numbers)))
        return error_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        if (with[i].send_at + with[i].send > INT_MAX || with[i].recv_at + with[i].recv > INT_MAX)
            return error_set(err, EOVERFLOW, "more elements than a count of MPI 3 holds (%d)",
                             INT_MAX);
        numbers[i] = (int)with[i].send;
        numbers[n + i] = (int)with[i].send_at;
        numbers[2 * n + i] = (int)with[i].recv;
        numbers[3 * n + i] = (int)with[i].recv_at;
    }
    *ret = numbers;
    return 0;
}

static int alltoallv(const struct transfer *t, const struct transfer_part *with,
                     struct drarun_error *err)
{
    MPI_Datatype type = type_of(t->type);
    const int *of = NULL;
    int rc = numbers_of(with, &of, err);
    if (rc < 0)
        return rc;
    int code = MPI_Alltoallv(t->send, of, of + ranks, type, t->recv, of + 2 * ranks, of + 3 * ranks,
                             type, WORLD);
    return code == MPI_SUCCESS ? 0 : failed(code, "MPI_Alltoallv", err);
}

static int gather(const struct transfer *t, struct drarun_error *err)
{
    int rc = check_count(t, err);
    if (rc < 0)
        return rc;
    MPI_Datatype type = type_of(t->type);
    bool in_place = (unsigned)rank == t->root && is_at(t->send, t->recv, t->count, t->type);
    int code = MPI_Gather(in_place ? MPI_IN_PLACE : t->send, (int)t->count, type,
                          (unsigned)rank == t->root ? t->recv : NULL, (int)t->count, type,
                          (int)t->root, WORLD);
    return code == MPI_SUCCESS ? 0 : failed(code, "MPI_Gather", err);
}

static int scatter(const struct transfer *t, struct drarun_error *err)
{
    int rc = check_count(t, err);
    if (rc < 0)
        return rc;
    MPI_Datatype type = type_of(t->type);
    bool in_place = (unsigned)rank == t->root && is_at(t->recv, t->send, t->count, t->type);
    int code =
        MPI_Scatter((unsigned)rank == t->root ? t->send : NULL, (int)t->count, type,
                    in_place ? MPI_IN_PLACE : t->recv, (int)t->count, type, (int)t->root, WORLD);
    return code == MPI_SUCCESS ? 0 : failed(code, "MPI_Scatter", err);
}

static int sendrecv(const struct transfer *t, unsigned to, unsigned from, struct drarun_error *err)
{
    int rc = check_count(t, err);
    if (rc < 0)
        return rc;
    MPI_Datatype type = type_of(t->type);
    int code = t->send == t->recv
                   ? MPI_Sendrecv_replace(t->recv, (int)t->count, type, (int)to, 0, (int)from, 0,
                                          WORLD, MPI_STATUS_IGNORE)
                   : MPI_Sendrecv(t->send, (int)t->count, type, (int)to, 0, t->recv, (int)t->count,
                                  type, (int)from, 0, WORLD, MPI_STATUS_IGNORE);
    return code == MPI_SUCCESS ? 0 : failed(code, "MPI_Sendrecv", err);
}

static int barrier(struct drarun_error *err)
{
    int code = MPI_Barrier(WORLD);
    return code == MPI_SUCCESS ? 0 : failed(code, "MPI_Barrier", err);
}

static int agree(double *values, size_t count, enum backend_agree how, struct drarun_error *err)
{
    const MPI_Op of[] = {[AGREE_SUM] = MPI_SUM, [AGREE_MIN] = MPI_MIN, [AGREE_MAX] = MPI_MAX};
    int code = MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_DOUBLE, of[how], WORLD);
    return code == MPI_SUCCESS ? 0 : failed(code, "MPI_Allreduce", err);
}

static int share(const void *mine, void *all, size_t bytes, struct drarun_error *err)
{
    int code = MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, WORLD);
    return code == MPI_SUCCESS ? 0 : failed(code, "MPI_Allgather", err);
}

__attribute__((visibility("default"))) const struct backend bench_backend = {
    .version = BACKEND_VERSION,
    .name = "mpi",
    .open = open_world,
    .close = close_world,
    .alloc = alloc,
    .release = release,
    .put = copy,
    .get = copy,
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
    .barrier = barrier,
    .agree = agree,
    .share = share,
    .lacks = lacks,
};
